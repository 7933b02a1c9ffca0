"""What a study spends besides measuring: processes end at once, and models are loaded no more often than needed."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from bitwatt.deploy import breakdown, runtimes
from bitwatt.deploy.breakdown import modules
from bitwatt.deploy.making import saving
from bitwatt.deploy.measuring import children, counts
from bitwatt.deploy.records import Artefact
from bitwatt.deploy.runtimes.torch_eager import Module

ROWS = np.random.default_rng(0).normal(size=(64, 4))


def lingering(job: dict[str, Any], tell: children.Tell) -> None:
    """A task that leaves a process behind, something to clean up, and something to take apart."""
    import atexit
    import subprocess
    import sys

    class Held:
        def __del__(self) -> None:
            print(" and taken apart", end="")

    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    atexit.register(print, ", cleaned up", end="")
    sys.modules[__name__].held = Held()  # type: ignore[attr-defined]
    print("said", end="")
    tell.result({"left": left.pid})


def test_a_process_ends_when_its_task_does_and_takes_along_what_it_started(tmp_path: Path) -> None:
    ended = children.run({"task": f"{__name__}:lingering"}, tmp_path, timeout_s=30.0)
    assert not ended.failure
    assert (tmp_path / "printed.txt").read_text() == "said, cleaned up"
    until = time.monotonic() + 30
    while _runs(ended.results[0]["left"]) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _runs(ended.results[0]["left"])


def _runs(process: int) -> bool:
    """A zombie, whom nobody here can reap, does not."""
    try:
        return "(zombie)" not in Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Artefact, list[str]]:
    """An estimator's file, and a line for each time it is loaded."""
    joblib.dump(LogisticRegression().fit(ROWS, np.arange(64) % 2), tmp_path / "model.joblib")
    artefact = Artefact("sklearn-fp64", "sklearn-fp64", str(tmp_path), ("model.joblib",), "predict_proba")
    seen: list[str] = []
    kind = type(runtimes.runtime("sklearn-fp64"))
    load = kind.load

    def counted(self: Any, artefact: Artefact, threads: int) -> Any:
        seen.append(artefact.scenario)
        return load(self, artefact, threads)

    monkeypatch.setattr(kind, "load", counted)
    return artefact, seen


def test_a_model_is_loaded_twice_to_be_broken_down_at_any_number_of_batch_sizes(
    loads: tuple[Artefact, list[str]],
) -> None:
    artefact, seen = loads
    found = breakdown.over(artefact, ROWS, (1, 8, 32), apart=False, seconds=0.02)
    assert [len(one.stages) > 1 for one in found.values()] == [True] * 3, "the second copy is watched each time"
    assert len(seen) == 2


def test_a_model_is_loaded_once_to_be_counted_at_any_number_of_batch_sizes(loads: tuple[Artefact, list[str]]) -> None:
    artefact, seen = loads
    found = counts.each(artefact, ROWS, (1, 8, 32), "sklearn", artefact)
    assert len(seen) == 1
    assert [one["macs"] for one in found] == [4, 32, 128], "a row has four products"


def test_modules_are_as_before_when_they_have_been_watched() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    model[1].forward = own = lambda x: x.clamp(0.0)  # type: ignore[method-assign]
    again = Module(model, "cpu")
    rows = torch.from_numpy(ROWS.astype("float32"))
    for batch in (1, 8):
        found = modules.split(Module(model, "cpu"), lambda: again, breakdown.cut(rows, batch), batch, 0.02)
        assert [part.name for part in found.stages].count("0 (Linear)") == 1
    assert "forward" not in vars(model)
    assert "forward" not in vars(model[0])
    assert model[1].forward is own


def test_what_is_installed_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[int] = []

    def distributions() -> dict[str, list[str]]:
        reads.append(os.getpid())
        return {"sklearn": ["scikit-learn"]}

    monkeypatch.setattr(saving, "packages_distributions", distributions)
    saving._distributions.cache_clear()
    try:
        assert list(saving.versions("sklearn.svm")) == ["scikit-learn"]
        assert list(saving.versions("sklearn.svm", "numpy")) == ["scikit-learn", "numpy"]
    finally:
        saving._distributions.cache_clear()
    assert len(reads) == 1
