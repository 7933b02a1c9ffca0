"""joblib's workers, wherever they run: what they count comes home once, and nothing else of us is to be seen."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, LogisticRegression, LogisticRegressionCV, Ridge
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

import bitwatt

RANDOM = np.random.RandomState(0)
X = RANDOM.randn(90, 5)
Y = (X[:, 0] > -0.5).astype(int) + (X[:, 1] > 0.5)
BINARY = (X[:, 0] > 0).astype(int)
MANY = np.column_stack([BINARY, X[:, 2] > 0]).astype(int)
PARTLY = np.where(np.arange(90) % 3, BINARY, -1)


def measured(function: Callable[[], Any]) -> bitwatt.Run:
    with bitwatt.measure("workers", keep=False) as session:
        function()
    assert session.run is not None
    return session.run


def logistic() -> LogisticRegression:
    return LogisticRegression()


def logistic_cv() -> LogisticRegressionCV:
    return LogisticRegressionCV(Cs=2, cv=2, l1_ratios=(0.0,), scoring="accuracy", use_legacy_attributes=False)


def steps() -> Pipeline:
    return Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())])


def union() -> FeatureUnion:
    return FeatureUnion([("a", StandardScaler()), ("b", MinMaxScaler()), ("c", StandardScaler(with_mean=False))])


def columns() -> ColumnTransformer:
    return ColumnTransformer(
        [("a", StandardScaler(), [0, 1]), ("b", MinMaxScaler(), [2]), ("c", StandardScaler(), [3])]
    )


def pair() -> list[tuple[str, Any]]:
    return [("a", logistic()), ("b", make_pipeline(StandardScaler(), LogisticRegression(C=2.0)))]


GRID = {"model__C": [0.1, 1.0]}
NESTED: dict[str, Callable[[], Any]] = {
    "Pipeline": lambda: make_pipeline(union(), PCA(2), RandomForestClassifier(4, random_state=0)).fit(X, Y).score(X, Y),
    "ColumnTransformer": lambda: columns().fit(X).transform(X),
    "FeatureUnion": lambda: union().fit(X).transform(X),
    "GridSearchCV": lambda: GridSearchCV(steps(), GRID, cv=3).fit(X, Y).score(X, Y),
    "RandomizedSearchCV": lambda: RandomizedSearchCV(steps(), GRID, n_iter=2, cv=2, random_state=0).fit(X, Y),
    "HalvingGridSearchCV": lambda: HalvingGridSearchCV(steps(), GRID, cv=2, random_state=0).fit(X, Y),
    "HalvingRandomSearchCV": lambda: HalvingRandomSearchCV(steps(), GRID, n_candidates=2, cv=2, random_state=0).fit(
        X, Y
    ),
    "cross_val_score": lambda: cross_val_score(steps(), X, Y, cv=3),
    "cross_validate": lambda: cross_validate(steps(), X, Y, cv=2, scoring=["accuracy", "f1_macro"]),
    "cross_val_predict": lambda: cross_val_predict(steps(), X, Y, cv=2, method="predict_proba"),
    "curves": lambda: (
        learning_curve(Ridge(), X, Y, cv=2, train_sizes=[0.5, 1.0]),
        validation_curve(Ridge(), X, Y, cv=2, param_name="alpha", param_range=[0.1, 1.0]),
    ),
    "VotingClassifier": lambda: VotingClassifier(pair(), voting="soft").fit(X, Y).predict(X),
    "VotingRegressor": lambda: VotingRegressor([("a", Ridge()), ("b", LinearRegression())]).fit(X, Y).predict(X),
    "StackingClassifier": lambda: StackingClassifier(pair(), logistic(), cv=2).fit(X, Y).predict(X),
    "BaggingClassifier": lambda: BaggingClassifier(logistic(), 4, random_state=0).fit(X, Y).predict_proba(X),
    "OneVsRestClassifier": lambda: OneVsRestClassifier(logistic()).fit(X, Y).predict(X),
    "OneVsOneClassifier": lambda: OneVsOneClassifier(logistic()).fit(X, Y).predict(X),
    "MultiOutputClassifier": lambda: MultiOutputClassifier(logistic()).fit(X, MANY).predict(X),
    "MultiOutputRegressor": lambda: MultiOutputRegressor(Ridge()).fit(X, MANY).predict(X),
    "ClassifierChain": lambda: ClassifierChain(logistic(), cv=2).fit(X, MANY).predict(X),
    "RegressorChain": lambda: RegressorChain(Ridge(), cv=2).fit(X, MANY).predict(X),
    "CalibratedClassifierCV": lambda: CalibratedClassifierCV(logistic(), cv=2).fit(X, Y).predict_proba(X),
    "TransformedTargetRegressor": lambda: (
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()).fit(X, X[:, 0]).predict(X)
    ),
    "RFE": lambda: RFE(logistic(), n_features_to_select=3).fit(X, Y).predict(X),
    "RFECV": lambda: RFECV(logistic(), cv=2, min_features_to_select=3).fit(X, Y).predict(X),
    "SequentialFeatureSelector": lambda: (
        SequentialFeatureSelector(Ridge(), n_features_to_select=2, cv=2).fit(X, Y).transform(X)
    ),
    "SelfTrainingClassifier": lambda: SelfTrainingClassifier(logistic()).fit(X, PARTLY).predict(X),
    "LogisticRegressionCV": lambda: logistic_cv().fit(X, Y).score(X, Y),
    "search of a forest": lambda: (
        GridSearchCV(RandomForestClassifier(3, random_state=0), {"max_depth": [2, 3]}, cv=2).fit(X, Y).predict(X)
    ),
}


@functools.cache
def alone(name: str) -> bitwatt.Run:
    return measured(NESTED[name])


def calls(run: bitwatt.Run) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for row in run.ledger:
        found[row.phase, row.scope, row.op.name] += row.calls
    return found


def same(together: bitwatt.Run, one_by_one: bitwatt.Run) -> None:
    """To the last operation, and in the same places."""
    assert calls(together) == calls(one_by_one)
    for model in ("flops", "bops"):
        found, expected = bitwatt.totals(together, model), bitwatt.totals(one_by_one, model)
        assert found.by("phase", "scope", "op") == expected.by("phase", "scope", "op")
        assert found.total == expected.total > 0
    assert together.layers == one_by_one.layers
    assert together.notes == one_by_one.notes


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
@pytest.mark.parametrize("name", NESTED)
def test_what_nests_counts_alike_in_any_worker(name: str, backend: str) -> None:
    if (name, backend) == ("CalibratedClassifierCV", "multiprocessing"):
        pytest.skip("its tasks hold a module, which pickle refuses, with or without us")
    with joblib.parallel_config(backend=backend, n_jobs=2):
        same(measured(NESTED[name]), alone(name))


@pytest.mark.parametrize(
    ("make", "exact"),
    [
        (lambda n: NearestNeighbors(n_jobs=n, algorithm="ball_tree", metric="canberra").fit(_POINTS).kneighbors, 1e-6),
        (lambda n: NearestNeighbors(n_jobs=n, algorithm="kd_tree").fit(_POINTS).kneighbors, 0.03),  # boxes of some
        (lambda n: NearestNeighbors(n_jobs=n, algorithm="ball_tree").fit(_POINTS).radius_neighbors, 1e-6),
    ],
)
def test_threads_that_ask_one_tree_count_what_one_thread_counts(make, exact):
    totals = []
    for threads in (1, 2, 4, 4):
        ask = make(threads)
        with bitwatt.measure("tree", keep=False, meter=False) as session:
            ask(_POINTS)
        totals.append(bitwatt.totals(session.run).total)
    assert totals == pytest.approx([totals[0]] * 4, rel=exact)
    assert totals[2] == totals[3]


_POINTS = np.random.RandomState(0).randn(2000, 5)
