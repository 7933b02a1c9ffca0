"""Estimators that fit and ask others: pipelines, searches, chains. What they call is counted as itself."""

from __future__ import annotations

from typing import Any

from bitwatt.formulas.arrays import floats, logarithms
from bitwatt.formulas.inside import Probes, logarithms_of, looked_at
from bitwatt.formulas.vector import DOUBLE, EXP, arithmetic, function, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn.preprocessing_encoders import length

_ASKED = ("predict", "predict_proba", "predict_log_proba", "decision_function")

_CALLS = {
    "pipeline.Pipeline": (
        "fit", "fit_transform", "fit_predict", *_ASKED, "score", "score_samples", "transform", "inverse_transform",
    ),
    "pipeline.FeatureUnion": ("fit", "fit_transform", "transform"),
    "compose.ColumnTransformer": ("fit", "fit_transform", "transform"),
    **{
        f"model_selection.{kind}": ("fit", *_ASKED, "score", "score_samples", "transform", "inverse_transform")
        for kind in ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
    },
    "model_selection.FixedThresholdClassifier": ("fit", *_ASKED),
    "model_selection.TunedThresholdClassifierCV": _ASKED,
    "multioutput.MultiOutputClassifier": ("fit", "partial_fit", "predict", "predict_proba"),
    "multioutput.MultiOutputRegressor": ("fit", "partial_fit", "predict"),
    "multioutput.ClassifierChain": ("fit",),
    "multioutput.RegressorChain": ("fit",),
    "frozen.FrozenEstimator": ("fit",),
    "multiclass.OneVsRestClassifier": ("fit", "partial_fit", "predict", "decision_function"),
    "multiclass.OneVsOneClassifier": ("fit", "partial_fit", "predict"),
    "multiclass._ConstantPredictor": ("fit", "predict", "decision_function", "predict_proba"),
}  # fmt: skip

for _kind, _methods in _CALLS.items():
    free(
        *(f"sklearn.{_kind}.{method}" for method in _methods),
        reason="calls other estimators, which are counted; its own part copies, compares and looks up",
    )


