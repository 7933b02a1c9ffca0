"""sklearn.linear_model: models with few coefficients: coordinate descent, least angles, matching pursuit."""

from __future__ import annotations

from typing import Any

from bitwatt.formulas.descent import (
    coordinate_descent,
    gram_coordinate_descent,
    least_angles,
    matching_pursuit,
    sparse_coordinate_descent,
    task_coordinate_descent,
)
from bitwatt.formulas.linear import Design, centred, intercepts, product
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.sklearn._linear import Probes, calls, checked_targets, is_weighted, names, targets_of


def _descents(probes: Probes) -> Work:
    work = Work()
    for *sizes, sweeps, nonzero, _one, times in calls(probes, "linear_descent"):
        work += coordinate_descent(Design.probed(*sizes), sweeps, nonzero) * times
    for *sizes, sweeps, nonzero, is_centred, weighted, times in calls(probes, "linear_sparse_descent"):
        design = Design.probed(*sizes)
        work += sparse_coordinate_descent(design, sweeps, nonzero, bool(is_centred), bool(weighted)) * times
    for *sizes, sweeps, nonzero, ended, times in calls(probes, "linear_gram_descent"):
        work += gram_coordinate_descent(Design.probed(*sizes), sweeps, nonzero, bool(ended)) * times
    for *sizes, sweeps, nonzero, tasks, times in calls(probes, "linear_task_descent"):
        work += task_coordinate_descent(Design.probed(*sizes), sweeps, nonzero, tasks) * times
    return work


def _uses_gram(probes: Probes) -> bool:
    return any(True for _ in calls(probes, "linear_gram_descent"))


@rule(
    *names("fit", "Lasso", "ElasticNet", "MultiTaskLasso", "MultiTaskElasticNet"),
    *names("path", "Lasso", "ElasticNet", "MultiTaskLasso", "MultiTaskElasticNet"),
    family="linear",
)
def coordinate_descent_fit(
    X: TensorSpec,
    y: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    probes: Probes = (),
    **_: Any,
) -> Work:
    """The finiteness check, centring, the Gram matrix where it was asked for, and each descent as it ran."""
    design, targets, weighted = Design.of(X), targets_of(y), is_weighted(sample_weight)
    work = design.checked() + checked_targets(y)
    work += centred(design, targets, weighted=weighted, rescaled=not design.is_sparse) if fit_intercept else Work()
    if _uses_gram(probes):
        work += design.gram() + design.transposed(targets)
    return work + _descents(probes) + intercepts(design.columns, targets, design.precision)


@rule(*names("fit", "LassoCV", "ElasticNetCV", "MultiTaskLassoCV", "MultiTaskElasticNetCV"), family="linear")
def coordinate_descent_cv(
    X: TensorSpec,
    y: Any = None,
    mse_path_: Any = None,
    fit_intercept: bool = True,
    probes: Probes = (),
    **_: Any,
) -> Work:
    """The grid of alphas from Xᵀy, once for each l1_ratio; in each fold centring, the Gram matrix where rows are more
    than columns, all descents as they ran, and the errors of the whole path on what was left out. The final fit is
    counted."""
    design, targets = Design.of(X), targets_of(y)
    n, f, p = design.rows, design.columns, design.precision
    shape = mse_path_.shape if isinstance(mse_path_, TensorSpec) else (1, 5)
    folds, alphas, ratios = shape[-1], shape[-2], shape[0] if len(shape) > 2 else 1
    work = design.checked() + checked_targets(y)
    grid = centred(design, targets) if fit_intercept else Work()
    work += (grid + design.transposed(targets, vector=targets == 1)) * ratios
    share = (folds - 1) / folds if folds > 1 else 1.0
    train = Design(round(n * share), f, round(design.stored * share) if design.is_sparse else -1, p)
    one = centred(train, targets) if fit_intercept else Work()
    if _uses_gram(probes):
        one += train.gram() + train.transposed(targets)
    test = max(n - train.rows, 1)
    left = Design(test, f, round(design.stored * (1 - share)) if design.is_sparse else -1, p)
    errors = left.times(alphas * targets, vector=False) + arithmetic(4 * test * alphas * targets, p)
    errors += arithmetic((2 * f + 3) * alphas * targets, p)
    return work + (one + errors) * (folds * ratios) + _descents(probes)


def _angles(probes: Probes) -> Work:
    work = Work()
    for samples, features, given, made, products, bits, steps, active, times in calls(probes, "linear_lars"):
        design = Design.probed(samples, features, -1, bits)
        gram = bool(given or made)
        work += least_angles(design, steps, active, gram=gram, made=bool(made), products=bool(products)) * times
    return work


def _given_gram(probes: Probes) -> bool:
    return any(found[2] for found in calls(probes, "linear_lars"))


