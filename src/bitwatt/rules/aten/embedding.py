"""Rows looked up in a table, summed in bags, and their gradients."""

from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.reduction import vector_norm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, size_of

SUM, MEAN, MAX = 0, 1, 2


@rule("aten.embedding", family="index")
def embedding(indices: TensorSpec, out: Specs, **_: Any) -> Work:
    """Rows by index: 1 index per element; read are the indices and only the rows taken."""
    return pointwise(out[0], out[0].numel, index=1) + Work(bytes_read=out[0].nbytes + indices.nbytes)


@rule("aten.embedding_dense_backward", "aten.embedding_backward", family="index")
def dense_backward(grad_output: Any = None, grad: Any = None, scale_grad_by_freq: bool = False, **_: Any) -> Work:
    """Each gradient added to its row: 1 add, 1 index per element; scaled by frequency 1 div more."""
    given = grad_output if grad_output is not None else grad
    return pointwise(given, given.numel, add=1, index=1, div=int(scale_grad_by_freq))


@rule("aten.embedding_sparse_backward", family="index")
def sparse_backward(grad: TensorSpec, **_: Any) -> Work:
    """The gradient kept as rows with their indices: 1 index per element."""
    return pointwise(grad, grad.numel, index=1)


@rule("aten.embedding_renorm", family="index")
def renorm(self: TensorSpec, indices: TensorSpec, norm_type: Any = 2, **_: Any) -> Work:
    """The norm of each row looked up, and the row scaled: the norm's work, 1 compare per row, 1 mul per element."""
    rows, width = indices.numel, self.shape[-1]
    size = rows * width * self.nbytes // max(self.numel, 1)
    work = vector_norm(self, rows * width, rows, norm_type) + pointwise(self, rows, compare=1, div=1)
    return work + pointwise(self, rows * width, mul=1) + Work(bytes_read=size + indices.nbytes, bytes_written=size)


def _bag(spec: TensorSpec, rows: int, mode: int, weighed: bool) -> Work:
    kinds = {"compare": 1} if mode == MAX else {"add": 1}
    return pointwise(spec, rows * spec.shape[-1], index=1, mul=int(weighed), **kinds)


@rule("aten._embedding_bag", "aten._embedding_bag_forward_only", "aten.embedding_bag", family="index")
def bag(
    weight: TensorSpec,
    indices: TensorSpec,
    out: Specs,
    offsets: Any = None,
    mode: int = SUM,
    per_sample_weights: Any = None,
    **_: Any,
) -> Work:
    """Rows of each bag summed: 1 index, 1 add per element (max: 1 compare), 1 mul where weighed; mean 1 div more."""
    work = _bag(weight, indices.numel, mode, per_sample_weights is not None)
    taken = indices.numel * weight.shape[-1] * weight.nbytes // max(weight.numel, 1)
    read = taken + size_of((indices, offsets, per_sample_weights))
    return work + pointwise(weight, out[0].numel, div=int(mode == MEAN)) + Work(bytes_read=read)


@rule("aten._embedding_bag_dense_backward", "aten._embedding_bag_backward", family="index")
@rule("aten._embedding_bag_sparse_backward", family="index")
def bag_backward(
    grad: TensorSpec, indices: TensorSpec, mode: int = SUM, per_sample_weights: Any = None, **_: Any
) -> Work:
    """Each bag's gradient added to its rows: 1 index, 1 add per element, 1 mul where weighed, mean 1 div; max touches
    one row per element."""
    if mode == MAX:
        return pointwise(grad, grad.numel, index=1, add=1)
    elements = indices.numel * grad.shape[-1]
    weighed = int(per_sample_weights is not None)
    return pointwise(grad, elements, index=1, add=1, mul=weighed, div=int(mode == MEAN))


@rule("aten._embedding_bag_per_sample_weights_backward", family="index")
def bag_weights_backward(grad: TensorSpec, indices: TensorSpec, **_: Any) -> Work:
    """The gradient times the row, summed: 1 mul, 1 add, 1 index per element looked up."""
    return pointwise(grad, indices.numel * grad.shape[-1], mul=1, add=1, index=1)
