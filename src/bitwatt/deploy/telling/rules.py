"""What counts as good enough: limits that the user may set. Every sentence that uses one tells it."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rules:
    """Shares of one. A quality between 0 and 1 loses points of it (0.93 to 0.92 is 1 %), any other a share of what the
    baseline has, such as an error with its sign turned."""

    max_loss: float = 0.01  # quality that may be lost, less than this
    min_gain: float = 0.20  # latency that must be gained, more than this
    margin: float = 0.05  # a ratio that is shown to lie this near to 1 is no difference to care about
    growth: float = 1.0  # memory under load over that of one caller, minus 1

    def loss(self, value: float | None, baseline: float | None) -> float | None:
        """Of quality, where more is better; below 0 it is a gain."""
        if value is None or baseline is None or not math.isfinite(value) or not math.isfinite(baseline):
            return None
        if 0 <= baseline <= 1 and value <= 1:
            return baseline - value
        return (baseline - value) / abs(baseline) if baseline else None
