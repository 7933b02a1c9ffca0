"""Short ways that save time must tell what the long ones tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.decomposition import IncrementalPCA
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import GammaRegressor, LogisticRegression
from sklearn.linear_model._linear_loss import LinearModelLoss
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import bitwatt
from bitwatt.backends.sklearn import facts, probes, specs
from bitwatt.backends.sklearn.frames import TOP, framed
from bitwatt.backends.sklearn.readers import histograms, libsvm
from bitwatt.backends.sklearn.readers.batches import Batches
from bitwatt.ledger import Ledger, Row


def _probes(run, name):
    return [seen for row in run.ledger for seen in dict(row.op.args).get("probes", ()) if seen[0] == name]


@pytest.mark.filterwarnings("ignore:Solver terminated early")
@pytest.mark.parametrize("seed", range(6))
def test_a_pair_of_classes_tells_what_many_would(seed, monkeypatch):
    X, y = make_classification(150, 8, n_informative=5, weights=[0.3 + 0.1 * seed], flip_y=0.1, random_state=seed)
    weights = None if seed % 2 else "balanced"
    model = SVC(C=10.0 ** (seed - 3), class_weight=weights, kernel="linear" if seed > 3 else "rbf", max_iter=5000)
    model.fit(X, y)
    args = (model, X, y.astype(float), np.array([]))
    quick = libsvm._pair(model, args)
    monkeypatch.setattr(libsvm, "_pair", lambda *_: None)
    assert quick is not None
    assert quick == libsvm._trained(args, {}, None)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("model", [LogisticRegression(), GammaRegressor(), LogisticRegression(solver="newton-cg")])
def test_every_gradient_of_a_minimiser_counts_once(model, dtype, monkeypatch):
    X, y = make_classification(400, 12, n_informative=6, n_classes=3, random_state=0)
    original, made = LinearModelLoss.loss_gradient, []

    def counted(self, *args, **kwargs):
        made.append(1)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(LinearModelLoss, "loss_gradient", counted)
    with bitwatt.measure("gradients", keep=False, meter=False) as session:
        model.fit(np.abs(X).astype(dtype), y + 1)
    assert sum(seen[-1] for seen in _probes(session.run, "linear_loss_gradient")) == len(made)


def test_what_an_inner_method_read_serves_the_outer_one():
    X, y = make_classification(60, 5, random_state=0)
    model = LogisticRegression().fit(X, y)
    with bitwatt.measure("score", keep=False, meter=False) as session:
        model.score(X, y)
        model.set_params(C=2.0)
        model.score(X, y)
    seen = [(row.op.name.rpartition(".")[2], dict(row.op.args).get("C")) for row in session.run.ledger]
    told = [("decision_function", 1.0), ("decision_function", 2.0), ("score", 1.0), ("score", 2.0)]
    assert sorted(one for one in seen if one[0] != "predict") == told
    assert [one for one in seen if one[0] == "predict"] == [("predict", None)]  # it leaves all to decision_function


def test_what_leaves_all_work_to_others_is_told_where_it_is_called_by_the_program():
    X, y = make_classification(60, 5, random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    with bitwatt.measure("alone", keep=False, meter=False) as session:
        model.fit(X, y).predict(X)
    outer = {row.op.name: dict(row.op.args) for row in session.run.ledger if "." not in row.scope}
    assert {name.rpartition(".")[2]: args["X"].shape for name, args in outer.items()} == {
        "fit": (60, 5),
        "predict": (60, 5),
    }
    with bitwatt.measure("searched", keep=False, meter=False) as session:
        GridSearchCV(model, {"logisticregression__C": [0.1, 1.0]}, cv=3, refit=False).fit(X, y)
    inner = {row.op.name: row for row in session.run.ledger if row.scope == "GridSearchCV.fold 1.Pipeline"}
    assert inner["sklearn.pipeline.Pipeline.fit"].calls == 2
    assert inner["sklearn.pipeline.Pipeline.fit"].op.args == ()
    assert bitwatt.totals(session.run).missing == {}


class Around(BaseEstimator):
    def __init__(self, inner):
        self.inner = inner

    def fit(self, X, y=None):
        self.inner.fit(X)
        return self


def test_an_estimator_that_learnt_in_a_fit_of_which_nothing_is_told_is_read_anew():
    X = make_classification(60, 5, random_state=0)[0]
    columns = ColumnTransformer([("scale", StandardScaler(), [0, 1])])
    with bitwatt.measure("twice", keep=False, meter=False) as session:
        columns.fit(X[:, :4])
        columns.transform(X[:, :4])
        Around(columns).fit(X)
        columns.transform(X)
    seen = [dict(row.op.args) for row in session.run.ledger if row.op.name.endswith("ColumnTransformer.transform")]
    assert {(args["X"].shape[1], args["n_features_in_"]) for args in seen} == {(4, 4), (5, 5)}


def test_a_note_that_cannot_be_read_loses_no_other(monkeypatch):
    X, y = make_classification(60, 5, random_state=0)
    named = facts.named

    def broken(function, values, keywords):
        if function.__name__ == "predict":
            raise RuntimeError("unreadable")
        return named(function, values, keywords)

    monkeypatch.setattr(facts, "named", broken)
    with (
        pytest.warns(RuntimeWarning, match=r"predict could not be recorded: RuntimeError: unreadable"),
        bitwatt.measure("broken", keep=False, meter=False) as session,
    ):
        LogisticRegression().fit(X, y).predict(X)
    assert {row.op.name.rpartition(".")[2] for row in session.run.ledger} == {"fit", "decision_function"}
    assert any("predict could not be recorded" in note for note in session.run.notes)


def _walked(nodes, bins):
    """Bins of each feature in each node, found by walking down from the root."""
    found = {}

    def visit(at, low, high):
        found[at] = low, high
        node = nodes[at]
        if node["is_leaf"]:
            return
        left, right, feature = high.copy(), low.copy(), node["feature_idx"]
        if not node["is_categorical"]:
            left[feature] = min(left[feature], int(node["bin_threshold"]))
            right[feature] = max(right[feature], int(node["bin_threshold"]) + 1)
        visit(int(node["left"]), low, left)
        visit(int(node["right"]), right, high)

    visit(0, np.zeros(len(bins), int), np.asarray(bins) - 1)
    return [np.stack([found[at][end] for at in range(len(nodes))]) for end in (0, 1)]


def test_bins_of_nodes_are_those_that_the_splits_above_leave():
    X, y = make_classification(400, 6, n_informative=5, n_redundant=0, random_state=0)
    X[:, 0] = np.digitize(X[:, 0], [-1, 0, 1])
    model = HistGradientBoostingClassifier(max_iter=6, categorical_features=[0], random_state=0).fit(X, y)
    bins = np.asarray(model._bin_mapper.n_bins_non_missing_, dtype=np.int32)
    tables = [predictor.nodes for trees in model._predictors for predictor in trees]
    assert any(table["is_categorical"].any() for table in tables)
    for nodes in tables:
        every, rows = np.flatnonzero(nodes["is_leaf"] == 0), np.arange(len(nodes))
        children = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64)[every]
        back, high = histograms._ranges(nodes, every, children, np.array([0]), bins[None], rows)
        for found, walked in zip((-back, high), _walked(nodes, bins), strict=True):
            np.testing.assert_array_equal(found, walked)
        some = rows[::3]
        np.testing.assert_array_equal(
            histograms._ranges(nodes, every, children, np.array([0]), bins[None], some)[1], high[some]
        )


def test_trees_read_in_pieces_tell_what_all_at_once_do(monkeypatch):
    X, y = make_classification(300, 6, n_informative=5, n_redundant=0, random_state=0)
    model = HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=5, random_state=0).fit(X, y)
    told = []
    for cells in (1, 10**9):
        monkeypatch.setattr(histograms, "_batches", Batches(cells, histograms._read))
        told.append(histograms.histograms(model)["histograms"].told())
    assert told[0] == pytest.approx(told[1], abs=1)


def test_fits_that_are_read_together_tell_what_each_tells_alone(monkeypatch):
    """Of columns with other bins, of rounds and leaves of their own, of one tree that is a leaf."""
    models = []
    given = (300, 6, 5, 20), (90, 6, 5, 20), (900, 6, None, 3), (300, 9, 5, 20), (30, 6, 5, 20)
    for rows, columns, leaves, least in given:
        X, y = make_classification(rows, columns, n_informative=5, n_redundant=0, random_state=rows)
        kind = HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=leaves, min_samples_leaf=least, random_state=0)
        models.append(kind.fit(X, y))
    monkeypatch.setattr(histograms, "_batches", Batches(1, histograms._read))
    alone = [histograms.histograms(model)["histograms"].told() for model in models]
    monkeypatch.setattr(histograms, "_batches", Batches(10**9, histograms._read))
    waiting = [histograms.histograms(model)["histograms"] for model in models]
    assert [one.told() for one in reversed(waiting)] == alone[::-1]
    assert len({tuple(one.items()) for one in alone}) == len(models)


_STEPS = [("scale", StandardScaler()), ("fit", LogisticRegression())]


@pytest.mark.parametrize("values", [[1, 2.5, "a", None], [LogisticRegression(), LogisticRegression(C=2.0)], [], [1, {}],
                                    [SVC(), LogisticRegression()], (True, 1, 1.0), _STEPS, tuple(_STEPS), 20 * _STEPS,
                                    [*_STEPS, ("none", "passthrough")], [(1, SVC())], [("a", SVC(), [0])]])  # fmt: skip
def test_lists_are_told_as_their_elements_are(values):
    for _ in range(2):  # the second time the elements are known
        facts.forget()
        inner = tuple(specs.told(value) for value in values)
        told = specs.several(values)
        assert told == (len(values) if specs.UNKNOWN in inner else inner)
        assert told == len(values) or [type(one) for one in told] == [type(one) for one in inner]


def test_more_steps_than_are_told_are_data():
    assert specs.several(40 * _STEPS).shape == (80,)


@pytest.mark.parametrize(("one", "other"), [
    ((np.ones((3, 2)), np.ones(70)), (np.ones((3, 2)), np.ones(71))),
    ((np.ones((3, 2)),), (np.ones((3, 2), order="F"),)),
    ((np.ones((3, 2)),), (np.ones((3, 2), np.float32),)),
    ((np.arange(3),), (np.arange(3, 6),)),
    ((np.array(3),), (np.array(4),)),
    ((1,), (1.0,)), ((1,), (True,)), ((None,), ("",)),
    ((sparse.eye(3).tocsr(),), (sparse.random(3, 3, 0.9, "csr", random_state=0),)),
    (([1, 2],), ((1, 3),)),
])  # fmt: skip
def test_arguments_that_are_told_otherwise_are_not_the_same(one, other):
    facts.forget()
    assert facts.given(one, {}, None) is not facts.given(other, {}, None)
    assert facts.given(one, {}, None) is facts.given(one, {}, None)
    assert facts.given(one, {}, None) is not facts.given(one[1:], {"X": one[0]}, None)
    assert facts.given(one, {}, None) is not facts.given((), {}, one[0])
    for args in (one, other):
        assert facts.given(args, {}, None).values == [specs.told(value) for value in args]


def test_what_came_out_is_told_beside_the_arguments():
    X = np.ones((3, 2))
    told = [facts.given((X,), {}, result).out for result in (None, X, X.T, np.arange(3), 0.5, [X])]
    assert told == [None, specs.told(X), specs.told(X.T), None, None, None]


@pytest.mark.parametrize("first", [1, 1.0])
def test_parameters_that_are_equal_and_of_other_types_are_told_apart(first):
    X, y = make_classification(80, 6, random_state=0)
    other = 1.0 if type(first) is int else 1
    with bitwatt.measure("types", keep=False, meter=False) as session:
        for value in (first, other):
            DecisionTreeClassifier(max_features=value, random_state=0).fit(X, y)
    told = [dict(row.op.args) for row in session.run.ledger]
    assert sorted((type(args["max_features"]).__name__, args["tree_features"]) for args in told) == [
        ("float", 6), ("int", 1),
    ]  # fmt: skip


def test_parameters_that_change_between_calls_are_read_anew():
    X, y = make_classification(60, 5, random_state=0)
    model = LogisticRegression().fit(X, y)
    pipe = make_pipeline(StandardScaler(), model).fit(X, y)
    with bitwatt.measure("changes", keep=False, meter=False) as session:
        for C in (1.0, 2, 2.0, 3.0):
            model.C = C
            model.decision_function(X)
        for step in ("passthrough", MinMaxScaler().fit(X)):
            pipe.steps[0] = ("first", step)
            pipe.predict(X)
    ops = [row.op for row in session.run.ledger]
    assert {dict(op.args)["C"] for op in ops if op.name.endswith("decision_function")} == {1.0, 2, 3.0}
    told = {dict(op.args)["steps"][0] for op in ops if op.name.endswith("Pipeline.predict")}
    assert told == {("first", "passthrough"), ("first", "<MinMaxScaler>")}


def test_facts_that_are_read_later_are_read_once():
    asked = []

    def told():
        asked.append(1)
        return {"nodes": 3, "depth": 2}

    known = facts.Known((("n_outputs_", 1), ("trees", facts.Later(told))), later=True)
    assert asked == []
    assert known.items == (("n_outputs_", 1), ("nodes", 3), ("depth", 2))
    assert known.items is known.items
    assert asked == [1]


def test_equal_estimators_share_what_is_known_of_them():
    X, y = make_classification(60, 5, random_state=0)
    facts.forget()
    one, two = (LogisticRegression().fit(X, y) for _ in range(2))
    assert facts.known(one, True) == facts.known(two, True)
    two.coef_ = two.coef_.astype(np.float32)
    assert facts.known(two, False) != facts.known(one, False)  # outside of a fit
    assert facts.known(two, True)[1] is not facts.known(one, True)[1]
    assert dict(facts.known(two, True)[1].items)["coef_"].dtype == "float32"


def test_a_fit_inside_a_fit_tells_for_both_only_if_nothing_was_added(monkeypatch):
    X = make_classification(60, 5, random_state=0)[0]
    read, known = [], facts.known

    def counted(estimator, fresh):
        read.append((type(estimator).__name__, fresh))
        return known(estimator, fresh)

    def fit(self, X, y=None):
        self.partial_fit(X, y)
        self.later_ = 7
        return self

    monkeypatch.setattr(facts, "known", counted)
    with bitwatt.measure("scaled", keep=False, meter=False) as session:
        StandardScaler().fit_transform(X)
    told = {row.op.name.rpartition(".")[2]: dict(row.op.args).get("n_features_in_") for row in session.run.ledger}
    assert told == dict.fromkeys(["fit_transform", "partial_fit", "transform"], 5) | {"fit": None}  # it is hollow
    assert read == [("StandardScaler", True), ("StandardScaler", False)]  # partial_fit, and transform
    monkeypatch.setattr(StandardScaler, "fit", fit)
    with bitwatt.measure("scaled", keep=False, meter=False) as session:
        StandardScaler().fit(X)
    told = {row.op.name.rpartition(".")[2]: dict(row.op.args).get("later_") for row in session.run.ledger}
    assert told == {"fit": 7, "partial_fit": None}


def test_how_a_fit_went_tells_predictions_not_apart():
    X, y = make_classification(80, 5, random_state=0)
    with bitwatt.measure("iterations", keep=False, meter=False) as session:
        for tol in (0.1, 1e-6):
            model = LogisticRegression(tol=tol).fit(X, y)
            model.tol = 0.5
            model.predict(X)
            model.score(X, y)
    rows = {row.op.name: [] for row in session.run.ledger}
    for row in session.run.ledger:
        rows[row.op.name].append((row.calls, "n_iter_" in dict(row.op.args)))
    assert rows["sklearn.linear_model.LogisticRegression.fit"] == [(1, True), (1, True)]
    assert rows["sklearn.linear_model.LogisticRegression.predict"] == [
        (2, False),
        (2, False),
    ]  # the user's, and those of score
    assert rows["sklearn.base.ClassifierMixin.score"] == [(2, False)]


def test_families_do_not_share_what_they_leave_out(monkeypatch):
    """One has no use for an attribute after its fit, and the other has, though both tell the same."""
    monkeypatch.setattr(facts, "_passing", {"made.One": frozenset({"n_iter_"})})
    facts.forget()
    one, two = (type(name, (), {"__module__": "made"})() for name in ("One", "Two"))
    for made in (one, two):
        made.n_iter_, made.size_ = 3, 7

    def after(made, fresh):
        _, learnt, went = facts.known(made, fresh)
        return learnt.together(went)

    assert after(one, True) == after(two, True) == (("n_iter_", 3), ("size_", 7))
    assert after(one, False) == (("size_", 7),)
    assert after(two, False) == (("n_iter_", 3), ("size_", 7))
    one.n_iter_ = 4
    before = facts.known(one, False)[1]
    assert after(one, True) == (("n_iter_", 4), ("size_", 7))
    assert facts.known(one, False)[1] is before


@pytest.mark.parametrize("named", [False, True])
def test_batches_after_the_first_are_one_row(named):
    X = make_classification(60, 5, random_state=0)[0]
    model = IncrementalPCA(3)
    with bitwatt.measure("batches", keep=False, meter=False) as session:
        for _ in range(4):
            model.partial_fit(**{"X": X[:20]}) if named else model.partial_fit(X[:20])
    rows = list(session.run.ledger)
    first, *others = [bitwatt.totals(Ledger([Row("", "", row.op, 1)])).total for row in rows]
    assert [row.calls for row in rows] == ([1, 1, 1, 1] if named else [1, 3])
    assert len(set(others)) == 1
    assert others[0] > first
    with bitwatt.measure("anew", keep=False, meter=False) as session:
        model.fit(X[:20])
    assert not _probes(session.run, "batches before")


def test_a_minimiser_may_hand_on_any_number_of_arguments():
    class Loss:
        def value(self, x, *more):
            return sum(x) + len(more)

    inner = probes.Probe("made:Loss.value", "made_value", lambda args, *_: (len(args),), decide=(0, 1, 1))
    Loss.value = probes._make(inner, Loss.value, Loss, "value")
    minimise = probes._make(probes.Probe("made:minimise", "made_minimise", calls=True), _twice, None, "minimise")
    for more in ((), (1,), (1, 2, 3, 4, 5)):
        frame = framed(None, "fit", "fit", "made")
        reset = TOP.set(frame)
        try:
            assert minimise(Loss().value, [1, 2], args=more) == 2 * (3 + len(more))
        finally:
            TOP.reset(reset)
        assert frame.probes == {("made_minimise",): 1, ("made_value", 2 + len(more)): 2}
    probes._deciding.pop(Loss.value)


def _twice(function, x, args=()):
    return function(x, *args) + function(x, *args)


@pytest.mark.parametrize("given", ["place", "name", "list"])
def test_batches_of_a_stream_with_other_labels_are_one_row(given: str) -> None:
    """Short integer arrays are told as they are, but of a stream's labels only the number matters."""
    draw = np.random.default_rng(0)
    model, X = GaussianNB(), draw.normal(size=(12, 3))
    with bitwatt.measure("stream", keep=False, meter=False) as session:
        for _ in range(30):
            labels: Any = draw.permutation(np.arange(12) % 3)
            if given == "name":
                model.partial_fit(X, y=labels, classes=[0, 1, 2])
            else:
                model.partial_fit(X, labels.tolist() if given == "list" else labels, classes=[0, 1, 2])
    assert session.run is not None
    assert [row.calls for row in session.run.ledger] == [30]
