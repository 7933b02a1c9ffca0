"""sklearn.kernel_ridge."""

from typing import Any

from bitwatt.formulas.distances import of_bits, product
from bitwatt.formulas.inside import Probes, inside
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule


@rule("sklearn.kernel_ridge.KernelRidge.fit", family="kernel")
def fit(probes: Probes = (), **_: Any) -> Work:
    """The kernel of all rows, and the solve with a positive definite matrix."""
    return inside(probes)


@rule("sklearn.kernel_ridge.KernelRidge.predict", family="kernel")
def predict(X: TensorSpec, dual_coef_: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """The kernel with the training rows, times the dual coefficients."""
    targets = dual_coef_.shape[1] if len(dual_coef_.shape) > 1 else 1
    bits = 32 if X.dtype == "float32" and dual_coef_.dtype == "float32" else 64
    return inside(probes) + product(X.shape[0], dual_coef_.shape[0], targets, of_bits(bits))
