"""sklearn.cross_decomposition, all of it in double."""

from __future__ import annotations

from typing import Any

from bitwatt.formulas.arrays import column_means, column_variances
from bitwatt.formulas.lapack import gemv, pseudo_inverse, svd
from bitwatt.formulas.linear import Design, product
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn._linear import names, targets_of

_PLS = ("PLSRegression", "PLSCanonical", "CCA")
_MODULE = "cross_decomposition"

free(*names("fit_transform", *_PLS, "PLSSVD", module=_MODULE), reason="calls fit and transform, which are counted")


def _standardised(n: int, columns: int, scale: bool) -> Work:
    """The check, the mean taken off, and divided by the standard deviation."""
    work = arithmetic(n * columns, DOUBLE) + column_means(n, columns, DOUBLE) + arithmetic(n * columns, DOUBLE)
    return work + (column_variances(n, columns, DOUBLE) + arithmetic(n * columns, DOUBLE) if scale else Work())


@rule(*names("fit", "PLSRegression", "PLSCanonical", module=_MODULE), family="linear")
def partial_least_squares(
    X: TensorSpec,
    y: Any = None,
    n_components: int = 2,
    n_iter_: Any = None,
    scale: bool = True,
    deflation_mode: str = "",
    mode: str = "A",
    y_loadings_: Any = None,
    x_scores_: Any = None,
    algorithm: str = "nipals",
    **_: Any,
) -> Work:
    """For each component iterations of the power method (weights of X and y from each other's scores: a product with
    each matrix and with its transpose), scores and loadings (one product each), and both matrices less their outer
    product. CCA takes pseudo-inverses of both first. Or the weights are of the SVD of XᵀY."""
    n, p, q = X.shape[0], X.shape[1], targets_of(y)
    work = _standardised(n, p, scale) + _standardised(n, q, scale)
    iterations = n_iter_ if isinstance(n_iter_, tuple) and n_iter_ else (1,) * n_components
    X_, Y_ = Design(n, p, -1, DOUBLE), Design(n, q, -1, DOUBLE)
    canonical = q > 1 and (x_scores_ is None or deflation_mode == "canonical")
    step = X_.transposed() + X_.times() + Y_.transposed() + Y_.times() + arithmetic(5 * n + 8 * p + 8 * q, DOUBLE)
    if algorithm == "svd":
        step = product(p, n, q, DOUBLE) + svd(p, q, DOUBLE)
    for passes in iterations:
        work += step * passes
        work += X_.times() + Y_.times() + X_.transposed() + Y_.transposed() + arithmetic(7 * n, DOUBLE)
        work += arithmetic(2 * n * p + 2 * n * q + (2 * n if canonical else 0), DOUBLE)
    if mode == "B":
        work += (pseudo_inverse(n, p, DOUBLE) + pseudo_inverse(n, q, DOUBLE)) * len(iterations)
    k = len(iterations)
    rotations = product(k, p, k, DOUBLE) + product(p, k, k, DOUBLE) + product(k, q, k, DOUBLE)
    rotations += product(q, k, k, DOUBLE) + pseudo_inverse(k, k, DOUBLE) * 2
    return work + rotations + product(p, k, q, DOUBLE) + arithmetic(2 * p * q, DOUBLE)


@rule(*names("fit", "CCA", module=_MODULE), family="linear")
def canonical_correlation(X: TensorSpec, **given: Any) -> Work:
    """As for partial least squares, with the pseudo-inverses of both matrices for each component."""
    return partial_least_squares(X, **{**given, "mode": "B"})


@rule(*names("predict", *_PLS, module=_MODULE), family="linear")
def pls_predict(X: TensorSpec, coef_: Any = None, **_: Any) -> Work:
    """The check, the mean off, X·Wᵀ and the intercept."""
    design = Design.of(X)
    targets = coef_.shape[0] if isinstance(coef_, TensorSpec) else 1
    work = design.checked() + arithmetic(design.elements, DOUBLE)
    if targets == 1:
        return work + gemv(design.rows, design.columns, DOUBLE) + arithmetic(design.rows, DOUBLE)
    return work + product(design.rows, design.columns, targets, DOUBLE) + arithmetic(design.rows * targets, DOUBLE)


@rule(*names("transform", *_PLS, "PLSSVD", module=_MODULE), family="linear")
def pls_transform(
    X: TensorSpec,
    y: Any = None,
    x_rotations_: Any = None,
    y_rotations_: Any = None,
    x_weights_: Any = None,
    y_weights_: Any = None,
    **_: Any,
) -> Work:
    """(X - mean) / deviation, times the rotations; y likewise where it is given."""
    work = _projected(Design.of(X), x_rotations_ if x_rotations_ is not None else x_weights_)
    if isinstance(y, TensorSpec):
        targets = Design(y.shape[0], targets_of(y), -1, Design.of(X).precision)
        work += _projected(targets, y_rotations_ if y_rotations_ is not None else y_weights_)
    return work


def _projected(design: Design, rotations: Any) -> Work:
    width = rotations.shape[1] if isinstance(rotations, TensorSpec) else 1
    work = design.checked() + arithmetic(2 * design.elements, DOUBLE)
    return work + product(design.rows, design.columns, width, DOUBLE)


@rule(*names("inverse_transform", *_PLS, module=_MODULE), family="linear")
def pls_inverse(X: TensorSpec, x_loadings_: Any = None, **_: Any) -> Work:
    """Scores times loadings, times the deviation, plus the mean."""
    features = x_loadings_.shape[0] if isinstance(x_loadings_, TensorSpec) else 1
    design = Design.of(X)
    result = design.rows * features
    return design.checked() + product(design.rows, design.columns, features, DOUBLE) + arithmetic(2 * result, DOUBLE)


@rule(*names("fit", "PLSSVD", module=_MODULE), family="linear")
def pls_svd(X: TensorSpec, y: Any = None, scale: bool = True, **_: Any) -> Work:
    """Both matrices standardised, XᵀY and its SVD."""
    n, p, q = X.shape[0], X.shape[1], targets_of(y)
    work = _standardised(n, p, scale) + _standardised(n, q, scale) + product(p, n, q, DOUBLE)
    return work + svd(p, q, DOUBLE)
