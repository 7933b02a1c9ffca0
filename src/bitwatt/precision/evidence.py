"""What a layer of a library nobody has described says about its widths: where it says it, and whether that is in use.

Only attributes that are simply there are read. Properties are left alone, since they may compute; what they return
usually lies beside them under the same name with an underscore.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.errors import UnknownNameError
from bitwatt.precision.formats import floating, format_named, integer, is_minifloat, minifloat, spanning

#: Who says it. A configuration is often one object for a whole model, of which some layers were left out.
LAYER, QUANTISER, CONFIGURATION = "layer", "quantiser", "configuration"
WEIGHTS, ACTIVATIONS = "weights", "activations"

#: Widths of whatever the object they are found on is about.
_BITS = (
    "bits", "bit", "nbits", "n_bits", "num_bits", "nbit", "n_bit", "bit_width", "bitwidth", "bitwidths", "q_bits",
    "qbits", "q_bit", "quant_bits", "qbit", "precision_bits",
)  # fmt: skip
_ROLE_BITS = {
    WEIGHTS: (
        "w_bit", "w_bits", "wbit", "wbits", "weight_bit", "weight_bits", "weight_bit_width", "weight_bitwidth",
        "weight_num_bits", "w_bitwidth", "w_bit_width", "nbits_w", "bits_w", "bit_w", "num_bits_weight", "n_bits_w",
        "weight_nbits", "weight_n_bits", "wgt_bits", "kernel_bits",
    ),
    ACTIVATIONS: (
        "a_bit", "a_bits", "abit", "abits", "act_bits", "act_bit", "activation_bits", "activation_bit_width",
        "input_bit_width", "input_bits", "act_bit_width", "activation_num_bits", "a_bitwidth", "nbits_a", "bits_a",
        "bit_a", "in_bits", "act_nbits", "input_num_bits", "n_bits_a",
    ),
}  # fmt: skip
_FORMATS = (
    "qtype", "target_dtype", "quant_type", "elem_dtype", "element_dtype", "quant_dtype", "elem_format", "num_format",
)  # fmt: skip
_ROLE_FORMATS = {
    WEIGHTS: ("weight_qtype", "weight_quant_dtype", "w_elem_format", "weight_dtype", "w_dtype", "weight_format"),
    ACTIVATIONS: ("activation_qtype", "a_elem_format", "input_qtype", "activation_format", "act_format"),
}
#: Bounds of the integers, under the names that fake quantisers use; and their number.
_RANGES = (
    ("quant_min", "quant_max"), ("qmin", "qmax"), ("q_min", "q_max"), ("thd_neg", "thd_pos"), ("Qn", "Qp"),
    ("qn", "qp"), ("min_q", "max_q"),
)  # fmt: skip
_LEVELS = ("n_levels", "levels", "num_levels", "nlevels")
_CONFIGURATIONS = (
    "quantize_config", "quantization_config", "quant_config", "qconfig", "quant_state", "meta", "config", "qcfg",
    "quant_cfg", "quant_args", "qparams", "mx_specs", "specs", "args", "spec",
)  # fmt: skip
#: Parts of a scheme that is about several things at once.
_PARTS = {
    "weights": WEIGHTS, "weight": WEIGHTS, "input_activations": ACTIVATIONS, "activations": ACTIVATIONS,
    "activation": ACTIVATIONS, "inputs": ACTIVATIONS,
}  # fmt: skip
_ON_WORDS = {
    "use", "is", "if", "do", "enable", "enabled", "with", "weight", "weights", "w", "fake", "apply", "on", "active",
    "mode",
}  # fmt: skip
_OFF = ("disabled", "is_disabled", "disable_quant", "skip_quant", "bypass", "bypass_quant", "quant_disabled")
_MODES = ("mode", "quant_mode", "state", "phase", "stage")
_RAW = (
    "raw", "float", "fp", "fp16", "fp32", "none", "off", "disabled", "calibrate", "calibrating", "calibration",
    "full_precision", "observe", "observing", "observer", "warmup",
)  # fmt: skip
#: States before the rounding begins, the words for their end, and numbers of steps until then.
_BEFORE = re.compile(r"calib|observ|warm")
_DONE = {"calibrated", "observed", "warmed", "done", "finished", "complete", "completed"}
_BEGINS = re.compile(r"start|begin|delay|after|warm|calib")
_STEPS = {"step", "steps", "iter", "iters", "iteration", "iterations", "batch", "batches"}
_EPOCHS = {"epoch", "epochs"}
_DELAYS = {"warmup", "quant_delay", "quant_start", "quant_after", "quantize_after", "quantise_after"}
_COUNTER_WORDS = {"cur", "current", "global", "count", "counter", "train", "training", "tracked", "seen", "idx"}


@dataclass(frozen=True, slots=True)
class Said:
    """One statement: a width, the path of the attribute, and who it is by."""

    path: str
    value: Precision
    by: str
    explicit: bool = False  # its name says whose width it is

    def __str__(self) -> str:
        return f"{self.path}={self.value.name}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Statements about the weights or the activations of a layer, and what could not be understood or believed."""

    said: tuple[Said, ...]
    doubts: tuple[str, ...]
    waiting: tuple[str, ...] = ()  # quantisers for this role that have not begun yet

    def by(self, *who: str) -> list[Said]:
        return [one for one in self.said if one.by in who]


