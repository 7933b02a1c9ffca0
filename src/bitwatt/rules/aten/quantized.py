"""Reduced precision in ATen: products with quantised operands, and going to and from the small formats."""

import math
from typing import Any

from bitwatt.formulas.linalg import bias_add, matmul
from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, flat, fused
from bitwatt.rules._tables import each, moved, tensors

#: To a small format: x/s, plus zero point, rounded and held in range. Back: minus zero point, times s.
each(
    "quantize_per_tensor quantize_per_channel",
    "round(x/s + z)",
    family="cast",
    of="in",
    part=QUANTISATION,
    mul=1,
    add=1,
    cast=1,
)
each("dequantize", "(q - z)·s", family="cast", part=QUANTISATION, add=1, mul=1, cast=1)
each(
    "quantize_per_tensor_dynamic fbgemm_linear_quantize_weight",
    "range found, then round(x/s + z)",
    of="in",
    part=QUANTISATION,
    compare=2,
    mul=1,
    add=1,
    cast=1,
)
each(
    "fake_quantize_per_tensor_affine fake_quantize_per_channel_affine fake_quantize_per_tensor_affine_cachemask "
    "fake_quantize_per_channel_affine_cachemask _fake_quantize_per_tensor_affine_cachemask_tensor_qparams "
    "_fake_quantize_learnable_per_tensor_affine _fake_quantize_learnable_per_channel_affine",
    "(round(x/s + z) held in range, - z)·s",
    part=QUANTISATION,
    mul=2,
    add=2,
    cast=1,
    compare=2,
)
each(
    "fake_quantize_per_tensor_affine_cachemask_backward fake_quantize_per_channel_affine_cachemask_backward",
    "g where the value was in range",
    part=QUANTISATION,
    mul=1,
)
each(
    "_fake_quantize_learnable_per_tensor_affine_backward _fake_quantize_learnable_per_channel_affine_backward",
    "g in range for x; Σ g·∂q/∂s and Σ g·∂q/∂z for the scale and zero point",
    part=QUANTISATION,
    mul=4,
    add=4,
    cast=1,
    compare=2,
)
moved(
    "_make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor int_repr _convert_weight_to_int4pack "
    "_convert_weight_to_int4pack_for_cpu fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix "
    "_dyn_quant_pack_4bit_weight _wrapped_linear_prepack _saturate_weight_to_fp16",
    "elements copied into the order a kernel reads",
)


@rule("aten._choose_qparams_per_tensor", "aten.choose_qparams_optimized", family="reduction")
def choose_qparams(self: TensorSpec | None = None, input: TensorSpec | None = None, **_: Any) -> Work:
    """The range: 2 compare per element."""
    spec = self or input
    return Work() if spec is None else Work.of(spec.precision, QUANTISATION, compare=2 * spec.numel)


@rule("aten.fused_moving_avg_obs_fake_quant", "aten._fused_moving_avg_obs_fq_helper", family="pointwise")
def observe_and_fake_quantize(self: TensorSpec, **_: Any) -> Work:
    """The range observed, then (round(x/s + z) held in range, - z)·s: 2 mul, 2 add, 1 cast, 4 compare per element."""
    n = self.numel
    return Work.of(self.precision, QUANTISATION, mul=2 * n, add=2 * n, cast=n, compare=4 * n)


def depth(spec: TensorSpec, axis: int) -> int:
    """Values along an axis; torch's only packed float holds two in each element."""
    return spec.shape[axis] * (2 if spec.dtype.endswith("_x2") else 1)


def rescale(scales: Any, out: TensorSpec) -> Work:
    """A multiplication per result for each operand with scales of its own rows; a single pair of scales is one."""
    own = sum(1 for scale in tensors(scales) if scale.numel > 1)
    return Work.of(out.precision, QUANTISATION, mul=out.numel * max(own, 1))


