"""The paper's formulas for estimators. It has five; estimators outside them are missing under its conventions."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.dtypes import Precision, dtype
from bitwatt.records import Op, TensorSpec

LIBRARIES = ("sklearn", "xgboost", "lightgbm", "catboost")
_FITS = ("fit", "partial_fit", "fit_transform", "fit_predict")

_CLOSED = frozenset({"LinearRegression", "Ridge", "RidgeClassifier"})
_DIRECT = frozenset({"auto", "cholesky", "svd"})
_ITERATED = frozenset({
    "LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "SGDRegressor", "SGDOneClassSVM", "Perceptron",
    "PassiveAggressiveClassifier", "PassiveAggressiveRegressor", "LinearSVC", "LinearSVR", "Lasso", "LassoCV",
    "ElasticNet", "ElasticNetCV", "MultiTaskLasso", "MultiTaskLassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV",
    "HuberRegressor", "PoissonRegressor", "GammaRegressor", "TweedieRegressor", "Ridge", "RidgeClassifier",
})  # fmt: skip
_TREES = frozenset({
    "DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor",
    "RandomForestClassifier", "RandomForestRegressor", "ExtraTreesClassifier", "ExtraTreesRegressor",
    "RandomTreesEmbedding", "IsolationForest", "GradientBoostingClassifier", "GradientBoostingRegressor",
    "HistGradientBoostingClassifier", "HistGradientBoostingRegressor", "XGBClassifier", "XGBRegressor", "XGBRanker",
    "XGBRFClassifier", "XGBRFRegressor", "LGBMClassifier", "LGBMRegressor", "LGBMRanker", "CatBoost",
    "CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker",
})  # fmt: skip
_BOOSTED = ("GradientBoosting", "XGB", "LGBM", "CatBoost")
_CLUSTERED = frozenset({"KMeans", "MiniBatchKMeans", "BisectingKMeans"})
#: What a search among neighbours is told by, in the call that makes it.
_SEARCHES = frozenset({"argkmin", "radius", "tree query", "tree radius"})


def is_estimator(op: Op) -> bool:
    return op.name.partition(".")[0] in LIBRARIES


def flops(op: Op) -> int | None:
    """What the paper's formula for this call gives; None where it has none."""
    known = dict(op.args)
    kind, _, method = op.name.rpartition(".")
    name = kind.rpartition(".")[2]
    X = known.get("X")
    if any(probe[0] in _SEARCHES for probe in known.get("probes", ())) and "fit_shape" in known:
        return _neighbours(known)
    if method not in _FITS or not isinstance(X, TensorSpec) or len(X.shape) != 2:
        return None
    rows, columns = X.shape
    if name in _CLOSED and known.get("solver", "auto") in _DIRECT:
        return round(2 * rows * columns**2 + 2 / 3 * columns**3)
    if name in _ITERATED:
        return _iterations(known) * rows * columns * max(_outputs(known), 1)
    if name in _TREES:
        return round(_trees(name, known) * rows * columns * math.log2(max(rows, 2)))
    if name in _CLUSTERED:
        return _iterations(known) * rows * columns * int(known.get("n_clusters", 1))
    return None


def width(op: Op) -> Precision:
    """That of the input array; 64 bits where it has none."""
    X = dict(op.args).get("X")
    floating = isinstance(X, TensorSpec) and X.precision.kind in ("float", "int", "uint")
    return X.precision if isinstance(X, TensorSpec) and floating else dtype("float64").precision


def _neighbours(known: dict[str, Any]) -> int:
    seen, columns = known["fit_shape"]
    X = known.get("X")
    return 2 * int(seen) * int(columns) * (X.shape[0] if isinstance(X, TensorSpec) else int(seen))


def _iterations(known: dict[str, Any]) -> int:
    """Iterations as the fitted estimator tells them, the most of any class; else as many as it was allowed."""
    taken = known.get("n_iter_")
    if isinstance(taken, tuple) and taken and all(isinstance(one, (int, float)) for one in taken):
        taken = max(taken)
    if isinstance(taken, (int, float)):
        return int(taken)
    return int(known.get("max_iter") or 1000)


def _outputs(known: dict[str, Any]) -> int:
    """Classes beyond two, or columns of the target."""
    classes = known.get("classes_")
    if isinstance(classes, (tuple, TensorSpec)):
        count = len(classes) if isinstance(classes, tuple) else classes.shape[0]
        return count if count > 2 else 1
    y = known.get("y")
    return y.shape[1] if isinstance(y, TensorSpec) and len(y.shape) > 1 else 1


def _trees(name: str, known: dict[str, Any]) -> int:
    """Trees of a forest, or rounds of boosting times the classes that each makes a tree for."""
    if name.startswith("Hist"):
        return int(known.get("n_iter_") or known.get("max_iter") or 100) * _outputs(known)
    fitted = known.get("n_estimators_") or known.get("n_estimators") or known.get("iterations")
    each = _outputs(known) if name.startswith(_BOOSTED) else 1
    single = name in ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
    default = 1 if single else 1000 if name.startswith("CatBoost") else 100
    return int(fitted or default) * each
