"""compressed-tensors: a plain layer with a scheme hung on it, rounded in its forward or packed by a compressor."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision.formats import format_named, integer, minifloat
from bitwatt.precision.packed import sides, tensor
from bitwatt.precision.registry import Widths, precision
from bitwatt.records import Quantised

_FLOATS = {4: (2, 1), 6: (2, 3), 8: (4, 3)}


@precision("compressed_tensors.quantization.quant_scheme.QuantizationScheme")
def layer(module: Any) -> Widths | None:
    """Found by the class of the scheme, given the layer that it hangs on."""
    scheme = module.__dict__["quantization_scheme"]
    if not module.__dict__.get("quantization_enabled", True) or module.__dict__.get("quantization_status") is None:
        return None
    weights: Quantised | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    if scheme.weights is not None:
        shape = _shape(module)
        weights, shapes = _weights(module, scheme.weights, shape), (shape,)
    inputs = None
    if scheme.input_activations is not None:
        value = _format(scheme.input_activations)
        dynamic = "dynamic" if scheme.input_activations.dynamic else "static"
        told = f"input_activations: num_bits={scheme.input_activations.num_bits}, {dynamic}"
        inputs = Quantised(value, value.bits, told, stored=False)
    return Widths(weights, inputs, shapes) if weights or inputs else None


def _weights(module: Any, scheme: Any, shape: tuple[int, ...]) -> Quantised:
    """Scales count at the width the scheme keeps them in, which the layer itself holds in its own dtype until it is
    compressed. A symmetric scheme has no zero points, though the layer may hold zeros for them."""
    value, numel = _format(scheme), math.prod(shape)
    beside = _bits(tensor(module, "weight_scale"), scheme.scale_dtype) + _bits(tensor(module, "weight_global_scale"))
    if not scheme.symmetric:
        beside += _bits(tensor(module, "weight_zero_point"), scheme.zp_dtype)
    weight = tensor(module, "weight")
    stored = weight is None or weight.element_size() == 1
    group = f", group_size={scheme.group_size}" if scheme.group_size else ""
    source = f"num_bits={scheme.num_bits}, type={_word(scheme.type)}, strategy={_word(scheme.strategy)}{group}"
    return Quantised(value, value.bits + beside / numel, source, stored)


def _format(scheme: Any) -> Precision:
    if _word(scheme.type) == "int":
        return integer(scheme.num_bits)
    return minifloat(*_FLOATS[scheme.num_bits])


def _word(value: Any) -> str:
    return str(getattr(value, "value", value))


def _bits(held: Any, dtype: Any = None) -> int:
    if held is None:
        return 0
    width = 8 * held.element_size() if dtype is None else format_named(str(dtype)).bits
    return int(held.numel() * width)


def _shape(module: Any) -> tuple[int, ...]:
    weight = tensor(module, "weight")
    return tuple(weight.shape) if weight is not None else sides(module)
