"""libsvm: iterations of its solver and support vectors, which the data decide.

Medians of measured fits of 150 to 2,000 rows: about one iteration for each row (a third with one class, twenty times as
many with a linear kernel on classes that overlap); six of ten rows support a classifier, nearly all a regression on
targets whose spread is much larger than epsilon; for nu they are a little more than nu says.
"""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.registry import assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec


def _typical(call: Call) -> tuple[float, float, float]:
    """Iterations for each row, the share of support vectors, and of those at their bound among them."""
    kind, nu = type(call.estimator).__name__, float(call.get("nu", 0.5))
    if kind == "OneClassSVM":
        return max(nu, 0.05) + 0.07, min(nu + 0.02, 1.0), 0.75
    if kind.startswith("Nu"):
        return 0.6, min(nu + 0.07, 1.0), 0.75
    if kind == "SVR":
        return 0.8, 0.98, 0.9
    return (20.0 if call.get("kernel", "rbf") == "linear" else 1.0), 0.6, 0.6


@assumes("svm.BaseLibSVM")
def libsvm(call: Call) -> dict[str, Any]:
    steps, share, bound = _typical(call)
    kind = type(call.estimator).__name__
    count = call.classes if kind in ("SVC", "NuSVC") else 1
    pairs = max(count * (count - 1) // 2, 1)
    rows = call.rows if count < 2 else max(round(2 * call.rows / count), 1)
    share = float(call.assume("support", share, "share of the rows"))
    bound = float(call.assume("bounded", bound, "share of the support vectors"))
    limit = int(call.get("max_iter", -1))
    taken = int(call.assume("n_iter_", max(round(steps * rows), 1) if limit < 0 else min(round(steps * rows), limit),
                            f"{steps:g} for each row of a pair of classes"))  # fmt: skip
    used = round(share * rows)
    call.checked(call.X, call.y)
    call.probe("libsvm", call.rows, call.columns, call.stored, ((rows, taken, used, round(bound * used)),) * pairs)
    vectors = min(round(share * call.rows), call.rows)
    stored = None if call.stored < 0 else round(call.stored * vectors / max(call.rows, 1))
    return {
        "support_vectors_": TensorSpec((vectors, call.columns), "float64", stored),
        "dual_coef_": TensorSpec((max(count - 1, 1), vectors), "float64"), "shape_fit_": (call.rows, call.columns),
        "n_iter_": (taken,) * pairs if count > 1 else taken, "support_": TensorSpec((vectors,), "int32"),
    }  # fmt: skip


@assumes("svm.BaseLibSVM", methods=("predict", "decision_function", "predict_proba"))
def decided(call: Call) -> dict[str, Any]:
    call.probe("finite", 64, call.elements)
    return {}


calls("svm.OneClassSVM", "score_samples", "decision_function")
told_by_shapes("svm.OneClassSVM", "score_samples")
calls("svm.BaseSVC", "predict_log_proba", "predict_proba")
told_by_shapes("svm.BaseSVC", "predict_log_proba")
