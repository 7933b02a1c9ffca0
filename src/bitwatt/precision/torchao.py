"""torchao: weights that are tensors of a class of their own. Classes are named by their last word, since they move."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision import torchao_older, torchao_training
from bitwatt.precision.formats import format_named, integer
from bitwatt.precision.registry import Widths, precision, quantised
from bitwatt.records import Quantised

__all__ = ["torchao_older", "torchao_training"]

#: Attributes that hold scales and zero points beside the values; `act_…` ones belong to activations.
_BESIDE = ("scale", "zero_point", "scale_and_zero", "group_scale", "group_zero", "row_scale", "qzeros")
_INT8, _FLOAT8 = integer(8), format_named("float8_e4m3fn")


def _named(*classes: str) -> tuple[str, ...]:
    return tuple(f"torchao.*.{name}" for name in classes)


def _widths(weight: Any, value: Precision, told: str, inputs: Quantised | None = None) -> Widths:
    beside = [getattr(weight, name, None) for name in _BESIDE]
    kept = getattr(weight, "qdata", None)
    told_of = quantised(value, weight.numel(), beside=beside, source=told, kept_in=kept)
    return Widths(told_of, inputs, (_shape(weight),))


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(map(int, tensor.shape))


def _block(weight: Any) -> str:
    size = weight.block_size
    return f"block_size={list(size) if isinstance(size, (list, tuple)) else size}"


def _rounded(value: Precision, told: str) -> Quantised:
    return quantised(value, source=told, stored=False)


def dtype_format(dtype: Any) -> Precision:
    """A torch dtype, torchao's own `TorchAODType.INT4`, or the name of an MX format."""
    return format_named(str(dtype).rpartition(".")[2])


@precision(*_named("Int8Tensor"))
def int8(weight: Any) -> Widths:
    inputs = None
    if weight.act_quant_kwargs is not None:
        static = getattr(weight, "act_quant_scale", None) is not None
        inputs = _rounded(_INT8, f"act_quant_kwargs: int8, {'static' if static else 'dynamic'}")
    return _widths(weight, _INT8, _block(weight), inputs)


@precision(*_named("IntxUnpackedToInt8Tensor"))
def intx(weight: Any) -> Widths:
    """Integers of `target_dtype`, each in a byte of its own."""
    kind = weight.activation_quantization
    inputs = _rounded(_INT8, f"activation_quantization={kind}") if kind and "int8" in str(kind) else None
    told = f"target_dtype={weight.target_dtype}, {_block(weight)}, one value per byte"
    return _widths(weight, dtype_format(weight.target_dtype), told, inputs)


@precision(*_named("Float8Tensor", "PrototypeFloat8Tensor", "Float8OpaqueTensor"))
def float8(weight: Any) -> Widths:
    inputs = None
    if weight.act_quant_kwargs is not None:
        inputs = _rounded(dtype_format(weight.act_quant_kwargs.float8_dtype), "act_quant_kwargs: dynamic")
    return _widths(weight, dtype_format(weight.qdata.dtype), f"{weight.qdata.dtype}, {_block(weight)}", inputs)


@precision(*_named("Float8Sparse2x4_1DData1DMetadataTensor", "Float8Sparse2x4_2DData2DMetadataTensor"))
def float8_sparse(weight: Any) -> Widths:
    """Two of every four values are kept, with the places they came from."""
    parts = [getattr(weight, name, None) for name in ("qdata", "sparse_metadata", "qdata_and_metadata", "scale")]
    bits = 8 * sum(t.numel() * t.element_size() for t in parts if t is not None) / max(weight.numel(), 1)
    value = Quantised(_FLOAT8, bits, "two in four kept, with metadata")
    inputs = _rounded(_FLOAT8, "act_quant_kwargs: dynamic") if weight.act_quant_kwargs is not None else None
    return Widths(value, inputs, (_shape(weight),))


@precision(*_named("Int4Tensor", "Int4PlainInt32Tensor", "Int4TilePackedTo4dTensor", "Int4MarlinSparseTensor"))
def int4(weight: Any) -> Widths:
    """Two in a byte or eight in a word. Only the plain layout multiplies by anything but the input's own dtype."""
    dtype = str(getattr(weight, "activation_dtype", ""))
    inputs = _rounded(dtype_format(dtype), f"activation_dtype={dtype}: dynamic") if "float8" in dtype else None
    return _widths(weight, integer(4), f"int4 by class, {_block(weight)}", inputs)


@precision(*_named("Int4PreshuffledTensor"))
def int4_preshuffled(weight: Any) -> Widths:
    """Scales of rows are there where the kernel takes float8 activations."""
    inputs = _rounded(_FLOAT8, "row_scale: the kernel for float8 inputs") if weight.row_scale is not None else None
    return _widths(weight, integer(4), f"int4 by class, {_block(weight)}", inputs)


