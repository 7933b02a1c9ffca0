"""Estimators that fit others many times: bags, votes, stacks, one for each class or output."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call, is_classifier
from bitwatt.backends.sklearn.apriori.registry import assumes, calls, told_by_shapes
from bitwatt.backends.sklearn.apriori.validation import folds_of, part
from bitwatt.records import TensorSpec

_SAID = ("predict", "predict_proba", "predict_log_proba", "decision_function")


def _tree(call: Call, **limits: Any) -> Any:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    return (DecisionTreeClassifier if is_classifier(call.estimator) else DecisionTreeRegressor)(**limits)


def _takes_weights(estimator: Any) -> bool:
    from sklearn.utils.validation import has_fit_parameter

    return bool(has_fit_parameter(estimator, "sample_weight"))


def how_it_says(model: Any, *preferred: str) -> str:
    return next((method for method in preferred if hasattr(model, method)), "predict")


def _share(value: Any, of: int) -> int:
    return int(value) if isinstance(value, int) else max(round(float(value) * of), 1)


@assumes("ensemble.BaseBagging")
def bagging(call: Call) -> dict[str, Any]:
    """Each on rows that are drawn with replacement: as weights, of which 37 of 100 are zero, where those are taken."""
    model, many = call.model("estimator", lambda: _tree(call)), int(call.get("n_estimators", 10))
    drawn = _share(call.get("max_samples", 1.0), call.rows)
    width = _share(call.get("max_features", 1.0), call.columns)
    X = TensorSpec((call.rows, width), call.X.dtype, call.X.nnz)
    if _takes_weights(model):
        there = -math.expm1(-drawn / call.rows) if call.get("bootstrap", True) else drawn / call.rows
        weights = {"sample_weight": TensorSpec((call.rows,), "float64"), "_drawn": there}
        call.ask(model, "fit", X, call.y, times=many, name="estimator", also=weights)
    else:
        y = part(call.y, drawn) if call.y is not None else None
        call.ask(model, "fit", part(X, drawn), y, times=many, name="estimator")
    if call.get("oob_score"):
        out = part(X, max(round(0.37 * call.rows), 1))
        call.ask(model, how_it_says(model, "predict_proba"), out, times=many, name="estimator")
    classes = {"n_classes_": call.classes} if is_classifier(call.estimator) else {}
    return {"estimators_": many, "_model": model, "_features": width, **classes}


@assumes("ensemble.BaseBagging", methods=("predict_proba", "decision_function"))
@assumes("ensemble.BaggingRegressor", methods=("predict",))
def bagged(call: Call) -> dict[str, Any]:
    model, X = call.known["_model"], TensorSpec((call.rows, call.known["_features"]), call.X.dtype, call.X.nnz)
    wanted = call.method if hasattr(model, call.method) else "predict"
    call.ask(model, wanted, X, times=call.known["estimators_"], name="estimator")
    return {}


calls("ensemble.BaggingClassifier", "predict", "predict_proba")
calls("ensemble.BaggingClassifier", "predict_log_proba", "predict_proba")
told_by_shapes("ensemble.BaggingClassifier", "predict", "predict_log_proba")


@assumes("ensemble.BaseWeightBoosting")
def adaboost(call: Call) -> dict[str, Any]:
    classes = is_classifier(call.estimator)
    model = call.model("estimator", lambda: _tree(call, max_depth=1 if classes else 3))
    rounds = int(call.assume("n_estimators_", int(call.get("n_estimators", 50)), "no early stop"))
    if classes:
        weights = {"sample_weight": TensorSpec((call.rows,), "float64")}
        call.ask(model, "fit", call.X, call.y, times=rounds, name="estimator", also=weights)
    else:
        call.ask(model, "fit", call.X, call.y, times=rounds, name="estimator")
    call.ask(model, "predict", call.X, times=rounds, name="estimator")
    return {"estimators_": rounds, "_model": model, **({"n_classes_": call.classes} if classes else {})}


@assumes("ensemble.AdaBoostClassifier", methods=("decision_function",))
@assumes("ensemble.AdaBoostRegressor", methods=("predict",))
def boosted(call: Call) -> dict[str, Any]:
    call.ask(call.known["_model"], "predict", call.X, times=call.known["estimators_"], name="estimator")
    return {}


calls("ensemble.AdaBoostClassifier", "predict", "decision_function")
calls("ensemble.AdaBoostClassifier", "predict_proba", "decision_function")
calls("ensemble.AdaBoostClassifier", "predict_log_proba", "predict_proba")
told_by_shapes("ensemble.AdaBoostClassifier", "predict", "predict_proba", "predict_log_proba")


def _members(call: Call) -> list[tuple[str, Any]]:
    return [(name, model) for name, model in call.estimator.estimators if model is not None and model != "drop"]


@assumes("ensemble._BaseVoting")
def voting(call: Call) -> dict[str, Any]:
    for name, model in _members(call):
        call.ask(model, "fit", call.X, call.y, name=name)
    return {"estimators_": len(_members(call)), "_width": len(_members(call))}


@assumes("ensemble._BaseVoting", methods=("transform",))
@assumes("ensemble.VotingClassifier", methods=("predict_proba",))
@assumes("ensemble.VotingRegressor", methods=("predict",))
def voted(call: Call) -> dict[str, Any]:
    soft = call.get("voting") == "soft"
    for name, model in _members(call):
        call.ask(model, "predict_proba" if soft else "predict", call.X, name=name)
    return {"_width": len(_members(call)) * (call.classes if soft else 1)} if call.method == "transform" else {}


@assumes("ensemble.VotingClassifier", methods=("predict",))
def voted_for(call: Call) -> dict[str, Any]:
    if call.get("voting") == "soft":
        call.again("predict_proba")
    else:
        for name, model in _members(call):
            call.ask(model, "predict", call.X, name=name)
    return {}


def _asked(call: Call, model: Any) -> str:
    wanted = call.get("stack_method", "auto")
    if wanted != "auto":
        return str(wanted)
    return how_it_says(model, "predict_proba", "decision_function") if is_classifier(call.estimator) else "predict"


def _final(call: Call) -> Any:
    from sklearn.linear_model import LogisticRegression, RidgeCV

    return call.model("final_estimator", LogisticRegression if is_classifier(call.estimator) else RidgeCV)


@assumes("ensemble._BaseStacking")
def stacking(call: Call) -> dict[str, Any]:
    width, cv = 0, call.get("cv", 5)
    for name, model in _members(call):
        if cv != "prefit":
            call.ask(model, "fit", call.X, call.y, name=name)
            folds_of(call, model, cv, asked=_asked(call, model))
            call.walk.fitted.pop(id(model), None)
            call.walk._learn(model, call.X, call.y, f"{call.scope}.{name}")
        width += call.classes if is_classifier(call.estimator) and call.classes > 2 and _asked(
            call, model) != "predict" else 1  # fmt: skip
    width += call.columns if call.get("passthrough") else 0
    final = _final(call)
    call.ask(final, "fit", TensorSpec((call.rows, width), "float64"), call.y, name="final_estimator")
    return {"estimators_": len(_members(call)), "_width": width, "_final": final}


@assumes("ensemble._BaseStacking", methods=("transform",))
def stacked(call: Call) -> dict[str, Any]:
    for name, model in _members(call):
        call.ask(model, _asked(call, model), call.X, name=name)
    return {}


@assumes("ensemble._BaseStacking", methods=_SAID)
def stacking_says(call: Call) -> dict[str, Any]:
    inner = call.again("transform") or call.X
    call.ask(call.known["_final"], call.method, inner, name="final_estimator")
    return {}


@assumes("multiclass.OneVsRestClassifier")
def one_vs_rest(call: Call) -> dict[str, Any]:
    from sklearn.preprocessing import LabelBinarizer

    times = call.classes if call.classes > 2 else 1
    call.ask(LabelBinarizer(), "fit_transform", TensorSpec((call.rows,), "int64"), name="label_binarizer")
    call.ask(call.get("estimator"), "fit", call.X, _labels(call), times=times, name="estimator", classes=2)
    return {"_times": times}


def _labels(call: Call, rows: int | None = None) -> TensorSpec:
    return TensorSpec((rows or call.rows,), "int64")


@assumes("multiclass.OneVsRestClassifier", methods=("predict", "predict_proba", "decision_function"))
def rest(call: Call) -> dict[str, Any]:
    model = call.get("estimator")
    said = call.method if call.method != "predict" else how_it_says(model, "decision_function", "predict_proba")
    call.ask(model, said, call.X, times=call.known["_times"], name="estimator", classes=2)
    return {}


@assumes("multiclass.OneVsOneClassifier")
def one_vs_one(call: Call) -> dict[str, Any]:
    pairs = call.classes * (call.classes - 1) // 2
    rows = max(round(2 * call.rows / call.classes), 1)
    call.ask(call.get("estimator"), "fit", part(call.X, rows), _labels(call, rows), times=pairs, name="estimator",
             classes=2)  # fmt: skip
    return {"_times": pairs}


@assumes("multiclass.OneVsOneClassifier", methods=("decision_function",))
def one_by_one(call: Call) -> dict[str, Any]:
    model = call.get("estimator")
    for said in ("predict", how_it_says(model, "decision_function", "predict_proba")):
        call.ask(model, said, call.X, times=call.known["_times"], name="estimator", classes=2)
    return {}


calls("multiclass.OneVsOneClassifier", "predict", "decision_function")
told_by_shapes("multiclass.OneVsOneClassifier", "predict")


@assumes("multiclass.OutputCodeClassifier")
def output_code(call: Call) -> dict[str, Any]:
    many = max(int(call.classes * float(call.get("code_size", 1.5))), 1)
    fitted = max(round(many * (1 - 2.0 ** (1 - call.classes))), 1)  # codes that are the same for all need no classifier
    call.ask(call.get("estimator"), "fit", call.X, _labels(call), times=fitted, name="estimator", classes=2)
    return {"code_book_": TensorSpec((call.classes, many), "float64"), "_times": fitted}


@assumes("multiclass.OutputCodeClassifier", methods=("predict",))
def coded(call: Call) -> dict[str, Any]:
    model = call.get("estimator")
    said = how_it_says(model, "decision_function", "predict_proba")
    call.ask(model, said, call.X, times=call.known["_times"], name="estimator", classes=2)
    return {}


def _one(call: Call) -> TensorSpec:
    kind = call.y.dtype if call.y is not None else "float64"
    return TensorSpec((call.rows,), kind)


@assumes("multioutput._MultiOutputEstimator")
def outputs(call: Call) -> dict[str, Any]:
    call.ask(call.get("estimator"), "fit", call.X, _one(call), times=call.outputs, name="estimator")
    return {"_outputs": call.outputs}


@assumes("multioutput._MultiOutputEstimator", methods=("predict", "predict_proba"))
def outputs_say(call: Call) -> dict[str, Any]:
    many = call.known.get("_outputs", call.outputs)
    call.ask(call.get("estimator"), call.method, call.X, times=many, name="estimator")
    return {}


def _link(call: Call) -> Any:
    return call.model("estimator", lambda: call.get("base_estimator"))


@assumes("multioutput._BaseChain")
def chain(call: Call) -> dict[str, Any]:
    model, y = _link(call), _one(call)
    for number in range(call.outputs):
        X = TensorSpec((call.rows, call.columns + number), call.X.dtype)
        call.ask(model, "fit", X, y, name="estimator")
        if call.get("cv") is not None and number + 1 < call.outputs:
            folds_of(call, model, call.get("cv"), asked="predict")
    return {"_outputs": call.outputs}


@assumes("multioutput._BaseChain", methods=_SAID)
def chained(call: Call) -> dict[str, Any]:
    """Each link predicts for the next one, and says what was asked for."""
    model = _link(call)
    for number in range(call.known.get("_outputs", 1)):
        X = TensorSpec((call.rows, call.columns + number), call.X.dtype)
        call.ask(model, "predict", X, name="estimator")
        call.ask(model, call.method, X, name="estimator")
    return {}