def evidence(module: Any, role: str, tensors: list[tuple[str, Any]]) -> Evidence:
    """Everything said of one role: by the layer, by its tensors, by its quantisers and by configurations."""
    said: list[Said] = []
    doubts: list[str] = []
    waiting: list[str] = []
    if (off := switched_off(module) or not_begun(module)) and role == WEIGHTS:
        doubts.append(off)
    for prefix, place, who, about in _places(module, tensors):
        if about not in (role, ""):
            continue
        if who == QUANTISER and (off := switched_off(place)):
            doubts.append(f"{prefix}{off}")
            continue
        if who == QUANTISER and (off := not_begun(place)):
            doubts.append(f"{prefix}{off}")
            waiting += [f"{prefix}{off}"] if about == role else []
            continue
        plain = about == role or (role == WEIGHTS and about == "")
        for path, value, explicit in _statements(place, role, plain, doubts, prefix, exact=who == QUANTISER):
            said.append(Said(path, value, who, explicit))
    return Evidence(tuple(said), tuple(doubts), tuple(waiting))


def _places(module: Any, tensors: list[tuple[str, Any]]) -> Iterator[tuple[str, Any, str, str]]:
    """Objects that may say something: path, object, who that is, and the role it is about where its name tells."""
    yield "", module, LAYER, ""
    for name, tensor in tensors:
        yield f"{name}.", tensor, LAYER, WEIGHTS
    for name, inner in {**getattr(module, "__dict__", {}), **getattr(module, "_modules", {})}.items():
        if _plain(inner):
            continue
        if name in _CONFIGURATIONS:
            yield f"{name}.", inner, CONFIGURATION, ""
            for deeper in _CONFIGURATIONS:
                if (held := own(inner, deeper)) is not None and not _plain(held):
                    yield f"{name}.{deeper}.", held, CONFIGURATION, ""
        elif is_quantised_name(name) and not isinstance(inner, (list, tuple, dict)):
            about = _about(name)
            yield f"{name}.", inner, QUANTISER, about
            for deeper in (*_PARTS, "config", "spec", "qspec", "quant_desc"):
                if (held := own(inner, deeper)) is not None and not _plain(held):
                    yield f"{name}.{deeper}.", held, QUANTISER, _PARTS.get(deeper, about)


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool, type)) or hasattr(value, "element_size")


def _about(name: str) -> str:
    said = set(words(name))
    if said & {"weight", "weights", "w", "wt", "kernel", "wgt"}:
        return WEIGHTS
    if said & {"act", "activation", "activations", "input", "inputs", "in", "a", "x", "i"}:
        return ACTIVATIONS
    if said & {"output", "out", "o", "bias", "b", "grad", "kv", "state", "post"}:
        return "other"
    return ""


def _statements(
    place: Any, role: str, plain: bool, doubts: list[str], prefix: str, *, exact: bool
) -> Iterator[tuple[str, Precision, bool]]:
    """Widths and formats on one object. `plain`: names that do not tell whose width it is speak of this role too."""
    for name in (*_ROLE_BITS[role], *(_BITS if plain else ())):
        value = own(place, name)
        bits = _width(value, pairs=exact)
        if bits is not None and own(place, "type") in ("float", "fp"):
            bits = floating(int(bits.bits))
        if bits is None and value is not None:
            doubts.append(f"{prefix}{name}={_short(value)} is no width")
        elif bits is not None:
            yield f"{prefix}{name}", bits, name in _ROLE_BITS[role]
    for name in (*_ROLE_FORMATS[role], *(_FORMATS if plain else ())):
        found = _format(own(place, name))
        if found is not None:
            yield f"{prefix}{name}", found, name in _ROLE_FORMATS[role]
    if exact and plain:
        yield from ((f"{prefix}{path}", value, False) for path, value in _ranges(place))


def _ranges(place: Any) -> Iterator[tuple[str, Precision]]:
    for names in _RANGES:
        low, high = (own(place, name) for name in names)
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low < high:
            yield f"{names[0]}..{names[1]}", spanning(int(low), int(high))
    for name in _LEVELS:
        count = own(place, name)
        if isinstance(count, int) and not isinstance(count, bool) and count > 1:
            yield name, spanning(0, count - 1)


