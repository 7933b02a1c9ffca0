"""What a user wants to hold under load: p99<20ms, max<1s, mean<=5ms, and several of them with commas between."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from bitwatt.deploy.load.percentiles import enough
from bitwatt.errors import BitwattError
from bitwatt.units import parse as quantity

_CONDITION = re.compile(r"\s*([a-zµ]+[\d.]*|[\d.]+)\s*(<=|≤|<)\s*(.+?)\s*", re.IGNORECASE | re.ASCII)
_HOW = "write it like p99<20ms, p95<=5ms, mean<2ms or max<1s"
_MEAN, _MAX = ("mean", "avg", "average"), ("max", "maximum", "p100")


@dataclass(frozen=True, slots=True)
class Condition:
    """A statistic of latency below a limit. `percent` is None for the mean, 100 for the maximum."""

    name: str
    percent: float | None
    limit_ms: float
    inclusive: bool = False

    @property
    def needed(self) -> int:
        """Requests, before it is believed. A maximum is of those that came; no number makes it sure."""
        return enough(50 if self.percent in (None, 100) else self.percent or 50)

    def holds(self, value_ms: float | None) -> bool:
        if value_ms is None or not math.isfinite(value_ms):
            return False
        return value_ms <= self.limit_ms if self.inclusive else value_ms < self.limit_ms


def parse(text: str) -> tuple[Condition, ...]:
    """Nothing for an empty text."""
    if not isinstance(text, str):
        raise BitwattError(f"an SLO is a text, not {text!r}: {_HOW}")
    return tuple(_condition(part, text) for part in text.split(",")) if text.strip() else ()


def _condition(part: str, text: str) -> Condition:
    found = _CONDITION.fullmatch(part)
    if not found:
        raise BitwattError(f"{text!r} is no SLO: {_HOW}")
    name, sign, limit = found[1].lower(), found[2], found[3]
    return Condition(name, _percent(name, text), _milliseconds(limit, text), sign != "<")


def _percent(name: str, text: str) -> float | None:
    if name in _MEAN:
        return None
    if name in _MAX:
        return 100.0
    if name == "median":
        return 50.0
    digits = re.fullmatch(r"p(\d{1,2}(?:\.\d{1,4})?)", name, re.ASCII)
    if not digits or not 0 < float(digits[1]) < 100:
        raise BitwattError(f"{name!r} in {text!r} is no statistic of latency: there are p50 to p99.99, mean and max")
    return float(digits[1])


def _milliseconds(limit: str, text: str) -> float:
    try:
        value, unit = quantity(limit)
    except ValueError as error:
        raise BitwattError(f"the limit of {text!r} is {limit!r}, which is no time: {_HOW}") from error
    if unit != "s":
        raise BitwattError(f"the limit of {text!r} has no unit of time: {_HOW}")
    if not value > 0:
        raise BitwattError(f"the limit of {text!r} is not above 0: nothing would hold it")
    return 1000 * float(value)
