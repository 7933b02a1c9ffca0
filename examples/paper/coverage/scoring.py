"""From what a profiler returned and what is true to a score of 0 to 5."""

from __future__ import annotations

from collections.abc import Sequence

#: Largest factor between returned and true value -> score.
STEPS = ((1.02, 5), (1.1, 4), (1.5, 3), (3.0, 2))
MEANING = """\
5: within 2 % of the true value; 4: within 10 %; 3: within a factor of 1.5; 2: of 3; 1: something was returned,
further off; 0: nothing, or 0"""


def score(returned: float | None, true: float) -> int:
    """Too much and too little count the same."""
    if true <= 0:
        raise ValueError("a probe needs a true value above 0")
    if returned is None or returned <= 0:
        return 0
    factor = max(returned / true, true / returned)
    return next((points for most, points in STEPS if factor <= most), 1)


def precision_score(bops: float | None, true: float, dtypes: Sequence[str]) -> int:
    """By bit-operations where the profiler has any; a profiler that shows dtypes alone does not resolve packing: 1."""
    return max(score(bops, true), 1 if dtypes else 0)


def facet_score(scores: Sequence[int]) -> int:
    """The mean of a facet's probes, rounded down: full marks are for being right everywhere."""
    return sum(scores) // len(scores)
