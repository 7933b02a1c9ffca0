"""sklearn.semi_supervised. SelfTrainingClassifier only fits and asks the estimator inside it."""

from typing import Any

from bitwatt.formulas.inside import Probes, inside
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_HERE = "sklearn.semi_supervised"
_PROPAGATION = (f"{_HERE}.LabelPropagation", f"{_HERE}.LabelSpreading")

free(
    *(f"{name}.predict" for name in _PROPAGATION),
    *(f"{_HERE}.SelfTrainingClassifier.{method}" for method in (
        "fit", "predict", "predict_proba", "predict_log_proba", "decision_function", "score")),
    reason="calls methods that are counted: predict_proba, or those of the estimator inside",
)  # fmt: skip


@rule(*(f"{name}.fit" for name in _PROPAGATION), family="propagation")
def fit(
    X: TensorSpec, label_distributions_: TensorSpec, n_iter_: int = 0, kernel: Any = "rbf", alpha: float | None = None,
    probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """The graph (a kernel, or neighbours, which are ops of their own), divided by its sums (2 on each edge; the
    Laplacian takes 3); each iteration a product with the labels, counted inside, and five operations on each label."""
    n, classes = label_distributions_.shape
    edges = 0 if kernel == "knn" else n * n
    return inside(probes) + arithmetic((2 if alpha is None else 3) * edges + 5 * n * classes * n_iter_, DOUBLE)


@rule(*(f"{name}.predict_proba" for name in _PROPAGATION), family="propagation")
def predict_proba(
    X: TensorSpec, label_distributions_: TensorSpec, kernel: Any = "rbf", n_neighbors: int = 7, probes: Probes = (),
    **_: Any,
) -> Work:  # fmt: skip
    """The kernel with the training rows times their labels (counted inside), or the sum of the neighbours' labels;
    divided by its sum."""
    results = X.shape[0] * label_distributions_.shape[1]
    summed = results * n_neighbors if kernel == "knn" else 0
    return inside(probes) + arithmetic(summed + 2 * results, DOUBLE)
