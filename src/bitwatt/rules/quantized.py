"""Eager-mode quantised operators."""

from typing import Any

from bitwatt.formulas import norm as norms
from bitwatt.formulas.linalg import matrix_product
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.rnn import CELLS, Cell, Layer
from bitwatt.formulas.softmax import softmax as softmax_formula
from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules._packed import (
    dynamic_conv,
    dynamic_linear,
    half_linear,
    packed_conv,
    packed_linear,
    requantised,
)
from bitwatt.rules._products import Specs
from bitwatt.rules._products import named as full
from bitwatt.rules._tables import amounts, as_part, each, moved, named
from bitwatt.rules.aten.quantized import narrow_weight
from bitwatt.rules.aten.rnn import eight_bit

SPACE = "quantized"


def to_and_fro(spec: TensorSpec, n: int, operands: int = 1) -> Work:
    """To float, (q - z)·s for each operand, and back, round(x/s + z)."""
    return as_part(pointwise(spec, n, mul=operands + 1, add=operands + 1, cast=1), QUANTISATION)


def in_float(names: str, formula: str, *, operands: int = 1, **kinds: int) -> None:
    """Register element-wise functions that are computed in float, between the two conversions."""

    def function(out: Specs, **_: Any) -> Work:
        return pointwise(out[0], out[0].numel, **kinds) + to_and_fro(out[0], out[0].numel, operands)

    ways = f"{operands + 1} mul, {operands + 1} add, 1 cast for the conversions"
    named(names, f"{formula}: {amounts(kinds)} and {ways} per element.", function, "pointwise", SPACE)


in_float("add add_out add_scalar add_scalar_out", "x + y", operands=2, add=1)
in_float("add_relu add_relu_out add_scalar_relu add_scalar_relu_out", "x + y", operands=2, add=1, compare=1)
in_float("mul mul_out mul_scalar mul_scalar_out", "x·y", operands=2, mul=1)
in_float("mul_relu mul_relu_out mul_scalar_relu mul_scalar_relu_out", "x·y", operands=2, mul=1, compare=1)
in_float("sigmoid", "σ(x)", sigmoid=1)
in_float("elu celu", "α·(e^x - 1) where x < 0", exp=1, compare=1, mul=1, add=1)
in_float("hardswish", "x·min(max(x + 3, 0), 6)/6", compare=2, mul=2, add=1)
in_float("leaky_relu prelu", "x, or w·x where x < 0", compare=1, mul=1)
each("relu6 clamp threshold", "held in range", space=SPACE, compare=2)
each("dropout", "a mask drawn", space=SPACE, random=1, mul=1)
each("max_pool1d max_pool2d", "a maximum", space=SPACE, compare=1)
moved("cat cat_out cat_relu cat_relu_out", "elements copied side by side", space=SPACE)
moved(
    "linear_prepack linear_prepack_fp16 linear_prepack_legacy linear_prepack_fp16_legacy linear_unpack "
    "linear_unpack_fp16 conv_prepack conv1d_prepack conv2d_prepack conv3d_prepack conv_transpose1d_prepack "
    "conv_transpose2d_prepack conv_transpose3d_prepack conv_unpack conv1d_unpack conv2d_unpack conv3d_unpack "
    "conv_transpose1d_unpack conv_transpose2d_unpack conv_transpose3d_unpack embedding_bag_prepack "
    "embedding_bag_unpack",
    "weights copied into the order a kernel reads",
    space=SPACE,
)
each(
    "embedding_bag_byte_prepack embedding_bag_4bit_prepack embedding_bag_2bit_prepack "
    "embedding_bag_byte_prepack_with_rowwise_min_max embedding_bag_4bit_prepack_with_rowwise_min_max "
    "embedding_bag_2bit_prepack_with_rowwise_min_max",
    "the range of each row, then round(x/s + z)",
    space=SPACE,
    part=QUANTISATION,
    compare=2,
    mul=1,
    add=1,
    cast=1,
)
each(
    "embedding_bag_byte_unpack embedding_bag_4bit_unpack embedding_bag_2bit_unpack",
    "q·s + b",
    space=SPACE,
    part=QUANTISATION,
    mul=1,
    add=1,
)
free(
    *full("make_quantized_cell_params make_quantized_cell_params_dynamic make_quantized_cell_params_fp16", SPACE),
    *full("conv2d_stride conv2d_padding conv2d_dilation conv2d_groups conv2d_transpose conv2d_output_padding", SPACE),
    *full("conv3d_stride conv3d_padding conv3d_dilation conv3d_groups conv3d_transpose conv3d_output_padding", SPACE),
    *full("conv2d_unpack_sizes conv_transpose2d_stride conv_transpose2d_padding conv_transpose2d_dilation", SPACE),
    *full("conv_transpose2d_groups conv_transpose2d_transpose conv_transpose2d_output_padding", SPACE),
    *full("conv_transpose3d_stride conv_transpose3d_padding conv_transpose3d_dilation", SPACE),
    *full("conv_transpose3d_groups conv_transpose3d_transpose conv_transpose3d_output_padding", SPACE),
    reason="parameters are bundled or read, no element is computed",
)


