"""Two scenarios in one setting, by times taken in turn: each against both baselines, and against the quickest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bitwatt.deploy import intervals
from bitwatt.deploy.records import CONTROL, Call
from bitwatt.deploy.telling.words import of_change, times

if TYPE_CHECKING:
    from bitwatt.deploy.statistics import Comparison

FASTER, SLOWER, EQUIVALENT, UNSHOWN = "faster", "slower", "equivalent", "no difference shown"


@dataclass(frozen=True, slots=True)
class Duel:
    """`ratio` is the scenario's latency over the other's: below 1 it is quicker. The verdict is on the scenario."""

    scenario: str
    against: str
    batch: int
    threads: int
    ratio: float
    low: float | None  # of one process alone there is no interval
    high: float | None
    p: float  # of Wilcoxon's test on blocks, corrected for how many were compared
    verdict: str
    cpu_ratio: float | None = None  # the same of CPU times
    disturbed: bool = False  # they tell different stories: neighbours made the longer calls wait

    @property
    def told(self) -> str:
        """−41 % latency [−45 %, −37 %] against onnx-fp32; from twice on, as a factor."""
        spent = self.cpu_ratio if self.disturbed else None
        if 0.5 < self.ratio < 2:
            said = f"{of_change(self.ratio - 1)} latency {self.between} against {self.against}"
            by_cpu = of_change(spent - 1) if spent else ""
        else:
            quick = self.ratio < 1
            one = turned(self) if quick else self
            said = f"{times(one.ratio)} {'as fast as' if quick else 'the latency of'} {self.against}"
            said += f" {intervals.between(one.low, one.high)}"
            by_cpu = times(1 / spent if quick else spent) if spent else ""
        said += f" ({by_cpu} by CPU time, which neighbours do not stretch)" if by_cpu else ""
        return said if self.verdict in (FASTER, SLOWER) else f"{said}: {self.verdict}"

    @property
    def between(self) -> str:
        """The interval as changes: [−45 %, −37 %]."""
        return intervals.between(self.low, self.high, lambda end: of_change(end - 1))


@dataclass(frozen=True, slots=True)
class Alarms:
    """The A/A control: a scenario against itself, with times of its own. `wrong` of its comparisons found a difference,
    and `alarms` of those that were tried with the two exchanged by chance."""

    scenario: str
    comparisons: int
    wrong: int
    alarms: int
    tried: int
    told: str


def duels(calls: Sequence[Call], baselines: Sequence[str | None], margin: float) -> list[Duel]:
    from bitwatt.deploy import statistics
    from bitwatt.deploy.statistics.verdicts import corrected

    table = statistics.Table(calls)
    compared = [one for name in filter(None, baselines) for one in statistics.compared(table, name, margin=margin)]
    timed: dict[tuple[int, int], dict[str, float]] = {}
    for (name, batch, threads), known in statistics.cells(table).items():
        timed.setdefault((batch, threads), {})[name] = known.p50_ms
    for (batch, threads), names in timed.items():
        quickest = min(names, key=lambda name: names[name])
        rivals = (statistics.compare(table, name, quickest, batch, threads, margin=margin) for name in names)
        compared += corrected([one for one in rivals if one is not None and one.scenario != quickest])
    found: dict[tuple[str, str, int, int], Duel] = {}
    for one in compared:
        if not one.scenario.endswith(CONTROL) and one.scenario != one.baseline and math.isfinite(one.ratio):
            duel = _duel(one)
            found.setdefault((duel.scenario, duel.against, duel.batch, duel.threads), duel)
    for duel in list(found.values()):
        found.setdefault((duel.against, duel.scenario, duel.batch, duel.threads), turned(duel))
    return list(found.values())


def control(calls: Sequence[Call]) -> Alarms | None:
    from bitwatt.deploy import statistics

    if not any(call.scenario.endswith(CONTROL) for call in calls):
        return None
    found = statistics.control(calls)
    wrong = sum(one.verdict in (FASTER, SLOWER) for one in found.comparisons)
    return Alarms(found.baseline, len(found.comparisons), wrong, found.alarms, found.tried, found.told)


def _duel(one: Comparison) -> Duel:
    """There, the ratio is how many times as fast; here, how many times as long."""
    known = one.low > 0 and math.isfinite(one.high)
    low, high = (1 / one.high, 1 / one.low) if known else (None, None)
    return Duel(one.scenario, one.baseline, one.batch, one.threads, 1 / one.ratio, low, high, one.p_holm, one.verdict,
                1 / one.cpu_ratio if one.cpu_ratio else None, one.disturbed)  # fmt: skip


def turned(duel: Duel) -> Duel:
    """The same, said of the other."""
    verdict = {FASTER: SLOWER, SLOWER: FASTER}.get(duel.verdict, duel.verdict)
    low, high = (None if end is None else 1 / end for end in (duel.high, duel.low))
    spent = 1 / duel.cpu_ratio if duel.cpu_ratio else None
    return replace(duel, scenario=duel.against, against=duel.scenario, ratio=1 / duel.ratio, low=low, high=high,
                   verdict=verdict, cpu_ratio=spent)  # fmt: skip
