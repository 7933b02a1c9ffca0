"""A runtime computes in as many threads as it was given: seen in the CPU time of every thread of a fresh process."""

from __future__ import annotations

import itertools
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitwatt.deploy.given import loading
from bitwatt.deploy.making import building
from bitwatt.deploy.measuring import batching, together

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")
ROWS, FEATURES, SECONDS = 4000, 30, 0.4
#: Of the CPU time of all: a thread with less only waits, wakes others or ends.
SHARE = 0.1


def busy(artefact: Any, job: dict[str, Any], tell: Any) -> None:
    from bitwatt.deploy import runtimes
    from bitwatt.deploy.measuring.worker import limit_torch

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["allowed"])  # what is pinned to one core could hide threads that take turns on it
    rows = batching.load(job["rows"], tensors="torch" in artefact.imports)
    loaded = runtimes.load(artefact, job["threads"])
    limit_torch(job["threads"])
    loaded.predict(rows)
    before, until = _spent(), time.monotonic() + SECONDS
    for calls in itertools.count():
        if calls >= 10 and time.monotonic() > until:
            break
        loaded.predict(rows)
    tell.result({"spent": [now - before.get(name, 0) for name, now in _spent().items()]})


def _spent() -> dict[str, int]:
    """ns on a processor, by thread."""
    return {
        task.name: int((task / "schedstat").read_text().split()[0])
        for task in Path("/proc/self/task").iterdir()
        if (task / "schedstat").exists()
    }


def model_of(kind: str) -> Any:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(600, FEATURES))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)
    if kind == "torch":
        torch = pytest.importorskip("torch")
        return torch.nn.Sequential(torch.nn.Linear(FEATURES, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2))
    if kind == "sklearn":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(40, n_jobs=-1, random_state=0).fit(X, y)
    library = pytest.importorskip(kind)
    made = {
        "xgboost": lambda: library.XGBClassifier(n_estimators=60),
        "lightgbm": lambda: library.LGBMClassifier(n_estimators=60, verbose=-1),
        "catboost": lambda: library.CatBoostClassifier(iterations=200, verbose=0, allow_writing_files=False),
    }[kind]()
    return made.fit(X, y)


@pytest.mark.parametrize(
    ("kind", "scenario"),
    [
        ("catboost", "sklearn-fp64"),
        pytest.param("sklearn", "sklearn-fp64", marks=pytest.mark.slow),
        pytest.param("sklearn", "onnx-fp32", marks=pytest.mark.slow),
        pytest.param("xgboost", "sklearn-fp64", marks=pytest.mark.slow),
        pytest.param("lightgbm", "sklearn-fp64", marks=pytest.mark.slow),
        pytest.param("torch", "torch-eager", marks=pytest.mark.slow),
        pytest.param("torch", "torch-compile", marks=pytest.mark.slow),
        pytest.param("torch", "onnx-fp32", marks=pytest.mark.slow),
    ],
)
def test_a_runtime_computes_in_the_threads_it_was_given(kind: str, scenario: str, tmp_path: Path) -> None:
    X = np.random.default_rng(1).normal(size=(ROWS, FEATURES)).astype(np.float32 if kind == "torch" else np.float64)
    case = loading.case(model_of(kind), X)
    (built,) = building.build_all(case, tmp_path / "built", (scenario,))
    assert built.artefact is not None, built.failure
    rows = batching.save(case.inputs, tmp_path / "rows")
    seen = {}
    for threads in (1, 2):
        found, failures = together.ask(
            "test_deploy_threads:busy", {scenario: built.artefact}, tmp_path / "work", threads=threads,
            rows=str(rows), allowed=sorted(os.sched_getaffinity(0)),
        )  # fmt: skip
        assert not failures
        spent = found[scenario][0]["spent"]
        seen[threads] = sum(one > SHARE * sum(spent) for one in spent)
    assert seen[1] == 1
    assert 1 <= seen[2] <= 2
