"""Tensors that a layer holds: which of them are its weights, which stand beside them, and what they are kept in."""

from __future__ import annotations

import math
import re
from typing import Any

WEIGHT = re.compile(r"weight|kernel|codes|packed|quanti[sz]ed|(^|_)w(_|$)|(^|_)(wq|qw)")
NO_WEIGHT = re.compile(
    r"scale|zero|(^|_)zp|shape|offset|bias|mask|idx|ind(ex|ices)|absmax|(^|_)(min|max|g|lut|norm)(_|$)|perm|codebook"
)
_BESIDE = re.compile(r"scale|zero|absmax|(^|_)zp(_|$)")
_NOT_BESIDE = re.compile(r"input|output|act|inv_freq")
#: Integers that are no weights: places, masks, counts.
NO_DATA = re.compile(r"(^|_)(ids?|pos|positions?|tokens?|labels?|targets?|edges?|rng|seed|steps?|counts?)(_|$)|cache")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
#: Subclasses of Tensor that wrap ordinary values, or whose meaning the backend knows.
_WRAPPERS = ("FakeTensor", "DTensor", "FunctionalTensor", "NestedTensor", "AsyncCollectiveTensor", "TwoTensor")
#: Dtypes narrower than a byte, or of bits that mean what only their owner knows.
_NARROW = re.compile(r"u?int[1-7]|float4\w*|bits\w*")


def logical_shape(module: Any) -> tuple[int, ...] | None:
    """The shape of the weight before it was packed, from the sizes that layers of its kind have."""
    held = getattr(module, "__dict__", {})

    def size(*names: str) -> int | None:
        found = next((held[name] for name in names if isinstance(held.get(name), int)), None)
        return found if found and found > 0 else None

    channels, inner, kernel = size("out_channels"), size("in_channels"), held.get("kernel_size")
    if channels and inner and kernel is not None:
        window = tuple(kernel) if isinstance(kernel, (tuple, list)) else (kernel,)
        return (channels, inner // (size("groups") or 1), *window)
    sides = (
        size("out_features", "outfeatures", "output_size", "out_dim", "num_embeddings"),
        size("in_features", "infeatures", "input_size", "in_dim", "embedding_dim"),
    )
    return (sides[0], sides[1]) if sides[0] and sides[1] else None


def weights_in(module: Any) -> list[tuple[str, Any]]:
    """Tensors that hold the layer's weights, packed ones too."""
    loose = [(name, tensor) for name, tensor in loose_in(module) if is_compact(tensor)]  # others may be computed ones
    return [
        (name, tensor)
        for name, tensor in (*tensors_in(module), *loose)
        if (WEIGHT.search(name.lower()) and not NO_WEIGHT.search(name.lower()) and len(tensor.shape) >= 2)
        or (name == "weight" and is_strange(tensor))
    ]


def has_ordinary(module: Any, weights: list[tuple[str, Any]], shape: tuple[int, ...] | None) -> bool:
    """Whether floats of the layer's own size are there, so that integers beside them are something else."""
    size = math.prod(shape) if shape else None
    named = {name for name, _ in weights}
    return any(
        dtype_of(tensor).startswith(("float", "bfloat", "complex")) and tensor.element_size() > 1
        and (tensor.numel() == size or (size is None and name in named)) and not is_strange(tensor)
        for name, tensor in tensors_in(module)
    )  # fmt: skip


def is_compact(tensor: Any) -> bool:
    dtype = dtype_of(tensor)
    return dtype in INTEGERS or dtype.startswith("float8") or is_narrow(tensor) or is_strange(tensor)


def is_narrow(tensor: Any) -> bool:
    return bool(_NARROW.fullmatch(dtype_of(tensor)))


def is_flat(tensor: Any, shape: tuple[int, ...] | None) -> bool:
    """A vector too long for anything that goes with a side of the matrix."""
    if shape is None or len(tensor.shape) != 1 or tensor.numel() <= max(shape):
        return False
    return bool(tensor.numel() * tensor.element_size() * 8 >= math.prod(shape))


def scales_in(module: Any) -> list[Any]:
    registered = [tensor for name, tensor in tensors_in(module) if stands_beside(name)]
    return registered or [tensor for name, tensor in loose_in(module) if stands_beside(name)]


def is_beside(name: str) -> bool:
    """Whether a tensor of that name holds scales or zero points, of weights or of anything else."""
    return bool(_BESIDE.search(name.lower()))


def stands_beside(name: str) -> bool:
    return is_beside(name) and not _NOT_BESIDE.search(name.lower())


def tensors_in(module: Any) -> list[tuple[str, Any]]:
    places = {**getattr(module, "_parameters", {}), **getattr(module, "_buffers", {})}
    return [
        (name, tensor)
        for name, tensor in places.items()
        if hasattr(tensor, "element_size") and not type(tensor).__name__.startswith("Uninitialized")
    ]


def loose_in(module: Any) -> list[tuple[str, Any]]:
    """Tensors that are plain attributes, neither parameters nor buffers."""
    return [
        (name, value)
        for name, value in getattr(module, "__dict__", {}).items()
        if hasattr(value, "element_size") and hasattr(value, "shape") and not isinstance(value, type)
    ]


def dtype_of(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def is_strange(tensor: Any) -> bool:
    """A tensor of a class that runs code of its own when it is computed with."""
    kind = type(tensor)
    if kind.__name__ in _WRAPPERS or kind.__name__.startswith("SparseSemiStructured"):
        return False
    return any(
        "__torch_dispatch__" in vars(parent) or "__torch_function__" in vars(parent)
        for parent in kind.__mro__
        if parent.__module__ not in ("torch", "torch._C", "torch._tensor", "torch.nn.parameter", "builtins")
    )
