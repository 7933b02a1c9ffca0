"""sklearn.linear_model: least squares, ridge and their Bayesian kin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.lapack import (
    determinant,
    eigh_divided,
    gemv,
    least_squares,
    pseudo_inverse_symmetric,
    solve_positive,
    svd,
)
from bitwatt.formulas.linear import (
    Design,
    centred,
    conjugate_gradients,
    intercepts,
    lbfgs,
    lsqr,
    product,
    rescaled_rows,
)
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn._linear import Probes, calls, checked_targets, is_weighted, names, targets_of
from bitwatt.rules.sklearn.linear_sag import sag_passes


@rule(*names("fit", "LinearRegression"), family="linear")
def linear_regression(
    X: TensorSpec,
    y: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    positive: bool = False,
    probes: Probes = (),
    **_: Any,
) -> Work:
    """Dense: two finiteness checks, centring, and gelsd, one for all targets. Sparse: LSQR for each target, by the
    number of its products. `positive`: an active set, by the columns in it at the end."""
    design, targets, weighted = Design.of(X), targets_of(y), is_weighted(sample_weight)
    n, f, p = design.rows, design.columns, design.precision
    work = design.checked() * 2 + checked_targets(y) * 2
    work += _prepared(design, targets, weighted, fit_intercept) + intercepts(f, targets, p)
    if positive:
        return work + _nonnegative(probes)
    if design.is_sparse:
        return work + operator_products(design, probes, weighted) + _lsqr(design, probes, targets)
    return work + least_squares(n, f, targets, p)


def _prepared(design: Design, targets: int, weighted: bool, fit_intercept: bool) -> Work:
    """Centred, where there is an intercept; weights are checked, and rows scaled by their root."""
    checked = arithmetic(design.rows * weighted, design.precision)
    if fit_intercept:
        return checked + centred(design, targets, weighted=weighted)
    return checked + rescaled_rows(design, targets) if weighted else Work()


def _nonnegative(probes: Probes) -> Work:
    """Lawson and Hanson's nnls in double: for each column that enters, the gradient over those outside (2n each), a
    Householder vector (3n) applied to them (4n each), and a triangular solve. Columns that enter and leave again are
    not told."""
    work = Work()
    for n, f, positive, times in calls(probes, "linear_nnls"):
        one = sum(6 * n * (f - k) + 6 * n + k * k for k in range(positive)) + 2 * n * (f - positive)
        work += arithmetic(one, DOUBLE) * times
    return replace(work, estimated=True)


def operator_products(design: Design, probes: Probes, weighted: bool, *, is_centred: bool = True) -> Work:
    """Products of an iterative solver with X and Xᵀ; a sparse X is centred on the way: 1 per row (2 with weights), a
    dot product and a multiple, 2 per column."""
    n, f, p = design.rows, design.columns, design.precision
    forward: int = sum(times for rows, columns, times in calls(probes, "linear_matvec") if (rows, columns) == (n, f))
    backward: int = sum(times for rows, columns, times in calls(probes, "linear_rmatvec") if (rows, columns) == (n, f))
    work = design.times() * forward + design.transposed() * backward
    if design.is_sparse and is_centred:
        work += arithmetic(((1 + weighted) * n + 2 * f + 17) * (forward + backward), p)
    return work


def _lsqr(design: Design, probes: Probes, targets: int) -> Work:
    steps = sum(times for rows, columns, times in calls(probes, "linear_matvec") if rows == design.rows)
    return lsqr(design.rows, design.columns, max(steps - targets, 0), design.precision)


@rule(*names("fit", "Ridge"), family="linear")
def ridge(
    X: TensorSpec,
    y: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    solver_: str = "cholesky",
    probes: Probes = (),
    **_: Any,
) -> Work:
    """Two finiteness checks, centring, and the solver that ran (`solver_`): Cholesky of XᵀX (of XXᵀ where features are
    more), an SVD, LSQR or conjugate gradients by the number of their products, SAG or SAGA by their passes, L-BFGS."""
    design, targets = Design.kept(X), targets_of(y)
    checked = design.checked() + checked_targets(y)
    return checked + ridge_solved(design, targets, is_weighted(sample_weight), fit_intercept, solver_, probes)


def ridge_solved(
    design: Design, targets: int, weighted: bool, fit_intercept: bool, solver: str, probes: Probes
) -> Work:
    n, f, p = design.rows, design.columns, design.precision
    work = design.checked() + arithmetic(n * targets, p)
    work += centred(design, targets, weighted=weighted, rescaled=False) if fit_intercept else Work()
    work += intercepts(f, targets, p)
    if weighted and solver not in ("sag", "saga"):
        work += rescaled_rows(design, targets)
    if solver in ("sag", "saga"):
        return work + design.row_norms() + sag_passes(probes)
    if solver == "cholesky":
        if f > n:
            work += design.outer_gram() + solve_positive(n, targets, p) + arithmetic(2 * n, p)
            return work + design.transposed(targets, vector=False)
        work += design.gram() + design.transposed(targets, vector=targets == 1) + arithmetic(f, p)
        return work + solve_positive(f, targets, p)
    if solver == "svd":
        k = min(n, f)
        back = product(k, n, targets, p) + product(f, k, targets, p)
        return work + svd(n, f, DOUBLE) + back + arithmetic(4 * k * targets, p)
    if solver == "lbfgs":
        return work + _bounded(design, fit_intercept, probes)
    if solver == "lsqr":
        return work + _products(design, probes, fit_intercept) + _lsqr(design, probes, targets)
    steps = sum(times for rows, columns, times in calls(probes, "linear_matvec") if (rows, columns) == (n, f))
    step = conjugate_gradients(min(n, f), steps, p) + arithmetic(2 * min(n, f) * steps, p)
    return work + _products(design, probes, fit_intercept) + step


def _products(design: Design, probes: Probes, fit_intercept: bool) -> Work:
    """Ridge's operator multiplies by weights, of one where none are given."""
    return operator_products(design, probes, True, is_centred=fit_intercept)


