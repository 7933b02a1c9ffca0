"""Layers of libraries nobody has described.

A width is claimed where what the layer says is in use, agrees, and is borne out by how its weights are kept; of weights
that are ordinary floats it has to be said by name, since layers round inputs, outputs and gradients too. Else the layer
is reported by its dtype, with the reason.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from bitwatt.dtypes import DTYPES, Precision
from bitwatt.precision.evidence import (
    ACTIVATIONS,
    CONFIGURATION,
    LAYER,
    QUANTISER,
    WEIGHTS,
    Evidence,
    Said,
    evidence,
    is_quantised_name,
    words,
)
from bitwatt.precision.held import (
    INTEGERS,
    NO_DATA,
    NO_WEIGHT,
    dtype_of,
    has_ordinary,
    is_compact,
    is_flat,
    is_narrow,
    is_strange,
    logical_shape,
    loose_in,
    scales_in,
    stands_beside,
    tensors_in,
    weights_in,
)
from bitwatt.precision.registry import Widths, quantised, reader_of, signed
from bitwatt.records import Quantised

#: What a layer may round instead of its weights, as classes are called by it; and codes that are no numbers at all.
_OTHERS = {
    "act", "acts", "activation", "activations", "input", "inputs", "output", "outputs", "grad", "grads", "gradient",
    "gradients", "kv", "kvcache", "cache", "comm", "communication", "hash", "hashed", "lsh",
}  # fmt: skip
_WEIGHT_WORDS = {"weight", "weights", "w", "wt", "kernel", "wgt"}
#: Values looked at where each has an element to itself.
_SAMPLE = 4096
_LAYERS = {"linear", "conv", "embedding", "dense", "lin", "matmul"}
#: Parametrisations that are called by what they do.
_ROUNDS = {"round", "rounded", "rounding", "binarize", "binarise", "ternarize", "ternarise", "discretize", "discretise"}
_LAW = {"qat", "bnn", "xnor", "dorefa", "lsq", "gptq", "awq", "wq", "hqq", "ternary", "binarized", "bitnet", "lowbit"}


def probe(module: Any) -> tuple[Widths | None, str]:
    """The widths of a layer, as far as they are beyond doubt; and why one that looks quantised is not claimed to be."""
    try:
        return _attached(module) or _judge(module)
    except Exception as error:  # whatever a stranger's attributes do, the run goes on
        return None, f"{type(module).__name__} could not be read: {type(error).__name__}: {error}"


def _attached(module: Any) -> tuple[Widths | None, str] | None:
    """A scheme of a library that is known, hung on a plain layer."""
    scheme = getattr(module, "__dict__", {}).get("quantization_scheme")
    found = reader_of(type(scheme)) if scheme is not None else None
    if found is None:
        return None
    widths = found[1](module)
    return widths and signed(widths, found[0]), ""


def _judge(module: Any) -> tuple[Widths | None, str]:
    made = _parametrised(module)
    if made:
        return None, made
    shape = logical_shape(module)
    weights = weights_in(module)
    unnamed = [] if has_ordinary(module, weights, shape) else _unnamed(module, weights, shape)
    if unnamed:
        return _nameless(module, unnamed, shape)
    if not weights:
        return None, ""
    about = evidence(module, WEIGHTS, weights)
    strange = [(name, tensor) for name, tensor in weights if is_strange(tensor)]
    if strange:
        return _strange(module, *strange[0], about)
    integers = [(name, tensor) for name, tensor in weights if dtype_of(tensor) in INTEGERS]
    if integers:
        return _packed(module, integers, about, shape)
    small = [(name, tensor) for name, tensor in weights if dtype_of(tensor).startswith("float8")]
    if small:
        return _float8(module, small, about)
    narrow = [f"{name} {dtype_of(tensor)}{list(tensor.shape)}" for name, tensor in weights if is_narrow(tensor)]
    if narrow:
        return None, f"{type(module).__name__} keeps {', '.join(narrow)}, a layout that is not described here"
    return _rounded(module, weights, about)


def _nameless(module: Any, unnamed: list[tuple[str, Any]], shape: tuple[int, ...] | None) -> tuple[Widths | None, str]:
    """Tensors that may well be packed weights, though nothing calls them so: where sizes and bits agree, they are."""
    about = evidence(module, WEIGHTS, unnamed)
    if any(is_strange(tensor) for _, tensor in unnamed):
        name, tensor = next((name, tensor) for name, tensor in unnamed if is_strange(tensor))
        return None, f"{type(module).__name__} keeps {name} as a {type(tensor).__name__}, which nothing is known of"
    if all(dtype_of(tensor) in INTEGERS for _, tensor in unnamed):
        return _packed(module, unnamed, about, shape, named=False)
    if shape and len(unnamed) == 1 and tuple(unnamed[0][1].shape) == shape and not is_narrow(unnamed[0][1]):
        return _float8(module, unnamed, about)
    sizes = ", ".join(f"{key} {dtype_of(tensor)}{list(tensor.shape)}" for key, tensor in unnamed)
    return None, f"{type(module).__name__} keeps {sizes}, which may or may not be its weights"


def _unnamed(module: Any, weights: list[tuple[str, Any]], shape: tuple[int, ...] | None) -> list[tuple[str, Any]]:
    """Integers, small floats and tensors of strange classes that are not called weights, where the module has scales,
    says bits or has the sizes of a layer. Only asked where nothing that is called weights would hold them."""
    if any(is_compact(tensor) for _, tensor in weights):
        return []
    tensors = {id(t): (name, t) for name, t in (*tensors_in(module), *loose_in(module))}.values()
    found = [
        (name, tensor)
        for name, tensor in tensors
        if is_compact(tensor) and not NO_WEIGHT.search(name.lower()) and not NO_DATA.search(name.lower())
        and (len(tensor.shape) >= 2 or is_flat(tensor, shape))
    ]  # fmt: skip
    if not found:
        return []
    said = evidence(module, WEIGHTS, found).by(LAYER, QUANTISER)
    called = is_called_quantised(module, by_path=False)
    if not (said or called):  # numbers that count or point are kept in the widest integers
        found = [(name, tensor) for name, tensor in found if dtype_of(tensor) not in ("int64", "uint64")]
    return found if said or called or shape or scales_in(module) else []


def _parametrised(module: Any) -> str:
    """Why the weights may be rounded on the way from what is stored, where torch's `parametrize` makes them."""
    parts = getattr(module, "_modules", {})
    held = parts["parametrizations"] if "parametrizations" in parts else None  # noqa: SIM401 scripted ones have no get
    for name, chain in (held._modules if held is not None else {}).items():
        for step in chain._modules.values():
            if type(step).__module__.startswith(("torch.nn.", "torch.ao.pruning")):
                continue
            about = evidence(step, WEIGHTS, [])
            said = [one for one in about.said if one.by != CONFIGURATION]
            if said and all(one.value.bits >= 16 for one in said):
                continue
            rounds = bool(_ROUNDS & set(words(type(step).__name__)))
            if said or rounds or is_called_quantised(step, by_path=False):
                told = "; ".join([*([_listed(said)] if said else []), *about.doubts]) or "no width"
                return f"{type(module).__name__}: {name} is made by {type(step).__name__}, which says {told}"
        about = evidence(module, WEIGHTS, [])
        said = [one for one in about.by(LAYER, QUANTISER) if one.value.bits < 16]
        if said and is_called_quantised(module):
            return f"{type(module).__name__} says {_listed(said)}, but its {name} is made by a parametrisation"
    return ""


