"""scikit-learn's own callbacks: the same counts as a session around the fit."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import bitwatt

pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bitwatt.callbacks.sklearn import Bitwatt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 6))
Y = (X[:, 0] > 0).astype(int)


def counted(run: Any) -> Any:
    return bitwatt.totals(run).by("phase", "scope", "op")


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        StandardScaler(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3, n_jobs=2),
    ],
    ids=["leaf", "transformer", "pipeline", "search", "search in processes"],
)
def test_it_counts_what_a_session_around_the_fit_counts(estimator: Any) -> None:
    callback = Bitwatt(keep=False)
    estimator.set_callbacks(callback).fit(X, Y)
    estimator.set_callbacks()
    with bitwatt.measure(keep=False) as session:
        estimator.fit(X, Y)
    assert counted(callback.run) == counted(session.run)
    assert bitwatt.totals(callback.run).total > 0
    assert callback.run.observed.processed[""]["samples"] == 90


def test_parameters_and_the_best_score_are_kept() -> None:
    callback = Bitwatt("search", tags="cv")
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=3).set_callbacks(callback).fit(X, Y)
    run = bitwatt.load(callback.run.id)
    assert (run.name, run.about.tags) == ("search", {"cv": ""})
    assert run.about.parameters["cv"] == 3
    assert run.about.metrics["best_score"]["last"] == search.best_score_


def test_a_fit_that_raises_ends_the_run() -> None:
    callback = Bitwatt(keep=False)
    with pytest.raises(ValueError, match="at least 2 classes"):
        make_pipeline(StandardScaler(), LogisticRegression()).set_callbacks(callback).fit(X, np.zeros(90))
    assert callback.run.status.startswith("failed: ValueError")
    assert bitwatt.context.current() is None


def test_inside_a_session_nothing_is_counted_twice() -> None:
    callback = Bitwatt()
    with bitwatt.measure(keep=False) as outer:
        LogisticRegression().set_callbacks(callback).fit(X, Y)
    with bitwatt.measure(keep=False) as plain:
        LogisticRegression().fit(X, Y)
    assert counted(outer.run) == counted(plain.run)
    assert callback.run is None


def test_copies_have_no_session() -> None:
    callback = Bitwatt("mine", keep=False)
    LogisticRegression().set_callbacks(callback).fit(X, Y)
    copy = pickle.loads(pickle.dumps(callback))
    assert copy.run is None
    assert copy._name == "mine"