@rule("aten._scaled_mm", "aten._scaled_mm_v2", family="matmul")
def scaled_mm(
    self: TensorSpec,
    mat2: TensorSpec,
    scale_a: Any,
    scale_b: Any,
    out: Specs,
    bias: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """s_a·s_b·(a·b) + bias: m·n·k multiply-accumulates, a multiplication for the scales and an addition per result."""
    work = matmul(self.shape[0], depth(self, 1), mat2.shape[1], self, mat2) + rescale((scale_a, scale_b), out[0])
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


@rule("aten._grouped_mm", family="matmul")
def grouped_mm(self: TensorSpec, mat2: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """A product for each group. Rows (2-D by 3-D), columns (3-D by 2-D) or the summed axis (2-D by 2-D) are dealt out
    to the groups, so that all together take m·n·k; two stacks of matrices take that for each pair."""
    groups = self.shape[0] if len(self.shape) == len(mat2.shape) == 3 else 1
    work = matmul(self.shape[-2], depth(self, -1), mat2.shape[-1], self, mat2, batch=groups)
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


@rule("aten._scaled_grouped_mm", "aten._scaled_grouped_mm_v2", family="matmul")
def scaled_grouped_mm(scale_a: Any, scale_b: Any, out: Specs, **args: Any) -> Work:
    """As _grouped_mm, and a multiplication per result for the scales."""
    return grouped_mm(out=out, **args) + rescale((scale_a, scale_b), out[0])


def scaled(out: TensorSpec, times: int = 1) -> Work:
    """The sum back in its range: a multiplication per result, `times` over."""
    return Work.of(out.precision, QUANTISATION, mul=out.numel * times)


def narrow_weight(x: TensorSpec, out: TensorSpec, bits: int) -> Work:
    """x·Wᵀ with weights w·s + z of `bits` bits: the product, and a multiplication and an addition per weight."""
    rows, n = flat(x), out.shape[-1]
    weight = TensorSpec((n, rows.shape[1]), f"int{bits}")
    expanded = Work.of(x.precision, QUANTISATION, mul=weight.numel, add=weight.numel)
    return matmul(rows.shape[0], rows.shape[1], n, x, weight) + expanded


@rule(
    "aten._weight_int4pack_mm",
    "aten._weight_int4pack_mm_for_cpu",
    "aten._weight_int4pack_mm_with_scales_and_zeros",
    family="matmul",
)
def weight_int4pack_mm(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ with 4-bit weights: m·n·k multiply-accumulates; w·s + z, 1 mul and 1 add, for each weight."""
    return narrow_weight(self, out[0], 4)


@rule("aten._weight_int8pack_mm", family="matmul")
def weight_int8pack_mm(self: TensorSpec, mat2: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ with 8-bit weights, times a scale per column: m·n·k multiply-accumulates and 1 mul per result."""
    rows = flat(self)
    work = matmul(rows.shape[0], rows.shape[1], mat2.shape[0], self, mat2)
    return work + scaled(out[0])


@rule("aten._mixed_dtypes_linear", family="matmul")
def mixed_dtypes_linear(
    input: TensorSpec,
    weight: TensorSpec,
    out: Specs,
    bias: TensorSpec | None = None,
    activation: str | None = None,
    **_: Any,
) -> Work:
    """x·W + b with 4- or 8-bit weights, times a scale per column, and an activation."""
    rows, n = flat(input), out[0].shape[-1]
    bits = 4 if 2 * weight.numel == rows.shape[1] * n else 8
    work = matmul(rows.shape[0], rows.shape[1], n, input, TensorSpec((n,), f"int{bits}"))
    work += scaled(out[0]) + fused(activation, out[0])
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


def dynamic(x: TensorSpec) -> Work:
    """Activations quantised on the way in: the range (2 compare), x/s + z (1 mul, 1 add) and a cast per element."""
    n = x.numel
    return Work.of(x.precision, QUANTISATION, compare=2 * n, mul=n, add=n, cast=n)


@rule("aten._dyn_quant_matmul_4bit", family="matmul")
def dyn_quant_matmul_4bit(
    inp: TensorSpec, block_size: int, in_features: int, out_features: int, out: Specs, **_: Any
) -> Work:
    """Activations quantised to 8 bits, times 4-bit weights; a multiplication per result and block for the scales."""
    rows = inp.numel // in_features if in_features else 0
    blocks = max(math.ceil(in_features / block_size), 1) if block_size else 1
    work = matmul(rows, in_features, out_features, TensorSpec((), "int8"), TensorSpec((), "int4"))
    return dynamic(inp) + work + scaled(out[0], blocks)


@rule("aten.fbgemm_linear_fp16_weight", "aten.fbgemm_linear_fp16_weight_fp32_activation", family="matmul")
def fbgemm_fp16(input: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """x·Wᵀ + b with 16-bit float weights."""
    rows = flat(input)
    work = matmul(rows.shape[0], rows.shape[1], out[0].shape[-1], input, TensorSpec((), "float16"))
    return work if bias is None else work + bias_add(out[0].numel, out[0].precision)


@rule("aten.fbgemm_linear_int8_weight", "aten.fbgemm_linear_int8_weight_fp32_activation", family="matmul")
def fbgemm_int8(input: TensorSpec, weight: TensorSpec, out: Specs, **_: Any) -> Work:
    """Activations quantised to 8 bits, times 8-bit weights, scaled back, plus bias."""
    rows, eight = flat(input), TensorSpec((), "int8")
    work = matmul(rows.shape[0], rows.shape[1], weight.shape[0], eight, eight)
    result = out[0]
    return dynamic(input) + work + scaled(result) + bias_add(result.numel, result.precision)


@rule("aten._wrapped_quantized_linear_prepacked", family="matmul")
def wrapped_quantized_linear(input: TensorSpec, out_channel: int, out: Specs, **_: Any) -> Work:
    """Activations quantised to 8 bits, times 8-bit weights, scaled back, plus bias."""
    weight = TensorSpec((out_channel, input.shape[-1]), "int8")
    return fbgemm_int8(input, weight, out)
