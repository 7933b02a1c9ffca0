"""Boosters are watched whichever way a program comes to import them, with scikit-learn or without."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TRAINS = {
    "xgboost": """
data = xgboost.DMatrix(X, y)
booster = xgboost.train({"max_depth": 3}, data, 5)
booster.predict(data)
""",
    "lightgbm": """
booster = lightgbm.train({"num_leaves": 8, "verbose": -1}, lightgbm.Dataset(X, y), 5)
booster.predict(X)
""",
    "catboost": """
pool = catboost.Pool(X, y)
model = catboost.train(pool, {"depth": 3, "verbose": False, "allow_writing_files": False}, iterations=5)
model.predict(pool)
""",
}
PROGRAM = """
import json, sys, warnings
import numpy as np
import bitwatt

warnings.simplefilter("error", UserWarning)
{before}
X = np.random.default_rng(0).normal(size=(500, 6))
y = (X[:, 0] > 0) * 1.0
with bitwatt.measure(keep=False, meter=False) as session:
    import {library}
    {train}
run = session.run
print(json.dumps([bitwatt.totals(run).by("op"), list(run.notes), "sklearn" in sys.modules]))
"""
HIDDEN = """
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "sklearn":
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Hidden())
"""


def told(library: str, before: str) -> tuple[dict[str, float], list[str], bool]:
    """FLOPs by op, notes, and whether scikit-learn was imported."""
    train = TRAINS[library].strip().replace("\n", "\n    ")
    code = PROGRAM.format(before=before, library=library, train=train)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ops, notes, sklearn = json.loads(done.stdout.splitlines()[-1])
    return ops, notes, sklearn


@pytest.mark.parametrize("library", TRAINS)
def test_a_booster_is_counted_whatever_is_imported_first(library: str) -> None:
    """XGBoost and LightGBM import scikit-learn while they are imported themselves."""
    expected, notes, _ = told(library, f"import sklearn.base, {library}")
    assert len(expected) == 2
    assert all(expected.values())
    assert not notes
    for before in ("", "import sklearn.base", f"import {library}"):
        ops, notes, _ = told(library, before)
        assert ops == expected
        assert not notes


@pytest.mark.parametrize("library", TRAINS)
def test_a_booster_is_counted_where_scikit_learn_is_not_installed(library: str) -> None:
    expected, _, _ = told(library, "import sklearn.base")
    ops, notes, sklearn = told(library, HIDDEN)
    assert not sklearn
    assert ops == expected
    assert not notes
