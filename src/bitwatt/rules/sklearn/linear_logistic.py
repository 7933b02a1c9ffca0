"""sklearn.linear_model: logistic regression and generalised linear models."""

from __future__ import annotations

from typing import Any

from bitwatt.formulas.lapack import solve_symmetric
from bitwatt.formulas.linear import Design, lbfgs, raw_prediction
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.sklearn._linear import Probes, calls, checked_targets, losses, names
from bitwatt.rules.sklearn.linear_sag import sag_passes
from bitwatt.rules.sklearn.svm_linear import liblinear_runs


def minimised(probes: Probes) -> Work:
    """What L-BFGS-B does between evaluations of the loss."""
    work = Work()
    for variables, iterations, evaluations, bounded, method, times in calls(probes, "linear_minimize"):
        if method == "L-BFGS-B":
            work += lbfgs(variables, iterations, evaluations, bounded=bool(bounded)) * times
    return work


def newton_cholesky(probes: Probes, fit_intercept: bool) -> Work:
    """Between Hessians: the Newton step by a symmetric solve, its raw prediction once and a combination of predictions
    in each step of the line search; before all of them the raw prediction of the start."""
    work = Work()
    for *sizes, _kind, classes, _weighted, _known, times in calls(probes, "linear_gradient_hessian"):
        design, width = Design.probed(*sizes), classes or 1
        variables = (design.columns + fit_intercept) * width
        one = solve_symmetric(variables - (fit_intercept and bool(classes)), 1, design.precision)
        one += raw_prediction(design, width, bool(classes)) + arithmetic(4 * variables, design.precision)
        work += one * times + arithmetic(2 * design.rows * width * times, design.precision)
    for *sizes, _kind, classes, _weighted, known, times in calls(probes, "linear_loss"):
        if known:
            work += raw_prediction(Design.probed(*sizes), classes or 1, bool(classes)) * times
    return work


@rule(*names("fit", "LogisticRegression", "LogisticRegressionCV"), family="linear")
def logistic_regression(
    X: TensorSpec,
    y: Any = None,
    solver: str = "lbfgs",
    fit_intercept: bool = True,
    warm_start: bool = False,
    probes: Probes = (),
    **_: Any,
) -> Work:
    """The finiteness check, then every evaluation of the loss, gradient, Hessian and product with it that the solver
    asked for, and the solver's own steps; SAG and SAGA by their passes, liblinear by its iterations."""
    design = Design.of(X)
    work = design.checked() + losses(probes, cold=not warm_start)
    work += minimised(probes) + newton_cholesky(probes, fit_intercept)
    if solver in ("sag", "saga"):
        work += design.row_norms() + sag_passes(probes)
    return work + liblinear_runs(probes)


@rule(*names("fit", "PoissonRegressor", "GammaRegressor", "TweedieRegressor"), family="linear")
def generalised_linear(X: TensorSpec, y: Any = None, fit_intercept: bool = True, probes: Probes = (), **_: Any) -> Work:
    """The finiteness checks, the mean of the target, and every evaluation of the loss; L-BFGS or Newton steps."""
    design = Design.of(X)
    work = design.checked() + checked_targets(y) + arithmetic(2 * design.rows, DOUBLE)
    return work + losses(probes, cold=False) + minimised(probes) + newton_cholesky(probes, fit_intercept)
