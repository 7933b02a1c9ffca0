"""The A/A control: one scenario against itself, and how often such a pair would be told apart here and now.

The control was loaded and timed as if it were a scenario of its own. Both are the same, so which of the two is called
which in a process is chance, and the verdict is asked for again with the names exchanged in some of the processes. The
share of those that find a difference is the rate of false alarms on this machine, in this hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bitwatt.deploy.amounts import amount
from bitwatt.deploy.records import CONTROL, Call
from bitwatt.deploy.statistics import table
from bitwatt.deploy.statistics.ratios import log_ratios
from bitwatt.deploy.statistics.table import Key, Table
from bitwatt.deploy.statistics.verdicts import FASTER, MARGIN, SLOWER, Comparison, judged

#: Exchanges that are tried in one setting.
EXCHANGES = 32


@dataclass(frozen=True)
class Control:
    """`comparisons` are the control against its baseline as timed, `alarms` of `tried` exchanges found a difference."""

    baseline: str
    comparisons: tuple[Comparison, ...]
    alarms: int
    tried: int

    @property
    def rate(self) -> float | None:
        return self.alarms / self.tried if self.tried else None

    @property
    def passed(self) -> bool:
        return not any(one.verdict in (FASTER, SLOWER) for one in self.comparisons)

    @property
    def told(self) -> str:
        if not self.comparisons:
            return "no control was timed"
        wrong = [one for one in self.comparisons if one.verdict in (FASTER, SLOWER)]
        here = "; ".join(f"at batch size {one.batch} with {amount(one.threads, 'thread')} {one.told}" for one in wrong)
        said = f"{self.baseline} was told apart from itself {here}" if wrong else f"{self.baseline} equals itself"
        return f"{said}; false alarms here and now: {self.alarms} of {self.tried} ({100 * (self.rate or 0):.1f} %)"


def control(calls: Sequence[Call] | Table, *, margin: float = MARGIN) -> Control:
    cells = table.of(calls)
    keys = [key for key in cells.cells if key.scenario.endswith(CONTROL)]
    found, alarms, tried, baseline = list[Comparison](), 0, 0, ""
    chance = np.random.default_rng(0)
    for key in keys:
        baseline = key.scenario.removesuffix(CONTROL)
        theirs = cells.cells.get(Key(baseline, key.batch, key.threads))
        if theirs is None:
            continue
        logs = log_ratios(theirs, cells.cells[key])
        found.append(judged(logs, key, baseline, margin))
        for _ in range(EXCHANGES if len(logs) > 1 else 0):
            signs = chance.choice([-1.0, 1.0], size=(len(logs), 1))
            alarms += judged(logs * signs, key, baseline, margin).verdict in (FASTER, SLOWER)
            tried += 1
    return Control(baseline, tuple(found), alarms, tried)
