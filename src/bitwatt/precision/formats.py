"""Number formats that quantised values are kept in, beyond the dtypes of a framework."""

from __future__ import annotations

import re

from bitwatt.dtypes import DTYPES, Precision
from bitwatt.errors import UnknownNameError

#: log2 3, as the literature rounds it.
TERNARY_BITS = 1.58

_NAMED = {
    "nf4": Precision("nf4", "float", 4),
    "fp4": Precision("fp4", "float", 4),
    "float4_e2m1fn": Precision("float4_e2m1fn", "float", 4),
    "fp6_e2m3": Precision("fp6_e2m3", "float", 6),
    "fp6_e3m2": Precision("fp6_e3m2", "float", 6),
    "ternary": Precision("ternary", "int", TERNARY_BITS),
    "binary": Precision("binary", "int", 1),
}
_ALIASES = {
    "fp64": "float64", "double": "float64", "fp32": "float32", "float": "float32", "fp16": "float16", "half": "float16",
    "bf16": "bfloat16", "fp8": "float8_e4m3fn", "float8": "float8_e4m3fn", "e4m3": "float8_e4m3fn",
    "fp8_e4m3": "float8_e4m3fn", "float8_e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "fp8_e5m2": "float8_e5m2",
    "fp4_e2m1": "float4_e2m1fn", "float4_e2m1fn_x2": "float4_e2m1fn", "qint2": "int2", "qint4": "int4",
    "qint8": "int8", "quint8": "uint8", "qfloat8": "float8_e4m3fn", "qfloat8_e4m3fn": "float8_e4m3fn",
    "qfloat8_e5m2": "float8_e5m2", "bitnet": "ternary", "fp6": "fp6_e2m3",
}  # fmt: skip
_MINIFLOATS = {
    (4, 3): "float8_e4m3fn", (5, 2): "float8_e5m2", (2, 1): "float4_e2m1fn", (2, 3): "fp6_e2m3", (3, 2): "fp6_e3m2",
    (5, 10): "float16", (8, 7): "bfloat16",
}  # fmt: skip


def format_named(name: str) -> Precision:
    """The format called `name`, as libraries and people spell it: int4, nf4, fp8, torch.float8_e4m3fn."""
    plain = name.removeprefix("torch.").lower()
    plain = _ALIASES.get(plain, plain)
    if plain in _NAMED:
        return _NAMED[plain]
    if plain in DTYPES:
        return DTYPES[plain].precision
    if (integer := re.fullmatch(r"(u?)int(\d{1,2})", plain)) and 1 <= int(integer[2]) <= 64:
        return Precision(plain, "int", int(integer[2]))
    known = ", ".join(sorted({*_NAMED, *_ALIASES, "int1 … int64"}))
    raise UnknownNameError(f"no number format is called {name!r}; there are {known}")


def integer(bits: float, *, signed: bool = True) -> Precision:
    """Integers of so many bits; between one and two bits they are ternary."""
    if 1 < bits < 2:
        return _NAMED["ternary"]
    whole = int(bits)
    if whole != bits or not 1 <= whole <= 64:
        raise ValueError(f"an integer format has 1 to 64 bits, not {bits}")
    return Precision(f"{'' if signed else 'u'}int{whole}", "int", whole)


def spanning(low: int, high: int) -> Precision:
    """The narrowest integers from `low` to `high`; three values are ternary."""
    if high - low == 2:
        return _NAMED["ternary"]
    return integer(max((high - low).bit_length(), 1), signed=low < 0)


def floating(bits: int) -> Precision:
    """Floats of so many bits whose exponent nobody told."""
    return {64: format_named("float64"), 32: format_named("float32")}.get(
        bits, Precision(f"float{bits}", "float", bits)
    )


def minifloat(exponent: int, mantissa: int) -> Precision:
    """Floats of so many bits for exponent and mantissa, beside the sign."""
    name = _MINIFLOATS.get((exponent, mantissa))
    bits = 1 + exponent + mantissa
    return format_named(name) if name else Precision(f"float{bits}_e{exponent}m{mantissa}", "float", bits)


def is_minifloat(exponent: object, mantissa: object) -> bool:
    """Whether a pair of numbers is one of the small floats that hardware and standards have."""
    return (exponent, mantissa) in _MINIFLOATS


def stored_bits(precision: Precision) -> float:
    """What one value takes in memory, packed as tightly as libraries do: ternary values take two bits."""
    return 2 if precision.name == "ternary" else precision.bits