def _bounded(design: Design, fit_intercept: bool, probes: Probes) -> Work:
    """Ridge with positive coefficients: residual, loss and gradient in double (the variables are)."""
    double, work = design.in_precision(DOUBLE), Work()
    n, f = design.rows, design.columns
    for variables, iterations, evaluations, bounded, _method, times in calls(probes, "linear_minimize"):
        one = double.times() + double.transposed() + arithmetic(3 * n + 7 * f, DOUBLE)
        if design.is_sparse and fit_intercept:
            one += arithmetic(4 * n + 4 * f, DOUBLE)
        work += (one * evaluations + lbfgs(variables, iterations, evaluations, bounded=bool(bounded))) * times
    return work


@rule(*names("fit", "RidgeClassifier"), family="linear")
def ridge_classifier(
    X: TensorSpec,
    coef_: Any = None,
    fit_intercept: bool = True,
    solver_: str = "cholesky",
    probes: Probes = (),
    **_: Any,
) -> Work:
    """A finiteness check, then Ridge on one column of ±1 for each class (one for two classes), always with weights: of
    one where none are given."""
    design = Design.kept(X)
    targets = coef_.shape[0] if isinstance(coef_, TensorSpec) and len(coef_.shape) > 1 else 1
    return design.checked() + ridge_solved(design, targets, True, fit_intercept, solver_, probes)


free(*names("fit", "RidgeCV"), reason="calls _RidgeGCV or GridSearchCV, which are counted")


