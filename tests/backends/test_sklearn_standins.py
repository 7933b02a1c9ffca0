"""What stands in for methods while measuring: it pickles, warns and is patched as the methods themselves."""

from __future__ import annotations

import pickle
import subprocess
import sys
import unittest.mock as mock
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.linear_model._base import LinearModel
from sklearn.metrics._pairwise_distances_reduction import ArgKmin
from sklearn.neighbors import BallTree, KDTree, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bitwatt
from bitwatt.backends.sklearn.standins import stood_for

X = np.random.RandomState(0).randn(60, 4)
Y = (X[:, 0] > 0).astype(int)


class Centre(TransformerMixin, BaseEstimator):
    """Takes means off."""

    def fit(self, X: Any, y: Any = None) -> Centre:
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return X - self.mean_


class Old(BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> Old:
        warnings.warn("old way", DeprecationWarning, stacklevel=2)
        return self


def centre_made_here() -> Any:
    class Local(TransformerMixin, BaseEstimator):
        def fit(self, X: Any, y: Any = None) -> Any:
            self.mean_ = X.mean(axis=0)
            return self

        def transform(self, X: Any) -> Any:
            return X - self.mean_

    return Local().fit(X)


def run(call: Callable[[], Any]) -> tuple[Any, bitwatt.Run]:
    with bitwatt.measure(keep=False) as session:
        result = call()
    assert session.run is not None
    return result, session.run


def totals(call: Callable[[], Any]) -> Any:
    return bitwatt.totals(run(call)[1])


BOUND: dict[str, Callable[[], tuple[Any, ...]]] = {
    "an own class": lambda: (Centre().fit(X).transform, X),
    "an own class by value": lambda: (centre_made_here().transform, X),
    "a library's": lambda: (StandardScaler().fit(X).transform, X),
    "a pipeline's": lambda: (make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y).predict, X),
    "a compiled tree's": lambda: (KDTree(X).query, X[:5]),
    "another tree's": lambda: (BallTree(X).query_radius, X[:5], 1.0),
    "a class method": lambda: (ArgKmin.compute, X, X, 2),
}


def same(one: Any, other: Any) -> bool:
    return pickle.dumps(one) == pickle.dumps(other)


@pytest.mark.parametrize("bound", BOUND.values(), ids=BOUND)
@pytest.mark.parametrize("closed", [False, True], ids=["while measuring", "afterwards"])
def test_bound_methods_pickle_as_without_us(bound: Any, closed: bool, tmp_path: Path) -> None:
    with bitwatt.measure(keep=False):
        method, *args = bound()
        expected = method(*args)
        content = cloudpickle.dumps(method)
    if closed:
        content = cloudpickle.dumps(method)
    (tmp_path / "bound.pkl").write_bytes(cloudpickle.dumps((content, args, expected)))
    assert same(cloudpickle.loads(content)(*args), expected)
    elsewhere = f"""
        import pickle, sys
        sys.modules["bitwatt"] = None
        sys.path.insert(0, {str(tmp_path)!r})
        content, args, expected = pickle.load(open({str(tmp_path / "bound.pkl")!r}, "rb"))
        assert pickle.dumps(pickle.loads(content)(*args)) == pickle.dumps(expected)
    """
    if bound is not BOUND["an own class"]:  # this module, which imports bitwatt, is where that is
        lines = "\n".join(line.strip() for line in elsewhere.splitlines())
        subprocess.run([sys.executable, "-c", lines], check=True, timeout=120)


def test_plain_pickles_of_bound_methods_count_on() -> None:
    def call() -> Any:
        return pickle.loads(pickle.dumps(Centre().fit(X).transform))(X)

    assert totals(call).missing == {f"{__name__}.Centre.fit": 1, f"{__name__}.Centre.transform": 1}


def test_a_tree_that_was_pickled_is_counted_where_it_is_asked() -> None:
    def ask(through: Callable[[Any], Any]) -> Any:
        class Asking(KNeighborsRegressor):
            def kneighbors(self, X: Any = None, n_neighbors: Any = None, return_distance: bool = True) -> Any:
                return through(self._tree.query)(X, 5, return_distance=return_distance)

        return totals(lambda: Asking(algorithm="kd_tree").fit(X, Y).predict(X)).total

    assert ask(lambda query: cloudpickle.loads(cloudpickle.dumps(query))) == ask(lambda query: query)


@pytest.mark.parametrize("make", [Centre, centre_made_here])
def test_a_bound_method_is_a_task_of_workers(make: Any) -> None:
    def call() -> Any:
        own = make().fit(X)
        return joblib.Parallel(2, backend="loky")(joblib.delayed(own.transform)(X) for _ in range(4))

    names = {name.rpartition(".")[2]: times for name, times in totals(call).missing.items()}
    assert names["transform"] == 4


class _Shapeless:
    @property
    def shape(self) -> Any:
        raise RuntimeError("no shape")


class _Endless(list[Any]):
    def __len__(self) -> int:
        raise RuntimeError("no length")


