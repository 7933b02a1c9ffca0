"""The interval of a ratio as all reports write it: its ends, or in words that it tells nothing."""

from __future__ import annotations

from collections.abc import Callable

#: Ends that are more than so many times apart, with 1 between them, say nothing of which of the two is quicker.
WIDE = 100.0
TOO_FEW = "so few processes do not tell"


def tells(low: float | None, high: float | None) -> bool:
    """Of one process alone there is no interval; of two that differ, Student's t makes one of many powers of ten."""
    return low is not None and high is not None and (not low <= 1 <= high or high <= WIDE * low)


def between(low: float | None, high: float | None, shown: Callable[[float], str] = "{:.3g}".format) -> str:
    """[1.38, 1.49], or (so few processes do not tell)."""
    if low is None or high is None or not tells(low, high):
        return f"({TOO_FEW})"
    return f"[{shown(low)}, {shown(high)}]"
