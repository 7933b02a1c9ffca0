"""The ratio of two scenarios' times, and how sure it is.

Of each block the medians of both are compared, as a logarithm; of each process the median of its blocks is taken; of
the processes the mean, without the highest and lowest fifth of them: a process that ran beside a neighbour's burst is
no news about the scenarios. The interval is from a hierarchical bootstrap, which draws processes, then blocks of each.
With few processes its spread is too small by (P-1)/P and its tails are too thin: it is widened by that and by
Student's t. So how processes differ counts, and not only how many calls there were.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitwatt.deploy.statistics.table import Cell

RESAMPLES = 600
CONFIDENCE = 0.95
#: The share of processes that is left out at either end.
TRIMMED = 0.2


@dataclass(frozen=True)
class Ratio:
    """In logarithms; `processes` has that of each."""

    value: float
    low: float
    high: float
    processes: tuple[float, ...]


def log_ratios(baseline: Cell, scenario: Cell) -> Any:
    """The baseline's time over the scenario's, block by block: processes x blocks, NaN where either is missing."""
    shape = tuple(min(pair) for pair in zip(baseline.medians.shape, scenario.medians.shape, strict=True))
    here = tuple(slice(size) for size in shape)
    found = np.log(baseline.medians[here]) - np.log(scenario.medians[here])
    return found[np.isfinite(found).any(axis=1)]


def ratio(logs: Any) -> Ratio:
    """One process alone cannot show how processes differ: its interval has no ends."""
    processes = len(logs)
    if processes == 0:
        return Ratio(math.nan, -math.inf, math.inf, ())
    middles = np.nanmedian(logs, axis=1)
    value = float(trimmed(middles))
    if processes == 1:
        return Ratio(value, -math.inf, math.inf, (value,))
    reach = student(processes - 1) * spread(logs) * math.sqrt(processes / (processes - 1))
    return Ratio(value, value - reach, value + reach, tuple(middles.tolist()))


def spread(logs: Any) -> float:
    """The standard error, by drawing processes and then as many blocks of each as they have on average."""
    missing = np.isnan(logs)
    # To the end with what is missing, the rest as it came: so the interval of a/b is the one of b/a turned over.
    ordered = np.take_along_axis(logs, np.argsort(missing, axis=1, kind="stable"), axis=1)
    counts = (~missing).sum(axis=1)
    drawn, chance = _draws(len(logs), max(round(float(counts.mean())), 1))
    places = (chance * counts[drawn][..., None]).astype(np.intp)
    places += (drawn * logs.shape[1])[..., None]
    blocks = np.sort(ordered.ravel()[places], axis=2)
    size = blocks.shape[2]
    middles = (blocks[..., (size - 1) // 2] + blocks[..., size // 2]) / 2
    return float(trimmed(middles).std())


@functools.lru_cache(maxsize=8)
def _draws(processes: int, blocks: int) -> tuple[Any, Any]:
    """Which processes, and where in each: the same for all pairs, and at every analysis."""
    chance = np.random.default_rng(0)
    drawn = chance.integers(processes, size=(RESAMPLES, processes))
    return drawn, chance.random((RESAMPLES, processes, blocks), dtype=np.float32)


def trimmed(values: Any) -> Any:
    """The mean over the last axis, without the ends."""
    count = values.shape[-1]
    cut = int(TRIMMED * count)
    return np.sort(values, axis=-1)[..., cut : count - cut].mean(axis=-1)


@functools.cache
def student(freedom: int) -> float:
    """The quantile of Student's t that leaves half of the rest on either side."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
