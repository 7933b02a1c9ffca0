"""Matrix products of ATen."""

import math
from typing import Any

from bitwatt.formulas.linalg import bias_add, broadcast, matmul, matrix_product, scaling
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, affine, combined, flat, fused, transposed
from bitwatt.rules._tables import tensors


@rule("aten.mm", "aten.bmm", "aten.matmul", "aten.linalg_matmul", "aten._int_mm", family="matmul")
def mm(out: Specs, **args: Any) -> Work:
    """m·n·k multiply-accumulates for each matrix of the batch."""
    a, b, *_ = tensors(tuple(args.values()))
    return matrix_product(a, b)


@rule("aten.mv", "aten.dot", "aten.vdot", "aten.inner", "aten.linalg_vecdot", family="matmul")
def mv(out: Specs, dim: int = -1, **args: Any) -> Work:
    """Each result is a sum of products along the axis that both share."""
    a, b, *_ = tensors(tuple(args.values()))
    if a.nnz is not None:
        return matrix_product(a, b)
    return matmul(out[0].numel, a.shape[dim] if a.shape else 1, 1, a, b)


@rule("aten.addmm", "aten.addmv", "aten.baddbmm", family="matmul")
def addmm(self: TensorSpec, out: Specs, beta: Any = 1, alpha: Any = 1, **args: Any) -> Work:
    """β·self + α·(a·b): m·n·k multiply-accumulates, an addition per element of the result, a multiplication where β or
    α is not 1."""
    a, b, *_ = tensors(tuple(args.values()))
    return matrix_product(a, b) + combined(self, out[0], beta, alpha)


@rule("aten._addmm_activation", family="matmul")
def addmm_activation(out: Specs, use_gelu: bool = False, **args: Any) -> Work:
    """addmm, then ReLU or GELU on the result."""
    return addmm(out=out, **args) + fused("gelu" if use_gelu else "relu", out[0])


@rule("aten.addbmm", family="matmul")
def addbmm(
    self: TensorSpec, batch1: TensorSpec, batch2: TensorSpec, out: Specs, beta: Any = 1, alpha: Any = 1, **_: Any
) -> Work:
    """β·self + α·Σ a·b over the batch, which is one product with a sum batch times as long."""
    batch, m, k = batch1.shape
    return matmul(m, batch * k, batch2.shape[-1], batch1, batch2) + combined(self, out[0], beta, alpha)


@rule("aten.linear", "aten.mkldnn_linear", family="matmul")
def linear(out: Specs, bias: TensorSpec | None = None, **args: Any) -> Work:
    """x·Wᵀ + b: rows·in·out multiply-accumulates and an addition per output element."""
    x, weight, *_ = tensors(tuple(args.values()))
    return affine(x, weight, bias, out[0])


@rule("aten.linear_backward", "aten.mkldnn_linear_backward", family="matmul")
def linear_backward(
    self: TensorSpec, grad_output: TensorSpec, weight: TensorSpec, output_mask: tuple[bool, ...], **_: Any
) -> Work:
    """dx = g·W and dW = gᵀ·x, each with the forward's multiply-accumulates; db = Σ g."""
    g = flat(grad_output)
    dx = matrix_product(g, weight) if output_mask[0] else Work()
    dw = matrix_product(transposed(g), flat(self)) if output_mask[1] else Work()
    return dx + dw + bias_add(g.numel * output_mask[2], g.precision)


@rule("aten.mkldnn_linear_backward_input", family="matmul")
def linear_backward_input(grad_output: TensorSpec, weight: TensorSpec, **_: Any) -> Work:
    """dx = g·W."""
    return matrix_product(flat(grad_output), weight)


@rule("aten.mkldnn_linear_backward_weights", family="matmul")
def linear_backward_weights(grad_output: TensorSpec, input: TensorSpec, bias_defined: bool, **_: Any) -> Work:
    """dW = gᵀ·x, and db = Σ g."""
    g = flat(grad_output)
    return matrix_product(transposed(g), flat(input)) + bias_add(g.numel * bias_defined, g.precision)


@rule("aten.matmul_backward", family="matmul")
def matmul_backward(self: TensorSpec, other: TensorSpec, mask: tuple[bool, bool], **_: Any) -> Work:
    """g·Bᵀ and Aᵀ·g, each with the multiply-accumulates of the forward."""
    return matrix_product(self, other) * sum(mask)


