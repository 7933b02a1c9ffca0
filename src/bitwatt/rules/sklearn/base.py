"""Methods that scikit-learn's mixins define for all estimators that inherit them."""

from __future__ import annotations

from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import column_sums, floats
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

free(
    "sklearn.base.TransformerMixin.fit_transform",
    "sklearn.base.ClusterMixin.fit_predict",
    "sklearn.base.OutlierMixin.fit_predict",
    reason="calls fit and then transform or predict, which are counted",
)
free("sklearn.base.BiclusterMixin.get_submatrix", reason="picks rows and columns by index: no arithmetic")


def _size(y: Any) -> int:
    if isinstance(y, TensorSpec):
        return y.numel
    return len(y) if isinstance(y, tuple) else 0


@rule("sklearn.base.ClassifierMixin.score", "sklearn.dummy.DummyClassifier.score", family="score")
def accuracy(y: Any = None, sample_weight: Any = None, **_: Any) -> Work:
    """Accuracy: the labels are compared; the mean of what is right adds up each sample, 3 operations more with weights.
    Two times 29 go to finding the distinct labels. predict is counted as itself."""
    n = y.shape[0] if isinstance(y, TensorSpec) else _size(y)
    return arithmetic(n * (1 if sample_weight is None else 4) + 60, DOUBLE, compare=_size(y))


#: What predictions are made of: where all of it is in single precision, they are too.
_LEARNT = ("coef_", "intercept_", "dual_coef_", "coefs_", "constant_")


def _predicted(X: Any, y: TensorSpec, facts: dict[str, Any]) -> Precision:
    """The precision of predictions. Neighbours take the mean of targets as they are; XGBoost has single precision;
    trees, and who tells nothing, double."""
    if "booster" in facts:
        return SINGLE
    if facts.get("weights") == "uniform" and "n_neighbors" in facts:
        return floats(y)
    told = [facts[name] for name in _LEARNT if name in facts]
    parts = [part for one in told for part in (one if isinstance(one, tuple) else (one,))]
    specs = [part for part in (X, *parts) if isinstance(part, TensorSpec)]
    return max((floats(spec) for spec in specs), key=lambda p: p.bits) if parts else DOUBLE


@rule("sklearn.base.RegressorMixin.score", "sklearn.dummy.DummyRegressor.score", family="score")
def determination(y: Any = None, X: Any = None, sample_weight: Any = None, **facts: Any) -> Work:
    """R² = 1 - Σ(y - p)² / Σ(y - y̅)²: finiteness of y and p, two differences, their squares and sums, and the mean: 11
    operations for each value, in the wider precision of both; 3 more with weights, then in double. predict is counted
    as itself."""
    n = _size(y)
    is_single = isinstance(y, TensorSpec) and floats(y) == _predicted(X, y, facts) == SINGLE
    p = SINGLE if is_single and sample_weight is None else DOUBLE
    targets = y.shape[1] if isinstance(y, TensorSpec) and len(y.shape) > 1 else 1
    each = arithmetic((8 if sample_weight is None else 11) * n, p)
    return each + column_sums(n // max(targets, 1), targets, p) * 3
