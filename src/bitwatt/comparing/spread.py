"""Numbers that vary from run to run: their median, and how sure a ratio of medians is."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

#: Below this many values on a side no interval is told: the percentile bootstrap of two covers 65 %, of three 90 %, of
#: five and more 95 % (docs/guides/compare.md).
LEAST = 3
RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Ratio:
    """`after` over `before`, by their medians. `low` and `high` are None where too few values tell of no spread."""

    value: float
    low: float | None
    high: float | None
    n: tuple[int, int]

    @property
    def is_known(self) -> bool:
        return self.low is not None

    @property
    def excludes_one(self) -> bool:
        """Whether the interval speaks for a difference."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high


def ratio(before: Sequence[float], after: Sequence[float]) -> Ratio | None:
    """None where there is nothing to divide, or nothing to divide by."""
    if not before or not after or median(before) <= 0:
        return None
    value, n = median(after) / median(before), (len(before), len(after))
    if min(n) < LEAST or min(before) <= 0:
        return Ratio(value, None, None, n)
    low, high = _between(lambda draw: draw(after) / draw(before))
    return Ratio(value, low, high, n)


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Of the median; None where too few values tell of no spread."""
    return _between(lambda draw: draw(values)) if len(values) >= LEAST else None


def _between(statistic: Callable[[Callable[[Sequence[float]], float]], float]) -> tuple[float, float]:
    """The percentile bootstrap. Seeded: the same runs give the same interval."""
    dice = random.Random(20_260_102)

    def draw(values: Sequence[float]) -> float:
        many = len(values)  # statistics.median does the same and takes twice as long, thousands of times
        drawn, middle = sorted(dice.choices(values, k=many)), many // 2
        return drawn[middle] if many % 2 else (drawn[middle - 1] + drawn[middle]) / 2

    drawn = sorted(statistic(draw) for _ in range(RESAMPLES))
    tail = round((1 - CONFIDENCE) / 2 * RESAMPLES)
    return drawn[tail], drawn[RESAMPLES - 1 - tail]
