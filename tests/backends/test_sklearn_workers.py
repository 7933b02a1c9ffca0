"""joblib's workers have manners: users get their values and their errors, and the run tells of what was lost."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
import types
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier, VotingRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import bitwatt
from bitwatt.backends.sklearn import parallel, travel

X = np.random.RandomState(0).randn(60, 4)
Y = (X[:, 0] > 0).astype(int)
PROCESSES = pytest.mark.parametrize("backend", ["loky", "multiprocessing"])


def fitted(number: int) -> tuple[int, list[float]]:
    return number, Ridge(alpha=number + 1.0).fit(X, Y).coef_.tolist()


def failing(number: int) -> int:
    if number == 1:
        raise LookupError(f"task {number}")
    return fitted(number)[0]


def slow(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def dying(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return fitted(number)[0]


def by_two(backend: str, **options: Any) -> joblib.Parallel:
    """What ends a call of multiprocessing early terminates its workers, and one that is just sending a result takes the
    lock of their queue along: the pool then waits for ever. So there only one task is on its way at a time."""
    return joblib.Parallel(2, backend=backend, pre_dispatch=1 if backend == "multiprocessing" else 4, **options)


def counted(run: bitwatt.Run | None) -> Counter[tuple[str, str, str]]:
    assert run is not None
    found: Counter[tuple[str, str, str]] = Counter()
    for row in run.ledger:
        found[row.phase, row.scope, row.op.name] += row.calls
    return found


RIDGE = ("fit", "Ridge", "sklearn.linear_model.Ridge.fit")


@pytest.mark.parametrize("return_as", ["list", "generator", "generator_unordered"])
@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize("batch", [1, 3, "auto"])
def test_users_get_values_however_they_ask(return_as: str, backend: str, batch: Any) -> None:
    expected = [fitted(number) for number in range(7)]
    parallel = joblib.Parallel(2, backend=backend, return_as=return_as, batch_size=batch)
    with bitwatt.measure(keep=False) as session:
        results = parallel(joblib.delayed(fitted)(number) for number in range(7))
        assert isinstance(results, list if return_as == "list" else types.GeneratorType)
        assert sorted(results) == expected
    assert session.run is not None
    assert counted(session.run) == {RIDGE: 7}
    assert session.run.notes == ()


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_tasks_see_the_phase_and_the_method_of_an_object_counts(backend: str) -> None:
    with bitwatt.measure(keep=False) as session, bitwatt.phase("tuning"):
        fits = joblib.Parallel(2, backend=backend)(joblib.delayed(Ridge(a).fit)(X, Y) for a in (1.0, 2.0, 3.0))
    assert [type(fit) for fit in fits] == [Ridge] * 3
    assert counted(session.run) == {("tuning/fit", *RIDGE[1:]): 3}


def test_a_cache_holds_values(tmp_path: Path) -> None:
    cached = joblib.Memory(tmp_path, verbose=0).cache(fitted)
    with bitwatt.measure(keep=False) as session:
        for _ in range(2):  # the second time they are only read
            assert joblib.Parallel(2)(joblib.delayed(cached)(n) for n in range(3)) == [fitted(n) for n in range(3)]
    assert counted(session.run)[RIDGE] == 3 + 6


def test_progress_is_told_as_without_us(capfd: pytest.CaptureFixture[str]) -> None:
    def progress() -> list[str]:
        joblib.Parallel(1, verbose=60)([joblib.delayed(abs)(number) for number in range(3)])
        return [line.partition("|")[0] for line in "".join(capfd.readouterr()).splitlines()]

    plain = progress()
    with bitwatt.measure(keep=False):
        watched = progress()
    assert watched == plain
    assert any("Done 1 out of 3" in line for line in plain)


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", "multiprocessing"])
def test_a_task_that_raises_raises_what_it_did_and_the_run_goes_on(backend: str) -> None:
    with bitwatt.measure(keep=False) as session:
        with pytest.raises(LookupError, match="task 1") as caught:
            by_two(backend)(joblib.delayed(failing)(number) for number in range(4))
        assert type(caught.value) is LookupError
        cross_val_score(LinearRegression(), X, Y, cv=2, n_jobs=2)
    assert session.run is not None
    found = counted(session.run)
    assert sum(n for (_, _, name), n in found.items() if name.endswith("LinearRegression.fit")) == 2
    assert found[RIDGE] <= 3
    told = [note for note in session.run.notes if "LookupError ended the call" in note]
    assert len(told) == (backend in ("loky", "multiprocessing"))


def test_a_timeout_is_joblibs() -> None:
    with bitwatt.measure(keep=False) as session:
        with pytest.raises(multiprocessing.TimeoutError):
            joblib.Parallel(2, timeout=0.2)(joblib.delayed(slow)(seconds) for seconds in (0.0, 60.0))
        Ridge().fit(X, Y)
    assert session.run is not None
    assert counted(session.run)[RIDGE] == 1
    assert any("TimeoutError ended the call" in note for note in session.run.notes)


def _death(backend: str) -> BaseException:
    try:
        parallel = by_two(backend, timeout=5 if backend == "multiprocessing" else None)
        parallel(joblib.delayed(dying)(number) for number in range(4))
    except BaseException as error:  # what is compared is which
        return error
    raise AssertionError("nobody died")


@PROCESSES
def test_a_worker_that_dies_leaves_the_run_usable_and_is_told_of(backend: str) -> None:
    plain = _death(backend)
    with bitwatt.measure(keep=False) as session:
        watched = _death(backend)
        GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2, n_jobs=2).fit(X, Y)
    assert type(watched) is type(plain)
    assert session.run is not None
    assert counted(session.run)["fit", "GridSearchCV.fold 1.Ridge", RIDGE[2]] == 1
    (note,) = session.run.notes
    # multiprocessing does not notice: the call ends by its time limit.
    assert ("a worker died, TerminatedWorkerError" if backend == "loky" else "TimeoutError ended the call") in note


def test_results_that_nobody_waits_for_do_no_harm() -> None:
    with bitwatt.measure(keep=False) as session:
        parallel = joblib.Parallel(2, return_as="generator", batch_size=1)  # of a batch that is read nothing is left
        results = parallel(joblib.delayed(fitted)(number) for number in range(6))
        assert next(results)[0] == 0
        with warnings.catch_warnings():  # joblib's, unless all had come by then
            warnings.simplefilter("ignore")
            results.close()
    assert 1 <= counted(session.run)[RIDGE] <= 6


def test_calls_leave_nothing_behind() -> None:
    before = set(travel.HOMES)  # a scheduler of other tests' may still hold what they gave it
    with bitwatt.measure(keep=False):
        for backend in ("threading", "multiprocessing"):
            with pytest.raises(LookupError):
                by_two(backend)(joblib.delayed(failing)(number) for number in range(4))
        cross_val_score(Ridge(), X, Y, cv=2, n_jobs=2)
    gc.collect()
    assert set(travel.HOMES) <= before


def test_what_went_wrong_in_one_session_is_not_told_in_the_next() -> None:
    bad = GridSearchCV(Ridge(), {"alpha": [-1.0, 1.0]}, cv=2, n_jobs=2, error_score=0.0)
    with bitwatt.measure(keep=False) as first, pytest.warns(FitFailedWarning, match="fits failed"):
        bad.fit(X, Y)
    with bitwatt.measure(keep=False) as second:
        GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=2, n_jobs=2).fit(X, Y)
    assert first.run is not None
    assert second.run is not None
    assert any("Ridge.fit raised" in note for note in first.run.notes)
    assert second.run.notes == ()
    assert all(scope.startswith("GridSearchCV") for scope in second.run.layers)


def measuring(number: int) -> int:
    with bitwatt.measure(keep=False) as session:
        Ridge().fit(X, Y)
    return sum(counted(session.run).values())


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_a_task_may_measure_itself(backend: str) -> None:
    joblib.Parallel(2, backend=backend)(joblib.delayed(measuring)(n) for n in range(3))  # also in workers that wait
    with bitwatt.measure(keep=False) as session:
        assert joblib.Parallel(2, backend=backend)(joblib.delayed(measuring)(n) for n in range(3)) == [1, 1, 1]
    assert counted(session.run) == {RIDGE: 3}
    assert joblib.Parallel(2, backend=backend)(joblib.delayed(measuring)(n) for n in range(3)) == [1, 1, 1]


def test_a_worker_without_us_gets_the_bare_function() -> None:
    place = travel.Place("another.1", 0, (), "fit", "Ridge", False, False, (), (), frozenset())
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())(-3), 'bitwatt' in sys.modules)"
    for options, answer in ((["-I", "-S"], b"3 False"), ([], b"True")):
        task = pickle.dumps(parallel.Task(place, abs, None))
        done = subprocess.run([sys.executable, *options, "-c", code], input=task, capture_output=True, check=False)
        assert done.stdout.strip().endswith(answer), done.stderr


def fit_and_leave() -> None:
    LogisticRegression().fit(X, Y).predict(X)
    cross_val_score(make_pipeline(StandardScaler(), Ridge()), X, Y, cv=2)
    with bitwatt.measure(keep=False) as session:  # a session of its own is a new one
        Ridge().fit(X, Y)
    assert counted(session.run) == {RIDGE: 1}


def test_forked_children_that_fit_keep_silent() -> None:
    def here(again: Callable[[], Any]) -> None:
        Ridge().fit(X, Y)
        again()

    def children() -> None:
        context = multiprocessing.get_context("fork")
        started = [context.Process(target=fit_and_leave) for _ in range(3)]
        for child in started:
            child.start()
        for child in started:
            child.join(300)
            assert child.exitcode == 0

    with bitwatt.measure(keep=False) as session:
        here(children)
        Ridge().fit(X, Y)
    assert session.run is not None
    assert counted(session.run) == {RIDGE: 2}
    said = [note for note in session.run.notes if not note.startswith("child processes used")]  # where that took long
    assert said == []


@pytest.mark.parametrize("tasks", [list, iter])
def test_tasks_that_run_in_turn_stay_as_they_are(tasks: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent anywhere: only folds are places of their own."""
    monkeypatch.setattr(parallel, "Home", lambda *_: pytest.fail("a place to come home to"))
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 2
    given = [joblib.delayed(LogisticRegression().fit)(X, y)]
    with bitwatt.measure(keep=False, meter=False) as session:
        search = GridSearchCV(RandomForestClassifier(3, random_state=0), {"max_depth": [2, 3]}, cv=2).fit(X, y)
        models = joblib.Parallel(n_jobs=1)(tasks(given))
    assert [type(model) for model in models] == [LogisticRegression]
    assert search.best_estimator_.n_estimators == 3
    scopes = {row.scope for row in session.run.ledger if row.op.name.endswith("RandomForestClassifier.fit")}
    assert scopes == {f"GridSearchCV.{part}.RandomForestClassifier" for part in ("fold 1", "fold 2")} | {
        "GridSearchCV.best_estimator"
    }
    assert not any("joblib" in note for note in session.run.notes)


