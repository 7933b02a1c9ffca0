"""Brevitas: weights stay floats and are rounded in every forward, to any width.

`bit_width()` and `scale()` of its proxies run dozens of ops, so the constants they are made of are read instead.
"""

from __future__ import annotations

import math
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision.formats import format_named, integer, minifloat
from bitwatt.precision.registry import Widths, precision
from bitwatt.records import Quantised


@precision("brevitas.nn.mixin.parameter.QuantWeightMixin")
def layer(module: Any) -> Widths | None:
    """Every layer with a weight proxy: linear, convolutions, embeddings, gates of recurrent layers."""
    proxy, weight = module.weight_quant, module._parameters["weight"]
    weights = _quantised(proxy.tensor_quant, weight) if proxy.is_quant_enabled else None
    inputs = _input(module)
    return None if weights is None and inputs is None else Widths(weights, inputs)


@precision("brevitas.quant_tensor.*")
def values(tensor: Any) -> Widths | None:
    """A tensor that carries its own width from layer to layer, as layers with `return_quant_tensor` put out."""
    fields = getattr(tensor, "_fields", ())
    if "exponent_bit_width" in fields:
        value = minifloat(int(tensor.exponent_bit_width), int(tensor.mantissa_bit_width))
    elif "bit_width" in fields:
        value = integer(float(tensor.bit_width), signed=bool(tensor.signed_t))
    else:
        return None
    return Widths(activations=Quantised(value, value.bits, f"bits={value.bits:g}", stored=False))


def _input(module: Any) -> Quantised | None:
    proxy = getattr(module, "input_quant", None)
    if proxy is None or not proxy.is_quant_enabled:
        return None
    value, source = _format(proxy.fused_activation_quant_proxy.tensor_quant)
    return Quantised(value, value.bits, f"input_quant: {source}", stored=False)


def _quantised(quantiser: Any, weight: Any) -> Quantised:
    value, source = _format(quantiser)
    scales = _shape(quantiser)
    source += f", {math.prod(scales)} scales" if scales else ""
    beside = math.prod(scales) * (8 if _powers_of_two(quantiser) else 8 * weight.element_size())
    if type(getattr(quantiser, "zero_point_impl", None)).__name__ not in (
        "NoneType",
        "ZeroZeroPoint",
        "StatelessBuffer",
    ):
        beside += math.prod(scales) * 8 * weight.element_size()
    return Quantised(value, value.bits + beside / weight.numel(), source, stored=False)


def _format(quantiser: Any) -> tuple[Precision, str]:
    kind = type(quantiser).__name__
    if hasattr(quantiser, "exponent_bit_width_impl"):
        exponent, mantissa = _bits(quantiser.exponent_bit_width_impl), _bits(quantiser.mantissa_bit_width_impl)
        return minifloat(int(exponent), int(mantissa)), f"exponent {exponent:g}, mantissa {mantissa:g}"
    if kind == "TernaryQuant":
        return format_named("ternary"), kind
    width = getattr(quantiser, "msb_clamp_bit_width_impl", None) or quantiser.bit_width
    bits = _bits(width)
    signed = bool(getattr(getattr(quantiser, "int_quant", None), "signed", True))
    return integer(bits, signed=signed), f"bit_width={bits:g}"


def _bits(width: Any) -> float:
    """The constant in a bit width's module; a learned one is an offset to the smallest width, rounded."""
    if "bit_width_offset" in width._parameters:
        return float(round(abs(float(width._parameters["bit_width_offset"].detach())) + float(width.bit_width_base)))
    return float(width.bit_width.value)


def _shape(quantiser: Any) -> tuple[int, ...]:
    """The shape of the scales: that of the statistics they come from, or of the value they are."""
    scaling = quantiser.scaling_impl
    stats = getattr(getattr(scaling, "parameter_list_stats", None), "stats", None)
    if stats is not None:
        return tuple(stats.stats_output_shape)
    value = getattr(scaling, "value", None)
    value = getattr(value, "value", value)
    return tuple(getattr(value, "shape", ()))


def _powers_of_two(quantiser: Any) -> bool:
    """Scales that are powers of two, as in microscaling formats, are an exponent of eight bits."""
    found = getattr(quantiser.scaling_impl, "stats_scaling_impl", None)
    restricted = getattr(found, "restrict_clamp_scaling", None)
    return type(getattr(restricted, "restrict_value_impl", None)).__name__.startswith("PowerOfTwo")
