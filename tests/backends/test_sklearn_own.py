"""Estimators of the program's own: named, not counted, and the same to everybody else."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import textwrap
from typing import Any

import cloudpickle
import numpy as np
import pytest

import bitwatt

pytest.importorskip("sklearn")
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.metaestimators import available_if

X = np.random.RandomState(0).randn(60, 4)
y = (X[:, 0] > 0).astype(int)
HERE = __name__


class Centre(TransformerMixin, BaseEstimator):
    """Takes means off."""

    def __init__(self, times: int = 1) -> None:
        self.times = times

    def fit(self, X: Any, y: Any = None) -> Centre:
        self.mean_ = X.mean(axis=0) * self.times
        return self

    def transform(self, X: Any) -> Any:
        return X - self.mean_


class Steep(Ridge):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        return super().fit(10 * X, y, sample_weight)


class Handed(ClassifierMixin, BaseEstimator):
    def fit(self, X: Any, y: Any) -> Handed:
        self.inner_ = LogisticRegression().fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    @available_if(lambda self: True)
    def predict(self, X: Any) -> Any:
        return self.inner_.predict(X)

    @available_if(lambda self: False)
    def predict_proba(self, X: Any) -> Any:
        return X


class Duck:
    def fit(self, X: Any, y: Any = None) -> Duck:
        return self

    def transform(self, X: Any) -> Any:
        return 2 * X


def _run(call: Any) -> tuple[Any, bitwatt.Run]:
    with bitwatt.measure(keep=False) as session:
        result = call()
    assert session.run is not None
    return result, session.run


def test_their_own_arithmetic_is_missing_by_name() -> None:
    _, run = _run(lambda: make_pipeline(Centre(), LogisticRegression()).fit(X, y))
    totals = bitwatt.totals(run)
    assert totals.missing == {f"{HERE}.Centre.fit": 1, f"{HERE}.Centre.transform": 1}
    assert totals.total > 0
    assert {row.scope for row in run.ledger if "Centre" in row.op.name} == {"Pipeline.centre"}
    assert {row.phase for row in run.ledger} == {"fit"}
    assert not run.notes


def test_a_parent_in_a_library_is_counted_beside_what_overrides_it() -> None:
    _, run = _run(lambda: Steep().fit(X, y))
    _, plain = _run(lambda: Ridge().fit(X, y))
    assert {row.op.name for row in run.ledger} == {f"{HERE}.Steep.fit", "sklearn.linear_model.Ridge.fit"}
    assert bitwatt.totals(run).total == bitwatt.totals(plain).total
    assert bitwatt.totals(run).missing == {f"{HERE}.Steep.fit": 1}


def test_an_estimator_that_hands_on_is_named_and_a_note_says_that_its_parts_are_counted() -> None:
    fitted, run = _run(lambda: Handed().fit(X, y))
    assert bitwatt.totals(run).missing == {f"{HERE}.Handed.fit": 1}
    assert any("Handed.fit calls estimators that are counted" in note for note in run.notes)
    _, run = _run(lambda: (fitted.predict(X), hasattr(fitted, "predict_proba")))
    assert bitwatt.totals(run).missing == {f"{HERE}.Handed.predict": 1}


def test_ducks_in_a_pipeline_are_named_too() -> None:
    _, run = _run(lambda: Pipeline([("duck", Duck()), ("model", LogisticRegression())]).fit(X, y))
    assert bitwatt.totals(run).missing == {f"{HERE}.Duck.fit": 1, f"{HERE}.Duck.transform": 1}


def test_classes_made_while_measuring_are_seen() -> None:
    def make() -> Any:
        class Late(TransformerMixin, BaseEstimator):
            def transform(self, X: Any) -> Any:
                return X

        return Late().transform(X)

    _, run = _run(make)
    assert [name.rpartition(".")[2] for name in bitwatt.totals(run).missing] == ["transform"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_workers_name_them_too(jobs: int) -> None:
    _, run = _run(lambda: cross_val_score(make_pipeline(Centre(), LogisticRegression()), X, y, cv=3, n_jobs=jobs))
    assert bitwatt.totals(run).missing == {f"{HERE}.Centre.fit": 3, f"{HERE}.Centre.transform": 6}


def test_nothing_shows() -> None:
    before = Centre.fit, Centre.__dict__["fit"], inspect.getsource(Centre.fit), inspect.signature(Centre().fit)
    with bitwatt.measure(keep=False):
        made = Centre(2).fit(X)
        assert before[0] is Centre.fit
        assert inspect.isfunction(Centre.fit)
        assert inspect.getsource(made.fit) == before[2]
        assert inspect.signature(made.fit) == before[3]
        assert made.fit.__doc__ == Centre.fit.__doc__
        assert repr(clone(made)) == "Centre(times=2)"
        assert not hasattr(Handed(), "predict_proba")
        assert not hasattr(made, "set_output")  # it names no features
        assert (pickle.loads(pickle.dumps(made)).mean_ == made.mean_).all()
        GridSearchCV(make_pipeline(Centre(), Ridge()), {"centre__times": [1, 2]}, cv=2).fit(X, y)
    assert Centre.__dict__["fit"] is before[1]
    assert not any(
        type(value).__name__ == "Seen" for kind in (Centre, Steep, Handed, Duck) for value in vars(kind).values()
    )


def test_pickled_by_value_while_measuring_they_load_without_bitwatt(tmp_path: Any) -> None:
    """A class of `__main__` goes into the pickle with its methods."""
    made, loaded = tmp_path / "made.py", tmp_path / "loaded.py"
    made.write_text(
        textwrap.dedent("""
        import sys, cloudpickle, numpy as np, bitwatt
        from sklearn.base import BaseEstimator, TransformerMixin
        from sklearn.utils.metaestimators import available_if

        class Base(TransformerMixin, BaseEstimator):
            def fit(self, X, y=None):
                self.mean_ = X.mean(axis=0)
                return self

        class Mine(Base):
            def fit(self, X, y=None):
                return super().fit(X, y)
            @available_if(lambda self: True)
            def transform(self, X):
                return X - self.mean_

        X = np.ones((5, 2))
        with bitwatt.measure(keep=False) as session:
            estimator = Mine().fit(X)
            data = cloudpickle.dumps(estimator)
        assert set(bitwatt.totals(session.run).missing) == {"__main__.Mine.fit", "__main__.Base.fit"}
        assert b"bitwatt" not in data
        open(sys.argv[1], "wb").write(data)
    """)
    )
    loaded.write_text(
        textwrap.dedent("""
        import sys, pickle, types, numpy as np
        sys.modules["bitwatt"] = None
        estimator = pickle.load(open(sys.argv[1], "rb"))
        assert type(type(estimator).__dict__["fit"]) is types.FunctionType
        assert (estimator.fit(np.ones((5, 2))).transform(np.ones((5, 2))) == 0).all()
    """)
    )
    for script in (made, loaded):
        subprocess.run([sys.executable, str(script), str(tmp_path / "estimator.pkl")], check=True, timeout=120)


def test_a_rule_of_a_third_party_counts_them() -> None:
    name = f"{HERE}.Centre.fit"
    with bitwatt.measure(keep=False) as session:
        Centre(times=2).fit(X)
    assert session.run is not None
    assert bitwatt.totals(session.run).missing == {name: 1}
    from bitwatt.registry import RULES

    @bitwatt.rule(name, family="reduction")
    def centre(X: bitwatt.TensorSpec, times: int, mean_: bitwatt.TensorSpec, **_: Any) -> bitwatt.Work:
        """A sum over each column, and a product."""
        return bitwatt.Work.of(X.precision, add=X.numel, mul=mean_.numel * (times != 1))

    try:
        assert bitwatt.totals(session.run).total == 60 * 4 + 4
    finally:
        del RULES._rules[name]
        RULES.version += 1


def test_cloudpickle_by_value_keeps_the_class() -> None:
    class Local(BaseEstimator):
        def fit(self, X: Any) -> Any:
            return self

    with bitwatt.measure(keep=False):
        data = cloudpickle.dumps(Local().fit(X))
    assert b"bitwatt" not in data
    assert type(pickle.loads(data)).__name__ == "Local"


class Nobodys:
    """A transformer that is nobody's child."""

    def fit(self, X: Any, y: Any = None) -> Nobodys:
        return self

    def transform(self, X: Any) -> Any:
        return X

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}


class Hiding(Pipeline):
    """Holds such a one where nobody looks for parts."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        self._kept = Nobodys()
        return super().fit(X, y, **params)


def test_a_part_is_met_as_a_step_though_it_was_held_elsewhere_before() -> None:
    with bitwatt.measure("own", keep=False, meter=False) as session:
        Hiding([("ridge", Ridge())]).fit(X, y)
        Pipeline([("nobodys", Nobodys()), ("ridge", Ridge())]).fit(X, y)
    missing = bitwatt.totals(session.run).missing
    assert any("Nobodys" in name for name in missing)
