"""What is read of fitted estimators and inside their fits, where the usual case has a short way."""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler
from sklearn.tree import DecisionTreeClassifier

import bitwatt
from bitwatt.backends.sklearn import facts, learnt, methods, probes, specs
from bitwatt.backends.sklearn.frames import TOP, framed
from bitwatt.backends.sklearn.learnt import Kind
from bitwatt.backends.sklearn.readers import linear, trees
from bitwatt.backends.sklearn.watch import EstimatorWatch


def test_attributes_that_differ_are_read_anew_beside_facts_that_are_read_later():
    X, y = make_classification(80, 6, n_informative=4, n_classes=3, random_state=0)
    tree = DecisionTreeClassifier(random_state=0, max_depth=2)
    with bitwatt.measure("forest", keep=False, meter=False) as session:
        for labels, columns in ((y, 6), (y > 0, 6), (y, 4), (y, 6)):
            tree.fit(X[:, :columns], labels)
    told = [dict(row.op.args) for row in session.run.ledger]
    assert [(args["n_features_in_"], args["n_classes_"]) for args in told] == [(6, 3), (6, 2), (4, 3)]
    assert [row.calls for row in session.run.ledger] == [2, 1, 1]
    assert all(args["tree_nodes"] > 1 for args in told)


def test_a_probe_that_reads_nothing_ahead_of_a_call_tells_nothing():
    given = []

    def sizes(args, kwargs, result):
        given.append(kwargs["before"])
        return (result,)

    def before(args):
        return 1 / args[0] if args[0] < 2 else None

    counted = probes._make(probes.Probe("made:f", "made", sizes, before), lambda x: x + 1, None, "f")
    frame = framed(None, "fit", "fit", "made")
    reset = TOP.set(frame)
    try:
        assert [counted(x) for x in (1, 2, 0)] == [2, 3, 1]
    finally:
        TOP.reset(reset)
    assert given == [1.0, None]  # what could not be read is not known
    assert frame.probes == {("made", 2): 1, ("made", 1): 1}


def test_values_that_were_looked_at_are_known_again_by_all_of_them():
    data = np.arange(60.0).reshape(20, 3)
    other = data.copy()
    other[:10] = 0.0
    told = [trees.columns(X) for X in (data, other, data.astype(np.float32), data.astype(np.int64), data, other)]
    assert told[0] == told[4] != told[1] == told[5]
    trees._known.clear()
    assert [trees.columns(X) for X in (other, data)] == [told[1], told[0]]


@pytest.mark.parametrize(
    ("loss", "moves"),
    [
        ("hinge", lambda margin: margin <= 1),
        ("perceptron", lambda margin: margin <= 0),
        ("modified_huber", lambda margin: margin < 1),
        ("epsilon_insensitive", lambda margin: np.abs(1 - margin) > 0.1),
    ],
)
def test_batches_of_classes_tell_how_many_samples_move_the_weights(loss, moves):
    X, y = make_classification(60, 5, random_state=0)
    model = SGDClassifier(loss=loss, random_state=0)
    with bitwatt.measure("stream", keep=False, meter=False) as session:
        model.partial_fit(X, y, classes=[0, 1])
    (row,) = session.run.ledger
    moving = next(seen[-4] for seen in dict(row.op.args)["probes"] if seen[0] == "linear_sgd")
    assert moving == round(1000 * moves((2 * y - 1) * model.decision_function(X)).mean())


def test_estimators_that_hold_other_things_are_read_at_once() -> None:
    """As in threads: while one is read, another one of its class is."""

    class Fitted:
        def __init__(self, **held: Any) -> None:
            self.__dict__.update(held)

    one, other = Fitted(rows_=3, wide_=True), Fitted(names_="ab")
    told = []

    def reader(estimator: Any) -> dict[str, Any]:
        if estimator is one:
            told.append(kind.learnt(other, other.__dict__)[0].items)
        return {"more": 1}

    kind = Kind((), (reader,), frozenset({"wide_"}))
    for _ in range(2):
        found, went = kind.learnt(one, one.__dict__)
        assert found.together(went) == (("rows_", 3), ("wide_", True), ("more", 1))
        assert found.items == (("rows_", 3), ("more", 1))
    assert list(map(dict, told)) == [{"names_": "ab", "more": 1}] * 2


