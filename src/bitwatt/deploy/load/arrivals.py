"""When requests come if nobody waits for an answer before sending the next: Poisson arrivals, the same for a seed."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterable

#: In one window. What needs more is cut short rather than kept in memory.
MOST = 1_000_000


def poisson(rate: float, seconds: float, seed: str) -> array[float]:
    """Seconds from the start, in order."""
    return phases([(rate, seconds)], seed)[0]


def phases(rates: Iterable[tuple[float, float]], seed: str) -> tuple[array[float], list[int]]:
    """One rate after another without a pause, and the number of arrivals before the end of each. A phase begins anew
    where the last one ended, which Poisson arrivals do not notice: they have no memory."""
    draw = random.Random(seed).expovariate
    times, ends, began = array("d"), [], 0.0
    for rate, seconds in rates:
        at = began + draw(rate)
        while at < began + seconds and len(times) < MOST:
            times.append(at)
            at += draw(rate)
        began += seconds
        ends.append(len(times))
    return times, ends


def affordable(rate: float, seconds: float) -> float:
    """As many seconds as stay well below `MOST` requests."""
    return min(seconds, 0.9 * MOST / rate)
