"""Weights packed into integers with scales and zero points for groups of them: GPTQ, AWQ and their relatives."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.precision.formats import integer
from bitwatt.precision.registry import Widths, quantised
from bitwatt.records import Quantised

#: Under which of these names a layer keeps what goes beside its weights. Indices of groups and tables are not data.
BESIDE = ("scales", "qzeros", "zeros", "scaled_zeros", "weight_scale", "weight_zero_point")


def tensor(module: Any, name: str) -> Any:
    """A parameter or buffer of the module. Never its attribute: a property of that name may compute."""
    held = module._parameters.get(name)
    return held if held is not None else module._buffers.get(name)


def grouped(
    module: Any,
    bits: float,
    shape: tuple[int, ...],
    *,
    weight: str = "qweight",
    beside: tuple[str, ...] = BESIDE,
    activations: Quantised | None = None,
) -> Widths:
    """A layer whose `weight` holds integers of so many bits. What cannot hold them is an error, not a guess."""
    codes, numel = tensor(module, weight), math.prod(shape)
    if codes is None:
        raise LookupError(f"it has no {weight}")
    if codes.numel() * codes.element_size() * 8 < math.floor(bits) * numel:
        raise ValueError(f"{weight} is too small for {numel} values of {bits} bits")
    group = getattr(module, "group_size", getattr(module, "groupsize", None))
    source = f"bits={bits}" + (f", group_size={group}" if isinstance(group, int) else "")
    scales = [tensor(module, name) for name in beside]
    return Widths(quantised(integer(bits), numel, beside=scales, source=source), activations, (shape,))


def sides(module: Any) -> tuple[int, int]:
    """(out, in) of a linear layer, under either spelling."""
    for out, into in (("out_features", "in_features"), ("outfeatures", "infeatures")):
        if isinstance(getattr(module, out, None), int):
            return int(getattr(module, out)), int(getattr(module, into))
    raise LookupError("it does not tell its sizes")
