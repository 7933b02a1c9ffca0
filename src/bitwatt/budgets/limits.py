"""One limit: what it holds, where, and how much that may be, in an amount or against a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from bitwatt.comparing.quantities import OF_LAYERS, OF_PHASES, WHOLE, Where, is_count, name_of, unit_of
from bitwatt.errors import SettingsError, UnknownNameError
from bitwatt.pricing import cost_models
from bitwatt.units import format_count, format_duration, parse

JOULES_PER_WH = 3600


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `amount`; or, against a baseline, at most `share` of it and `plus` more."""

    quantity: str
    text: str  # as the user wrote it
    where: Where = WHOLE
    amount: Fraction | None = None
    share: Fraction | None = None
    plus: Fraction | None = None

    @property
    def is_relative(self) -> bool:
        return self.amount is None

    @property
    def name(self) -> str:
        return f"{self.quantity}, {self.where}" if self.where != WHOLE else self.quantity

    @property
    def unit(self) -> str:
        return unit_of(self.quantity)

    def at_most(self, before: int | float) -> Fraction:
        """The amount, for a baseline of `before`."""
        if self.amount is not None:
            return self.amount
        return exactly(before) * (self.share if self.share is not None else 1) + (self.plus or 0)


def limit_of(word: str, written: Any, where: Where = WHOLE) -> Limit:
    """ "4.1 GMAC", 25_600_000, "+2 %", "1.02×" or "+3 MB". A limit on flops that is written in MAC is held against
    multiply-accumulates, not against twice as many FLOPs: element-wise work is in none of them."""
    try:
        quantity = name_of(word)
    except UnknownNameError as error:
        raise SettingsError(str(error)) from None
    _check_place(quantity, where)
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        raise SettingsError(f'{word} = {written!r}: write an amount such as {_example(quantity)!r}, or "+2 %"')
    text = str(written).strip().replace("−", "-")
    try:
        number, unit = parse(text)
    except (ValueError, OverflowError) as error:
        raise SettingsError(f"{word} = {written!r}: {error}") from None
    amount, signed = exactly(number), text[:1] in ("+", "-")
    if text.endswith("%"):
        if not signed:
            raise SettingsError(f'{word} = {written!r}: against a baseline it is "+{text}" or "-{text}"')
        return Limit(quantity, text, where, share=1 + amount)
    if text.endswith(("×", "x")):
        return Limit(quantity, text, where, share=amount)
    quantity, amount = _in_unit(quantity, unit, amount, word, written)
    if signed:
        return Limit(quantity, text, where, plus=amount)
    return Limit(quantity, text, where, amount=amount)


def exactly(number: int | float) -> Fraction:
    """Of a float the decimal that people see: 2 % is 2/100."""
    return Fraction(number) if isinstance(number, int) else Fraction(str(number))


def _check_place(quantity: str, where: Where) -> None:
    if quantity in cost_models():
        return
    if where.layer and quantity not in OF_LAYERS:
        raise SettingsError(f"{quantity} of layer {where.layer!r}: it is known of runs and phases, not of layers")
    if where.phase and quantity not in OF_PHASES:
        raise SettingsError(f"{quantity} of phase {where.phase!r}: it is not known of phases")


def _in_unit(quantity: str, unit: str, amount: Fraction, word: str, written: Any) -> tuple[str, Fraction]:
    wanted = unit_of(quantity)
    if quantity == "flops" and unit == "MAC":
        return "macs", amount
    if wanted == "J" and unit == "Wh":
        return quantity, amount * JOULES_PER_WH
    if unit not in ("", wanted):
        raise SettingsError(f"{word} = {written!r}: it is in {unit}, wanted is {wanted or 'a plain number'}")
    return quantity, amount


def _example(quantity: str) -> str:
    unit = unit_of(quantity)
    return "30 s" if unit == "s" else f"5 {'k' if unit == 'J' else 'G'}{unit}" if unit else "25.6 M"


def shown(amount: int | float | Fraction | None, unit: str) -> str:
    """In the units people read; what was counted with its digits where they are few."""
    if amount is None:
        return "—"
    if isinstance(amount, Fraction):
        amount = int(amount) if amount.denominator == 1 else float(f"{float(amount):.6g}")
    if unit == "s":
        return format_duration(float(f"{amount:.3g}"))
    return format_count(amount if isinstance(amount, int) else float(f"{amount:.4g}"), unit)


def is_hard(quantity: str) -> bool:
    """Counts, and the most memory that a run took: a run that is above the limit is above it."""
    return is_count(quantity) or quantity == "peak_memory"
