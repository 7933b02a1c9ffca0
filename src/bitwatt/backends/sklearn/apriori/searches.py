"""Searches over hyper-parameters, selections of features, calibration, thresholds: fits on parts of the rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.ensembles import how_it_says
from bitwatt.backends.sklearn.apriori.registry import SAYS, UnassumedError, assumes, told_by_shapes
from bitwatt.backends.sklearn.apriori.validation import count_of, folds, folds_of, numbered, part
from bitwatt.records import TensorSpec

#: Candidates that are looked at one by one; of more, so many are taken evenly and stand for the rest.
_MOST = 64
#: With so many candidates or fewer, folds have scopes of their own.
_FEW = 8
_ASKED = (*SAYS, "transform", "score", "inverse_transform")
_SEARCH = "model_selection.BaseSearchCV"


def _candidates(call: Call) -> list[dict[str, Any]]:
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    if call.get("param_grid") is not None:
        return list(ParameterGrid(call.get("param_grid")))
    wanted = call.get("n_iter") or call.get("n_candidates")
    many = int(wanted) if isinstance(wanted, int) else 10
    return list(ParameterSampler(call.get("param_distributions"), many, random_state=0))


def _tried(call: Call, model: Any, candidates: list[dict[str, Any]]) -> Iterator[tuple[Any, int]]:
    """The model with each setting, and how many settings it stands for."""
    from sklearn.base import clone

    step = math.ceil(len(candidates) / _MOST)
    if step > 1:
        call.assume("candidates", _MOST, f"of {len(candidates)}, taken evenly, stand for all")
    for start in range(0, len(candidates), step):
        yield clone(model).set_params(**candidates[start]), min(step, len(candidates) - start)


@assumes(_SEARCH)
def search(call: Call) -> dict[str, Any]:
    model, candidates, cv = call.get("estimator"), _candidates(call), call.get("cv")
    trained, first = bool(call.get("return_train_score")), None
    for rows, few in _rungs(call, candidates):
        inner = Call(call.walk, call.estimator, call.method, part(call.X, rows),
                     part(call.y, rows) if call.y is not None else None, call.scope, call.times)  # fmt: skip
        for tried, times in _tried(call, model, few):
            first = tried if first is None else first
            folds_of(inner, tried, cv, candidates=times, trained=trained, few=len(few) <= _FEW)
    if call.get("refit", True):
        best = model if first is None else first
        call.assume("best", "the first candidate", "for the fit on all rows")
        call.ask(best, "fit", call.X, call.y, name="best_estimator")
        return {"_best": best}
    return {}


def _rungs(call: Call, candidates: list[dict[str, Any]]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """All at once; a halving search keeps a third, on three times the rows, in each round."""
    if "Halving" not in type(call.estimator).__name__:
        yield call.rows, candidates
        return
    if call.get("resource", "n_samples") != "n_samples":
        raise UnassumedError("its resource is a parameter of the estimator, which may mean anything")
    factor, most = float(call.get("factor", 3)), call.get("max_resources", "auto")
    most = call.rows if most == "auto" else int(most)
    rounds, least = 1 + int(math.log(max(len(candidates), 1), factor)), call.get("min_resources", "exhaust")
    smallest = count_of(call.get("cv"), call.rows) * 2 * max(call.walk.classes or 2, 1)
    if isinstance(least, int):
        smallest = least
    elif least == "exhaust":
        smallest = max(smallest, int(most // factor ** (rounds - 1)))
    left = len(candidates)
    for number in range(rounds):
        yield min(int(smallest * factor**number), most), candidates[:left]
        left = math.ceil(left / factor)


@assumes(_SEARCH, methods=_ASKED)
def found(call: Call) -> dict[str, Any]:
    best = call.known["_best"] if "_best" in call.known else call.get("estimator")
    call.extra["_out"] = call.ask(best, call.method, call.X, call.y, name="best_estimator")
    return {}


@assumes("model_selection.FixedThresholdClassifier", "frozen.FrozenEstimator", methods=("fit", *_ASKED))
def one_inside(call: Call) -> dict[str, Any]:
    model, said = call.get("estimator"), call.method
    if type(call.estimator).__name__ == "FrozenEstimator" and said == "fit":
        return {}
    if "Threshold" in type(call.estimator).__name__ and said == "predict":
        said = how_it_says(model, "decision_function", "predict_proba")
    call.ask(model, said, call.X, call.y, name="estimator")
    return {}


@assumes("model_selection.TunedThresholdClassifierCV")
def tuned(call: Call) -> dict[str, Any]:
    model = call.get("estimator")
    said = how_it_says(model, "predict_proba", "decision_function")
    folds_of(call, model, call.get("cv"), asked=said)
    if call.get("refit", True):
        call.ask(model, "fit", call.X, call.y, name="estimator")
    return {}


@assumes("model_selection.TunedThresholdClassifierCV", methods=SAYS)
def tuned_says(call: Call) -> dict[str, Any]:
    return one_inside(call)


@assumes("compose.TransformedTargetRegressor")
def target(call: Call) -> dict[str, Any]:
    from sklearn.linear_model import LinearRegression

    model, change = call.model("regressor", LinearRegression), call.get("transformer")
    column = TensorSpec((call.rows, call.outputs), "float64")
    if change is not None:
        few = TensorSpec((min(call.rows, 10), call.outputs), "float64")
        call.ask(change, "fit", column, name="transformer")
        call.ask(change, "transform", few, name="transformer")
        call.ask(change, "inverse_transform", few, name="transformer")
        call.ask(change, "transform", column, name="transformer")
    call.ask(model, "fit", call.X, call.y, name="regressor")
    return {"_model": model}


@assumes("compose.TransformedTargetRegressor", methods=("predict",))
def target_says(call: Call) -> dict[str, Any]:
    call.ask(call.known["_model"], "predict", call.X, name="regressor")
    if call.get("transformer") is not None:
        column = TensorSpec((call.rows, call.outputs), "float64")
        call.ask(call.get("transformer"), "inverse_transform", column, name="transformer")
    return {}


def _narrow(X: TensorSpec, width: int) -> TensorSpec:
    stored = None if X.nnz is None else round(X.nnz * width / max(X.shape[1], 1))
    return TensorSpec((X.shape[0], width), X.dtype, stored)


def _eliminated(call: Call, least: int) -> Iterator[tuple[int, int]]:
    """Numbers of columns from all to the wanted ones, each with how many steps it stands for."""
    step = call.get("step", 1)
    step = int(step) if step >= 1 else max(int(step * call.columns), 1)
    widths = list(range(call.columns, least, -step))
    stride = math.ceil(len(widths) / _MOST) if widths else 1
    for start in range(0, len(widths), stride):
        yield widths[start], min(stride, len(widths) - start)


def _wanted(call: Call) -> int:
    asked = call.get("n_features_to_select")
    if asked is None or asked == "auto":
        return max(call.columns // 2, 1)
    return int(asked) if isinstance(asked, int) else max(int(asked * call.columns), 1)


@assumes("feature_selection.RFE")
def eliminate(call: Call) -> dict[str, Any]:
    model, least = call.get("estimator"), _wanted(call)
    for width, times in _eliminated(call, least):
        call.ask(model, "fit", _narrow(call.X, width), call.y, times=times, name="estimator")
    call.ask(model, "fit", _narrow(call.X, least), call.y, name="estimator")
    return {"_width": least}


@assumes("feature_selection.RFECV")
def eliminate_cv(call: Call) -> dict[str, Any]:
    model, least = call.get("estimator"), int(call.get("min_features_to_select", 1))
    for rows, left, often, name in numbered(call.rows, call.get("cv"), few=False):
        for width, times in [*_eliminated(call, least), (least, 1)]:
            for said, size in (("fit", rows), ("score", left)):
                X, y = part(_narrow(call.X, width), size), part(call.y, size) if call.y is not None else None
                call.ask(model, said, X, y, times=times * often, name=f"{name}.estimator")
    kept = int(call.assume("n_features_", max(call.columns // 2, 1), "half of the columns are the best"))
    for width, times in _eliminated(call, kept):
        call.ask(model, "fit", _narrow(call.X, width), call.y, times=times, name="estimator")
    call.ask(model, "fit", _narrow(call.X, kept), call.y, name="estimator")
    return {"_width": kept}


@assumes("feature_selection.RFE", "feature_selection.RFECV", methods=("predict", "score", *SAYS[1:4]))
def eliminated_says(call: Call) -> dict[str, Any]:
    inside = call.again("transform")
    call.ask(call.get("estimator"), call.method, call.X if inside is None else inside, call.y, name="estimator")
    return {}


@assumes("feature_selection.SelectFromModel")
def from_model(call: Call) -> dict[str, Any]:
    if not call.get("prefit"):
        call.ask(call.get("estimator"), "fit", call.X, call.y, name="estimator")
    most = call.get("max_features")
    kept = max(round(call.columns * float(call.assume("selected", 0.5, "share of the columns"))), 1)
    return {"_width": min(kept, int(most)) if isinstance(most, int) else kept}


@assumes("feature_selection.SequentialFeatureSelector")
def sequential(call: Call) -> dict[str, Any]:
    """A column more (or less) in each round, every one that is left being tried in each fold."""
    model, wanted, f = call.get("estimator"), _wanted(call), call.columns
    forward = call.get("direction", "forward") == "forward"
    rounds = wanted if forward else f - wanted
    stride = math.ceil(rounds / _MOST) if rounds else 1
    for start in range(0, rounds, stride):
        width, tried = (start + 1, f - start) if forward else (f - start - 1, f - start)
        inner = Call(call.walk, call.estimator, call.method, _narrow(call.X, max(width, 1)), call.y, call.scope,
                     call.times)  # fmt: skip
        folds_of(inner, model, call.get("cv", 5), candidates=tried * min(stride, rounds - start),
                 few=False)  # fmt: skip
    return {"_width": wanted}


@assumes("calibration.CalibratedClassifierCV")
def calibrate(call: Call) -> dict[str, Any]:
    from sklearn.svm import LinearSVC

    model, cv = call.model("estimator", LinearSVC), call.get("cv")
    said = how_it_says(model, "decision_function", "predict_proba")
    together = call.get("ensemble", "auto") is False
    many, rows = 0, call.rows
    for inside, left, times in folds(call.rows, cv):
        y = part(call.y, inside) if call.y is not None else None
        call.ask(model, "fit", part(call.X, inside), y, times=times, name="estimator")
        call.ask(model, said, part(call.X, left), times=times, name="estimator")
        many, rows = many + times, left if not together else call.rows
        if not together:
            _calibrator(call, left, times)
    if together:
        call.ask(model, "fit", call.X, call.y, name="estimator")
        _calibrator(call, rows, 1)
        many = 1
    return {"calibrated_classifiers_": many, "_model": model, "_said": said}


def _calibrators(call: Call) -> tuple[Any, int]:
    from sklearn.calibration import _SigmoidCalibration
    from sklearn.isotonic import IsotonicRegression

    method = call.get("method", "sigmoid")
    if method == "temperature":
        raise UnassumedError("how long a temperature is looked for depends on the probabilities")
    one: Any = IsotonicRegression(out_of_bounds="clip") if method == "isotonic" else _SigmoidCalibration()
    return one, call.classes if call.classes > 2 else 1


def _calibrator(call: Call, rows: int, times: int) -> None:
    one, each = _calibrators(call)
    call.ask(one, "fit", TensorSpec((rows,), "float64"), TensorSpec((rows,), "int64"), times=times * each)


@assumes("calibration._SigmoidCalibration")
def sigmoid(call: Call) -> dict[str, Any]:
    call.probe("calibration", int(call.assume("evaluations", 8, "of the loss, by L-BFGS")))
    return {}


told_by_shapes("calibration._SigmoidCalibration", "predict")


@assumes("calibration.CalibratedClassifierCV", methods=("predict_proba",))
def calibrated(call: Call) -> dict[str, Any]:
    many = call.known["calibrated_classifiers_"]
    call.ask(call.known["_model"], call.known["_said"], call.X, times=many, name="estimator")
    one, each = _calibrators(call)
    call.ask(one, "predict", TensorSpec((call.rows,), "float64"), times=many * each)
    return {}


@assumes("calibration.CalibratedClassifierCV", methods=("predict",))
def calibrated_class(call: Call) -> dict[str, Any]:
    call.again("predict_proba")
    return {}


@assumes("semi_supervised.SelfTrainingClassifier")
def self_training(call: Call) -> dict[str, Any]:
    """Rows that it is sure of are learnt from in the next round."""
    model = call.get("estimator")
    rounds = int(call.assume("n_iter_", min(int(call.get("max_iter", 10) or 10), 10), "max_iter"))
    labelled = float(call.assume("labelled", 0.5, "share of the rows, on average over rounds"))
    known = max(round(labelled * call.rows), 1)
    y = TensorSpec((known,), "int64")
    call.ask(model, "fit", part(call.X, known), y, times=rounds + 1, name="estimator")
    call.ask(model, "predict_proba", part(call.X, max(call.rows - known, 1)), times=rounds, name="estimator")
    return {"n_iter_": rounds}


@assumes("semi_supervised.SelfTrainingClassifier", methods=(*SAYS, "score"))
def self_says(call: Call) -> dict[str, Any]:
    call.ask(call.get("estimator"), call.method, call.X, call.y, name="estimator")
    return {}