def _width(value: Any, *, pairs: bool) -> Precision | None:
    """A number of bits, or on a quantiser of its own the bits of exponent and mantissa."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        if 1 < value < 2:
            return integer(value)
        return integer(value) if value == int(value) and 1 <= value <= 64 else None
    if pairs and isinstance(value, (tuple, list)) and len(value) == 2 and is_minifloat(*value):
        return minifloat(*value)
    return None


def _format(value: Any) -> Precision | None:
    if value is None or isinstance(value, (bool, int, float)):
        return None
    for name in (str(value), str(getattr(value, "name", "")), str(value).rpartition(".")[2]):
        try:
            return format_named(name)
        except UnknownNameError:
            continue
    return None


def own(place: Any, name: str) -> Any:
    """An attribute that is simply there, or what lies behind a property of that name."""
    if isinstance(place, Mapping):
        return place.get(name)
    kind = type(place)
    held = getattr(place, "__dict__", {})
    for spelled in (name, f"_{name}"):
        if held.get(spelled) is not None:
            return held[spelled]
    for registered in ("_buffers", "_modules"):
        inside = held.get(registered, {})
        if name in inside and inside[name] is not None:  # without `get`, which those of scripted modules lack
            return _scalar(inside[name])
    default = getattr(kind, name, None)
    if name in getattr(kind, "__dataclass_fields__", {}) or hasattr(kind, "_fields"):
        return getattr(place, name, None)
    return default if isinstance(default, (int, float, str)) else None


def _scalar(value: Any) -> Any:
    """A number kept as a buffer."""
    if not hasattr(value, "element_size"):
        return value
    return value.item() if value.numel() == 1 and not value.is_meta and type(value).__name__ != "FakeTensor" else None


def switched_off(place: Any) -> str:
    """Which attribute says that this quantises nothing at the moment; empty if none does."""
    for name, value in _flags(place).items():
        bare = name.lstrip("_")
        if isinstance(value, (bool, int)) and not value and _is_switch(bare):
            return f"{name}={value}"
        if value is True and bare in _OFF:
            return f"{name}=True"
        if bare in _MODES and isinstance(value, str) and value.lower() in _RAW:
            return f"{name}={value}"
    return ""


def not_begun(place: Any) -> str:
    """Which attribute says that this is still being calibrated, or waits for a step to come; empty if none does."""
    flags = _flags(place)
    rounds = any(value in (True, 1) and _is_switch(name) for name, value in flags.items() if isinstance(value, int))
    for name, value in flags.items():
        said = words(name)
        if isinstance(value, bool) or value in (0, 1):
            told = [word for word in said if _BEFORE.match(word)]
            if rounds and all(word.startswith("observ") for word in told):
                continue  # fake quantisers may observe and round at once
            if told and bool(value) != bool(_DONE & set(said)):
                return f"{name}={value}"
        elif not isinstance(value, str) and value > 0 and _is_delay(name) and not _is_past(value, said, flags):
            return f"{name}={value}"
    return ""


def _flags(place: Any) -> dict[str, Any]:
    """Numbers, switches and words on an object, buffers of one value among them."""
    held = getattr(place, "__dict__", {})
    flags = {**held, **{name: _scalar(buffer) for name, buffer in held.get("_buffers", {}).items()}}
    return {name: value for name, value in flags.items() if isinstance(value, (bool, int, float, str))}


def _is_delay(name: str) -> bool:
    said = words(name)
    counts = bool((_STEPS | _EPOCHS) & set(said))
    return name.lstrip("_") in _DELAYS or (counts and any(map(_BEGINS.match, said)))


def _is_past(start: float, said: list[str], flags: Mapping[str, Any]) -> bool:
    """Whether a counter of the same unit has come to `start`."""
    unit = _EPOCHS if _EPOCHS & set(said) else _STEPS
    counters = [
        value for name, value in flags.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        and (unit & set(words(name)) or words(name) == ["counter"])
        and (set(words(name)) <= unit | _COUNTER_WORDS or name == "num_batches_tracked")
    ]  # fmt: skip
    return any(value >= start for value in counters)


def _is_switch(name: str) -> bool:
    said = words(name)
    if any(word.startswith("dequant") for word in said):
        return False
    on = [word in _ON_WORDS or is_quantised_name(word) for word in said]
    return bool(said) and all(on) and (any(map(is_quantised_name, said)) or said[-1] in ("enabled", "enable"))


def words(name: str) -> list[str]:
    """QuantLinear4bit -> quant, linear, 4, bit."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def is_quantised_name(name: str) -> bool:
    """Whether a name speaks of quantising: not of quantiles, quanta or quantities."""
    return any(
        re.match(r"(re|de)?quan(t(?!il|um|a$|it[yia])|$)", word) or word in ("quantiz", "lsq") for word in words(name)
    )


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 40 else f"{text[:37]}..."
