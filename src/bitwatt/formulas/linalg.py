"""Matrix products: dense, broadcast, sparse and ragged."""

import math
from dataclasses import replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.records import Product, TensorSpec, Work


def matmul(
    m: int, k: int, n: int, a: TensorSpec, b: TensorSpec, *, batch: int = 1, times: int = 1, **parts: Any
) -> Work:
    """`times` batches of m x k by k x n: batch·m·n·k multiply-accumulates (Golub & Van Loan, section 1.1).

    `parts` are the fields of Product that tell what may be left out (masked, sparse) or is computed twice (recomputed).
    """
    if not (batch and m and k and n and times):
        return Work()
    return Work(products=((Product(batch, m, n, k, a.precision, b.precision, **parts), times),))


def matrix_product(a: TensorSpec, b: TensorSpec) -> Work:
    """a @ b as NumPy defines it: the last axis of a meets the last but one of b, leading axes are broadcast.

    A plain matrix on either side makes one product of all the other's rows, whatever their leading axes.
    """
    if a.parts is not None or b.parts is not None:
        return _ragged_product(a, b)
    k = a.shape[-1]
    m = a.shape[-2] if len(a.shape) > 1 else 1
    n = b.shape[-1] if len(b.shape) > 1 else 1
    left, right = a.shape[:-2], b.shape[:-2]
    batch = math.prod(broadcast(left, right))
    if a.nnz is not None or b.nnz is not None:
        return _sparse_product(batch, m, k, n, a, b)
    if not right:
        return matmul(batch * m, k, n, a, b)
    if not left:
        return matmul(m, k, batch * n, a, b)
    return matmul(m, k, n, a, b, batch=batch)


def _ragged_product(a: TensorSpec, b: TensorSpec) -> Work:
    """Component by component; a plain matrix on the right takes the rows of all of them at once."""
    if a.parts is not None and b.parts is None and len(b.shape) <= 2:
        rows = sum(math.prod(part[:-1]) for part in a.parts)
        return matmul(rows, b.shape[0], b.shape[1] if len(b.shape) > 1 else 1, a, b)
    pairs = zip(components(a), components(b), strict=True)
    return sum((matrix_product(one, other) for one, other in pairs), Work())


def components(spec: TensorSpec) -> list[TensorSpec]:
    """The tensors along the first axis of a nested or plain tensor."""
    shapes = spec.parts if spec.parts is not None else (spec.shape[1:],) * spec.shape[0]
    return [TensorSpec(shape, spec.dtype) for shape in shapes]


def broadcast(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape of two shapes; an axis of length 1 takes the other's length."""
    width = max(len(left), len(right))
    pairs = zip((1,) * (width - len(left)) + left, (1,) * (width - len(right)) + right, strict=True)
    return tuple(b if a == 1 else a for a, b in pairs)


def _sparse_product(batch: int, m: int, k: int, n: int, a: TensorSpec, b: TensorSpec) -> Work:
    """Two sparse operands meet where both store: stored_a·stored_b / k products if the positions are independent."""
    if a.nnz is None:
        return sparse_matmul(batch * n, k, m, b, a, b.nnz or 0)
    if b.nnz is None:
        return sparse_matmul(batch * m, k, n, a, b, a.nnz)
    meeting = a.nnz * b.nnz // max(k * batch, 1)
    return replace(sparse_matmul(batch * m * k, n, 1, a, b, meeting), estimated=True)


def sparse_matmul(m: int, k: int, n: int, a: TensorSpec, b: TensorSpec, stored: int) -> Work:
    """m x k by k x n where the first has `stored` elements: stored·n are necessary, the others fall on zeros."""
    return matmul(m, k, n, a, b, sparse=(m * k - stored) * n)


def two_in_four(m: int, k: int, n: int, a: TensorSpec, b: TensorSpec) -> Work:
    """m x k by k x n where two of every four along k are zero: half of the products (Mishra et al. 2104.08378)."""
    return matmul(m, k, n, a, b, sparse=m * (k // 2) * n)


def bias_add(elements: int, precision: Precision) -> Work:
    """One addition for each output element; the bias's gradient adds up as many."""
    return Work.of(precision, add=elements * components_of(precision))


def scaling(elements: int, precision: Precision) -> Work:
    """One multiplication by a real number for each element."""
    return Work.of(precision, mul=elements * components_of(precision))


def components_of(precision: Precision) -> int:
    """How many real numbers one value is made of."""
    return 2 if precision.kind == "complex" else 1
