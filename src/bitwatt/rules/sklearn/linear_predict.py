"""sklearn.linear_model, LinearSVC and LinearSVR: predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import floats, logarithms, logistic
from bitwatt.formulas.arrays import power as raised
from bitwatt.formulas.inside import Probes, logarithms_of
from bitwatt.formulas.linear import LOSSES, Design, product, soft_max, stored_product
from bitwatt.formulas.vector import DOUBLE, EXP, arithmetic, function, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn._linear import classes_of, names

REGRESSORS = (
    "LinearRegression", "Ridge", "RidgeCV", "LassoCV", "ElasticNetCV", "MultiTaskLassoCV", "MultiTaskElasticNetCV",
    "Lars", "LarsCV", "LassoLars", "LassoLarsCV",
    "LassoLarsIC", "OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "HuberRegressor", "QuantileRegressor",
    "TheilSenRegressor", "SGDRegressor", "PassiveAggressiveRegressor", "_RidgeGCV",
)  # fmt: skip
DESCENDED = ("Lasso", "ElasticNet", "MultiTaskLasso", "MultiTaskElasticNet")
CLASSIFIERS = (
    "LogisticRegression", "LogisticRegressionCV", "SGDClassifier", "Perceptron", "PassiveAggressiveClassifier",
    "RidgeClassifier", "RidgeClassifierCV",
)  # fmt: skip

free(
    *names("predict", *(c for c in CLASSIFIERS if not c.startswith("Ridge")), "SGDOneClassSVM"),
    "sklearn.svm.LinearSVC.predict",
    *names("predict", "RidgeClassifier", "RidgeClassifierCV"),
    reason="calls decision_function, which is counted, and takes the largest",
)
free(
    *names("predict", "_IdentityRegressor", "_IdentityClassifier"),
    *names("decision_function", "_IdentityRegressor", "_IdentityClassifier"),
    reason="hands on what it is given",
)
free(
    *names("predict", "RANSACRegressor"),
    *names("score", "RANSACRegressor"),
    reason="calls the inner estimator or scorer, which are counted",
)
free(
    *names("sparsify", *REGRESSORS, *DESCENDED, *CLASSIFIERS, "SGDOneClassSVM"),
    *names("densify", *REGRESSORS, *CLASSIFIERS, "SGDOneClassSVM"),
    "sklearn.svm.LinearSVC.sparsify",
    "sklearn.svm.LinearSVC.densify",
    reason="coefficients change their storage, nothing is computed",
)


def linear_predictor(X: TensorSpec, coef_: Any, intercept_: Any = None) -> Work:
    """The finiteness check, X·w in the wider precision of both, and the intercept, which may be wider still. What has
    to be converted lies row by row afterwards."""
    precision = result_precision(X, coef_)
    design = replace(Design.of(X), rowwise=not X.columnwise or X.precision.name != precision.name)
    several = isinstance(coef_, TensorSpec) and len(coef_.shape) > 1
    width = coef_.shape[0] if several and isinstance(coef_, TensorSpec) else 1
    vector = not several or width == 1
    if isinstance(coef_, TensorSpec) and coef_.nnz is not None:  # after sparsify
        result = stored_product(coef_.nnz, design.rows, precision)
    else:
        result = design.in_precision(precision).times(width, vector=vector)
    return validated(X) + result + arithmetic(design.rows * width, result_precision(X, coef_, intercept_))


def result_precision(X: TensorSpec, *learnt: Any) -> Precision:
    """The widest of the data and the coefficients; with the intercept, what results from both. Whole numbers of few
    bits fit into single precision."""
    known = [floats(one) for one in learnt if isinstance(one, TensorSpec)] or [DOUBLE]
    small = X.precision.kind != "float" and X.precision.bits <= 16
    return max([*known, *([] if small else [floats(X)])], key=lambda precision: precision.bits)


@rule(*names("predict", *REGRESSORS), "sklearn.svm.LinearSVR.predict", family="linear")
def predict(X: TensorSpec, coef_: Any = None, intercept_: Any = None, **_: Any) -> Work:
    """The finiteness check (one addition for each element), X·w and the intercept."""
    return linear_predictor(X, coef_, intercept_)


@rule(*names("predict", *DESCENDED), family="linear")
def descended_predict(X: TensorSpec, coef_: Any = None, **_: Any) -> Work:
    """X·w and the intercept; a sparse X is not checked."""
    if X.nnz is None:
        return linear_predictor(X, coef_)
    precision = result_precision(X, coef_)
    width = coef_.shape[0] if isinstance(coef_, TensorSpec) and len(coef_.shape) > 1 else 1
    return Design.of(X).in_precision(precision).times(width) + arithmetic(X.shape[0] * width, precision)


@rule(*names("predict", "BayesianRidge", "ARDRegression"), family="linear")
def bayesian_predict(X: TensorSpec, coef_: Any = None, sigma_: Any = None, return_std: bool = False, **_: Any) -> Work:
    """X·w; with `return_std` also the rows of X·Σ times X, summed."""
    work = linear_predictor(X, coef_)
    if return_std and isinstance(sigma_, TensorSpec):
        rows, kept, precision = X.shape[0], sigma_.shape[0], result_precision(X, coef_)
        work += product(rows, kept, kept, precision) + arithmetic(X.numel + 2 * rows * kept + 2 * rows, precision)
    return work


@rule(
    *names("decision_function", *CLASSIFIERS),
    "sklearn.svm.LinearSVC.decision_function",
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis.decision_function",
    family="linear",
)
def decision_function(X: TensorSpec, coef_: Any = None, intercept_: Any = None, **_: Any) -> Work:
    """The finiteness check, X·Wᵀ and the intercepts."""
    return linear_predictor(X, coef_, intercept_)


@rule(*names("decision_function", "SGDOneClassSVM"), family="linear")
def one_class_decision(X: TensorSpec, coef_: Any = None, offset_: Any = None, **_: Any) -> Work:
    """The finiteness check, X·w less the offset."""
    return linear_predictor(X, coef_, offset_)


@rule(*names("score_samples", "SGDOneClassSVM"), family="linear")
def one_class_score(X: TensorSpec, coef_: Any = None, offset_: Any = None, **_: Any) -> Work:
    """The offset added to decision_function, which is counted."""
    return arithmetic(X.shape[0], result_precision(X, coef_, offset_))


@rule(
    *names("predict_proba", "LogisticRegression", "LogisticRegressionCV"),
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis.predict_proba",
    family="linear",
)
def predict_proba(
    X: TensorSpec, coef_: Any = None, intercept_: Any = None, classes_: Any = None, all_zero: bool = False, **_: Any
) -> Work:
    """After decision_function: the logistic function and its complement for two classes, else a softmax. Where a strong
    penalty left nothing but zeros, the logistic function of zero is known at once."""
    rows, classes, precision = X.shape[0], classes_of(classes_), result_precision(X, coef_, intercept_)
    if classes == 2 and all_zero:
        return arithmetic(4 * rows, precision)
    if classes == 2:
        return logistic(rows, precision) + arithmetic(rows, precision)
    return soft_max(rows, classes, precision)


def _probable(loss: str, X: TensorSpec, coef_: Any, intercept_: Any, classes_: Any) -> Precision:
    """The precision of probabilities."""
    if loss == "modified_huber" and classes_of(classes_) == 2:
        return DOUBLE
    return result_precision(X, coef_, intercept_)


@rule(*names("predict_proba", "SGDClassifier"), family="linear")
def sgd_predict_proba(
    X: TensorSpec, loss: str = "hinge", coef_: Any = None, intercept_: Any = None, classes_: Any = None, **_: Any
) -> Work:
    """log_loss: the logistic function, for several classes normalised; it takes next to nothing beyond ±88 (double:
    ±709), where unscaled data bring many decisions of a descent that stopped early. modified_huber: the decision
    clipped to [-1, 1] and moved to [0, 1], normalised; of two classes into a new array, in double."""
    rows, classes, precision = X.shape[0], classes_of(classes_), _probable(loss, X, coef_, intercept_, classes_)
    width = 1 if classes == 2 else classes
    if loss == "log_loss":
        values = logistic(rows * width, precision)
        return replace(values + arithmetic(rows if width == 1 else 2 * rows * width, precision), estimated=True)
    return arithmetic(rows * width * (3 if width == 1 else 5), precision, compare=2 * rows * width)


@rule(
    *names("predict_log_proba", "LogisticRegression", "LogisticRegressionCV", "SGDClassifier"),
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis.predict_log_proba",
    family="linear",
)
def predict_log_proba(
    X: TensorSpec, loss: str = "log_loss", coef_: Any = None, intercept_: Any = None, classes_: Any = None,
    probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """The logarithms of what predict_proba gives, which is counted."""
    precision = _probable(loss, X, coef_, intercept_, classes_)
    return logarithms_of(X.shape[0] * classes_of(classes_), precision, probes)


@rule(*names("predict", "PoissonRegressor", "GammaRegressor", "TweedieRegressor"), family="linear")
def glm_predict(
    X: TensorSpec, op: str = "", power: Any = None, link: str = "auto", coef_: Any = None, **_: Any
) -> Work:
    """X·w + b, and the inverse link: an exponential, or nothing where the link is the identity (Tweedie of power <= 0
    by default)."""
    work = linear_predictor(X, coef_)
    if link == "identity" or (power is not None and link == "auto" and power <= 0):
        return work
    return work + function(EXP, X.shape[0], result_precision(X, coef_))


def _deviance(X: TensorSpec, coef_: Any, loss: int, constant: Work) -> Work:
    """D²: raw predictions, the loss of them and of the mean, in double, and its constant."""
    return linear_predictor(X, coef_) + arithmetic((2 * loss + 5) * X.shape[0], DOUBLE) + constant


def _entropy(X: TensorSpec) -> Work:
    """y·log y - y: scipy's logarithm is shorter in single precision, though it runs in double."""
    single = floats(X).bits == 32
    return arithmetic((11 if single else 26) * X.shape[0], DOUBLE) + arithmetic(3 * single * X.shape[0], floats(X))