@rule(*names("fit", "RidgeClassifierCV"), family="linear")
def ridge_classifier_cv(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; _RidgeGCV or GridSearchCV are counted."""
    return Design.of(X).checked()


@rule("sklearn.linear_model._RidgeGCV.fit", family="linear")
def ridge_cross_validated(
    X: TensorSpec,
    y: Any = None,
    alphas: Any = (0.1, 1.0, 10.0),
    fit_intercept: bool = True,
    gcv_mode: Any = None,
    sample_weight: Any = None,
    **_: Any,
) -> Work:
    """Leave-one-out errors in closed form, in double: an eigendecomposition of XᵀX (of XXᵀ where features are more; or
    an SVD of X), then for each alpha the inverse from its factors, the hat matrix's diagonal, and the errors."""
    given = Design.of(X)
    design = given.in_precision(DOUBLE)
    n, f, targets = design.rows, design.columns, targets_of(y)
    many = _length(alphas)
    work = design.checked() * 2 + arithmetic(2 * n * targets, DOUBLE)
    work += centred(design, targets, weighted=is_weighted(sample_weight)) if fit_intercept else Work()
    work += intercepts(f, targets, DOUBLE) + arithmetic(4 * n * targets * many, DOUBLE)
    if gcv_mode == "svd" and not design.is_sparse:
        k = min(n, f)
        work += svd(n, f, DOUBLE) + product(k, n, targets + 1, DOUBLE)
        each = product(n, k, targets, DOUBLE) + product(n, k, 1, DOUBLE) + product(f, k, targets, DOUBLE)
        return work + (each + arithmetic(3 * n * k + 6 * n, DOUBLE)) * many
    if n <= f:
        work += design.outer_gram() + eigh_divided(n, DOUBLE) + gemv(n, n, DOUBLE) * 2
        each = product(n, n, targets, DOUBLE) + gemv(n, n, DOUBLE) + design.transposed(targets)
        return work + (each + arithmetic(3 * n * n + 6 * n, DOUBLE)) * many
    work += design.gram() + eigh_divided(f, DOUBLE) + design.transposed(targets) + design.transposed()
    each = product(f, f, f, DOUBLE) + arithmetic(f * f, DOUBLE) + product(f, f, targets, DOUBLE) + gemv(f, f, DOUBLE)
    each += design.times(targets) + design.times() + design.times(f, vector=False)
    return work + (each + arithmetic(2 * n * f + 7 * n, DOUBLE)) * many


def _length(alphas: Any) -> int:
    if isinstance(alphas, TensorSpec):
        return alphas.shape[0]
    return len(alphas) if isinstance(alphas, tuple) else alphas if isinstance(alphas, int) else 1


@rule(*names("fit", "BayesianRidge"), family="linear")
def bayesian_ridge(
    X: TensorSpec, y: Any = None, n_iter_: int = 1, compute_score: bool = False, fit_intercept: bool = True,
    sample_weight: Any = None, **_: Any,
) -> Work:  # fmt: skip
    """Two finiteness checks, centring, one SVD, and in each iteration coefficients from its factors (V scaled, VVᵀXᵀy
    by two products) and the residual's square; last the covariance. Weights make the variance of the target that of
    two averages, 8 for each row, and are added up."""
    design, weighted = Design.kept(X), is_weighted(sample_weight)
    n, f, p = design.rows, design.columns, design.precision
    work = design.checked() * 2 + arithmetic((6 + 9 * weighted) * n, p)
    work += _prepared(design, 1, weighted, fit_intercept)
    work += svd(n, f, p, full=n < f) + design.transposed() + intercepts(f, 1, p)
    k = min(n, f)
    one = design.times() + arithmetic(3 * n + 13 * f, p)
    if n > f:
        one += gemv(f, f, p) + gemv(f, f, p, columns=True) + arithmetic(f * f, p)
    else:
        one += gemv(n, n, p) * 2 + design.transposed() + arithmetic(n * n, p)
    one += arithmetic(26 * k + 140, p) if compute_score else Work()
    return work + one * (n_iter_ + 1) + product(f, f, f, p) + arithmetic(f * f, p)


@rule(*names("fit", "ARDRegression"), family="linear")
def relevance_determination(
    X: TensorSpec, y: Any = None, n_iter_: int = 1, fit_intercept: bool = True, compute_score: bool = False,
    probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """In each iteration the columns that are still kept: their Gram matrix and its pseudo-inverse (pinvh), Σ·Xᵀ·y from
    the left, the residual; where features are more, by Woodbury's formula on samples. A score takes the determinant of
    Σ. Eigenvalues that are far from each other, as precisions become, are found in fewer steps: estimated."""
    design = Design.of(X)
    n, f, p = design.rows, design.columns, design.precision
    work = design.checked() * 2 + arithmetic(6 * n, p) + (centred(design, 1) if fit_intercept else Work())
    work += intercepts(f, 1, p) + (design.times() + arithmetic(3 * n + 10 * f, p)) * n_iter_
    for name in ("linear_relevance", "linear_relevance_wide"):
        for _rows, _features, kept, _bits, times in calls(probes, name) if compute_score else ():
            work += determinant(kept) * times
    for rows, _, kept, bits, times in calls(probes, "linear_relevance"):
        q = SINGLE if bits == 32 else DOUBLE
        columns = Design(rows, kept, -1, q)
        one = columns.gram() + pseudo_inverse_symmetric(kept, q) + arithmetic(3 * kept**2, q)
        work += (one + columns.transposed() + gemv(kept, kept, q)) * times
    for rows, _, kept, bits, times in calls(probes, "linear_relevance_wide"):
        q = SINGLE if bits == 32 else DOUBLE
        one = product(rows, kept, rows, q) + pseudo_inverse_symmetric(rows, q) + product(rows, rows, kept, q)
        one += product(kept, rows, kept, q) + arithmetic(3 * rows * kept + kept**2 + 2 * rows**2, q)
        work += (one + Design(rows, kept, -1, q).transposed() + gemv(kept, kept, q)) * times
    return replace(work, estimated=True)