def _packed(
    module: Any, integers: list[tuple[str, Any]], about: Evidence, shape: tuple[int, ...] | None, *, named: bool = True
) -> tuple[Widths | None, str]:
    """Integers in a container: their width must fit the size of the container, and tightly if nothing else tells that
    they are the weights."""
    name = type(module).__name__
    sizes = ", ".join(f"{key} {dtype_of(tensor)}{list(tensor.shape)}" for key, tensor in integers)
    said = about.by(LAYER, QUANTISER) or about.by(CONFIGURATION)
    if not said:
        hint = f": {'; '.join(about.doubts)}" if about.doubts else ""
        return None, f"{name} keeps {sizes}, and nothing tells how many bits a value has{hint}"
    value, doubt = _agreed(said)
    if value is None:
        return None, f"{name}: {doubt}"
    if shape is None:
        return None, f"{name} says {_listed(said)}, but not the size of what {sizes} stands for"
    if len(integers) > 1:
        return None, f"{name} says {_listed(said)}, but keeps several: {sizes}"
    _, tensor = integers[0]
    held = tensor.numel() * tensor.element_size() * 8 / max(math.prod(shape), 1)
    foreign = is_called_by_others(module) and not any(_is_of_weights(one) for one in said)
    sure = named and not foreign and said[0].by != CONFIGURATION
    if not _fits(value.bits, held, 8 * tensor.element_size() if sure else None):
        return None, f"{name} says {_listed(said)}, but {sizes} has {held:g} bits for each value"
    if misfit := _misfit(tensor, value, held):
        return None, f"{name} says {_listed(said)}, but {sizes} {misfit}"
    return _claim(module, value, said, shape, stored=True, kept_in=tensor), ""


