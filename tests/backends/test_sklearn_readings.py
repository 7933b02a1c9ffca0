"""What is read of fitted estimators and inside their fits, where the usual case has a short way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier
from sklearn.tree import DecisionTreeClassifier

import bitwatt
from bitwatt.backends.sklearn import probes
from bitwatt.backends.sklearn.frames import TOP, framed
from bitwatt.backends.sklearn.learnt import Kind
from bitwatt.backends.sklearn.readers import trees


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

    counted = probes._make(probes.Probe("made:f", "made", sizes, before), lambda x: x + 1)
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
            told.append(kind.learnt(other, other.__dict__).items)
        return {"more": 1}

    kind = Kind((), (reader,), frozenset({"wide_"}))
    for _ in range(2):
        found = kind.learnt(one, one.__dict__)
        assert dict(found.items) == {"rows_": 3, "wide_": True, "more": 1}
        assert dict(found.lasting.items) == {"rows_": 3, "more": 1}
    assert list(map(dict, told)) == [{"names_": "ab", "more": 1}] * 2
