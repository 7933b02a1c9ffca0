"""Number formats with their scales, as one writes them: int4, int4:g128:zp, nf4, mxfp8, nvfp4."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from bitwatt.dtypes import DTYPES, Precision
from bitwatt.errors import UnknownNameError
from bitwatt.precision.formats import format_named, stored_bits

CHANNEL, TENSOR = "channel", "tensor"
SPELLING = "NAME[:gN | :channel | :tensor][:zp][:FORMAT OF THE SCALES], such as int4:g128:zp:fp16"

#: Formats that are a number format, a block and a format of scales at once: OCP Microscaling 1.0, and NVIDIA's.
_BLOCKS = {
    "mxfp8": ("float8_e4m3fn", 32, 8), "mxfp8_e5m2": ("float8_e5m2", 32, 8), "mxfp6": ("fp6_e2m3", 32, 8),
    "mxfp4": ("float4_e2m1fn", 32, 8), "mxint8": ("int8", 32, 8), "nvfp4": ("float4_e2m1fn", 16, 8),
}  # fmt: skip
#: Values that are places in a table of 16 numbers: nothing can multiply them before they are looked up.
_CODES = frozenset({"nf4", "fp4"})


@dataclass(frozen=True, slots=True)
class Scheme:
    """A number format and what goes beside its values. `group` counts values along a weight's input axis that share a
    scale, or is "channel" (one scale for each output) or "tensor" (one in all). `scale_bits` None: as wide as the
    layer's own dtype. `told` are effective bits that somebody else has worked out."""

    name: str
    precision: Precision
    group: int | str = CHANNEL
    scale_bits: int | None = None
    zero_point: bool = False
    told: float | None = None

    @property
    def is_cast(self) -> bool:
        """Floats of 16 bits and more need no scale: arithmetic runs in them."""
        return self.precision.kind == "float" and self.precision.bits >= 16

    @property
    def is_code(self) -> bool:
        return self.precision.name in _CODES

    @property
    def container(self) -> str:
        """The dtype whose values are these, or the next wider one that a multiplier takes."""
        name = self.precision.name
        if name in DTYPES:
            return name
        if self.precision.kind == "int":
            return next(f"int{bits}" for bits in (*range(1, 9), 16, 32, 64) if bits >= self.precision.bits)
        return "float4_e2m1fn_x2" if self.precision.bits <= 4 else "float8_e4m3fn"

    def scales(self, shape: tuple[int, ...]) -> int:
        """How many scales a weight of this shape has."""
        if self.is_cast or not shape:
            return 0
        if self.group == TENSOR:
            return 1
        if isinstance(self.group, str):
            return shape[0]
        if self.is_code:  # bitsandbytes blocks run over the ends of rows
            return math.ceil(math.prod(shape) / self.group)
        return shape[0] * math.ceil(math.prod(shape[1:]) / self.group)

    def effective_bits(self, shapes: Iterable[tuple[int, ...]], own_bits: int) -> float:
        """Bits of one value with its share of scales and zero points, over weights of these shapes."""
        if self.told is not None:
            return self.told
        shapes = tuple(shapes)
        values, scales = sum(map(math.prod, shapes)), sum(map(self.scales, shapes))
        beside = scales * ((self.scale_bits or own_bits) + (self.precision.bits if self.zero_point else 0))
        return stored_bits(self.precision) + (beside / values if values else 0)


def scheme(text: str) -> Scheme:
    """The format written as `text`. What is left open is filled in as libraries do it; see docs/guides/what-if.md."""
    name, *options = text.strip().lower().split(":")
    if name in _BLOCKS:
        base, block, bits = _BLOCKS[name]
        found = Scheme(name, format_named(base), block, bits)
    else:
        value = format_named(name)
        if value.kind not in ("float", "int"):
            raise UnknownNameError(f"{text!r} is no format that a product could be computed in")
        found = _with_usual_scales(value)
    if options and found.is_cast:
        raise UnknownNameError(f"{text!r}: {name} needs no scales, so it takes no options")
    if options and name in _BLOCKS:
        raise UnknownNameError(f"{text!r}: {name} says itself how its scales are, so it takes no options")
    given: dict[str, str] = {}
    for option in options:
        about = _about(option)
        if about in given:
            raise UnknownNameError(f"{text!r} tells {about} twice: {given[about]} and {option}")
        given[about] = option
    if _ZERO_POINT in given and found.precision.kind != "int":
        raise UnknownNameError(f"{text!r}: {name} is a float, which has no zero point")
    group, scale_bits = found.group, found.scale_bits
    if _SHARED in given:
        told = given[_SHARED]
        group = told if told in (CHANNEL, TENSOR) else int(told[1:])
    if _SCALES in given:
        scale_bits = _scale_bits(given[_SCALES], text)
    return Scheme(text.strip().lower(), found.precision, group, scale_bits, _ZERO_POINT in given)


_SHARED, _ZERO_POINT, _SCALES = "what shares a scale", "the zero point", "the format of the scales"


def _about(option: str) -> str:
    if option in (CHANNEL, TENSOR) or re.fullmatch(r"g[1-9]\d*", option):
        return _SHARED
    return _ZERO_POINT if option == "zp" else _SCALES


def _with_usual_scales(value: Precision) -> Scheme:
    if value.name in _CODES:  # bitsandbytes without double quantisation
        return Scheme(value.name, value, 64, 32)
    if value.name in ("ternary", "binary"):  # BitNet b1.58, XNOR-Net's simplest form
        return Scheme(value.name, value, TENSOR)
    if value.kind == "float" and value.bits < 16:  # torchao and transformer engine: tensorwise float8
        return Scheme(value.name, value, TENSOR, 32)
    return Scheme(value.name, value)


def _scale_bits(option: str, text: str) -> int:
    try:
        found = format_named(option)
    except UnknownNameError:
        raise UnknownNameError(f"{option!r} in {text!r} is not understood; a format is {SPELLING}") from None
    least = {"float": 8, "int": 4}.get(found.kind)  # GGUF has scales of 4 bits
    if least is None or found.bits < least:
        raise UnknownNameError(f"{text!r}: nobody writes scales in {option}; fp32, fp16, bf16, fp8 or int8 would do")
    return int(found.bits)
