"""Fused and quantised matrix products of ONNX Runtime."""

import math
from dataclasses import replace
from typing import Any

from bitwatt.dtypes import dtype
from bitwatt.formulas.linalg import bias_add, matmul, matrix_product, scaling
from bitwatt.formulas.softmax import softmax
from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import Carried, activated, biased, expanded
from bitwatt.rules._packed import BYTE, requantised, scaled_back
from bitwatt.rules._products import Specs, flat
from bitwatt.rules.onnx.matmul import gemm, transposed
from bitwatt.rules.onnx.quantising import dynamic_range

SPACE = "com_microsoft"


def _batch_moved(spec: TensorSpec, moved: int) -> TensorSpec:
    """transBatch: the first axis stands before the last one."""
    if not moved:
        return spec
    first, *middle, last = spec.shape
    return replace(spec, shape=(*middle, first, last))


@rule("com_microsoft.FusedMatMul", "com_microsoft.TransposeMatMul", "com_microsoft.FusedMatMulActivation",
      "com_microsoft.SparseToDenseMatMul", family="matmul")  # fmt: skip
def fused_matmul(
    A: TensorSpec,
    B: TensorSpec,
    out: Specs,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
    alpha: float = 1.0,
    activation: str = "",
    carried: Carried = (),
    **_: Any,
) -> Work:
    """α·A·B with either transposed: m·n·k multiply-accumulates for each matrix of the batch, 1 mul per result where α
    is not 1, and the activation behind it."""
    a, b = (_batch_moved(spec, moved) for spec, moved in ((A, transBatchA), (B, transBatchB)))
    work = expanded(matrix_product(transposed(a, transA), transposed(b, transB)), carried, "A", "B")
    if alpha != 1:
        work += scaling(out[0].numel, out[0].precision)
    return work + activated(activation, out[0])


@rule("com_microsoft.FusedGemm", "com_microsoft.GemmFloat8", family="matmul")
def fused_gemm(A: TensorSpec, B: TensorSpec, out: Specs, activation: str = "", **args: Any) -> Work:
    """α·A·B + β·C, then an activation."""
    return gemm(A=A, B=B, out=out, **args) + activated(activation if activation != "NONE" else "", out[0])


