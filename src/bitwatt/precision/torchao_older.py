"""Older versions of torchao: one class for all affine formats, around an implementation that holds values and scales.

Written from their public source; only stand-ins of these classes were run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision.formats import format_named, integer
from bitwatt.precision.registry import Widths, precision, quantised, reader_of

#: Where implementations keep values, and what goes beside them.
_VALUES = ("int_data", "float8_data", "packed_weight", "packed_floatx_data")
_BESIDE = ("scale", "scales", "zero_point", "scale_and_zero", "qzeros")


@precision("torchao.*.AffineQuantizedTensor")
def affine(weight: Any) -> Widths | None:
    inner = getattr(weight, "tensor_impl", None)
    inner = inner if inner is not None else getattr(weight, "layout_tensor", None)
    value = _value(weight, inner)
    if value is None:
        return None
    beside = [tensor for name in _BESIDE if hasattr(tensor := getattr(inner, name, None), "element_size")]
    told = f"{value.name} in a {type(inner).__name__}, block_size={list(weight.block_size)}"
    return Widths(quantised(value, weight.numel(), beside=beside, source=told), None, (tuple(map(int, weight.shape)),))


def _value(weight: Any, inner: Any) -> Precision | None:
    """The layout of a small float, a float8 container, the range of an integer, or else its container."""
    layout = getattr(inner, "_layout", None)
    exponent, mantissa = getattr(layout, "ebits", None), getattr(layout, "mbits", None)
    if exponent is not None and mantissa is not None:
        bits = 1 + exponent + mantissa
        return Precision(f"fp{bits}_e{exponent}m{mantissa}", "float", bits)
    kept: Any = next((tensor for name in _VALUES if (tensor := getattr(inner, name, None)) is not None), None)
    dtype = str(getattr(kept, "dtype", "")).removeprefix("torch.")
    if dtype.startswith("float8"):
        return format_named(dtype)
    if weight.quant_min is not None and weight.quant_max is not None:
        levels = int(weight.quant_max) - int(weight.quant_min) + 1
        return integer((levels - 1).bit_length(), signed=weight.quant_min < 0)
    if (width := getattr(kept, "bit_width", None)) is not None:
        return integer(width, signed=False)
    return format_named(dtype) if dtype in ("int8", "uint8") and kept.numel() == weight.numel() else None


@precision("torchao.*.LinearActivationQuantizedTensor")
def with_inputs(weight: Any) -> Widths | None:
    """A quantised weight and the function that rounds the input, whose name tells the format."""
    inner = weight.original_weight_tensor
    found = reader_of(type(inner))
    widths = found[1](inner) if found is not None else None
    if widths is None:
        return None
    function = weight.input_quant_func
    name = getattr(function, "__name__", "") or getattr(getattr(function, "func", None), "__name__", "")
    plain = name.lower().replace("fp8", "float8")
    value = next((format_named(known) for known in ("int8", "float8") if known in plain), None)
    inputs = quantised(value, source=f"input_quant_func={name}", stored=False) if value else None
    return replace(widths, activations=inputs)
