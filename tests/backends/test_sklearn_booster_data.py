"""Trainings by XGBoost's, LightGBM's and CatBoost's own `train`: what their data sets were made of is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import catboost
import lightgbm
import numpy as np
import pytest
import scipy.sparse
import xgboost

import bitwatt

ROUNDS = 6


def numbers(kind: str) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12))
    if kind == "levels":
        X = rng.integers(0, 8, X.shape).astype(float)
    elif kind == "gaps":
        X[rng.random(X.shape) < 0.1] = np.nan
    elif kind == "sparse":
        X = X * (rng.random(X.shape) < 0.05)
    y = (np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 3]) > 0.1).astype(int)
    return scipy.sparse.csr_matrix(X) if kind == "sparse" else X, y


def flops(train: Callable[[], object]) -> tuple[int, int]:
    """Of training, and the bytes that it is known to have read."""
    with bitwatt.measure(keep=False, meter=False) as session:
        train()
    assert session.run is not None
    assert not session.run.notes
    totals = bitwatt.totals(session.run)
    assert totals.missing == {}
    return int(totals.total), int(bitwatt.totals(session.run, "bytes").total)


XGB = {"max_depth": 3, "objective": "binary:logistic"}
LGB = {"objective": "binary", "num_leaves": 8, "verbose": -1}
CAT = {"depth": 3, "loss_function": "Logloss", "verbose": False, "allow_writing_files": False}


def by_estimator(library: str, X: Any, y: Any) -> object:
    if library == "xgboost":
        return xgboost.XGBClassifier(n_estimators=ROUNDS, max_depth=3).fit(X, y)
    if library == "lightgbm":
        return lightgbm.LGBMClassifier(n_estimators=ROUNDS, num_leaves=8, verbose=-1).fit(X, y)
    return catboost.CatBoostClassifier(ROUNDS, **CAT).fit(X, y)


def data_set(library: str, X: Any, y: Any) -> Any:
    if library == "xgboost":
        return xgboost.DMatrix(X, y)
    return lightgbm.Dataset(X, y) if library == "lightgbm" else catboost.Pool(X, y)


def by_train(library: str, data: Any) -> object:
    if library == "xgboost":
        return xgboost.train(XGB, data, ROUNDS)
    if library == "lightgbm":
        return lightgbm.train(LGB, data, ROUNDS)
    return catboost.train(data, CAT, iterations=ROUNDS)


@pytest.mark.parametrize("kind", ["plain", "levels", "gaps", "sparse"])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_a_training_is_told_alike_by_train_and_by_the_estimator(library: str, kind: str) -> None:
    X, y = numbers(kind)
    estimator, _ = flops(lambda: by_estimator(library, X, y))
    trained, read = flops(lambda: by_train(library, data_set(library, X, y)))
    assert trained == pytest.approx(estimator, rel=0.01)
    assert read > 0


@pytest.mark.parametrize("kind", ["plain", "levels", "gaps", "sparse"])
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_of_sets_made_before_the_session_the_library_tells_its_bins(library: str, kind: str) -> None:
    """LightGBM does not tell of gaps, nor how much of a sparse matrix is stored."""
    X, y = numbers(kind)
    estimator, _ = flops(lambda: by_estimator(library, X, y))
    data = data_set(library, X, y)
    trained, _ = flops(lambda: by_train(library, data))
    if library == "xgboost" or kind in ("plain", "levels"):
        assert trained == pytest.approx(estimator, rel=0.05)
    else:
        assert trained == pytest.approx(estimator, rel=0.6)


def test_a_loop_of_updates_is_told_as_a_training() -> None:
    X, y = numbers("levels")
    trained, _ = flops(lambda: by_train("xgboost", xgboost.DMatrix(X, y)))

    def loop() -> None:
        data = xgboost.DMatrix(X, y)
        booster = xgboost.Booster(XGB, [data])
        for i in range(ROUNDS):
            booster.update(data, i)

    assert flops(loop)[0] == trained


def test_classes_of_data_sets_are_as_they_were() -> None:
    kinds = (xgboost.DMatrix, xgboost.QuantileDMatrix, lightgbm.Dataset, catboost.Pool)
    before = [kind.__init__ for kind in kinds]
    X, y = numbers("plain")
    for library in ("xgboost", "lightgbm", "catboost"):
        flops(lambda library=library: by_train(library, data_set(library, X, y)))  # type: ignore[misc]
    assert [kind.__init__ for kind in kinds] == before
