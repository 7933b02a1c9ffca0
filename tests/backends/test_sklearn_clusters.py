"""joblib on Dask and Ray: their workers are processes that know nothing of the session, and bring their counts home."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

import bitwatt

distributed = pytest.importorskip("distributed")

X = np.random.RandomState(0).randn(200, 6)  # large enough that Dask sends it apart from the tasks
Y = (X[:, 0] > 0).astype(int)


def nested() -> None:
    """A forest inside a pipeline inside a search: two levels of parallel calls, and a third one after it."""
    forest = make_pipeline(StandardScaler(), RandomForestClassifier(4, random_state=0))
    search = GridSearchCV(forest, {"randomforestclassifier__max_depth": [2, 3]}, cv=2).fit(X, Y)
    search.score(X, Y)


def wide() -> None:
    MultiOutputRegressor(Ridge()).fit(X, X[:, :3]).predict(X)
    FeatureUnion([("a", StandardScaler()), ("b", StandardScaler(with_mean=False))]).fit(X).transform(X)
    cross_val_score(LogisticRegression(), X, Y, cv=3)


def measured(program: Any) -> bitwatt.Run:
    with bitwatt.measure(keep=False) as session, bitwatt.phase("tuning"):
        program()
    assert session.run is not None
    return session.run


def counts(run: bitwatt.Run) -> tuple[Any, ...]:
    calls: Counter[tuple[str, str, str]] = Counter()
    for row in run.ledger:
        calls[row.phase, row.scope, row.op.name] += row.calls
    flops, bops = bitwatt.totals(run), bitwatt.totals(run, "bops")
    # clusters have work of their own
    notes = [note for note in run.notes if not note.startswith("child processes used")]
    return calls, flops.by("phase", "scope", "op"), flops.total, bops.total, run.layers, notes


@pytest.fixture(scope="module", params=["processes", "threads"])
def dask(request: pytest.FixtureRequest) -> Iterator[Any]:
    apart = request.param == "processes"
    with (
        distributed.LocalCluster(
            n_workers=2 if apart else 1, threads_per_worker=1 if apart else 2, processes=apart, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_dask_counts_as_one_process_does(dask: Any) -> None:
    for program in (wide, nested):
        alone = measured(program)
        with joblib.parallel_config(backend="dask"):
            assert counts(measured(program)) == counts(alone)
            assert joblib.Parallel()(joblib.delayed(abs)(-number) for number in range(3)) == [0, 1, 2]


def dying_once(number: int, mark: Path) -> int:
    if number == 1 and not mark.exists():
        mark.touch()
        os._exit(3)
    Ridge().fit(X, Y)
    return number


@pytest.mark.slow
def test_what_dask_runs_again_after_a_death_counts_once(tmp_path: Path) -> None:
    """A task that kills its workers for good hangs joblib's Dask backend, with or without us."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        with bitwatt.measure(keep=False) as session:
            tasks = (joblib.delayed(dying_once)(number, tmp_path / "mark") for number in range(4))
            assert joblib.Parallel(timeout=100)(tasks) == [0, 1, 2, 3]
        assert session.run is not None
        assert [(row.op.name.rpartition(".")[2], row.calls) for row in session.run.ledger] == [("fit", 4)]


# Ray's backend changes joblib for good, so it has a process of its own.
RAY = """
import os, sys, ray, joblib, numpy as np
sys.path.insert(0, {folder!r})
from ray.util.joblib import register_ray
from test_sklearn_clusters import counts, measured, nested, wide
import bitwatt
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score

def small():
    X = np.random.RandomState(0).randn(60, 4)
    cross_val_score(Ridge(), X, X[:, 0], cv=2)

def dying(number):
    if number == 1:
        os._exit(3)
    return number

register_ray()
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
for program in {programs}:
    alone = measured(program)
    with joblib.parallel_config(backend="ray", n_jobs=2):
        assert counts(measured(program)) == counts(alone), program
if {deaths}:
    def death():
        try:
            joblib.Parallel(2, backend="ray")(joblib.delayed(dying)(n) for n in range(4))
        except BaseException as error:
            return type(error).__name__
    plain = death()
    with bitwatt.measure(keep=False) as session:
        assert death() == plain is not None
        Ridge().fit([[0.0], [1.0]], [0.0, 1.0])
    assert "a worker died" in str(session.run.notes), (plain, session.run.notes)
print("done")
"""


def on_ray(folder: Path, programs: str, deaths: bool = False) -> None:
    code = RAY.format(folder=str(Path(__file__).parent), programs=programs, deaths=deaths)
    (folder / "on_ray.py").write_text(code)
    quiet = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}
    done = subprocess.run(
        [sys.executable, "on_ray.py"], cwd=folder, env=os.environ | quiet, capture_output=True, text=True, check=False
    )
    assert "done" in done.stdout.split(), done.stdout + done.stderr  # Ray may have a last word


def test_ray_counts_as_one_process_does(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    on_ray(tmp_path, "[small]")


@pytest.mark.slow
def test_ray_counts_what_nests_and_tells_of_the_dead(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    on_ray(tmp_path, "[wide, nested]", deaths=True)