def _float8(module: Any, small: list[tuple[str, Any]], about: Evidence) -> tuple[Widths | None, str]:
    """A format that is a dtype: nobody need tell it, but nobody may contradict it."""
    name, tensor = small[0]
    value = DTYPES[dtype_of(tensor)].precision
    against = [one for one in about.by(LAYER, QUANTISER) if one.value.bits not in (value.bits, 16, 32)]
    if against or len({dtype_of(t) for _, t in small}) > 1:
        return None, f"{type(module).__name__} keeps {name} as {value.name}, but says {_listed(against)}"
    said = [Said(f"{name}.dtype", value, LAYER)]
    shape = tuple(tensor.shape) if len(small) == 1 else None
    return _claim(module, value, said, shape, stored=True, kept_in=tensor), ""


def _rounded(module: Any, weights: list[tuple[str, Any]], about: Evidence) -> tuple[Widths | None, str]:
    """Ordinary floats: rounded in the forward if a quantiser for weights is switched on, or if a layer that is called
    quantised says a width and that it is the weights'. A configuration alone proves nothing: this may be a layer that
    was left out; and bare bits may be those of inputs, of gradients, of a cache."""
    name, called = type(module).__name__, is_called_quantised(module)
    said = [
        one for one in about.by(QUANTISER, LAYER)
        if called or (one.by == QUANTISER and is_about_weights(one.path))
    ]  # fmt: skip
    if said and all(one.value.bits >= 16 for one in said):
        return None, ""
    if about.doubts and (said or called):
        return None, f"{name}: {'; '.join(about.doubts)}"
    if about.waiting:
        return None, f"{name}: {'; '.join(about.waiting)}"
    if not said:
        explicit = [one for one in about.said if one.explicit and one.by != CONFIGURATION and one.value.bits < 16]
        if explicit:
            return None, f"{name} says {_listed(explicit)}, but keeps ordinary {dtype_of(weights[0][1])} weights"
        untold = called and is_called_quantised(module, by_path=False)
        return None, f"{name} is called quantised, but does not tell its width" if untold else ""
    value, doubt = _agreed(said)
    if value is None:
        return None, f"{name}: {doubt}"
    if not any(map(_is_of_weights, said)):
        return None, f"{name} says {_listed(said)}, but not that these are its {dtype_of(weights[0][1])} weights'"
    if is_called_by_others(module) and not any(is_about_weights(one.path) for one in said):
        return None, f"{name} says {_listed(said)}, but is called by something other than weights that it rounds"
    shape = tuple(weights[0][1].shape) if len(weights) == 1 else None
    return _claim(module, value, said, shape, stored=False), ""


def _strange(module: Any, name: str, tensor: Any, about: Evidence) -> tuple[Widths | None, str]:
    """A tensor of a class of its own: it has to say a width, and hold integers or small floats that bear it out."""
    kind = type(tensor).__name__
    said = [one for one in about.by(LAYER, QUANTISER) if one.path.startswith(f"{name}.") or is_called_quantised(module)]
    unknown = f"{type(module).__name__} keeps {name} as a {kind}, which nothing is known of"
    value, doubt = _agreed(said) if said else (None, "")
    if value is None:
        return None, f"{unknown}: {doubt}" if doubt else unknown
    parts = [t for t in vars(tensor).values() if hasattr(t, "element_size") and hasattr(t, "numel")]
    data = max(parts, key=lambda t: t.numel() * t.element_size(), default=None)
    if data is None or dtype_of(data) not in (*INTEGERS, "float8_e4m3fn", "float8_e5m2"):
        return None, f"{unknown}, though it says {_listed(said)}"
    held = data.numel() * data.element_size() * 8 / max(tensor.numel(), 1)
    if not _fits(value.bits, held, 8 * data.element_size() if dtype_of(data) in INTEGERS else None):
        return None, f"{unknown}: it says {_listed(said)}, but has {held:g} bits for each value"
    if dtype_of(data) in INTEGERS and (misfit := _misfit(data, value, held)):
        return None, f"{unknown}: it says {_listed(said)}, but {misfit}"
    scales = [
        t for key, t in vars(tensor).items() if t is not data and hasattr(t, "element_size") and stands_beside(key)
    ]
    return _claim(module, value, said, tuple(tensor.shape), stored=True, scales=scales, kept_in=data), ""


def _claim(
    module: Any, value: Precision, said: list[Said], shape: tuple[int, ...] | None, *, stored: bool,
    scales: list[Any] | None = None, kept_in: Any = None,
) -> Widths:  # fmt: skip
    beside = scales if scales is not None else scales_in(module)
    weights = quantised(
        value,
        math.prod(shape) if shape else 0,
        beside=beside if shape else (),
        source=f"probe: {_listed(said)}",
        stored=stored,
        kept_in=kept_in,
    )
    return Widths(weights, _activations(module), (shape,) if shape else ())


