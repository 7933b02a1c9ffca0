"""Layers that nothing need be found out about: most of them, so they are told at a glance."""

from __future__ import annotations

from functools import cache
from typing import Any

_FLOATS = frozenset({"torch.float32", "torch.bfloat16", "torch.float16", "torch.float64", "torch.complex64"})


def is_ordinary(module: Any) -> bool:
    """One of torch's own, of plain floats, with nothing on it that its class did not put there."""
    kind: Any = type(module)
    names = _given(kind)
    return (
        bool(names)
        and all(held.keys() <= names for held in (vars(module), module._parameters, module._buffers))
        and not module._modules
        and all(map(_is_plain, module._parameters.values()))
        and all(_is_plain(buffer) or not buffer.shape for buffer in module._buffers.values())
    )


def _is_plain(tensor: Any) -> bool:
    return tensor is None or (
        type(tensor).__name__ in ("Parameter", "Tensor") and str(tensor.dtype) in _FLOATS and not tensor.__dict__
    )


@cache
def _given(kind: type) -> frozenset[str]:
    """What the constructors of a class of torch's own name; nothing for others."""
    if not kind.__module__.startswith("torch.nn.modules."):
        return frozenset()
    # Torch's compiler wraps the constructor of Module itself, so what that puts on a module is asked of one.
    root: Any = next(parent for parent in kind.__mro__ if parent.__module__ == "torch.nn.modules.module")
    makers: list[Any] = [vars(parent).get("__init__") for parent in kind.__mro__ if parent is not root]
    codes = [made.__code__ for made in makers if hasattr(made, "__code__")]
    named = {name for code in codes for name in (*code.co_names, *code.co_consts) if isinstance(name, str)}
    return frozenset({*named, *vars(root())})
