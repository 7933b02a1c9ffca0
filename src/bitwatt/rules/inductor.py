"""Ops that compiled graphs call beside their kernels."""

from typing import Any

from bitwatt.formulas.linalg import matmul
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

free(
    "inductor._alloc_from_pool",
    "inductor._reinterpret_tensor",
    "inductor.resize_storage_bytes_",
    reason="memory is set aside or looked at anew, nothing moves",
)


@rule("inductor.accumulate_grad_", family="pointwise")
def accumulate_grad(variable: TensorSpec, variable_grad: Any = None, **_: Any) -> Work:
    """The new gradient added to the one there: 1 add per element; nothing where it is the first."""
    return pointwise(variable, variable.numel, add=int(isinstance(variable_grad, TensorSpec)))


@rule("inductor._mm_plus_mm", family="matmul")
def mm_plus_mm(a: TensorSpec, b: TensorSpec, c: TensorSpec, d: TensorSpec, **_: Any) -> Work:
    """a·b + c·d: two matrix products and 1 add per element."""
    (m, k), n = a.shape, b.shape[1]
    sums = pointwise(a, m * n, add=1)
    return matmul(m, k, n, a, b) + matmul(m, c.shape[1], n, c, d) + sums