class _Unknown:
    shape, dtype = (float("nan"), 3), "x"


class Handing(BaseEstimator):
    def __init__(self, value: Any = None) -> None:
        self.value = value

    def predict(self, X: Any) -> Any:
        return self.value


@pytest.mark.parametrize("value", [_Shapeless(), _Endless(), _Unknown()], ids=lambda value: type(value).__name__)
def test_data_that_cannot_be_read_ends_no_program(value: Any) -> None:
    for call in (lambda: Handing(value).predict(X), lambda: Handing(value).predict(value)):
        with pytest.warns(RuntimeWarning, match="could not be recorded") as caught:
            result, measured = run(call)
        assert result is value
        assert caught[0].filename == __file__
        assert bitwatt.totals(measured).missing == {f"{__name__}.Handing.predict": 1}
        assert any("Handing.predict could not be recorded" in note for note in measured.notes)


def test_lazy_arrays_of_unknown_length_go_through() -> None:
    lazy = pytest.importorskip("dask.array").from_array(X, chunks=30)
    unknown = lazy[lazy[:, 0] > 0]
    with pytest.warns(RuntimeWarning, match="could not be recorded"):
        result, _ = run(lambda: Handing(unknown).predict(unknown))
    assert result is unknown


def test_what_a_program_puts_in_a_methods_place_stays_there() -> None:
    original = LinearModel.__dict__["predict"]

    def mine(self: Any, X: Any) -> str:
        return "mine"

    with bitwatt.measure(keep=False):
        LinearModel.predict = mine
    assert LinearModel.__dict__["predict"] is mine
    LinearModel.predict = original

    patch = mock.patch.object(LinearModel, "predict", mine)
    patch.start()
    with bitwatt.measure(keep=False):
        patch.stop()
    assert LinearModel.__dict__["predict"] is original


@pytest.mark.parametrize(
    ("owner", "name"), [(LinearModel, "predict"), (Centre, "transform"), (KDTree, "query"), (ArgKmin, "compute")]
)
def test_what_a_mock_puts_back_after_a_session_is_harmless_and_taken_away_by_the_next(owner: Any, name: str) -> None:
    original = owner.__dict__.get(name)

    def call() -> Any:
        model = make_pipeline(Centre(), Ridge()).fit(X, Y)
        near = KNeighborsRegressor(algorithm="kd_tree").fit(X, Y)
        brute = KNeighborsRegressor(algorithm="brute").fit(X, Y)
        return model.predict(X), near.predict(X), brute.predict(X)

    expected = totals(call)
    patch = mock.patch.object(owner, name, return_value="mock")
    with bitwatt.measure(keep=False):
        patch.start()
    assert getattr(owner, name)() == "mock"
    patch.stop()
    assert len(call()) == 3
    found = totals(call)
    assert (found.total, found.missing) == (expected.total, expected.missing)
    assert owner.__dict__.get(name) is original


def test_a_booster_too_is_put_back_by_the_next_session() -> None:
    xgboost = pytest.importorskip("xgboost")
    original = xgboost.Booster.update
    data = xgboost.DMatrix(X, Y)

    def call() -> None:
        booster = xgboost.Booster({"max_depth": 2}, [data])
        for i in range(2):
            booster.update(data, i)

    expected = totals(call).total
    patch = mock.patch.object(xgboost.Booster, "update", None)
    with bitwatt.measure(keep=False):
        patch.start()
    patch.stop()
    assert stood_for(xgboost.Booster.update) is original
    assert totals(call).total == expected
    assert xgboost.Booster.update is original


def test_an_alias_made_while_measuring_is_the_librarys_method() -> None:
    with bitwatt.measure(keep=False):

        class Alias(BaseEstimator):
            predict = LinearRegression.predict

    assert Alias.__dict__["predict"] is LinearRegression.predict


def told(call: Callable[[], Any]) -> list[tuple[str, int, str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(one.filename, one.lineno, str(one.message)) for one in caught]


def test_warnings_tell_of_the_programs_lines() -> None:
    def warned() -> None:
        Old().fit(X)
        Old().fit(X)
        LogisticRegression(max_iter=1).fit(X, Y)
        joblib.Parallel(2, backend="threading")(joblib.delayed(Old().fit)(X) for _ in range(2))

    plain = told(warned)
    with bitwatt.measure(keep=False):
        measured = told(warned)
    assert measured == plain
    assert [one[0] for one in plain[:2]] == [__file__] * 2


def test_a_stand_in_answers_as_the_method() -> None:
    own = Centre()
    with bitwatt.measure(keep=False) as session:
        assert own.fit.__code__ is Centre.fit.__code__
        assert own.fit.__defaults__ == (None,)
        assert (own.fit.__name__, own.fit.__module__) == ("fit", __name__)
        assert own.fit == own.fit
        vars(Centre)["fit"](own, X)
        assert "set_{method}_request" in (BaseEstimator.__init_subclass__.__doc__ or "")
    assert session.run is not None
    assert bitwatt.totals(session.run).missing == {f"{__name__}.Centre.fit": 1}
