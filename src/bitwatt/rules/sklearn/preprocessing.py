"""sklearn.preprocessing."""

from typing import Any

from bitwatt.formulas.vector import DOUBLE, arithmetic, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

free(
    "sklearn.preprocessing.StandardScaler.fit",
    "sklearn.preprocessing.StandardScaler.fit_transform",
    reason="calls partial_fit and transform, which are counted",
)


@rule("sklearn.preprocessing.StandardScaler.partial_fit", family="scaling")
def standard_scaler_fit(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check, then mean and variance in one pass: a sum, the deviations, their sum and their squares."""
    return validated(X) + arithmetic(6 * X.numel, DOUBLE)


@rule("sklearn.preprocessing.StandardScaler.transform", family="scaling")
def standard_scaler_transform(X: TensorSpec, with_mean: bool = True, with_std: bool = True, **_: Any) -> Work:
    """The finiteness check, (x - mean) / deviation."""
    return validated(X) + arithmetic(0, X.precision, add=X.numel * with_mean, div=X.numel * with_std)
