"""sklearn.impute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import checked, column_sums, floats, row_squares, stored
from bitwatt.formulas.inside import Probes, seen
from bitwatt.formulas.lapack import syrk
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_NAME = "sklearn.impute."


@rule(f"{_NAME}SimpleImputer.fit", family="imputation")
def simple_fit(X: TensorSpec, strategy: str = "mean", **_: Any) -> Work:
    """The finiteness check; the mean of each column is a sum; medians and most frequent values compare, with some 32
    operations a column of bookkeeping."""
    if X.precision.kind not in ("float", "int", "uint"):
        return Work()
    rows, columns = X.shape
    if X.nnz is not None:
        return checked(X) + (arithmetic(X.nnz + columns, floats(X)) if strategy == "mean" else Work())
    if strategy == "mean":
        return checked(X) + column_sums(rows, columns, floats(X)) + arithmetic(6 * columns, DOUBLE)
    if strategy == "constant":
        return checked(X)
    each = 32 if strategy == "median" else 39
    return checked(X) + arithmetic(each * columns, DOUBLE, compare=80 * X.numel)


@rule(f"{_NAME}SimpleImputer.transform", family="imputation")
def simple_transform(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check and a comparison for each element."""
    if X.precision.kind not in ("float", "int", "uint"):
        return Work()
    return checked(X) + Work.of(floats(X), compare=stored(X))


free(f"{_NAME}SimpleImputer.inverse_transform", reason="puts missing values back by index: no arithmetic")


@rule(
    *(f"{_NAME}MissingIndicator.{method}" for method in ("fit", "transform", "fit_transform")),
    f"{_NAME}KNNImputer.fit",
    family="imputation",
)
def indicated(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check and a comparison for each element; a mask that is there already needs neither."""
    if X.precision.kind != "float":
        return Work()
    return checked(X) + Work.of(floats(X), compare=stored(X))


@rule(f"{_NAME}KNNImputer.transform", family="imputation")
def knn_transform(
    X: TensorSpec, n_neighbors: int = 5, probes: tuple[Any, ...] = (), weights: Any = "uniform", **_: Any
) -> Work:
    """The finiteness check; distances of the rows that miss a value to all rows seen in fit: three products, for the
    distance and for what missing coordinates take off it (single precision: the first in double), and 8 operations for
    each pair; then the average of the neighbours for each missing value."""
    p, f = floats(X), X.shape[1]
    work = checked(X)
    for name, *sizes, times in probes:
        if name != "nan_distances" or len(sizes) != 2:
            continue
        rows, seen = sizes
        norms = row_squares(rows, f, DOUBLE) + row_squares(seen, f, DOUBLE)
        squares = arithmetic(3 * (rows + seen) * f, p)
        pair = gemm(rows, f, seen, DOUBLE) + arithmetic(3 * rows * seen, DOUBLE) + gemm(rows, f, seen, p) * 2
        work += (norms + squares + pair + arithmetic(5 * rows * seen, p, compare=20 * rows * seen)) * times
    return work


free(f"{_NAME}IterativeImputer.fit", reason="calls fit_transform, which is counted")


#: scipy's truncated normal number: two logarithms of a normal distribution's shares, their sum, and what lies there;
#: where both ends are infinite half of it is known.
_NORMAL, _TRUNCATED = 200, 390


def _drawn(probes: Probes) -> Work:
    """Values drawn from the normal distribution around each prediction. How far its bounds are decides how much there
    is to do: estimated."""
    total = Work()
    for values, bounded, times in seen(probes, "drawn"):
        work = arithmetic(values * times * (_TRUNCATED if bounded else _NORMAL), DOUBLE)
        total += replace(work, estimated=bool(bounded))
    return total


@rule(f"{_NAME}IterativeImputer.fit_transform", family="imputation")
def iterative_fit(
    X: TensorSpec, n_iter_: int = 1, n_nearest_features: Any = None, probes: Probes = (), **_: Any
) -> Work:
    """The finiteness check, and after each round the largest row sum of what changed: 2 operations for each element;
    with few nearest features their correlations. The estimators that fill in the values are counted as themselves; to
    draw around what they say is some 200 for each value."""
    rows, columns = X.shape
    p = floats(X)
    nearest = syrk(columns, rows, DOUBLE) + arithmetic(4 * X.numel, DOUBLE) if n_nearest_features else Work()
    return checked(X) + nearest + arithmetic(2 * X.numel * n_iter_, p) + _drawn(probes)


@rule(f"{_NAME}IterativeImputer.transform", family="imputation")
def iterative_transform(X: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """The finiteness check; the estimators that fill in the values are counted as themselves, what is drawn around
    them here."""
    return checked(X) + _drawn(probes)
