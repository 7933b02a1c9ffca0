"""Short ways that save time must tell what the long ones tell."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import GammaRegressor, LogisticRegression
from sklearn.linear_model._linear_loss import LinearModelLoss
from sklearn.svm import SVC

import bitwatt
from bitwatt.backends.sklearn import facts
from bitwatt.backends.sklearn.readers import libsvm


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
    seen = [(row.op.name.rpartition(".")[2], dict(row.op.args)["C"]) for row in session.run.ledger]
    assert sorted(seen) == [(name, C) for name in ("decision_function", "predict", "score") for C in (1.0, 2.0)]


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
