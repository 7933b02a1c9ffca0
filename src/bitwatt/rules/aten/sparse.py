"""Sparse products of ATen: stored elements are necessary, products on the zeros between them are marked."""

from typing import Any

from bitwatt.formulas.linalg import bias_add, matmul, matrix_product, sparse_matmul, two_in_four
from bitwatt.formulas.pointwise import stored
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules._products import Specs, combined, flat, fused, named
from bitwatt.rules._tables import each, moved, tensors

moved(
    "_to_sparse _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc to_sparse to_sparse_csr to_sparse_csc "
    "to_sparse_bsr to_sparse_bsc _to_dense to_dense _coalesce coalesce sparse_mask _sparse_mask_projection "
    "copy_sparse_to_sparse _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
    "_sparse_semi_structured_apply _sparse_semi_structured_apply_dense _cslt_compress to_dense_backward "
    "_sparse_broadcast_to_copy resize_as_sparse",
    "elements moved from one layout to another",
)
free("aten._cslt_sparse_mm_search", reason="it only picks a kernel")
each("_to_sparse_semi_structured _sparse_semi_structured_tile", "the two largest of four kept", of="in", compare=4)


@rule(
    "aten._sparse_mm",
    "aten._sparse_sparse_matmul",
    "aten.smm",
    "aten.hspmm",
    "aten._sparse_mm_reduce_impl",
    family="matmul",
)
def sparse_mm(out: Specs, **args: Any) -> Work:
    """stored·n necessary multiply-accumulates, those on zeros marked; two sparse operands are estimated as
    independent."""
    a, b, *_ = tensors(tuple(args.values()))
    return matrix_product(a, b)


@rule("aten._sparse_addmm", "aten.sspaddmm", family="matmul")
def sparse_addmm(self: TensorSpec, out: Specs, beta: Any = 1, alpha: Any = 1, **args: Any) -> Work:
    """β·self + α·(sparse·dense)."""
    a, b, *_ = tensors(tuple(args.values()))
    return matrix_product(a, b) + combined(self, out[0], beta, alpha)


@rule("aten._sparse_mm_reduce_impl_backward", family="matmul")
def sparse_mm_reduce_backward(self: TensorSpec, grad_out: TensorSpec, output_mask: tuple[bool, bool], **_: Any) -> Work:
    """Both gradients: stored·n multiply-accumulates each."""
    rows, columns = self.shape
    work = sparse_matmul(rows, columns, grad_out.shape[-1], self, grad_out, stored(self))
    return work * sum(output_mask)


@rule("aten.sparse_sampled_addmm", family="matmul")
def sampled_addmm(
    self: TensorSpec, mat1: TensorSpec, mat2: TensorSpec, out: Specs, beta: Any = 1, alpha: Any = 1, **_: Any
) -> Work:
    """β·self + α·(a·b) where self stores something: stored·k necessary multiply-accumulates."""
    k, places = mat1.shape[-1], stored(self)
    kept = TensorSpec((places,), self.dtype)
    work = matmul(self.numel, k, 1, mat1, mat2, sparse=(self.numel - places) * k)
    return work + combined(kept, kept, beta, alpha)


@rule("aten._sparse_semi_structured_linear", family="matmul")
def semi_structured_linear(
    input: TensorSpec,
    weight: TensorSpec,
    out: Specs,
    bias: TensorSpec | None = None,
    activation: str | None = None,
    **_: Any,
) -> Work:
    """x·Wᵀ + b with two of four weights zero: half of the multiply-accumulates necessary."""
    x = flat(input)
    work = two_in_four(x.shape[0], x.shape[1], weight.shape[0], x, weight) + fused(activation, out[0])
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


@rule("aten._sparse_semi_structured_mm", family="matmul")
def semi_structured_mm(mat1: TensorSpec, mat2: TensorSpec, **_: Any) -> Work:
    """a·b with two of four elements of a zero: half of the multiply-accumulates necessary."""
    return two_in_four(mat1.shape[0], mat2.shape[0], mat2.shape[1], mat1, mat2)


@rule("aten._sparse_semi_structured_addmm", family="matmul")
def semi_structured_addmm(
    input: TensorSpec, mat1: TensorSpec, mat2: TensorSpec, out: Specs, alpha: Any = 1, beta: Any = 1, **_: Any
) -> Work:
    """β·input + α·(a·b) with two of four elements of a zero."""
    work = two_in_four(mat1.shape[0], mat2.shape[0], mat2.shape[1], mat1, mat2)
    return work + combined(input, out[0], beta, alpha)


@rule(*named("_cslt_sparse_mm"), family="matmul")
def cslt_sparse_mm(
    compressed_A: TensorSpec,
    dense_B: TensorSpec,
    out: Specs,
    bias: TensorSpec | None = None,
    alpha: Any = None,
    **_: Any,
) -> Work:
    """a·b with two of four elements of a zero, scaled by α, plus bias."""
    k, n = dense_B.shape
    work = two_in_four(out[0].numel // n if n else 0, k, n, compressed_A, dense_B)
    if alpha is not None:
        work += fused("mul", out[0])
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


@rule("aten._sparse_sum", "aten._sparse_csr_sum", family="reduction")
def sparse_sum(self: TensorSpec, **_: Any) -> Work:
    """1 add per stored element."""
    return Work.of(self.precision, add=stored(self))


@rule("aten._sparse_csr_prod", family="reduction")
def sparse_prod(self: TensorSpec, **_: Any) -> Work:
    """1 mul per stored element."""
    return Work.of(self.precision, mul=stored(self))
