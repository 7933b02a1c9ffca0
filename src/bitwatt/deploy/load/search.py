"""The highest rate that holds an SLO: bracketed, bisected with short windows, confirmed with longer ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from bitwatt.deploy.load.points import per_second

#: Tells whether a rate holds in a window of so many seconds: held, and by how far the limit was missed (1 is exactly
#: at the limit, infinite where nothing was answered in time).
Try = Callable[[float, float], tuple[bool, float]]

_FIRST = 0.7  # of the capacity: where a single queue begins to feel its load
_UP, _DOWN = 1.4, 3.0
_CLOSE = 1.08  # lowest rate that failed over the highest that held
_LOWEST = 0.005  # of the capacity
_FEWEST = 10  # requests of a window: with fewer, any statistic may hold by luck
_PROBES = 14
_CLEAR = 3.0  # misses the limit by so much that noise is no excuse
_STEP_BACK, _CONFIRMATIONS = 0.85, 4


@dataclass(frozen=True, slots=True)
class Found:
    rate: float | None
    note: str


def highest(probe: Try, confirm: Try, capacity: float, *, needed: int, seconds: float, limit_s: float = 0.0) -> Found:
    """`capacity` is the most that is tried: beyond it a queue grows for ever, and an SLO that is loose enough would
    hold for as long as a window lasts. `needed` is the number of requests it takes to know the statistic and `limit_s`
    the SLO's; windows are as long as these want, within bounds: a third of `seconds` to `seconds` for a probe,
    `seconds` to four times that to confirm."""
    needed = math.ceil(1.2 * needed)  # fewer may come than the rate says

    def holds(rate: float) -> bool:
        length = max(_FEWEST / rate, min(seconds, max(seconds / 3, needed / rate, 3 * limit_s)))
        held, missed = probe(rate, length)
        # A neighbour's burst of work fails a window as well as too many requests do, but not twice in a row.
        return held or (missed < _CLEAR and probe(rate, length)[0])

    low, high, rate = 0.0, math.inf, _FIRST * capacity
    lowest = max(_LOWEST * capacity, _FEWEST / (4 * seconds))
    for _ in range(_PROBES):
        if holds(rate):
            low = rate
        else:
            high = rate
        if high <= _CLOSE * low or low >= capacity or high <= lowest:
            break
        if not low:
            rate = max(lowest, high / _DOWN)
        else:
            rate = math.sqrt(low * high) if math.isfinite(high) else min(capacity, low * _UP)
    if not low:
        return Found(None, f"not even {per_second(high)} holds it")
    rate = low
    for _ in range(_CONFIRMATIONS):
        if confirm(rate, max(_FEWEST / rate, min(4 * seconds, max(seconds, needed / rate, 3 * limit_s))))[0]:
            over = f"; {per_second(high)} did not" if math.isfinite(high) else "; it is all that can be served"
            return Found(rate, f"{per_second(rate)} held in a window of its own{over}")
        high, rate = rate, _STEP_BACK * rate
    return Found(None, f"{per_second(low)} held for a moment, but neither it nor {per_second(high)} in a longer window")