@rule("com_microsoft.GemmFastGelu", family="matmul")
def gemm_gelu(X: TensorSpec, W: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """X·W + b, then GELU by tanh: 6 mul, 2 add, 1 tanh per result."""
    n = out[0].numel
    return matrix_product(X, W) + biased(bias, out[0]) + Work.of(out[0].precision, mul=6 * n, add=2 * n, tanh=n)


@rule("com_microsoft.MatMulIntegerToFloat", family="matmul")
def integer_to_float(A: TensorSpec, B: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """m·n·k multiply-accumulates of 8-bit integers, scaled back to float, plus bias."""
    return matrix_product(A, B) + scaled_back(out[0], bias is not None)


@rule("com_microsoft.DynamicQuantizeMatMul", family="matmul")
def dynamic_matmul(A: TensorSpec, B: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """A quantised on the way in (its range found, then rounded), m·n·k multiply-accumulates of 8-bit integers, scaled
    back to float, plus bias."""
    eight = replace(A, dtype="uint8")
    return dynamic_range(A) + matrix_product(eight, B) + scaled_back(out[0], bias is not None)


@rule("com_microsoft.MatMulInteger16", family="matmul")
def integer16(A: TensorSpec, B: TensorSpec, **_: Any) -> Work:
    """m·n·k multiply-accumulates of 16-bit integers, summed in 32 bits."""
    return matrix_product(A, B)


@rule("com_microsoft.QGemm", family="matmul")
def quantised_gemm(
    A: TensorSpec,
    B: TensorSpec,
    out: Specs,
    C: TensorSpec | None = None,
    transA: int = 0,
    transB: int = 0,
    **_: Any,
) -> Work:
    """α·A·B + C of 8-bit integers: m·n·k multiply-accumulates, bias, scale and rounding per result, or a float."""
    work = matrix_product(transposed(A, transA), transposed(B, transB))
    after = requantised if out[0].precision.kind == "int" else scaled_back
    return work + after(out[0], C is not None)


def _unpacked(A: TensorSpec, out: TensorSpec, width: int, ran: str, blocks: int, zero_points: bool) -> Work:
    """A product with weights of `width` bits that are expanded on the way into the multiplier: (q - z)·s each."""
    rows = flat(A)
    k, n = rows.shape[1], out.shape[-1]
    weight = TensorSpec((n, k), f"int{width}")
    a = replace(rows, dtype=ran) if ran == "int8" else rows
    work = matmul(rows.shape[0], k, n, a, weight, ran=dtype(ran).precision)
    if ran == "int8":  # sums of integers, scaled for each block
        scaled = Work.of(out.precision, QUANTISATION, mul=out.numel * blocks, add=out.numel * blocks)
        return work + dynamic_range(A) + scaled
    each = n * k
    return work + Work.of(A.precision, QUANTISATION, mul=each, add=each * zero_points, cast=each)


@rule("com_microsoft.MatMulNBits", family="matmul")
def n_bits(
    A: TensorSpec,
    out: Specs,
    bits: int = 4,
    block_size: int = 32,
    accuracy_level: int = 0,
    zero_points: TensorSpec | None = None,
    bias: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """rows·K·N multiply-accumulates with weights of `bits` bits, which are expanded once: 1 mul, 1 cast, 1 add for a
    zero point, for each weight. They ran in A's format; at accuracy level 4 A is rounded to 8-bit integers first, and
    sums of integers are scaled for each block."""
    ran = "int8" if accuracy_level == 4 else A.dtype
    blocks = math.ceil(A.shape[-1] / block_size)
    return _unpacked(A, out[0], bits, ran, blocks, zero_points is not None) + biased(bias, out[0])


@rule("com_microsoft.MatMulBnb4", "com_microsoft.MatMulFpQ4", family="matmul")
def four_bits(A: TensorSpec, out: Specs, **_: Any) -> Work:
    """rows·K·N multiply-accumulates with weights of 4 bits, looked up and scaled once: 1 mul, 1 cast each."""
    return _unpacked(A, out[0], 4, A.dtype, 1, False)


@rule("com_microsoft.QMoE", family="matmul")
def quantised_experts(expert_weight_bits: int = 4, **args: Any) -> Work:
    """As MoE, with weights of 4 or 8 bits, which are expanded on the way into the multiplier."""
    return experts(expert_weight_bits=expert_weight_bits, **args)


@rule("com_microsoft.MoE", family="matmul")
def experts(
    input: TensorSpec,
    router_probs: TensorSpec,
    fc1_experts_weights: TensorSpec,
    fc2_experts_weights: TensorSpec,
    fc3_experts_weights: TensorSpec | None = None,
    fc1_experts_bias: TensorSpec | None = None,
    fc2_experts_bias: TensorSpec | None = None,
    k: int = 1,
    expert_weight_bits: int = 0,
    activation_type: str = "relu",
    swiglu_fusion: int = 0,
    **_: Any,
) -> Work:
    """Each row goes through its k experts: products with the first and second weight (a third where the activation is
    gated), their biases, the activation; the router's softmax, and k results weighed and added."""
    x = flat(input)
    rows, hidden = x.shape
    one, other = fc1_experts_weights.shape[1:]
    wide = one if expert_weight_bits or other == hidden else other
    gated = activation_type == "swiglu" and swiglu_fusion > 0
    inner = wide // 2 if gated else wide
    weight = TensorSpec((1,), f"int{expert_weight_bits}") if expert_weight_bits else fc1_experts_weights
    into = matmul(rows * k, hidden, wide, x, weight, ran=x.precision) * (2 if fc3_experts_weights is not None else 1)
    work = into + matmul(rows * k, inner, hidden, x, weight, ran=x.precision)
    middle = TensorSpec((rows * k, inner), x.dtype)
    kind = {"swiglu": "silu", "identity": ""}.get(activation_type, activation_type)
    work += activated(kind, middle) + scaling(middle.numel * (gated or fc3_experts_weights is not None), x.precision)
    work += bias_add(rows * k * wide * (fc1_experts_bias is not None), x.precision)
    work += bias_add(rows * k * hidden * (fc2_experts_bias is not None), x.precision)
    work += softmax(router_probs.numel, router_probs.precision)
    return work + Work.of(x.precision, mul=rows * k * hidden, add=rows * k * hidden)


@rule("com_microsoft.MulInteger", family="pointwise")
def mul_integer(out: Specs, **_: Any) -> Work:
    """x·y of integers: 1 mul per element."""
    return Work.of(BYTE.precision, mul=out[0].numel)