class Holder:
    """Something that has been fitted."""

    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


WAYS: dict[str, list[Any]] = {
    "arrays": [np.ones(3), np.ones(4), np.ones((3, 1)), np.ones((3, 2)), np.ones((3, 2), order="F"), np.ones(3, "f")],
    "short ones": [np.arange(3), np.arange(1, 4), np.arange(3, dtype="i4"), np.arange(64), np.arange(65), np.ones(3)],
    "numbers": [1, True, 1.0, np.float64(1), np.int64(1), 2, None, np.array(1), np.array(1.5)],
    "words": ["a", "b", b"a", ["a"], ("a", 1), {"a": 1}, [1.5], [1, 2], [1, 2.5]],
    "parts": [DecisionTreeClassifier(), SGDClassifier(), len, max],
}


@pytest.mark.parametrize("values", WAYS.values(), ids=WAYS)
def test_attributes_of_another_kind_are_told_whatever_was_there_before(values: list[Any]) -> None:
    """Of each value, after each other one: the code that is written for one must notice the other."""
    for first in values:
        for second in values:
            kind = Kind((), (), frozenset())
            kind.learnt(one := Holder(size_=first), one.__dict__)
            told = kind.learnt(two := Holder(size_=second), two.__dict__)[0]
            apart = Kind((), (), frozenset()).learnt(two, two.__dict__)[0]
            assert repr(told.items) == repr(apart.items)


def test_names_that_are_no_identifiers_are_read_too() -> None:
    odd = Holder(**{"a'b\\_": 1, 'held["x"]_': np.ones(2), "if_": 3})
    told = dict(Kind((), (), frozenset()).learnt(odd, odd.__dict__)[0].items)
    assert (told["a'b\\_"], told['held["x"]_'].shape, told["if_"]) == (1, (2,), 3)


def test_some_batches_of_a_stream_stand_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classification(400, 6, random_state=0)
    looked: list[int] = []
    descended = linear._descended

    def counted(*args: Any) -> Any:
        looked.append(len(args[0]))
        return descended(*args)

    monkeypatch.setattr(linear, "_descended", counted)
    with bitwatt.measure("stream", keep=False, meter=False) as session:
        streams = [SGDClassifier(random_state=0) for _ in range(2)]
        for at in range(0, 400, 10):
            for one in streams:
                one.partial_fit(X[at : at + 10], y[at : at + 10], classes=[0, 1])
        assert len(looked) == 2 * (8 + 4)  # and then one of eight
        for _ in range(20):
            SGDClassifier(random_state=0, max_iter=1, tol=None).fit(X, y)
    assert len(looked) == 2 * (8 + 4) + 20
    assert session.run is not None
    assert sum(row.calls for row in session.run.ledger if row.op.name.endswith("partial_fit")) == 80


def test_a_method_that_is_called_in_turn_has_the_probes_it_saw() -> None:
    X, y = make_classification(80, 6, random_state=0)
    model = KNeighborsClassifier(algorithm="brute").fit(X, y)
    with bitwatt.measure("score", keep=False, meter=False) as session:
        model.score(X, y)
    assert session.run is not None
    told = {row.op.name.rpartition(".")[2]: dict(row.op.args).get("probes", ()) for row in session.run.ledger}
    assert {name for name, seen in told.items() if seen} == {"kneighbors"}
    assert {row.scope for row in session.run.ledger} == {"KNeighborsClassifier"}


def test_a_method_that_raises_in_turn_leaves_the_one_that_called_it_as_it_was() -> None:
    X, y = make_classification(80, 6, random_state=0)
    model = KNeighborsClassifier().fit(X, y)
    with bitwatt.measure("raising", keep=False, meter=False) as session:
        frames: list[Any] = []

        def score(self: Any, X: Any, y: Any) -> float:
            with pytest.raises(ValueError, match="features"):
                self.predict(X[:, :2])
            frames.append((TOP.get().method, TOP.get().silent, TOP.get().probes))
            return float((self.predict(X) == y).mean())

        methods._make(EstimatorWatch, "score", score)(model, X, y)
    assert frames == [("score", False, {})]
    assert session.run is not None
    calls = {row.op.name.rpartition(".")[2]: row.calls for row in session.run.ledger}
    assert calls == {"score": 1, "predict": 1, "kneighbors": 1}
    assert any("predict raised" in note for note in session.run.notes)
    assert session.run.observed is not None
    assert session.run.observed.phases["score"][0] == 1  # it is one call, with one time