@rule(*names("fit", "Lars", "LassoLars"), family="linear")
def least_angles_fit(
    X: TensorSpec, y: Any = None, fit_intercept: bool = True, precompute: Any = "auto", probes: Probes = (), **_: Any
) -> Work:
    """The finiteness check, centring, the Gram matrix where rows are more than columns and it was not given, and the
    path as it ran."""
    design, targets = Design.of(X), targets_of(y)
    work = design.checked() + checked_targets(y) + (centred(design, targets) if fit_intercept else Work())
    work += design.gram() if _given_gram(probes) and not isinstance(precompute, TensorSpec) else Work()
    return work + _angles(probes) + intercepts(design.columns, targets, design.precision)


@rule(*names("fit", "LarsCV", "LassoLarsCV"), family="linear")
def least_angles_cv(
    X: TensorSpec,
    y: Any = None,
    mse_path_: Any = None,
    fit_intercept: bool = True,
    probes: Probes = (),
    **_: Any,
) -> Work:
    """As for one path; in each fold centring, its path, the errors of its steps on what was left out, and their
    interpolation to all alphas of all folds."""
    design = Design.of(X)
    n, f, p = design.rows, design.columns, design.precision
    alphas, folds = mse_path_.shape if isinstance(mse_path_, TensorSpec) else (f, 5)
    work = design.checked() + checked_targets(y) + (centred(design, 1) if fit_intercept else Work())
    work += design.gram() if _given_gram(probes) else Work()
    train = Design(n - n // folds, f, -1, p)
    fold = centred(train, 1) if fit_intercept else Work()
    work += (fold + arithmetic((n - train.rows) * f, p)) * folds
    for samples, _, given, *_rest, steps, _active, times in calls(probes, "linear_lars"):
        if not given and samples < n:
            errors = product(n - samples, f, steps + 1, p) + arithmetic((n - samples) * (steps + 1), p)
            work += (errors + arithmetic((2 * (n - samples)) * alphas + 5 * (n - samples) * alphas, p)) * times
    return work + _angles(probes) + intercepts(f, 1, p)


@rule(*names("fit", "LassoLarsIC"), family="linear")
def least_angles_criterion(
    X: TensorSpec, y: Any = None, fit_intercept: bool = True, probes: Probes = (), **_: Any
) -> Work:
    """One path, and the residuals of all its steps for the criterion; the variance comes from a LinearRegression, which
    is counted."""
    design = Design.of(X)
    n, f, p = design.rows, design.columns, design.precision
    work = design.checked() + checked_targets(y) + (centred(design, 1) if fit_intercept else Work()) + _angles(probes)
    work += design.gram() if _given_gram(probes) else Work()
    for *_sizes, steps, _active, times in calls(probes, "linear_lars"):
        work += (product(n, f, steps + 1, p) + arithmetic(3 * n * (steps + 1) + 8 * steps, p)) * times
    return work + arithmetic(3 * n, p) + intercepts(f, 1, p)


@rule(*names("fit", "OrthogonalMatchingPursuit"), family="linear")
def pursuit_fit(X: TensorSpec, y: Any = None, fit_intercept: bool = True, probes: Probes = (), **_: Any) -> Work:
    """The finiteness check, centring, XᵀX and Xᵀy where rows are more than columns (or Xᵀy alone), and each pursuit."""
    design, targets = Design.of(X), targets_of(y)
    f, p = design.columns, design.precision
    work = design.checked() + checked_targets(y) + (centred(design, targets) if fit_intercept else Work())
    if any(True for _ in calls(probes, "linear_gram_pursuit")):
        work += design.gram() + design.transposed(targets, vector=targets == 1) + arithmetic(f * f, p)
    else:
        work += design.checked() + arithmetic(design.rows * targets, p)
    return work + _pursuits(probes) + intercepts(f, targets, p)


def _pursuits(probes: Probes) -> Work:
    work = Work()
    for rows, columns, _stored, bits, chosen, _other, times in calls(probes, "linear_pursuit"):
        p = SINGLE if bits == 32 else DOUBLE
        start = Design(rows, columns, -1, p, rowwise=False).transposed()
        work += (start + matching_pursuit(columns, rows, chosen, p, gram=False)) * times
    for rows, columns, _stored, bits, chosen, _other, times in calls(probes, "linear_gram_pursuit"):
        p = SINGLE if bits == 32 else DOUBLE
        work += matching_pursuit(columns, rows, chosen, p, gram=True) * times
    return work


@rule(*names("fit", "OrthogonalMatchingPursuitCV"), family="linear")
def pursuit_cv(X: TensorSpec, y: Any = None, fit_intercept: bool = True, probes: Probes = (), **_: Any) -> Work:
    """In each fold centring, a pursuit with its path, and the errors of the path on what was left out; the final
    OrthogonalMatchingPursuit is counted."""
    design = Design.of(X)
    n, f, p = design.rows, design.columns, design.precision
    work = design.checked() + checked_targets(y) + _pursuits(probes)
    for rows, _, _, _bits, chosen, _other, times in calls(probes, "linear_pursuit"):
        train = Design(rows, f, -1, p)
        one = train.checked() + arithmetic(rows, p) + arithmetic((n - rows) * f, p)
        one += centred(train, 1) if fit_intercept else Work()
        one += product(chosen, f, n - rows, DOUBLE) + arithmetic(4 * (n - rows) * chosen, DOUBLE)
        work += one * times
    return work
