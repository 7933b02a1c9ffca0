"""sklearn.preprocessing: scaling and other arithmetic on columns."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import (
    EXPM1,
    LOG1P,
    SQRT,
    checked,
    column_means,
    column_sums,
    column_variances,
    floats,
    interpolated,
    lanes,
    normal_quantiles,
    normal_shares,
    power,
    quantiles,
    row_squares,
    sparse_mean_variance,
    stored,
)
from bitwatt.formulas.inside import Probes, looked_at
from bitwatt.formulas.lapack import gemv
from bitwatt.formulas.vector import DOUBLE, EXP, LOG, TANH, arithmetic, function, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_NAME = "sklearn.preprocessing."

free(
    *(f"{_NAME}{name}.fit" for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler")),
    reason="calls partial_fit, which is counted",
)


@rule(f"{_NAME}StandardScaler.partial_fit", family="scaling")
def standard_scaler_fit(
    X: TensorSpec, with_mean: bool = True, with_std: bool = True, sample_weight: Any = None, **_: Any
) -> Work:
    """The finiteness check; then in double: sums of values and of missing ones, deviations, their sums and those of
    their squares, and 25 operations per column to update the running mean and variance. With weights the sums are
    products with the weights. Sparse: 9 per stored element, 29 per column."""
    rows, columns = X.shape
    if X.nnz is not None:
        return checked(X) + sparse_mean_variance(X) if with_std else checked(X) + arithmetic(2 * X.nnz, DOUBLE)
    if not with_mean and not with_std:
        return checked(X)
    update = arithmetic(25 * lanes(columns, DOUBLE), DOUBLE)
    if sample_weight is not None:
        sums = gemv(columns, rows, DOUBLE, columns=True) * (3 if with_std else 1)
        deviations = arithmetic((3 if with_std else 1) * X.numel, DOUBLE)
        return checked(X) + sums + deviations + column_sums(rows, columns, DOUBLE) + arithmetic(rows, DOUBLE) + update
    sums = column_sums(rows, columns, DOUBLE) * (4 if with_std else 2)
    return checked(X) + sums + arithmetic(2 * X.numel * with_std, DOUBLE) + update


@rule(f"{_NAME}StandardScaler.transform", family="scaling")
def standard_scaler_transform(
    X: TensorSpec, with_mean: bool = True, with_std: bool = True, scale_: Any = None, **_: Any
) -> Work:
    """The finiteness check, (x - mean) / deviation; of a sparse matrix the stored elements by 1 / deviation."""
    return checked(X) + _affine(X, with_mean and X.nnz is None, with_std, scale_)


@rule(f"{_NAME}StandardScaler.inverse_transform", family="scaling")
def standard_scaler_inverse(
    X: TensorSpec, with_mean: bool = True, with_std: bool = True, scale_: Any = None, **_: Any
) -> Work:
    """The finiteness check, x · deviation + mean."""
    return checked(X) + _affine(X, with_mean and X.nnz is None, with_std, scale_)


def _affine(X: TensorSpec, shift: bool, scale: bool, scale_: Any) -> Work:
    """Sparse columns are scaled in the precision of their scale, which numpy keeps for arrays."""
    if X.nnz is None:
        return arithmetic((shift + scale) * X.numel, floats(X))
    precision = floats(scale_) if isinstance(scale_, TensorSpec) else DOUBLE
    return arithmetic((X.nnz + X.shape[1]) * scale, max(floats(X), precision, key=lambda p: p.bits))


@rule(f"{_NAME}MinMaxScaler.partial_fit", family="scaling")
def min_max_fit(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; minimum and maximum of each column are comparisons, the scale 4 operations per column."""
    return checked(X) + arithmetic(5 * X.shape[1], floats(X), compare=4 * X.numel)


@rule(f"{_NAME}MinMaxScaler.transform", f"{_NAME}MinMaxScaler.inverse_transform", family="scaling")
def min_max_transform(X: TensorSpec, clip: bool = False, **_: Any) -> Work:
    """The finiteness check, a multiplication (back: a division) and an addition."""
    return checked(X) + arithmetic(2 * X.numel, floats(X), compare=2 * X.numel * bool(clip))


