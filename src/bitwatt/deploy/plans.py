"""How thoroughly to measure: quick, as usual, thorough.

Processes are what repeats, so the quick plan has no fewer of them than a verdict needs: it has shorter ones. A quarter
of a second is too short for MLPerf's LoadGen, which it leaves out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.deploy.records import Plan

QUICK = Plan(processes=10, blocks=16, block_ms=2.0, cell_s=3.0, fresh=2, load_seconds=0.25, part_s=0.2, mlperf=False)
DEFAULT = Plan()
THOROUGH = Plan(processes=30, blocks=40, block_ms=5.0, cell_s=10.0, fresh=10, load_seconds=10.0, part_s=2.0)


def plan(*, quick: bool = False, thorough: bool = False, **settings: Any) -> Plan:
    """One of the three, with what was asked for otherwise."""
    return replace(QUICK if quick else THOROUGH if thorough else DEFAULT, **settings)