@rule("aten._foreach_mm", "_native._foreach_mm_native_0", family="matmul")
def foreach_mm(self: Specs, mat2: Specs, **_: Any) -> Work:
    """A product for each pair of the two lists."""
    return sum((matrix_product(a, b) for a, b in zip(self, mat2, strict=True)), Work())


@rule("aten.chain_matmul", "aten.linalg_multi_dot", family="matmul")
def chain(**args: Any) -> Work:
    """The cheapest order of products, by dynamic programming (Cormen et al., Introduction to Algorithms, 14.2)."""
    out = args.pop("out")
    matrices = tuple(tensors(tuple(args.values())))
    first = matrices[0].shape[0] if len(matrices[0].shape) > 1 else 1
    inner = [spec.shape[-1] for spec in matrices[:-1]]
    sizes = [first, *inner, matrices[-1].shape[-1] if len(matrices[-1].shape) > 1 else 1]
    best: dict[tuple[int, int], Work] = {(i, i): Work() for i in range(len(matrices))}
    for length in range(1, len(matrices)):
        for i in range(len(matrices) - length):
            j = i + length
            splits = (
                best[i, s] + best[s + 1, j] + matmul(sizes[i], sizes[s + 1], sizes[j + 1], out[0], out[0])
                for s in range(i, j)
            )
            best[i, j] = min(splits, key=lambda work: work.macs)
    return best[0, len(matrices) - 1]


@rule("aten.bilinear", family="matmul")
def bilinear(
    input1: TensorSpec, input2: TensorSpec, weight: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any
) -> Work:
    """Σ x·W·y for each output: x·y multiplied out, then multiply-accumulated with the weight, and the bias."""
    both = input1.shape[-1] * input2.shape[-1]
    rows = math.prod(input1.shape[:-1])
    work = scaling(rows * both, input1.precision) + matmul(rows, both, weight.shape[0], input1, weight)
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


@rule("aten._trilinear", family="matmul")
def trilinear(
    i1: TensorSpec,
    i2: TensorSpec,
    i3: TensorSpec,
    expand1: tuple[int, ...],
    expand2: tuple[int, ...],
    expand3: tuple[int, ...],
    sumdim: tuple[int, ...],
    out: Specs,
    **_: Any,
) -> Work:
    """Σ i1·i2·i3 over `sumdim`: i1·i3 multiplied on the axes they have, then multiply-accumulated with i2."""
    pair = broadcast(_expanded(i1, expand1), _expanded(i3, expand3))
    every = broadcast(pair, _expanded(i2, expand2))
    results = math.prod(size for axis, size in enumerate(every) if axis not in sumdim)
    summed = math.prod(size for axis, size in enumerate(every) if axis in sumdim)
    return scaling(math.prod(pair), i1.precision) + matmul(results, summed, 1, i1, i2)


def _expanded(spec: TensorSpec, axes: tuple[int, ...]) -> tuple[int, ...]:
    sizes = iter(spec.shape)
    return tuple(1 if axis in axes else next(sizes) for axis in range(len(spec.shape) + len(axes)))


@rule("aten.tensordot", family="matmul")
def tensordot(self: TensorSpec, other: TensorSpec, dims_self: tuple[int, ...], **_: Any) -> Work:
    """One product, the contracted axes of both taken as one."""
    k = math.prod(self.shape[axis] for axis in dims_self)
    return matmul(self.numel // k, k, other.numel // k, self, other) if k else Work()


@rule("aten.einsum", family="matmul")
def einsum(equation: str, tensors: Specs, **_: Any) -> Work:
    """Operands contracted from left to right. For each pair, indices of both that are wanted later are the batch,
    those of both that are not are summed over, and the others are rows and columns."""
    if "..." in equation:
        raise ValueError("an ellipsis hides indices")
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    sizes = (zip(term, spec.shape, strict=True) for term, spec in zip(terms, tensors, strict=True))
    size = dict(pair for operand in sizes for pair in operand)
    wanted = set(result) if arrow else {axis for axis in size if left.count(axis) == 1}
    work, held = Work(), set(terms[0])
    for i, term in enumerate(terms[1:], 1):
        later = wanted.union(*terms[i + 1 :])
        both, new = held & set(term), set(term)
        batch, summed, rows, columns = (
            math.prod(size[axis] for axis in axes) for axes in (both & later, both - later, held - both, new - both)
        )
        work += matmul(rows, summed, columns, tensors[0], tensors[i], batch=batch)
        held = (held | new) & later
    return work