def test_functions_are_found_again_in_modules_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.utils.extmath as extmath

    made = types.ModuleType("sklearn.made_by_a_test")

    def seen() -> list[Any]:
        with bitwatt.measure("modules", keep=False, meter=False):
            return [extmath.row_norms, getattr(made, "row_norms", None)]

    first = seen()
    assert first[0] is not extmath.row_norms
    monkeypatch.setitem(sys.modules, made.__name__, made)
    made.row_norms = extmath.row_norms  # type: ignore[attr-defined]
    assert seen() == [first[0], first[0]]
    assert made.row_norms is extmath.row_norms  # type: ignore[attr-defined]
    made = types.ModuleType("sklearn.made_by_a_test")  # imported anew
    made.row_norms = extmath.row_norms  # type: ignore[attr-defined]
    sys.modules[made.__name__] = made
    assert seen() == [first[0], first[0]]
    made.other = extmath.row_norms  # type: ignore[attr-defined]
    with bitwatt.measure("modules", keep=False, meter=False):
        assert made.other is first[0]  # type: ignore[attr-defined]
    assert made.other is extmath.row_norms  # type: ignore[attr-defined]


def test_numbers_of_numpy_as_parameters_are_told_as_the_numbers_that_they_are() -> None:
    X, y = make_classification(80, 6, random_state=0)

    def told(*strengths: Any) -> list[Any]:
        with bitwatt.measure("grid", keep=False, meter=False) as session:
            for strength in strengths:
                LogisticRegression(C=strength, max_iter=np.int64(3)).fit(X, y)
        rows = [row for row in session.run.ledger if row.op.name.endswith("LogisticRegression.fit")]
        return [(dict(row.op.args)["C"], type(dict(row.op.args)["C"]), row.calls) for row in rows]

    assert told(np.float64(0.5), 0.5, np.float64(0.5)) == [(0.5, float, 3)]
    assert told(np.float32(0.5), 2, np.float64(1.0)) == [(0.5, float, 1), (2, int, 1), (1.0, float, 1)]


def test_a_method_that_another_took_the_place_of_between_sessions_is_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_classification(80, 6, random_state=0)
    plain = DecisionTreeClassifier.predict_proba

    def calls() -> int:
        model = DecisionTreeClassifier().fit(X, y)
        with bitwatt.measure("methods", keep=False, meter=False) as session:
            model.predict_proba(X)
        return sum(row.calls for row in session.run.ledger)

    def another(self: Any, X: Any, check_input: bool = True) -> Any:
        return plain(self, X, check_input)

    assert calls() == 1
    monkeypatch.setattr(DecisionTreeClassifier, "predict_proba", another)
    assert calls() == 1
    assert DecisionTreeClassifier.predict_proba is another
    monkeypatch.setattr(DecisionTreeClassifier, "predict_proba", plain)
    assert calls() == 1
    assert DecisionTreeClassifier.predict_proba is plain


def test_a_call_may_end_after_its_session() -> None:
    begun, end, ended = threading.Event(), threading.Event(), []

    def wait(X: Any) -> Any:
        begun.set()
        end.wait(60)
        return X

    def run() -> None:
        ended.append(FunctionTransformer(wait).transform(np.ones((3, 2))))

    with bitwatt.measure("left", keep=False, meter=False):
        thread = threading.Thread(target=run)
        thread.start()
        assert begun.wait(60)
    end.set()
    thread.join()
    assert [result.shape for result in ended] == [(3, 2)]