def _log(X: TensorSpec) -> Work:
    """-log y - 1."""
    return logarithms(X.shape[0], floats(X)) + arithmetic(2 * X.shape[0], floats(X))


@rule(*names("score", "LogisticRegressionCV"), family="linear")
def scored(X: TensorSpec, scoring: Any = None, classes_: Any = None, **_: Any) -> Work:
    """By accuracy a sum. The logistic loss is a logarithm for each sample, and for each class probabilities are
    checked, clipped, summed and divided (12). Other scores are small beside predictions, and not counted."""
    rows = X.shape[0]
    if scoring == "neg_log_loss":
        work = logarithms(rows, DOUBLE) + arithmetic((12 * classes_of(classes_) + 3) * rows, DOUBLE)
        return replace(work, estimated=True)  # logarithms near to one take more
    return replace(arithmetic(rows + 60, DOUBLE), estimated=scoring not in (None, "accuracy"))


@rule(*names("score", "PoissonRegressor"), family="linear")
def poisson_score(X: TensorSpec, coef_: Any = None, **_: Any) -> Work:
    """Raw predictions, two losses (22 per sample), and y·log y - y."""
    return _deviance(X, coef_, LOSSES["HalfPoissonLoss"][0], _entropy(X))


@rule(*names("score", "GammaRegressor"), family="linear")
def gamma_score(X: TensorSpec, coef_: Any = None, **_: Any) -> Work:
    """Raw predictions, two losses (22 per sample), and -log y - 1."""
    return _deviance(X, coef_, LOSSES["HalfGammaLoss"][0], _log(X))


@rule(*names("score", "TweedieRegressor"), family="linear")
def tweedie_score(X: TensorSpec, coef_: Any = None, power: float = 0.0, link: str = "auto", **_: Any) -> Work:
    """Raw predictions, a constant and two losses: 48 per sample with a logarithmic link (22 for Poisson and gamma), 3
    for squares; 132 for powers of an identity."""
    if link == "identity" or (link == "auto" and power <= 0):
        kind = "HalfTweedieLossIdentity:0" if power == 0 else "HalfTweedieLossIdentity"
        return _deviance(X, coef_, LOSSES[kind][0], Work())
    kind = f"HalfTweedieLoss:{float(power)}"
    value = LOSSES.get(kind, LOSSES["HalfTweedieLoss"])[0]
    if power in (1, 2):
        return _deviance(X, coef_, value, _entropy(X) if power == 1 else _log(X))
    constant = arithmetic(3 * X.shape[0], floats(X))
    if 2 - power not in (0.5, -1.0, 2.0):  # y to the power of that, by numpy, which knows these
        constant += raised(X.shape[0], floats(X))
    return _deviance(X, coef_, value, constant)
