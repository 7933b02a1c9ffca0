"""sklearn.discriminant_analysis (predictions of the linear one: linear_predict)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import column_means, column_variances
from bitwatt.formulas.lapack import eigh, eigh_generalised, least_squares, svd
from bitwatt.formulas.linear import Design, product
from bitwatt.formulas.vector import DOUBLE, EXP, LOG, arithmetic, function, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn._linear import classes_of

_LINEAR = "sklearn.discriminant_analysis.LinearDiscriminantAnalysis"
_QUADRATIC = "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis"

free(f"{_LINEAR}.predict", reason="calls decision_function, which is counted")


def _covariances(n: int, f: int, classes: int, shrinkage: Any, estimator: Any) -> Work:
    """The covariance of each class, in double (numpy's `cov`): its mean, deviations, XᵀX. Ledoit and Wolf's shrinkage
    with the scaler in front, or an estimator that was given, are counted."""
    own = arithmetic(3 * f * f, DOUBLE)
    if shrinkage == "auto" or estimator is not None:
        return own * classes
    design = Design(max(n // classes, 1), f, -1, DOUBLE)
    one = column_means(design.rows, f, DOUBLE) + arithmetic(design.elements, DOUBLE) + design.gram()
    return (one + own) * classes


@rule(f"{_LINEAR}.fit", family="linear")
def linear_fit(
    X: TensorSpec,
    classes_: Any = None,
    solver: str = "svd",
    shrinkage: Any = None,
    covariance_estimator: Any = None,
    store_covariance: bool = False,
    **_: Any,
) -> Work:
    """Means of classes. svd: deviations scaled by their standard deviation, an SVD of them, and one of the means in
    that basis; covariances only if they are to be kept. lsqr: covariances, gelsd with the means. eigen: covariances
    within and in all, and their generalised eigenvectors."""
    design, classes = Design.of(X), classes_of(classes_)
    n, f, p = design.rows, design.columns, design.precision
    work = design.checked() + arithmetic(n * f + f * classes, p)
    if solver == "svd":
        work += arithmetic(n * f, p) + column_variances(n, f, p) + arithmetic(2 * n * f, p) + svd(n, f, p)
        work += arithmetic(4 * f * f + 4 * f * classes, p) + product(classes, f, f, p) + svd(classes, f, p)
        width = min(classes - 1, f)
        if store_covariance:
            work += _covariances(n, f, classes, None, None)
        return work + product(f, f, width, p) + product(classes, f, width, p) + product(classes, width, f, p)
    work += _covariances(n, f, classes, shrinkage, covariance_estimator)
    if solver == "lsqr":
        return work + least_squares(f, f, classes, DOUBLE) + product(classes, f, classes, DOUBLE)
    work += (
        _covariances(n, f, 1, shrinkage, covariance_estimator)
        + eigh_generalised(f, DOUBLE)
        + arithmetic(2 * f * f, DOUBLE)
    )
    return work + product(classes, f, f, DOUBLE) * 2 + product(classes, f, classes, DOUBLE)


@rule(f"{_LINEAR}.transform", family="linear")
def linear_transform(X: TensorSpec, scalings_: Any = None, solver: str = "svd", **_: Any) -> Work:
    """(X - mean)·scalings; the eigen solver does not take the mean off."""
    design = Design.of(X)
    width = scalings_.shape[1] if isinstance(scalings_, TensorSpec) else 1
    double = isinstance(scalings_, TensorSpec) and scalings_.precision.bits == 64
    precision = DOUBLE if double else design.precision
    centred = arithmetic(design.elements if solver == "svd" else 0, design.precision)
    return validated(X) + centred + product(design.rows, design.columns, width, precision)


@rule(f"{_QUADRATIC}.fit", family="linear")
def quadratic_fit(
    X: TensorSpec,
    classes_: Any = None,
    solver: str = "svd",
    shrinkage: Any = None,
    covariance_estimator: Any = None,
    **_: Any,
) -> Work:
    """For each class means, deviations and their SVD (numpy's, in double); or its covariance and eigenvectors. Classes
    are taken as equally large: an SVD is linear in its rows. With fewer rows than features eigenvalues coincide, which
    saves some of the work: estimated."""
    design, classes = Design.of(X), classes_of(classes_)
    n, f, p = design.rows, design.columns, design.precision
    rows = max(n // classes, 1)
    work = validated(X) + column_means(rows, f, p) * classes
    if solver == "svd":
        one = column_means(rows, f, p) + arithmetic(rows * f, p) + svd(rows, f, DOUBLE)
        return work + one * classes
    work += _covariances(n, f, classes, shrinkage, covariance_estimator) + eigh(f, DOUBLE) * classes
    return replace(work, estimated=rows <= f)


@rule(f"{_QUADRATIC}.decision_function", f"{_QUADRATIC}.predict", family="linear")
def quadratic_decision(X: TensorSpec, classes_: Any = None, solver: str = "svd", **_: Any) -> Work:
    """For each class the deviations, their product with the scaled rotation, and the sum of squares of each row; the
    powers and logarithms of the scalings are 80 per feature."""
    design, classes = Design.of(X), classes_of(classes_)
    n, f, p = design.rows, design.columns, design.precision
    q = p if solver == "svd" else DOUBLE
    one = arithmetic(n * f, p) + product(n, f, f, q) + arithmetic(2 * n * f + f * f, q) + arithmetic(80 * f, DOUBLE)
    return validated(X) + one * classes + arithmetic(3 * n * classes, DOUBLE)


@rule(f"{_QUADRATIC}.predict_log_proba", family="linear")
def quadratic_log_proba(X: TensorSpec, classes_: Any = None, solver: str = "svd", **_: Any) -> Work:
    """As decision_function, then the largest off, exponentials, and the logarithm of their sum."""
    rows, classes = X.shape[0], classes_of(classes_)
    work = quadratic_decision(X, classes_, solver) + function(EXP, rows * (classes - 1), DOUBLE)
    return work + function(LOG, rows, DOUBLE) + arithmetic(3 * rows * classes, DOUBLE)


@rule(f"{_QUADRATIC}.predict_proba", family="linear")
def quadratic_proba(X: TensorSpec, classes_: Any = None, **_: Any) -> Work:
    """Exponentials of what predict_log_proba gives, which is counted."""
    return function(EXP, X.shape[0] * classes_of(classes_), DOUBLE)
