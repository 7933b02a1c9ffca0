"""How load is put on something, checked before anything is started."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from bitwatt.deploy.load.slo import parse
from bitwatt.errors import BitwattError

#: Threads beyond this measure the machine's scheduler.
MOST_CALLERS = 1024


@dataclass(frozen=True, slots=True)
class Settings:
    seconds: float = 3.0  # of one window
    rates: tuple[float, ...] = ()  # requests per second; empty: shares of the capacity
    callers: tuple[int, ...] = (1, 4)
    slo: str = ""
    seed: int = 0
    rows: int = 1  # of a request
    workers: int | None = None  # that serve the open loop; None: the callers that got most out of it
    limit_s: float = 30.0  # of one request; what takes longer hangs
    patience_s: float = 5.0  # a request that waits longer for its turn is dropped
    overload: bool = True  # go past saturation, and see whether it recovers
    why_not: str = ""  # where it does not


def checked(
    *,
    seconds: Any,
    rates: Iterable[Any],
    callers: Iterable[Any],
    slo: str,
    rows: Any = 1,
    limit_s: Any = 30.0,
    **others: Any,
) -> Settings:
    """Raises with what is wrong and what to write instead."""
    parse(slo)
    return Settings(
        seconds=_positive(seconds, "seconds", 3600),
        rates=tuple(_positive(rate, "a rate (requests per second)", 1e6) for rate in rates),
        callers=tuple(_whole(count, "callers", MOST_CALLERS) for count in callers) or Settings().callers,
        slo=slo.strip(),
        rows=_whole(rows, "rows of a request", 10**6),
        limit_s=_positive(limit_s, "timeout_s", 3600),
        **others,
    )


def _positive(value: Any, name: str, most: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not 0 < number <= most:
        raise BitwattError(f"{name}: {value!r} is not a number above 0 and up to {most:g}")
    return number


def _whole(value: Any, name: str, most: int) -> int:
    number = _positive(value, name, most)
    if number != int(number):
        raise BitwattError(f"{name}: {value!r} is not a whole number")
    return int(number)
