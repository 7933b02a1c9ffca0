"""Faster, slower, equivalent, or no difference shown.

"Faster" takes three things at once: the ratio is outside the margin within which nobody cares, its interval leaves out
1, and Wilcoxon's test on the blocks says so after Holm's correction. The interval counts how processes differ, the test
how blocks do. So two that are the same are seldom told apart, and what is called faster today is not slower tomorrow.
"Equivalent" means that the whole interval is inside the margin; everything else is "no difference shown".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bitwatt.deploy.intervals import between
from bitwatt.deploy.records import CONTROL, Call
from bitwatt.deploy.statistics import table
from bitwatt.deploy.statistics.ranks import holm, signed_rank
from bitwatt.deploy.statistics.ratios import log_ratios, ratio
from bitwatt.deploy.statistics.table import Key, Table

FASTER, SLOWER, EQUIVALENT, NO_DIFFERENCE = "faster", "slower", "equivalent", "no difference shown"
MARGIN = 0.05
ALPHA = 0.05
#: As a logarithm: by so much the ratios of wall and CPU time may differ without a word.
DISTURBED = 0.25


@dataclass(frozen=True)
class Comparison:
    """A scenario against a baseline in one setting. `ratio` is how many times as fast it is: the baseline's time over
    its own, with a 95 % interval."""

    scenario: str
    baseline: str
    batch: int
    threads: int
    ratio: float
    low: float
    high: float
    p: float  # Wilcoxon's, on blocks
    p_holm: float  # corrected for the scenarios that were compared with this baseline
    verdict: str
    processes: tuple[float, ...]  # the ratio in each
    blocks: int
    margin: float = MARGIN
    cpu_ratio: float | None = None  # of the medians of CPU time: neighbours make a long call wait, and a short one not

    @property
    def disturbed(self) -> bool:
        """Whether wall and CPU time tell different stories, as on one thread they do where neighbours compete."""
        return (
            self.threads == 1 and bool(self.cpu_ratio) and abs(math.log(self.ratio / (self.cpu_ratio or 1))) > DISTURBED
        )

    @property
    def told(self) -> str:
        """1.43x as fast [1.38, 1.49]: faster."""
        beside = f" (by CPU time {self.cpu_ratio:.3g}x)" if self.disturbed else ""
        return f"{self.ratio:.3g}x as fast {between(self.low, self.high)}{beside}: {self.verdict}"


def compare(
    calls: Sequence[Call] | Table, scenario: str, baseline: str, batch: int, threads: int, *, margin: float = MARGIN
) -> Comparison | None:
    """None where one of them was not timed there. Looked at alone: nothing is corrected."""
    cells = table.of(calls).cells
    ours, theirs = cells.get(Key(scenario, batch, threads)), cells.get(Key(baseline, batch, threads))
    if ours is None or theirs is None:
        return None
    found = judged(log_ratios(theirs, ours), Key(scenario, batch, threads), baseline, margin)
    if not len(ours.cpu_ns) or not len(theirs.cpu_ns):
        return found
    spent, other = float(np.median(ours.cpu_ns)), float(np.median(theirs.cpu_ns))
    return replace(found, cpu_ratio=other / spent if spent and other else None)


def compared(calls: Sequence[Call] | Table, baseline: str, *, margin: float = MARGIN) -> list[Comparison]:
    """All scenarios against one baseline in every setting, corrected for how many there are; and its control."""
    cells, found = table.of(calls), list[Comparison]()
    for batch, threads in cells.settings:
        names = [name for name in cells.scenarios(batch, threads) if name != baseline]
        here = [compare(cells, name, baseline, batch, threads, margin=margin) for name in names]
        known = [one for one in here if one is not None]
        found += corrected([one for one in known if not one.scenario.endswith(CONTROL)])
        found += [one for one in known if one.scenario == baseline + CONTROL]  # it is no finding of its own
    return found


def corrected(family: Sequence[Comparison]) -> list[Comparison]:
    values = holm([one.p for one in family])
    found = [replace(one, p_holm=value) for one, value in zip(family, values, strict=True)]
    return [replace(one, verdict=verdict(one)) for one in found]


def judged(logs: np.ndarray, key: Key, baseline: str, margin: float = MARGIN) -> Comparison:
    found, p = ratio(logs), signed_rank(logs[np.isfinite(logs)])
    comparison = Comparison(
        key.scenario, baseline, key.batch, key.threads,
        _exp(found.value), _exp(found.low), _exp(found.high), p, p, "",
        tuple(_exp(one) for one in found.processes), int(np.isfinite(logs).sum()), margin,
    )  # fmt: skip
    return replace(comparison, verdict=verdict(comparison))


def verdict(comparison: Comparison) -> str:
    low, high, margin = comparison.low, comparison.high, 1 + comparison.margin
    shown = comparison.p_holm < ALPHA and not low <= 1 <= high
    if shown and comparison.ratio > margin:
        return FASTER
    if shown and comparison.ratio < 1 / margin:
        return SLOWER
    return EQUIVALENT if 1 / margin < low and high < margin else NO_DIFFERENCE


def _exp(value: float) -> float:
    return math.inf if value == math.inf else math.exp(value)