def _activations(module: Any) -> Quantised | None:
    about = evidence(module, ACTIVATIONS, [])
    value, _ = _agreed(list(about.by(LAYER, QUANTISER)))
    if value is None or about.doubts or value.bits >= 16:
        return None
    return quantised(value, source=f"probe: {_listed(list(about.said))}", stored=False)


def _agreed(said: list[Said]) -> tuple[Precision | None, str]:
    """The one width of all statements, in the most telling of their formats; else what they are."""
    widths = {math.ceil(one.value.bits) if one.value.name != "ternary" else 2 for one in said}
    if len(widths) != 1:
        return None, f"it says {_listed(said)}, which do not agree" if said else ""
    formats = [one.value for one in said]
    telling = [value for value in formats if value.kind != "int" or value.name == "ternary"]
    return (telling or formats)[0], ""


def _fits(bits: float, held: float, element: int | None) -> bool:
    """Whether a container of `held` bits for each value is one for values of `bits`: packed tightly or, where the layer
    itself says the width, in the next power of two or one to an element."""
    tight = bits <= held <= max(1.1 * bits, 2 if bits < 2 else 0)
    return tight or (element is not None and bits <= held and held in (2 ** math.ceil(math.log2(bits)), element))


def _misfit(tensor: Any, value: Precision, held: float) -> str:
    """What is wrong with values that have an element each, though fewer bits are said to be enough; looked at on a
    sample, where that costs nothing."""
    bits = 2 if value.name == "ternary" else math.ceil(value.bits)
    if held != 8 * tensor.element_size() or _fits(value.bits, held, None):
        return ""
    if type(tensor).__name__ not in ("Tensor", "Parameter", "Buffer") or str(tensor.device) != "cpu":
        return f"has {held:g} bits for each value, and whether fewer are in use cannot be seen here"
    flat = tensor.detach().view(-1) if tensor.is_contiguous() else tensor.detach()
    each = max(int(_SAMPLE ** (1 / max(flat.dim(), 1)) + 1e-9), 1)
    sample = flat[tuple(slice(None, None, math.ceil(size / each) or 1) for size in flat.shape)]
    low, high = (int(sample.min()), int(sample.max())) if sample.numel() else (0, 0)
    if high - low >= 2**bits or low < -(2 ** (bits - 1)) or high >= 2**bits:
        return f"holds values from {low} to {high}"
    return ""


def _listed(said: list[Said]) -> str:
    return ", ".join(map(str, said))


def is_about_weights(path: str) -> bool:
    """Whether the quantiser at a path, or the part of a scheme there, is one for weights."""
    return bool(_WEIGHT_WORDS & set(words(path.rpartition(".")[0])))


def _is_of_weights(one: Said) -> bool:
    return one.explicit or is_about_weights(one.path)


def is_called_by_others(module: Any) -> bool:
    """Whether the class, or one of its parents, is called by something other than weights that it rounds: ActQuant,
    KVQuant, GradQuant. A last word may be the rest of the layer: QuantConvAct."""
    called = [words(kind.__name__) for kind in type(module).__mro__ if not kind.__module__.startswith("torch.nn")]
    if any(_WEIGHT_WORDS & set(said) for said in called):
        return False
    return any(
        word in _OTHERS and (place + 1 < len(said) or is_quantised_name(said[place - 1]))
        for said in called
        for place, word in enumerate(said)
    )


def is_called_quantised(module: Any, *, by_path: bool = True) -> bool:
    """Whether the class, one of its parents or (if asked) the place they are defined in is called so."""
    kinds = [kind for kind in type(module).__mro__ if not kind.__module__.startswith(("torch.nn", "builtins"))]
    if any(word.startswith("unquant") for kind in kinds for word in words(f"{kind.__module__} {kind.__qualname__}")):
        return False
    if by_path and any(is_quantised_name(kind.__module__.replace(".", " ")) for kind in kinds):
        return True
    return any(_is_called(words(kind.__name__)) for kind in kinds)


def _is_called(said: list[str]) -> bool:
    layer = bool(_LAYERS & set(said))
    narrow = any(
        word in ("int", "uint", "fp", "float", "nf", "mxfp", "nvfp", "w") and after.isdigit() and int(after) <= 8
        for word, after in pairwise(said)
    )
    bits = any(word.isdigit() and after.startswith("bit") for word, after in pairwise(said))
    return (
        any(map(is_quantised_name, said)) or bool(_LAW & set(said)) or bits
        or (layer and (narrow or bool({"q", "bit", "binary", "bin"} & set(said))))
    )  # fmt: skip
