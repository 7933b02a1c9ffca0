"""Methods that scikit-learn's mixins define for all estimators that inherit them."""

from __future__ import annotations

from typing import Any

from bitwatt.formulas.arrays import floats
from bitwatt.formulas.vector import DOUBLE, arithmetic
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


@rule("sklearn.base.ClassifierMixin.score", family="score")
def accuracy(y: Any = None, sample_weight: Any = None, **_: Any) -> Work:
    """Accuracy: the labels are compared; the mean of what is right adds up each sample, 3 operations more with weights.
    Two times 29 go to finding the distinct labels. predict is counted as itself."""
    n = y.shape[0] if isinstance(y, TensorSpec) else _size(y)
    return arithmetic(n * (1 if sample_weight is None else 4) + 60, DOUBLE, compare=_size(y))


@rule("sklearn.base.RegressorMixin.score", family="score")
def determination(y: Any = None, sample_weight: Any = None, **_: Any) -> Work:
    """R² = 1 - Σ(y - p)² / Σ(y - y̅)²: finiteness of y and p, two differences, their squares and sums, and the mean: 11
    operations for each value (12 of several targets), 3 more with weights, then in double. predict is counted as
    itself."""
    n = _size(y)
    p = floats(y) if isinstance(y, TensorSpec) else DOUBLE
    each = 12 if isinstance(y, TensorSpec) and len(y.shape) > 1 else 11
    return arithmetic(each * n, p) if sample_weight is None else arithmetic((each + 3) * n, DOUBLE)