@rule(
    "quantized.linear", "quantized.linear_relu", "quantized.linear_leaky_relu", "quantized.linear_tanh", family="matmul"
)
def linear(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """8-bit x·Wᵀ: rows·in·out multiply-accumulates; bias, scale and rounding per result."""
    return packed_linear(X, out[0])


@rule("quantized.linear_dynamic", "quantized.linear_relu_dynamic", family="matmul")
def linear_dynamic(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """x quantised on the way in, 8-bit x·Wᵀ, scaled back to float plus bias."""
    return dynamic_linear(X, out[0])


@rule(
    *full("linear_with_input_q_dq_qweight_dq_output_fp32 linear_with_input_q_dq_qweight_dq_relu_output_fp32", SPACE),
    family="matmul",
)
def linear_with_input_q_dq(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """x quantised on the way in, 8-bit x·Wᵀ, scaled back to float plus bias."""
    return dynamic_linear(X, out[0])


@rule(*full("linear_dynamic_fp16 linear_relu_dynamic_fp16 linear_dynamic_fp16_unpacked_weight", SPACE), family="matmul")
def linear_fp16(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ + b with 16-bit float weights."""
    return half_linear(X, out[0])


@rule("quantized.int4mm_packed_weight_cpu", family="matmul")
def int4mm(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ with 4-bit weights; w·s + z for each weight."""
    return narrow_weight(self, out[0], 4)


@rule("quantized.matmul", family="matmul")
def matmul(qa: TensorSpec, qb: TensorSpec, out: Specs, **_: Any) -> Work:
    """8-bit a·b, then scaled and rounded."""
    return matrix_product(qa, qb) + requantised(out[0])


@rule(*full("conv1d conv1d_relu conv2d conv2d_relu conv3d conv3d_relu", SPACE), family="conv")
def conv(qx: TensorSpec, out: Specs, packed_weight: Any = None, weight: Any = None, **_: Any) -> Work:
    """A convolution of 8-bit values; bias, scale and rounding per result."""
    return packed_conv(qx, packed_weight or weight, out[0], transposed=False)


@rule("quantized.conv2d_add", "quantized.conv2d_add_relu", family="conv")
def conv_add(qx: TensorSpec, packed_weight: Any, out: Specs, **_: Any) -> Work:
    """A convolution of 8-bit values, another tensor added."""
    return packed_conv(qx, packed_weight, out[0], transposed=False, after="add")


@rule(*full("conv1d_dynamic conv2d_dynamic conv3d_dynamic", SPACE), family="conv")
def conv_dynamic(qx: TensorSpec, packed_weight: Any, out: Specs, **_: Any) -> Work:
    """A convolution whose input is quantised on the way in."""
    return dynamic_conv(qx, packed_weight, out[0], transposed=False)


@rule(*full("conv_transpose1d conv_transpose2d conv_transpose3d", SPACE), family="conv")
def conv_transpose(qx: TensorSpec, packed_weight: Any, out: Specs, **_: Any) -> Work:
    """A transposed convolution of 8-bit values; bias, scale and rounding per result."""
    return packed_conv(qx, packed_weight, out[0], transposed=True)


@rule(*full("conv_transpose1d_dynamic conv_transpose2d_dynamic conv_transpose3d_dynamic", SPACE), family="conv")
def conv_transpose_dynamic(qx: TensorSpec, packed_weight: Any, out: Specs, **_: Any) -> Work:
    """A transposed convolution whose input is quantised on the way in."""
    return dynamic_conv(qx, packed_weight, out[0], transposed=True)


@rule(
    *full("batch_norm batch_norm_relu batch_norm1d batch_norm1d_relu batch_norm2d batch_norm2d_relu", SPACE),
    *full("batch_norm3d batch_norm3d_relu", SPACE),
    family="norm",
)
def batch_norm(qx: TensorSpec, **_: Any) -> Work:
    """One line per channel, then rounded: 1 mul, 1 add, 1 cast per element."""
    return norms.line(qx.numel, qx.precision) + Work.of(qx.precision, QUANTISATION, cast=qx.numel)


@rule("quantized.layer_norm", "quantized.group_norm", "quantized.instance_norm", family="norm")
def norm(input: TensorSpec, num_groups: int | None = None, normalized_shape: Any = (), **_: Any) -> Work:
    """The statistics, the line, and to and from the small format."""
    n = input.numel
    rows = input.shape[0] * (num_groups or (input.shape[1] if len(input.shape) > 1 else 1))
    work = norms.channel_norm(n, rows, rows, input.precision)
    return work + to_and_fro(input, n)


@rule("quantized.softmax", family="softmax")
def softmax(qx: TensorSpec, **_: Any) -> Work:
    """softmax, and to and from the small format."""
    return softmax_formula(qx.numel, qx.precision) + to_and_fro(qx, qx.numel)


@rule("quantized.embedding_byte", "quantized.embedding_4bit", family="index")
def embedding(out: Specs, **_: Any) -> Work:
    """A row looked up, q·s + b: 1 index, 1 mul, 1 add per element."""
    return looked_up(out[0], out[0].numel)


def looked_up(out: TensorSpec, n: int) -> Work:
    return Work.of(out.precision, index=n) + Work.of(out.precision, QUANTISATION, mul=n, add=n)


@rule(
    *full("embedding_bag_byte embedding_bag_4bit embedding_bag_byte_rowwise_offsets", SPACE),
    *full("embedding_bag_4bit_rowwise_offsets embedding_bag_2bit_rowwise_offsets", SPACE),
    family="index",
)
def embedding_bag(indices: TensorSpec, out: Specs, per_sample_weights: TensorSpec | None = None, **_: Any) -> Work:
    """Rows looked up, q·s + b, and added up: 1 index, 1 mul, 2 add per element looked up."""
    n = indices.numel * out[0].shape[-1]
    return looked_up(out[0], n) + Work.of(out[0].precision, mul=n * (per_sample_weights is not None), add=n)


def recurrent(cell: Cell, x: TensorSpec, hidden: int) -> Work:
    """One step with weights of 8 bits: the activations of both products quantised on the way in."""
    rows = x.numel // x.shape[-1] if x.shape[-1] else 0
    return eight_bit(Layer(cell, rows, 1, x.shape[-1], hidden), x)


@rule("quantized.quantized_lstm_cell_dynamic", family="rnn")
def lstm_cell(input: TensorSpec, out: Specs, **_: Any) -> Work:
    """One step of an LSTM with 8-bit weights."""
    return recurrent(CELLS["lstm"], input, out[0].shape[-1])


@rule("quantized.quantized_gru_cell_dynamic", family="rnn")
def gru_cell(input: TensorSpec, out: Specs, **_: Any) -> Work:
    """One step of a GRU with 8-bit weights."""
    return recurrent(CELLS["gru"], input, out[0].shape[-1])


@rule("quantized.quantized_rnn_tanh_cell_dynamic", "quantized.quantized_rnn_relu_cell_dynamic", family="rnn")
def rnn_cell(input: TensorSpec, out: Specs, **_: Any) -> Work:
    """One step of a plain recurrent cell with 8-bit weights."""
    return recurrent(CELLS["tanh"], input, out[0].shape[-1])