@precision(*_named("Int4OpaqueTensor"))
def int4_opaque(weight: Any) -> Widths:
    kind = getattr(weight, "act_mapping_type", None)
    inputs = _rounded(_INT8, f"act_mapping_type={kind}: dynamic") if kind else None
    return _widths(weight, integer(4), f"int4 by class, {_block(weight)}", inputs)


@precision(*_named("IntxOpaqueTensor", "Int8LutTensor"))
def intx_opaque(weight: Any) -> Widths:
    """Values, scales and perhaps the bias in one buffer that only its kernel reads; that kernel rounds its input."""
    kept = weight.packed_weights
    bits = 8 * kept.numel() * kept.element_size() / max(math.prod(_shape(weight)), 1)
    value = Quantised(integer(weight.bit_width), bits, f"bit_width={weight.bit_width}, {_block(weight)}, packed")
    return Widths(value, _rounded(_INT8, "int8 by class: dynamic"), (_shape(weight),))


@precision(*_named("UIntxBitPackedTensor"))
def uintx(weight: Any) -> Widths:
    told = f"bit_width={weight.bit_width}, group_size={weight.group_size}"
    return _widths(weight, integer(weight.bit_width, signed=weight.bit_width == 8), told)


@precision(*_named("NF4Tensor"))
def nf4(weight: Any) -> Widths:
    """Scales of blocks are int8 with scales of their own and a mean; the table of values is not counted."""
    beside = [weight.quantized_scalers, weight.quantization_factor, weight.scaler_mean]
    told = f"nf4 by class, block_size={weight.block_size}, scaler_block_size={weight.scaler_block_size}"
    return Widths(quantised(format_named("nf4"), weight.numel(), beside=beside, source=told), None, (_shape(weight),))


@precision(*_named("MXTensor"))
def mx(weight: Any) -> Widths:
    """Blocks with a power of two for a scale (OCP Microscaling Formats, 2310.10537). 6-bit values take a byte each."""
    given = weight.act_quant_kwargs
    inputs = _rounded(dtype_format(given.elem_dtype), "act_quant_kwargs: dynamic") if given is not None else None
    return _widths(weight, dtype_format(weight.elem_dtype), f"elem_dtype={weight.elem_dtype}, {_block(weight)}", inputs)


@precision(*_named("NVFP4Tensor"))
def nvfp4(weight: Any) -> Widths:
    """Blocks of 16 with a float8 scale, and a float32 scale for all of them."""
    value, given = format_named("float4_e2m1fn"), weight.act_quant_kwargs
    beside = [weight.scale, weight.per_tensor_scale]
    return Widths(
        quantised(value, weight.numel(), beside=beside, source=f"e2m1 by class, {_block(weight)}"),
        _rounded(value, "act_quant_kwargs: dynamic") if given is not None else None,
        (_shape(weight),),
    )


@precision(*_named("BitNetPacked2bitLinearWeight"))
def bitnet_packed(weight: Any) -> Widths:
    return _widths(
        weight, format_named("ternary"), "ternary by class, four per byte", _rounded(_INT8, "rows, by class: dynamic")
    )


@precision(*_named("linear_quant_modules.Int8DynActInt4WeightLinear"))
def linear_8da4w(layer: Any) -> Widths:
    """Weights of four bits in a byte each, a scale and a zero point for each group."""
    kept = layer._buffers
    told = f"int4 by class, groupsize={layer.groupsize}, one value per byte"
    value = quantised(
        integer(4), kept["weight"].numel(), beside=[kept["scales"], kept["zeros"]], source=told, kept_in=kept["weight"]
    )
    return Widths(value, _rounded(_INT8, "tokens, by class: dynamic"), (_shape(kept["weight"]),))


@precision(*_named("linear_quant_modules.WeightOnlyInt4Linear"))
def linear_4w(layer: Any) -> Widths:
    shape = (int(layer.out_features), int(layer.in_features))
    beside = [layer._buffers["scales_and_zeros"]]
    told = f"int4 by class, groupsize={layer.groupsize}"
    return Widths(quantised(integer(4), math.prod(shape), beside=beside, source=told), None, (shape,))


@precision(*_named("qat.embedding.Int4WeightOnlyEmbedding"))
def embedding_4w(layer: Any) -> Widths:
    kept = layer._buffers
    told = f"bit_width={layer.bit_width}, group_size={layer.group_size}, one value per byte"
    beside = [kept["scale"], kept["zero_point"]]
    weight = kept["weight"]
    value = quantised(integer(layer.bit_width), weight.numel(), beside=beside, source=told, kept_in=weight)
    return Widths(value, None, (_shape(kept["weight"]),))


@precision(*_named("OptimState8bit", "OptimState4bit", "OptimStateFp8"))
def optimizer_state(state: Any) -> Widths:
    """A moment of the optimizer in blocks of codes. Which it is, is told by the codes: indices of 8 or, two in a byte,
    4 bits into a table, or float8."""
    dtype = str(state.codes.dtype)
    packed = state.codes.numel() < state.numel()
    value = integer(4 if packed else 8, signed=False) if "float8" not in dtype else dtype_format(dtype)
    return _widths(state, value, _block(state))
