"""Quantities as people write them: 1.23 TFLOP, 3.2 GB, 210 W, 3 min 4 s. Formats and parses, whole numbers exactly."""

from __future__ import annotations

import math
import re
from fractions import Fraction

_LARGE = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")
_SMALL = ("m", "µ", "n", "p", "f")
_BINARY = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SPANS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))

#: What a prefix may stand before. Plural spellings are accepted when parsing.
UNITS = ("FLOP", "BOP", "MAC", "OP", "B", "J", "Wh", "W", "s", "Hz", "g", "step", "")
_PLURALS = {"FLOPs": "FLOP", "BOPs": "BOP", "MACs": "MAC", "OPs": "OP", "byte": "B", "bytes": "B", "steps": "step"}
_PREFIXES = {
    **{prefix: Fraction(1000) ** power for power, prefix in enumerate(_LARGE)},
    **{prefix: Fraction(1, 1000 ** (power + 1)) for power, prefix in enumerate(_SMALL)},
    **{prefix: Fraction(1024) ** (power + 1) for power, prefix in enumerate(_BINARY)},
    "K": Fraction(1000),
    "u": Fraction(1, 10**6),
}
#: Commas stand between thousands alone: 0,2 is no number, and not twenty times as much.
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!,?\d)|\d[\d_]*)"
_QUANTITY = re.compile(rf"\s*([-+−]?(?:{_DIGITS}\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([^\d\s+−-][^\d\s]*)?")

Number = int | float


def format_count(value: Number, unit: str = "") -> str:
    """Three significant digits and a decimal prefix. Trailing zeros are kept only where the number was rounded, so
    that 4.5 GMAC is exact and 4.50 GMAC is not."""
    if isinstance(value, float) and not math.isfinite(value):
        return _with_unit(str(value), unit)
    if abs(value) < 1000 and value == int(value):
        return _with_unit(str(int(value)), unit)
    sign, digits, power = _three_digits(str(value))  # of a float, the decimal that people see
    if not -len(_SMALL) <= power < len(_LARGE):
        return _with_unit(f"{sign}{_scientific(str(value))}", unit)
    prefix = _LARGE[power] if power >= 0 else _SMALL[-power - 1]
    return f"{sign}{digits} {prefix}{unit}".rstrip()


def format_bytes(value: Number) -> str:
    return format_count(value, "B")


def format_duration(seconds: float) -> str:
    """1.2 ms, 3.4 s, 3 min 4 s, 2 h 5 min: two parts at most."""
    if not math.isfinite(seconds) or abs(seconds) < 60:
        return format_count(seconds, "s")
    rest = round(abs(seconds))
    parts: list[tuple[int, str]] = []
    for name, length in _SPANS:
        amount, rest = divmod(rest, length)
        if amount or parts:
            parts.append((amount, name))
    text = " ".join(f"{amount} {name}" for amount, name in parts[:2] if amount)
    return f"-{text}" if seconds < 0 else text


def format_percent(ratio: float) -> str:
    """Of one: 0.5 is 50.0 %. What is there but too small to show reads < 0.1 %."""
    if ratio == 0:
        return "0 %"
    if 0 < ratio < 0.0005:
        return "< 0.1 %"
    return f"{100 * ratio:.1f} %"


def format_ratio(ratio: float) -> str:
    """2.5×."""
    return f"{format_count(ratio)}×"


def parse(text: str) -> tuple[Number, str]:
    """The value in base units and the unit: "1.5 GFLOP" -> (1500000000, "FLOP"), "3 min 4 s" -> (184, "s"),
    "50 %" -> (0.5, ""). The value is an int wherever that is exact."""
    total, unit, position = Fraction(0), None, 0
    stripped = text.strip()
    while position < len(stripped):
        match = _QUANTITY.match(stripped, position)
        if not match:
            raise ValueError(f"{text!r} is not a quantity; write a number and a unit, such as 1.5 GFLOP or 3 min 4 s")
        scale, found = _unit(match[2] or "", text)
        if unit is not None and not unit == found == "s":
            raise ValueError(f"{text!r} holds more than one quantity")
        number = Fraction(match[1].replace(",", "").replace("_", "").replace("−", "-"))
        total += (-number if total < 0 else number) * scale  # "-3 min 4 s" is minus all of it
        unit, position = found, match.end()
    if unit is None:
        raise ValueError("an empty text is not a quantity")
    return (int(total) if total.denominator == 1 else float(total)), unit


def _unit(word: str, text: str) -> tuple[Fraction, str]:
    if word == "%":
        return Fraction(1, 100), ""
    if word in ("x", "×"):
        return Fraction(1), ""
    for name, length in _SPANS:
        if word == name:
            return Fraction(length), "s"
    base, slash, per = word.partition("/")
    for start in range(min(len(base), 2) + 1):
        prefix, name = base[:start], _PLURALS.get(base[start:], base[start:])
        if prefix in _PREFIXES and name in UNITS and per in ("", "s", "B"):
            return _PREFIXES[prefix], f"{name}{slash}{per}"
    known = ", ".join(unit for unit in UNITS if unit)
    raise ValueError(f"{word!r} in {text!r} is not a unit; there are {known} (and FLOP/s and so on), %, min, h and d")


def _with_unit(number: str, unit: str) -> str:
    return f"{number} {unit}".rstrip()


def _three_digits(number: str, step: int = 3) -> tuple[str, str, int]:
    """Sign, three significant digits with a point among them, and the power of 10**step they are of. In whole numbers:
    lists of many runs have many of them, and fractions take long."""
    mantissa, _, exponent = number.lower().partition("e")
    whole, _, rest = mantissa.lstrip("-").partition(".")
    amount = int(whole + rest)
    length = len(str(amount))
    last = 10 ** (length - 3) if length > 3 else 1
    shown, left = divmod(amount if length > 3 else amount * 10 ** (3 - length), last)
    shown += 2 * left > last or (2 * left == last and shown % 2)  # halves to the even one, as round does
    if shown == 1000:  # 999.6 k reads 1.00 M
        shown, length = 100, length + 1
    order = length - 1 + int(exponent or 0) - len(rest)
    power = order // step
    places = 2 - (order - step * power)
    first, after = divmod(shown, 10**places)
    digits = f"{first}.{after:0{places}}" if places else str(first)
    if not left and places and step == 3:  # exact: 4.5 G, but 1.00e+33
        digits = digits.rstrip("0").rstrip(".")
    return "-" if number.startswith("-") else "", digits, power


def _scientific(number: str) -> str:
    _, digits, power = _three_digits(number, 1)
    return f"{digits}e{power:+03}"
