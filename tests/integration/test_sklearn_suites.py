"""scikit-learn's own test suites pass with measuring on as they do with it off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

sklearn = pytest.importorskip("sklearn")

WRAPPERS = "compose tests.test_multiclass tests.test_multioutput tests.test_calibration tests.test_base"
SINGLES = "tests.test_naive_bayes tests.test_dummy tests.test_isotonic tests.test_kernel_approximation"
SUITES = {
    "pipeline": "tests.test_pipeline",
    "linear_model": "linear_model",
    "tree": "tree",
    "ensemble": "ensemble",
    "cluster": "cluster",
    "model_selection": "model_selection",
    "wrappers": f"{WRAPPERS} tests.test_metaestimators tests.test_metadata_routing tests.test_config",
    "feature_selection": "feature_selection",
    "preprocessing": "preprocessing",
    "decomposition": "decomposition",
    "neighbors": "neighbors",
    "svm": "svm feature_extraction",
    "small": f"{SINGLES} tests.test_random_projection tests.test_discriminant_analysis frozen",
    "others": "covariance mixture semi_supervised cross_decomposition impute",
}


def failures(suite: str, folder: Path, name: str, **settings: str) -> tuple[set[str], int]:
    """Tests that fail, and how many ran. A suite lives in its package: we only tell pytest which."""
    outcomes = folder / name
    outcomes.touch()
    (folder / "pytest.ini").write_text("[pytest]\n")
    here = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}  # it is no worker
    environment = here | settings | {"SUITE_OUTCOMES": str(outcomes), "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "-q", "-p", "no:cacheprovider", "-p", "suite_plugin"]
    command += ["--rootdir", str(Path(sklearn.__file__).parents[1])]  # names of tests then begin with their file
    modules = [f"sklearn.{module}" for module in SUITES[suite].split()]
    done = subprocess.run(
        [*command, "--pyargs", *modules], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    lines = outcomes.read_text().splitlines()
    assert done.returncode in (0, 1), done.stdout[-2000:] + done.stderr[-2000:]
    return {line.partition(" ")[2] for line in lines if line.startswith("failed")}, len(lines)


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_ends_as_without_us(suite: str, tmp_path: Path) -> None:
    failed, ran = failures(suite, tmp_path, "measured", SUITE_MEASURING="1")
    assert ran > 100
    if failed:  # perhaps they always do
        (tmp_path / "only").write_text("\n".join(sorted(failed)))
        always, again = failures(suite, tmp_path, "plain", SUITE_ONLY=str(tmp_path / "only"))
        assert again >= len(failed)
        assert failed - always == set()