class Equal(SGDClassifier):
    """It equals all of its kind, and so has no hash."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal)


def test_streams_of_estimators_that_equal_each_other_have_shares_of_their_own() -> None:
    X, y = make_classification(200, 6, random_state=0)
    one, other, hashable = Equal(random_state=0), Equal(random_state=0), SGDClassifier(random_state=0)
    assert one == other
    with bitwatt.measure("streams", keep=False, meter=False) as session:
        for at in range(0, 200, 20):
            one.partial_fit(X[at : at + 20], y[at : at + 20], classes=[0, 1])
            hashable.partial_fit(X[at : at + 20], y[at : at + 20], classes=[0, 1])
            other.partial_fit(X[at : at + 20], 1 - y[at : at + 20], classes=[0, 1])
    assert session.run is not None
    assert session.run.notes == ()
    shares: dict[str, dict[Any, int]] = {}
    for row in session.run.ledger:
        seen = next(seen for seen in dict(row.op.args)["probes"] if seen[0] == "linear_sgd")
        kind = shares.setdefault(row.scope, {})
        kind[seen[-4]] = kind.get(seen[-4], 0) + row.calls
    assert {name: sum(kind.values()) for name, kind in shares.items()} == {"Equal": 20, "SGDClassifier": 10}
    assert all(shares["Equal"][share] >= times for share, times in shares["SGDClassifier"].items())


RANGES: list[Any] = [
    (0, 1),
    (0, 2),
    (0.0, 1.0),
    (False, True),
    [0, 1],
    [0, 2],
    0,
    0.0,
    None,
    MinMaxScaler(),
    np.ones(2),
]


@pytest.mark.parametrize("before", RANGES, ids=repr)
def test_parameters_are_told_as_they_are_whatever_they_were_before(before: Any) -> None:
    """Also of estimators that came before, and where one has been deleted."""

    def told(scaler: MinMaxScaler) -> str:
        return repr(facts.known(scaler, False)[0].items)

    for now in RANGES:
        facts.forget()
        alone = told(MinMaxScaler(now))
        facts.forget()
        scaler = MinMaxScaler(before)
        first = told(scaler)
        assert told(MinMaxScaler(before)) == told(scaler) == first
        scaler.feature_range = now
        assert told(scaler) == told(MinMaxScaler(now)) == alone
        del scaler.feature_range
        assert "'feature_range', None" in told(scaler)
        assert told(MinMaxScaler(before)) == first


def test_a_list_that_changes_in_place_is_told_as_it_is_now() -> None:
    facts.forget()
    pipe = make_pipeline(MinMaxScaler(), SGDClassifier())
    steps = [dict(facts.known(pipe, False)[0].items)["steps"] for _ in range(2)]
    pipe.steps[0] = ("minmaxscaler", FunctionTransformer())
    steps.append(dict(facts.known(pipe, False)[0].items)["steps"])
    pipe.steps[0] = ("other", FunctionTransformer())
    steps.append(dict(facts.known(pipe, False)[0].items)["steps"])
    pipe.steps.append(("last", "passthrough"))
    steps.append(dict(facts.known(pipe, False)[0].items)["steps"])
    scaled, other = ("minmaxscaler", "<MinMaxScaler>"), "<FunctionTransformer>"
    assert [one[0] for one in steps] == [scaled, scaled, ("minmaxscaler", other), ("other", other), ("other", other)]
    assert steps[-1][2] == ("last", "passthrough")


def test_objects_without_attributes_have_nothing_to_tell_and_others_of_their_kind_may() -> None:
    class Slotted:
        __slots__ = ("shape",)

    assert specs.told({}) is specs.told({"shape": (1, 2)}) is specs.UNKNOWN
    assert specs.told(Slotted()) is specs.UNKNOWN
    found = Slotted()
    found.shape, names = (), types.SimpleNamespace()
    assert Slotted not in specs._nothing
    assert dict in specs._nothing
    assert specs.told(names) is specs.UNKNOWN
    names.shape, names.dtype = (2, 3), np.dtype("f4")
    assert specs.told(names).shape == (2, 3)


def test_in_a_search_estimators_are_read_as_the_last_of_their_class_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn lends them attributes while they are fitted, which are gone when they predict."""
    made: list[list[str]] = []
    make = learnt.Holding.__init__

    def counted(one: learnt.Holding, held: Any, *more: Any) -> None:
        made.append([*held])
        make(one, held, *more)

    monkeypatch.setattr(learnt.Holding, "__init__", counted)
    X = np.random.default_rng(0).normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    with bitwatt.measure(keep=False, meter=False):
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0, 10.0]}, cv=5, refit=False).fit(X, y)
    assert len(made) <= 3  # its own, that of the labels, that of the search
