"""Percentiles as order statistics, and how many requests it takes to know one."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Requests that should lie beyond a percentile before it is believed: 300 in all for a p99, 60 for a p95.
BEYOND = 3


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The smallest value that at least so many per cent do not exceed. Nothing is interpolated: it is a latency that
    somebody has had."""
    if not ordered:
        return None
    return ordered[min(len(ordered), max(1, math.ceil(percent / 100 * len(ordered) - 1e-9))) - 1]


def enough(percent: float) -> int:
    """Requests needed; at least 30, also for a median."""
    beyond = max(1e-6, 1 - percent / 100)
    return max(30, math.ceil(BEYOND / beyond - 1e-6))


def interval(ordered: Sequence[float], percent: float) -> tuple[float, float | None]:
    """95 % interval of the percentile by the ranks a binomial would give it. The upper end is None where it lies beyond
    the slowest that was seen. Latencies in a queue depend on each other, so the truth is wider."""
    share, n = percent / 100, len(ordered)
    spread = 1.96 * math.sqrt(n * share * (1 - share))
    low = max(1, math.floor(n * share - spread))
    high = math.ceil(n * share + spread) + 1
    return ordered[low - 1], ordered[high - 1] if high <= n else None
