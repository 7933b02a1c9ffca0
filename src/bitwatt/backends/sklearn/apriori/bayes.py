"""Naive Bayes, discriminants, dummies, partial least squares: mostly told by shapes."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.registry import assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec

_SAID = ("predict", "predict_proba", "predict_log_proba", "decision_function", "predict_joint_log_proba", "transform",
         "inverse_transform")  # fmt: skip
told_by_shapes("dummy. naive_bayes. discriminant_analysis. cross_decomposition.", *_SAID)
told_by_shapes("naive_bayes. dummy. discriminant_analysis.", "fit", "partial_fit")
calls("naive_bayes._BaseNB discriminant_analysis.QuadraticDiscriminantAnalysis", "predict_proba", "predict_log_proba")
calls("discriminant_analysis.LinearDiscriminantAnalysis", "predict", "decision_function")
calls("discriminant_analysis.LinearDiscriminantAnalysis", "predict_proba", "decision_function")
calls("discriminant_analysis.LinearDiscriminantAnalysis", "predict_log_proba", "predict_proba")
calls("dummy.DummyClassifier", "predict_log_proba", "predict_proba")
calls("dummy.DummyClassifier dummy.DummyRegressor", "score", "predict")
told_by_shapes("dummy.", "score")


def _labels(call: Call) -> None:
    from sklearn.preprocessing import LabelBinarizer

    call.ask(LabelBinarizer(), "fit_transform", TensorSpec((call.rows,), "int64"))


@assumes("naive_bayes._BaseDiscreteNB", methods=("fit",))
def discrete(call: Call) -> dict[str, Any]:
    _labels(call)
    if type(call.estimator).__name__ != "CategoricalNB":
        return {}
    each = int(call.assume("categories", 5, "of a column"))
    least = call.get("min_categories")
    return {"n_categories_": (max(each, least if isinstance(least, int) else 0),) * call.columns}


@assumes("discriminant_analysis.LinearDiscriminantAnalysis")
def discriminant(call: Call) -> dict[str, Any]:
    kind, classes = ("float32" if call.bits == 32 else "float64"), call.classes
    width = min(classes - 1, call.columns)
    if call.get("n_components") is not None:
        width = min(width, int(call.get("n_components")))
    if call.get("shrinkage") == "auto":
        _shrunk(call)
    full = call.get("solver", "svd") == "eigen"
    return {"coef_": TensorSpec((classes if classes > 2 else 1, call.columns), kind),
            "scalings_": TensorSpec((call.columns, call.columns if full else max(width, 1)), kind),
            "_width": max(width, 1)}  # fmt: skip


def _shrunk(call: Call) -> None:
    """The covariance of each class, standardised."""
    from sklearn.covariance import LedoitWolf
    from sklearn.preprocessing import StandardScaler

    X = TensorSpec((max(call.rows // call.classes, 1), call.columns), call.X.dtype)
    call.ask(StandardScaler(), "fit_transform", X, times=call.classes)
    call.ask(LedoitWolf(assume_centered=False, store_precision=False), "fit", X, times=call.classes)


@assumes("cross_decomposition._PLS", "cross_decomposition.PLSSVD")
def least_squares(call: Call) -> dict[str, Any]:
    parts, targets = int(call.get("n_components", 2)), call.outputs
    steps = 1
    if targets > 1 and type(call.estimator).__name__ != "PLSSVD":
        typical = 150 if type(call.estimator).__name__ == "CCA" else 10
        steps = int(call.assume("n_iter_", min(typical, int(call.get("max_iter", 500))), "for each component"))
    return {
        "n_iter_": (steps,) * parts, "x_weights_": TensorSpec((call.columns, parts), "float64"),
        "y_weights_": TensorSpec((targets, parts), "float64"), "x_scores_": TensorSpec((call.rows, parts), "float64"),
        "coef_": TensorSpec((targets, call.columns), "float64"), "_width": parts, "_outputs": targets,
    }  # fmt: skip
