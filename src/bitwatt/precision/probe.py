"""Layers of libraries nobody has described: attributes with the usual names, believed only where they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bitwatt.dtypes import DTYPES, Precision
from bitwatt.errors import UnknownNameError
from bitwatt.precision.formats import TERNARY_BITS, format_named, integer
from bitwatt.precision.registry import Widths, quantised

#: Names under which libraries keep the width of weights, and the same for activations.
WEIGHT_BITS = (
    "bits", "w_bit", "w_bits", "wbit", "wbits", "nbits", "n_bits", "num_bits", "weight_bit_width", "weight_bits",
    "bit_width", "bitwidth", "weight_bit", "weight_num_bits", "q_bits", "qbits", "quant_bits", "nbit", "w_bitwidth",
)  # fmt: skip
ACTIVATION_BITS = (
    "a_bit", "a_bits", "abit", "abits", "act_bits", "act_bit", "activation_bits", "activation_bit_width",
    "input_bit_width", "input_bits", "act_bit_width", "activation_num_bits",
)  # fmt: skip
WEIGHT_FORMATS = ("qtype", "weight_qtype", "_qtype", "target_dtype", "weight_quant_dtype", "quant_type", "elem_dtype")
#: Attributes that may hold the above one level down.
HOLDERS = (
    "quantize_config", "quantization_config", "quant_config", "qconfig", "quant_state", "meta", "config",
    "weight_quantizer", "weight_quant", "weight_fake_quant", "w_quantizer", "quantizer", "quantization_scheme",
)  # fmt: skip
GROUPS = ("group_size", "groupsize", "blocksize", "block_size", "q_group_size")
_SCALES = ("scales", "scale", "weight_scale", "weight_scales", "qzeros", "zeros", "zero_point", "zero_points", "absmax")
_CONTAINERS = ("int8", "uint8", "int16", "int32", "int64", "bool")


def probe(module: Any) -> Widths | None:
    """The width that attributes of the module, its weight or its configuration tell; None unless they all agree."""
    told = dict(_told(module, WEIGHT_BITS, WEIGHT_FORMATS))
    widths = {value.bits for value in told.values()}
    if len(widths) != 1:
        return None
    value = next(iter(told.values()))
    weights = _weights(module)
    shape, stored = _logical_shape(module, weights, value)
    if not weights or shape is None:
        return None
    numel = 1
    for side in shape:
        numel *= side
    beside = [tensor for name, tensor in _tensors(module) if name in _SCALES]
    source = "probe: " + ", ".join(f"{path}={value.name}" for path, value in told.items())
    seen = dict(_told(module, ACTIVATION_BITS, ()))
    inputs = {value.bits for value in seen.values()}
    activations = None
    if len(inputs) == 1 and next(iter(inputs)) < 16:
        path, width = next(iter(seen.items()))
        activations = quantised(width, source=f"probe: {path}={width.name}", stored=False)
    return Widths(quantised(value, numel, beside=beside, source=source, stored=stored), activations, (shape,))


def suspicion(module: Any) -> str:
    """Why a layer whose width nobody told looks quantised all the same; empty for an ordinary one."""
    name = type(module).__name__
    for key, tensor in _weights(module):
        if _dtype(tensor) in _CONTAINERS and len(tensor.shape) >= 2 and any(n in _SCALES for n, _ in _tensors(module)):
            return f"{name} keeps {key} as {_dtype(tensor)} beside scales, and nothing tells its width"
        plain = type(tensor).__module__.partition(".")[0] == "torch" and type(tensor).__name__ in _PLAIN
        if not plain and type(tensor).__name__ not in _PLAIN:
            return f"{name} keeps {key} as a {type(tensor).__name__}, which nothing is known of"
    told = [f"{path}={value.name}" for path, value in _told(module, WEIGHT_BITS, WEIGHT_FORMATS)]
    if _weights(module) and (told or _is_called_quantised(module)):
        says = f"says {', '.join(told)}, which its weights do not bear out" if told else "does not tell its width"
        return f"{name} {'is called quantised and ' if _is_called_quantised(module) else ''}{says}"
    return ""


def _is_called_quantised(module: Any) -> bool:
    kind = type(module)
    return any(word in f"{kind.__module__}.{kind.__qualname__}".lower() for word in _QUANTISED)


_QUANTISED = ("quant", "4bit", "8bit", "bitlinear", "bitconv", "qlinear", "qconv", "lowbit", "ternary", "binary")


_PLAIN = {
    "Tensor", "Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "FakeTensor", "DTensor",
    "FunctionalTensor", "NestedTensor", "ParametrizationList",
}  # fmt: skip


def _told(module: Any, names: tuple[str, ...], formats: tuple[str, ...]) -> Iterator[tuple[str, Precision]]:
    places = [("", module), *((f"{key}.", tensor) for key, tensor in _weights(module))]
    for prefix, place in list(places):
        for holder in HOLDERS:
            inner = _own(place, holder)
            if inner is not None and not isinstance(inner, (str, int, float, bool, type)):
                places.append((f"{prefix}{holder}.", inner))
    for prefix, place in places:
        for name in names:
            bits = _number(_own(place, name))
            if bits is not None and 1 <= bits <= 16:
                yield f"{prefix}{name}", integer(bits if bits == int(bits) else TERNARY_BITS)
        for name in formats:
            value = _format(_own(place, name))
            if value is not None and value.bits <= 16:
                yield f"{prefix}{name}", value


def _own(place: Any, name: str) -> Any:
    """An attribute that is simply there. Properties are left alone: they may compute."""
    if isinstance(place, Mapping):
        return place.get(name)
    kind = type(place)
    if isinstance(getattr(kind, name, None), property):
        return None
    value = getattr(place, "__dict__", {}).get(name)
    if value is None:
        value = getattr(place, "_buffers", {}).get(name) if hasattr(place, "_buffers") else None
    if value is None and name in getattr(kind, "__dataclass_fields__", {}):
        value = getattr(place, name, None)
    if value is None and isinstance(getattr(kind, name, None), (int, float, str)):
        value = getattr(kind, name)
    if value is None and hasattr(place, "_modules"):
        value = place._modules.get(name)
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or callable(value):
        return None
    if isinstance(value, (int, float)):
        return value
    return None


def _format(value: Any) -> Precision | None:
    if value is None:
        return None
    for name in (str(value), str(getattr(value, "name", "")), str(value).rpartition(".")[2]):
        try:
            return format_named(name)
        except UnknownNameError:
            continue
    return None


def _weights(module: Any) -> list[tuple[str, Any]]:
    """Tensors of the layer that hold its weights, packed ones too."""
    return [(name, t) for name, t in _tensors(module) if any(w in name.lower() for w in ("weight", "w_q", "qw"))
            and name not in _SCALES and len(t.shape) >= 2]  # fmt: skip


def _tensors(module: Any) -> list[tuple[str, Any]]:
    places = {**getattr(module, "_parameters", {}), **getattr(module, "_buffers", {})}
    return [
        (name, tensor)
        for name, tensor in places.items()
        if hasattr(tensor, "element_size") and not type(tensor).__name__.startswith("Uninitialized")
    ]


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _logical_shape(
    module: Any, weights: list[tuple[str, Any]], value: Precision
) -> tuple[tuple[int, ...] | None, bool]:
    """The shape of the weight before packing, and whether it is kept packed. None where the sizes contradict."""
    sides = _sides(module)
    for _, tensor in weights:
        shape = tuple(tensor.shape)
        if _dtype(tensor) not in _CONTAINERS:  # values on a coarser grid, in an ordinary float
            return (shape, _dtype(tensor).startswith("float8")) if _is_called_quantised(module) else (None, False)
        if sides is None:
            return (shape, True) if DTYPES[_dtype(tensor)].precision.bits == 8 and value.bits == 8 else (None, True)
        held = tensor.numel() * tensor.element_size() * 8 / (sides[0] * sides[1])
        if held >= value.bits:  # packed with room to spare, or one value for each byte
            return sides, True
    return None, True


def _sides(module: Any) -> tuple[int, int] | None:
    for names in (("out_features", "in_features"), ("outfeatures", "infeatures"), ("output_size", "input_size")):
        out, into = (getattr(module, name, None) for name in names)
        if isinstance(out, int) and isinstance(into, int):
            return out, into
    return None