@rule(
    *(f"sklearn.multioutput.ClassifierChain.{method}" for method in ("predict", "predict_proba", "decision_function")),
    "sklearn.multioutput.RegressorChain.predict",
    family="classification",
)
def chained(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; each estimator of the chain is counted as itself."""
    return validated(X)


@rule("sklearn.multioutput.ClassifierChain.predict_log_proba", family="classification")
def chained_logarithms(out: tuple[TensorSpec, ...] = (), probes: Probes = (), **_: Any) -> Work:
    """The logarithm of predict_proba, which is counted."""
    return logarithms_of(sum(spec.numel for spec in out), DOUBLE, probes)


@rule("sklearn.multioutput.MultiOutputClassifier.score", family="score")
def all_right(y: Any = None, **_: Any) -> Work:
    """The share of samples whose outputs are all right: a sum over samples."""
    return Work.of(DOUBLE, add=length(y))


@rule("sklearn.compose.TransformedTargetRegressor.fit", family="scaling")
def target_fit(y: Any = None, **_: Any) -> Work:
    """The finiteness check of the target, and a few of its values there and back; transformer and regressor are counted
    as themselves."""
    return (validated(y) if isinstance(y, TensorSpec) else Work()) + arithmetic(50, DOUBLE)


free("sklearn.compose.TransformedTargetRegressor.predict", reason="calls the regressor and the transformer")


@rule("sklearn.model_selection.TunedThresholdClassifierCV.fit", family="score")
def tuned_fit(y: Any = None, thresholds: Any = 100, **_: Any) -> Work:
    """For each threshold the labels it gives are scored, folds together once over all samples: a comparison, and 2
    operations for each sample and some 150 for the score; fits and predictions are counted as themselves."""
    tried = thresholds if isinstance(thresholds, int) else 100
    n = length(y)
    return arithmetic(tried * (2 * n + 5 * 150), DOUBLE, compare=tried * n)


@rule("sklearn.multiclass.OneVsRestClassifier.predict_proba", family="classification")
def one_against_rest(X: TensorSpec, classes_: Any = (), multilabel_: bool = False, **_: Any) -> Work:
    """The probabilities of each classifier, counted as itself, divided by their sum."""
    classes = length(classes_)
    return arithmetic(X.shape[0] * (2 * classes if classes > 2 else 1), DOUBLE)


@rule("sklearn.multiclass.OneVsOneClassifier.decision_function", family="classification")
def one_against_one(X: TensorSpec, classes_: Any = (), **_: Any) -> Work:
    """Votes and confidences of all pairs: 3 for each sample and pair; confidences squeezed between votes: 4 for each
    sample and class. The classifiers are counted as themselves."""
    classes = length(classes_)
    pairs = classes * (classes - 1) // 2
    return arithmetic(X.shape[0] * (3 * pairs + 4 * classes), DOUBLE)


@rule("sklearn.multiclass.OutputCodeClassifier.fit", family="classification")
def output_code_fit(classes_: Any = (), code_book_: Any = None, **_: Any) -> Work:
    """A random code for each class: 5 operations a number; the classifiers are counted as themselves."""
    return arithmetic(5 * code_book_.numel if isinstance(code_book_, TensorSpec) else 0, DOUBLE)


@rule("sklearn.multiclass.OutputCodeClassifier.predict", family="classification")
def output_code(X: TensorSpec, code_book_: Any = None, **_: Any) -> Work:
    """The distance of each sample's code to every class's: a product and 3 operations; both are checked and their
    norms taken. The classifiers are counted as themselves."""
    classes, codes = code_book_.shape
    n = X.shape[0]
    distances = 2 * n * classes * codes + 3 * n * classes
    return arithmetic(distances + 3 * (n + classes) * codes + 6 * n, DOUBLE)


_CALIBRATED = "sklearn.calibration.CalibratedClassifierCV."
_SIGMOID, _TEMPERATURE = "sklearn.calibration._SigmoidCalibration.", "sklearn.calibration._TemperatureScaling."

free(
    f"{_CALIBRATED}fit", f"{_CALIBRATED}predict",
    reason="calls classifiers and calibrators, which are counted; its own part compares",
)  # fmt: skip


@rule(f"{_CALIBRATED}predict_proba", family="classification")
def calibrated(
    X: TensorSpec, classes_: Any = (), calibrated_classifiers_: Any = 1, method: str = "sigmoid", **_: Any
) -> Work:
    """The mean over calibrated classifiers, whose probabilities are divided by their sum; those, and the calibrators,
    are counted as themselves."""
    classes, n = length(classes_), X.shape[0]
    fitted = calibrated_classifiers_ if isinstance(calibrated_classifiers_, int) else 5
    own = (2 * classes if classes > 2 else 1) if method != "temperature" else 0
    return arithmetic(n * (fitted * (own + classes) + classes), DOUBLE)


def _evaluations(probes: tuple[Any, ...]) -> int:
    return sum(found[1] * found[-1] for found in probes if found[0] == "calibration" and found[1] != "unknown")


@rule(f"{_SIGMOID}fit", family="classification")
def sigmoid_fit(X: Any = None, y: Any = None, probes: tuple[Any, ...] = (), **_: Any) -> Work:
    """L-BFGS over two numbers: for each evaluation a line, the binomial loss and its gradient (60), and two sums: 66
    operations a sample."""
    n = max(length(X), length(y))
    return arithmetic(_evaluations(probes) * (66 * n + 100), DOUBLE)


@rule(f"{_SIGMOID}predict", family="classification")
def sigmoid(T: Any = None, **_: Any) -> Work:
    """expit(-(a·x + b)) of each value."""
    return arithmetic(24 * length(T), DOUBLE)


@rule(f"{_TEMPERATURE}fit", family="classification")
def temperature_fit(X: TensorSpec, probes: tuple[Any, ...] = (), **_: Any) -> Work:
    """The finiteness check and logarithms of probabilities; for each evaluation of a scalar search the logits scaled
    and a multinomial loss: 23 for each class and 6."""
    n, classes = X.shape[0], X.shape[1] if len(X.shape) > 1 else 2
    return arithmetic((3 + 24) * n * classes, floats(X)) + arithmetic(
        _evaluations(probes) * n * (23 * classes + 6), DOUBLE
    )


@rule(f"{_TEMPERATURE}predict", family="classification")
def temperature(X: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """The finiteness check, the sum of each row and how near it is to one, a factor, and a softmax, in which the
    exponential of the largest is known, and so are those that vanish; probabilities become logarithms before."""
    n, classes = X.shape[0], X.shape[1] if len(X.shape) > 1 else 2
    precision, elements = floats(X), n * classes
    are_shares, vanished, near = looked_at(probes, "logits") or (1, 0, 0)
    sums = arithmetic(elements + 4 * n if len(X.shape) > 1 and classes > 1 else 0, precision)
    logits = logarithms(elements, precision, near, 0, 0) + arithmetic(elements, precision) if are_shares else Work()
    known = n + (elements - n) * vanished / 1000 if precision.bits == 64 else 0
    exponentials = function(EXP, elements - known, precision) + arithmetic(known, precision)
    return sums + logits + exponentials + arithmetic(4 * elements, precision, div=elements)
