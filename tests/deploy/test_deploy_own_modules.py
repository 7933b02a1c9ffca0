"""Models whose classes are in a file of the user's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OWN = """
from sklearn.base import BaseEstimator, TransformerMixin

class Doubled(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self
    def transform(self, X):
        return X * 2
"""
SAVE = "import joblib, own_steps; joblib.dump(own_steps.Doubled(), 'step.joblib')"
READ = """
import sys
sys.path = [path for path in sys.path if path]  # as the command bitwatt has it
from bitwatt.deploy.given import modelfiles
print(type(modelfiles.read("step.joblib", True)[0]).__name__)
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    (tmp_path / "own_steps.py").write_text(OWN)
    assert run(SAVE, tmp_path).returncode == 0
    return tmp_path


def test_a_module_in_the_folder_where_the_command_is_given_is_found(saved: Path) -> None:
    assert run(READ, saved).stdout.strip() == "Doubled"


def test_a_module_that_is_nowhere_is_named(saved: Path) -> None:
    (saved / "own_steps.py").unlink()
    said = run(READ, saved).stderr
    assert "step.joblib needs the package own_steps, which is not installed here" in said