@rule(f"{_NAME}MaxAbsScaler.partial_fit", family="scaling")
def max_abs_fit(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; the largest magnitude of each column is found by comparisons."""
    return checked(X) + Work.of(floats(X), compare=2 * stored(X))


@rule(f"{_NAME}MaxAbsScaler.transform", f"{_NAME}MaxAbsScaler.inverse_transform", family="scaling")
def max_abs_transform(X: TensorSpec, scale_: Any = None, **_: Any) -> Work:
    """The finiteness check and one operation per stored element."""
    return checked(X) + _affine(X, shift=False, scale=True, scale_=scale_)


@rule(f"{_NAME}RobustScaler.fit", family="scaling")
def robust_fit(X: TensorSpec, with_centering: bool = True, with_scaling: bool = True, **_: Any) -> Work:
    """The finiteness check; median and quantiles are found by comparing, with about 76 operations of bookkeeping for
    the percentiles of each column and 30 for its median."""
    columns = X.shape[1]
    numbers = arithmetic(columns * (76 * with_scaling + 30 * with_centering), DOUBLE, compare=12 * X.numel)
    return checked(X) + numbers


@rule(f"{_NAME}RobustScaler.transform", f"{_NAME}RobustScaler.inverse_transform", family="scaling")
def robust_transform(
    X: TensorSpec, with_centering: bool = True, with_scaling: bool = True, scale_: Any = None, **_: Any
) -> Work:
    """The finiteness check, (x - median) / range. The range is a double: numpy divides single precision by it in
    double."""
    if X.nnz is not None:
        return checked(X) + _affine(X, shift=False, scale=with_scaling, scale_=scale_)
    centred = Work.of(floats(X), add=X.numel * with_centering)
    return checked(X) + centred + Work.of(DOUBLE, div=X.numel * with_scaling)


@rule(f"{_NAME}Normalizer.fit", f"{_NAME}Binarizer.fit", family="scaling")
def only_checked(X: TensorSpec, **_: Any) -> Work:
    """There is nothing to learn: the finiteness check."""
    return validated(X)


@rule(f"{_NAME}Normalizer.transform", family="scaling")
def normalise(X: TensorSpec, norm: str = "l2", probes: Probes = (), **_: Any) -> Work:
    """The finiteness check, twice; the norm of each row (l2: squares and a root, l1: a sum, max: comparisons) and a
    division. Norms of sparse rows are in double, and so are divisions by them."""
    rows, kept = X.shape[0], stored(X)
    if X.nnz is not None and norm == "max":
        return checked(X) + validated(X) + _sparse_extremes(X, probes) + Work.of(floats(X), div=kept)
    if X.nnz is not None:
        norms = arithmetic(2 * kept + _filled(rows, kept) if norm == "l2" else kept, DOUBLE)
        return checked(X) + validated(X) + norms + Work.of(DOUBLE, div=kept)
    if norm == "l2":
        norms = row_squares(rows, X.shape[1], floats(X)) + Work.of(floats(X), sqrt=rows)
    else:
        norms = Work.of(floats(X), add=kept) if norm == "l1" else Work.of(floats(X), compare=kept)
    return checked(X) + validated(X) + norms + Work.of(floats(X), div=kept)


def _filled(rows: int, kept: float) -> float:
    """Rows that store anything, if positions are independent."""
    return rows * (1 - math.exp(-kept / max(rows, 1)))


def _sparse_extremes(X: TensorSpec, probes: Probes) -> Work:
    """The least and the largest of each row, which scipy makes dense: it adds those that are not zero to zeros. A row
    has a least below zero where it stores something negative (per thousand, where somebody looked; else half)."""
    rows, kept = X.shape[0], stored(X)
    (below,) = looked_at(probes, "negative") or (500,)
    extremes = _filled(rows, kept * below / 1000) + _filled(rows, kept * (1 - below / 1000))
    return arithmetic(extremes, floats(X), compare=2 * kept)


@rule(f"{_NAME}Binarizer.transform", family="scaling")
def binarise(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check, twice, and a comparison per element."""
    return validated(X) * 2 + Work.of(floats(X), compare=stored(X))


@rule(f"{_NAME}KernelCenterer.fit", family="scaling")
def kernel_centre_fit(K: TensorSpec, **_: Any) -> Work:
    """The finiteness check and the sum of each column."""
    return checked(K) + column_sums(K.shape[0], K.shape[1], floats(K)) + arithmetic(2 * K.shape[1], floats(K))


@rule(f"{_NAME}KernelCenterer.transform", family="scaling")
def kernel_centre(K: TensorSpec, **_: Any) -> Work:
    """The finiteness check, the sum of each row, and three subtractions per element."""
    return checked(K) + arithmetic(4 * K.numel + K.shape[0], floats(K))


@rule(f"{_NAME}QuantileTransformer.fit", family="scaling")
def quantile_fit(X: TensorSpec, n_quantiles_: int = 1000, **_: Any) -> Work:
    """The finiteness check, and the quantiles of each column: sorting compares, 8 operations interpolate each."""
    columns = X.shape[1]
    sorting = Work.of(floats(X), compare=round(X.numel * math.log2(max(X.shape[0], 2))))
    each = arithmetic(50 * columns if X.nnz is not None else 0, DOUBLE)  # one call of nanpercentile for each column
    return (
        checked(X) + quantiles(columns, n_quantiles_, floats(X)) + sorting + each + arithmetic(4 * n_quantiles_, DOUBLE)
    )


@rule(f"{_NAME}QuantileTransformer.transform", family="scaling")
def quantile_transform(
    X: TensorSpec, n_quantiles_: int = 1000, output_distribution: str = "uniform", probes: Probes = (), **_: Any
) -> Work:
    """The finiteness check; two interpolations between the quantiles, from below and from above, of all values that are
    no quantiles themselves, halved and added; for a normal distribution its quantile function, of what is within its
    ends. In double."""
    kept, columns = stored(X), X.shape[1]
    known, *normal = looked_at(probes, "at knots") or (0,)
    between = 1 - known / 1000
    work = checked(X) + interpolated(2 * columns, 2 * kept, n_quantiles_, between) + arithmetic(2 * kept, DOUBLE)
    if output_distribution == "normal":  # two tests against the bounds, the quantile function of all, and of the bounds
        ends, tails = normal or (0, 271)
        within = normal_quantiles(kept * (1000 - ends - tails) / 1000, kept * tails / 1000)
        work += arithmetic(2 * kept, floats(X)) + within + arithmetic(200 * columns, DOUBLE)
    return work


@rule(f"{_NAME}QuantileTransformer.inverse_transform", family="scaling")
def quantile_inverse(
    X: TensorSpec, n_quantiles_: int = 1000, output_distribution: str = "uniform", probes: Probes = (), **_: Any
) -> Work:
    """The finiteness check and one interpolation between the quantiles, of all values that do not stand for one, after
    the distribution function of a normal one and two tests against its bounds. In double."""
    kept = stored(X)
    known, *normal = looked_at(probes, "at knots") or (0,)
    work = checked(X) + interpolated(X.shape[1], kept, n_quantiles_, 1 - known / 1000)
    if output_distribution == "normal":
        far = (normal or [157])[0]
        work += normal_shares(kept * (1000 - far) / 1000, kept * far / 1000) + arithmetic(2 * kept, DOUBLE)
    return work


def _transformed(X: TensorSpec, method: str, probes: tuple[Any, ...]) -> Work:
    """Yeo-Johnson: log1p and expm1 with a product and a quotient. Box-Cox: scipy's function, 76 in double."""
    if method == "box-cox":
        return arithmetic(76.4 * X.numel, DOUBLE)
    p, values = floats(X), _nonzero(X, probes)
    work = function(LOG1P, values, p) + function(EXPM1, values, p) + arithmetic(2 * X.numel, p)
    return replace(work, estimated=values % X.numel > 0)  # where there are zeros there may be ones: they take less too


def _nonzero(X: TensorSpec, probes: tuple[Any, ...]) -> int:
    """Values whose functions are not known at once, as those of zero are."""
    looked = [found for found in probes if found[0] == "nonzero" and len(found) == 3]
    return sum(values * times for _, values, times in looked) if looked else X.numel


@rule(f"{_NAME}PowerTransformer.fit", f"{_NAME}PowerTransformer.fit_transform", family="scaling")
def power_fit(
    X: TensorSpec,
    method: str = "yeo-johnson",
    standardize: bool = True,
    probes: tuple[Any, ...] = (),
    out: tuple[TensorSpec, ...] = (),
    **_: Any,
) -> Work:
    """The finiteness check, mean and variance; then Brent's method evaluates the likelihood of each column at so many
    exponents: for Yeo-Johnson log1p twice, expm1 and 9 operations (the transform, its variance, the sum of log1p); what
    follows the first logarithm is in double, as the exponent is; zeros take 10. For Box-Cox 251 (the variance of
    logarithms by logsumexp). The scaler that follows is counted as itself."""
    p, (rows, columns) = floats(X), X.shape
    looked = [(sizes[0] if sizes else rows, times) for name, *sizes, times in probes if name == "likelihood"]
    values = sum(nonzero * times for nonzero, times in looked)
    zeros = sum(times for _, times in looked) * rows - values
    work = checked(X) + column_means(rows, columns, DOUBLE) + column_variances(rows, columns, DOUBLE)
    if method == "box-cox":
        work += arithmetic(251 * values, DOUBLE)
    else:
        work += function(LOG1P, 2 * values, p) + function(EXPM1, values, DOUBLE)
        work += arithmetic(7 * values + 10 * zeros, DOUBLE) + arithmetic(2 * values, p)
    if method == "box-cox":  # the optimiser ends with the transformed column
        return work + _transformed(X, method, ()) * (2 if standardize or out else 1)
    return work + _transformed(X, method, probes)  # both are seen


@rule(f"{_NAME}PowerTransformer.transform", family="scaling")
def power_transform(X: TensorSpec, method: str = "yeo-johnson", probes: tuple[Any, ...] = (), **_: Any) -> Work:
    """The finiteness check; log1p, expm1, a product and a quotient for each value; Box-Cox 76. The scaler that follows
    is counted as itself."""
    return checked(X) + _transformed(X, method, probes)


@rule(f"{_NAME}PowerTransformer.inverse_transform", family="scaling")
def power_inverse(X: TensorSpec, method: str = "yeo-johnson", probes: tuple[Any, ...] = (), **_: Any) -> Work:
    """The finiteness check; a power (61; powf 27 in double) and four operations for each value, powers of 1 being known
    at once; Box-Cox 50."""
    if method == "box-cox":
        return checked(X) + arithmetic(50 * X.numel, DOUBLE)
    return checked(X) + power(_nonzero(X, probes), floats(X)) + arithmetic(4 * X.numel, floats(X))


@rule(f"{_NAME}FunctionTransformer.fit", family="scaling")
def function_fit(X: TensorSpec, validate: bool = False, check_inverse: bool = True, func: Any = None, **_: Any) -> Work:
    """The finiteness check where `validate` asks for it; a function and its inverse are tried on a hundred rows."""
    return checked(X) if validate else Work()


_FUNCTIONS = {
    "None": (0, 0), "<log1p>": (35, 32), "<expm1>": EXPM1, "<log>": LOG, "<exp>": EXP, "<sqrt>": SQRT, "<tanh>": TANH,
    "<square>": SQRT, "<reciprocal>": SQRT, "<negative>": (0, 0), "<abs>": (0, 0), "<absolute>": (0, 0),
    "<log2>": LOG, "<log10>": LOG,
}  # fmt: skip


#: log1p of one less than a power of two, which has no polynomial, and of a small value, which is nothing else.
_WHOLE, _SMALL = 11, 25


def _called(X: TensorSpec, validate: bool, what: Any, probes: tuple[Any, ...]) -> Work:
    """Values whose result is known, at once or nearly so, take less: these are counted in a sample."""
    if str(what) not in _FUNCTIONS:
        raise ValueError(f"what {what} computes cannot be seen")
    hard, easy, small = next((one[1:4] for one in probes if one[0] == "nonzero function"), (1000, 0, 0))
    values, p = stored(X), floats(X)
    work = function(_FUNCTIONS[str(what)], values * hard / 1000, p)
    work += arithmetic((_WHOLE * easy + _SMALL * small) * values / 1000, p)
    return replace((checked(X) if validate else Work()) + work, estimated=hard < 1000)


@rule(f"{_NAME}FunctionTransformer.transform", family="scaling")
def function_transform(
    X: TensorSpec, validate: bool = False, func: Any = None, probes: tuple[Any, ...] = (), **_: Any
) -> Work:
    """A function of numpy's known by name, on each element; what another one computes cannot be seen."""
    return _called(X, validate, func, probes)


@rule(f"{_NAME}FunctionTransformer.inverse_transform", family="scaling")
def function_inverse(
    X: TensorSpec, validate: bool = False, inverse_func: Any = None, probes: tuple[Any, ...] = (), **_: Any
) -> Work:
    """A function of numpy's known by name, on each element; what another one computes cannot be seen."""
    return _called(X, validate, inverse_func, probes)


@rule(f"{_NAME}PolynomialFeatures.fit", family="scaling")
def polynomial_fit(X: TensorSpec, **_: Any) -> Work:
    """The number of features follows from the shape: the finiteness check."""
    return validated(X)


@rule(f"{_NAME}PolynomialFeatures.transform", family="scaling")
def polynomial(
    X: TensorSpec,
    out: tuple[TensorSpec, ...] = (),
    degree: Any = 2,
    interaction_only: bool = False,
    include_bias: bool = True,
    **_: Any,
) -> Work:
    """The finiteness check and one product for each output column of degree two or more, columns of lower degrees than
    asked for included. Sparse: a product for each stored result of a degree, two from the third on."""
    rows, columns = X.shape
    most = degree[1] if isinstance(degree, tuple) else degree
    if X.nnz is not None:
        results = max((out[0].nnz or 0) - X.nnz - rows * include_bias, 0) if out else 0
        work = checked(X) + Work.of(floats(X), mul=results * max(most - 1, 1))
        return replace(work, estimated=most > 2)
    return checked(X) + Work.of(
        floats(X),
        mul=rows * sum(math.comb(columns + (0 if interaction_only else d - 1), d) for d in range(2, most + 1)),
    )


@rule(f"{_NAME}SplineTransformer.fit", family="scaling")
def spline_fit(X: TensorSpec, knots: Any = "uniform", n_knots: int = 5, degree: int = 3, **_: Any) -> Work:
    """The finiteness check; knots between the extremes of each column (4 operations each), or at its quantiles."""
    columns = X.shape[1]
    if knots == "quantile":
        return validated(X) + quantiles(columns, n_knots, floats(X))
    return validated(X) + arithmetic(columns * 4 * (n_knots + 2 * degree), DOUBLE, compare=4 * X.numel)


@rule(f"{_NAME}SplineTransformer.transform", family="scaling")
def spline_transform(
    X: TensorSpec, n_knots: int = 5, degree: int = 3, extrapolation: str = "constant", sparse_output: bool = False,
    n_features_out_: int = 0, include_bias: bool = True, spline_live: float = 1.0, spline_flat: int = 0, **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check; de Boor's recursion for each value (7·degree·(degree + 1) / 2), less where knots coincide,
    and, dense, its product with the rows of an identity: 2·(degree + 1) for each spline of the column; a period takes 2
    to find the place in it."""
    columns = X.shape[1]
    splines = n_features_out_ // max(columns, 1) + (not include_bias) if n_features_out_ else n_knots + degree - 1
    curved = (columns - spline_flat) / max(columns, 1)
    basis = 7 * degree * (degree + 1) / 2 * spline_live * curved
    rest = degree + 1 if sparse_output else 2 * (degree + 1) * splines
    each = basis + rest + 2 * (extrapolation == "periodic")
    work = checked(X) + arithmetic(each * X.numel, DOUBLE, compare=10 * X.numel)
    return replace(work, estimated=spline_live < 1)