class Duck:
    """Inherits from nothing, and is met as a part only."""

    def fit(self, X: Any, y: Any = None) -> Duck:
        return self

    def transform(self, X: Any) -> Any:
        return 2 * X

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def set_params(self, **_: Any) -> Duck:
        return self


def rows_of(call: Callable[[], Any], backend: str) -> tuple[Counter[tuple[str, str, str]], bitwatt.Run]:
    with bitwatt.measure(keep=False) as session, joblib.parallel_config(backend=backend, n_jobs=2):
        call()
    assert session.run is not None
    rows: Counter[tuple[str, str, str]] = Counter()
    for row in session.run.ledger:
        rows[row.phase, row.scope, row.op.name] += row.calls
    return rows, session.run


def test_classes_that_travel_by_value_are_seen_there_and_back() -> None:
    class Shifted(Ridge):
        def predict(self, X: Any) -> Any:
            return super().predict(X) + 1

    def vote() -> None:
        VotingRegressor([("a", Shifted()), ("b", Ridge())]).fit(X, Y).predict(X)

    for call in (vote, lambda: cross_val_score(Shifted(), X, Y, cv=3)):
        here, _ = rows_of(call, "threading")
        assert any(name.endswith(".Shifted.predict") for _, _, name in here)
        for _ in range(2):  # a worker knows the class from before, and gets its methods anew
            assert rows_of(call, "loky")[0] == here


@PROCESSES
def test_workers_meet_parts_that_inherit_from_nothing(backend: str) -> None:
    parts = [("duck", Duck()), ("scaled", StandardScaler())]
    for call in (
        lambda: FeatureUnion(parts).fit(X).transform(X),
        lambda: ColumnTransformer([(*part, [i]) for i, part in enumerate(parts)]).fit(X).transform(X),
    ):
        here, _ = rows_of(call, "threading")
        assert any(name.endswith(".Duck.transform") for _, _, name in here)
        assert rows_of(call, backend)[0] == here


def test_a_worker_forgets_what_layers_of_other_sessions_were() -> None:
    for estimator in (SVC(), LogisticRegression()):
        _, run = rows_of(lambda one=estimator: BaggingClassifier(one, 3, random_state=0).fit(X, Y), "loky")
        assert run.layers["BaggingClassifier.estimator"].kind == type(estimator).__name__
