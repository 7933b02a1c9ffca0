"""torchao where it trains: weights rounded on the way, and weights that are trained in a small format."""

from __future__ import annotations

from typing import Any

from bitwatt.precision.formats import format_named, integer
from bitwatt.precision.registry import Widths, precision, quantised
from bitwatt.records import Quantised

_INT8 = integer(8)


def _shapes(tensor: Any) -> tuple[tuple[int, ...], ...]:
    return (tuple(map(int, tensor.shape)),)


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


@precision("torchao.*.Int8QuantizedTrainingLinearWeight")
def int8_trained(weight: Any) -> Widths:
    """Int8 rows that are updated in place, rounded at random; products are in the scale's dtype."""
    value = quantised(_INT8, weight.numel(), beside=[weight.scale], source="one scale per row, updated in place")
    return Widths(value, None, _shapes(weight))


@precision("torchao.*.BitNetTrainingLinearWeight")
def bitnet(weight: Any) -> Widths:
    value = quantised(format_named("ternary"), source="ternary by class, one scale, rounded in forward", stored=False)
    inputs = quantised(_INT8, source="rows, by class: dynamic", stored=False)
    return Widths(value, inputs, _shapes(weight))


@precision("torchao.*.Int8MixedPrecisionTrainingLinearWeight")
def int8_mixed(weight: Any) -> Widths | None:
    """Rounded only where the class is asked for `linear` itself: in 0.18 it has registered its kernel as that of a
    dispatcher op, which is never called, so that the product runs in the weight's dtype."""
    kind = type(weight)
    asked = getattr(kind, "_TORCH_FN_TABLE", {}).get(kind, {})
    if not any(getattr(function, "__name__", "") == "linear" for function in asked):
        return None
    return _mixed(weight, weight.config)


@precision("torchao.*.Int8MixedPrecisionTrainingLinear")
def int8_mixed_layer(layer: Any) -> Widths | None:
    return _mixed(layer._parameters["weight"], layer.config)


def _mixed(weight: Any, config: Any) -> Widths | None:
    if not config.output:
        return None
    told = "Int8MixedPrecisionTrainingConfig: rows, dynamic"
    rounded = quantised(_INT8, source=told, stored=False)
    return Widths(rounded, rounded, _shapes(weight))


@precision("torchao.*.Float8Linear")
def float8_linear(layer: Any) -> Widths | None:
    config = layer.config
    weights, inputs = (_cast(config, name) for name in ("weight", "input"))
    return Widths(weights, inputs, _shapes(layer._parameters["weight"])) if weights or inputs else None


def _cast(config: Any, name: str) -> Quantised | None:
    cast = getattr(config, f"cast_config_{name}")
    if getattr(cast.scaling_type, "name", "") == "DISABLED":
        return None
    told = f"cast_config_{name}: {_name(cast.scaling_granularity).lower()} {cast.scaling_type.name.lower()}"
    return quantised(format_named(_name(cast.target_dtype)), source=told, stored=False)


@precision("torchao.*.FakeQuantizedLinear", "torchao.*.FakeQuantizedEmbedding")
def fake_quantised(layer: Any) -> Widths | None:
    """Quantisation-aware training: values on the grid of the format, in the float they train in."""
    kept = layer._parameters["weight"]
    weights = _fake(getattr(layer, "weight_fake_quantizer", None), kept.dtype)
    inputs = _fake(getattr(layer, "activation_fake_quantizer", None), kept.dtype)
    return Widths(weights, inputs, _shapes(kept)) if weights or inputs else None


def _fake(quantiser: Any, kept: Any) -> Quantised | None:
    """With the share of scales where groups tell it, in the weight's dtype unless told; zero points only if uneven."""
    if quantiser is None or not getattr(quantiser, "enabled", True):
        return None
    config = quantiser.config
    dtype, granularity = getattr(config, "dtype", None), getattr(config, "granularity", None)
    value = integer(4) if dtype is None else format_named(_name(dtype))
    group = getattr(granularity, "group_size", None) if granularity is not None else getattr(config, "group_size", None)
    told = f"{type(config).__name__}: {value.name}"
    each = 0.0
    if group:
        each = format_named(_name(getattr(config, "scale_precision", None) or kept)).bits
        if getattr(getattr(config, "mapping_type", None), "name", "") == "ASYMMETRIC":
            each += format_named(_name(config.zero_point_precision)).bits
    told += f", group_size={group}" if group else ""
    return Quantised(value, value.bits + (each / group if group else 0), told, stored=False)


@precision("torchao.*.MXFakeQuantizedLinear")
def mx_fake(layer: Any) -> Widths:
    """A shared exponent of eight bits for each block."""
    weights, inputs = (_mx(config) for config in (layer.weight_config, layer.activation_config))
    return Widths(weights, inputs, _shapes(layer._parameters["weight"]))


def _mx(config: Any) -> Quantised | None:
    if config is None:
        return None
    value = format_named(_name(config.dtype))
    told = f"MXFakeQuantizeConfig: {value.name}, block_size={config.block_size}"
    return Quantised(value, value.bits + 8 / config.block_size, told, stored=False)


@precision("torchao.*.NVFP4FakeQuantizedLinear")
def nvfp4_fake(layer: Any) -> Widths:
    """A float8 scale for each block of 16."""
    value = Quantised(format_named("float4_e2m1fn"), 4.5, "NVFP4FakeQuantizeConfig", stored=False)
    given = (layer.weight_config, layer.activation_config)
    weights, inputs = (value if config is not None else None for config in given)
    return Widths(weights, inputs, _shapes(layer._parameters["weight"]))
