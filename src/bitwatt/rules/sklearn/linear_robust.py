"""sklearn.linear_model: regressions that mind outliers, and quantiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import floats
from bitwatt.formulas.linear import Design
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.sklearn._linear import Probes, calls, checked_targets, names
from bitwatt.rules.sklearn.linear_logistic import minimised


@rule(*names("fit", "HuberRegressor"), family="linear")
def huber(X: TensorSpec, y: Any = None, probes: Probes = (), **_: Any) -> Work:
    """Every evaluation in double: X·w, the residuals, both parts of the loss (about 9 per sample), and Xᵀ·g over
    inliers and outliers, which together are all samples; L-BFGS-B between them; last the residuals once more."""
    design = Design.of(X)
    double = design.in_precision(DOUBLE)
    n, f = design.rows, design.columns
    work = design.checked() + checked_targets(y) + double.times() + arithmetic(2 * n, DOUBLE)
    for *_sizes, times in calls(probes, "linear_huber"):
        one = double.times() + arithmetic(9 * n + 8 * f + 20, DOUBLE)
        one += Design(n, f, design.stored, DOUBLE, rowwise=not design.is_sparse).transposed()
        work += one * times
    return work + minimised(probes)


@rule(*names("fit", "QuantileRegressor"), family="linear")
def quantile(X: TensorSpec, y: Any = None, n_iter_: Any = None, **_: Any) -> Work:
    """A linear programme by HiGHS, whose dual simplex steps depend on the data: a step solves with a factor of the
    basis, prices all rows and updates what depends on them: about 5 operations for each element of X, and more where
    the basis fills up."""
    design = Design.of(X)
    n, f = design.rows, design.columns
    steps = n_iter_ if isinstance(n_iter_, int) else n
    work = design.checked() + checked_targets(y) + arithmetic(steps * n * f * (5 + f / 15), DOUBLE)
    return replace(work, estimated=True)


@rule(*names("fit", "TheilSenRegressor"), family="linear")
def theil_sen(
    X: TensorSpec,
    y: Any = None,
    n_subpopulation_: int = 1,
    n_subsamples: Any = None,
    n_iter_: int = 1,
    fit_intercept: bool = True,
    **_: Any,
) -> Work:
    """Least squares on each subset in double (gelss: an SVD by QR iteration, 9.8d³ + 62d² for a square one of d
    unknowns), then steps of the spatial median over all of them: 9 per coefficient."""
    design = Design.of(X)
    unknown = design.columns + int(fit_intercept)
    rows = n_subsamples if isinstance(n_subsamples, int) else min(unknown, design.rows)
    size = min(rows, unknown)
    one = 9.8 * size**3 + 62 * size**2 + 4 * (max(rows, unknown) - size) * size**2
    work = design.checked() + checked_targets(y) + arithmetic(n_subpopulation_ * one, DOUBLE)
    return work + arithmetic((n_iter_ + 1) * n_subpopulation_ * 9 * unknown, DOUBLE)


@rule(*names("fit", "RANSACRegressor"), family="linear")
def ransac(X: TensorSpec, y: Any = None, n_trials_: int = 1, residual_threshold: Any = None, **_: Any) -> Work:
    """The residual of each sample in each trial, and the median absolute deviation where no threshold was given; fits,
    predictions and scores of the inner estimator are counted."""
    rows = X.shape[0]
    work = Design.of(X).checked() + checked_targets(y)
    return work + arithmetic((n_trials_ + (1 if residual_threshold is None else 0)) * rows, floats(X))
