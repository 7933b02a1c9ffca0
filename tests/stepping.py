"""Run a step under measure() some times, and read what was counted where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

import bitwatt
from bitwatt.records import Run

STEPS = 16


def measured(step: Callable[[], Any], exactness: str = "auto", steps: int = STEPS) -> Run:
    torch.manual_seed(0)
    with bitwatt.measure("steps", keep=False, exactness=exactness) as session:
        for _ in range(steps):
            step()
    assert session.run is not None
    return session.run


def calls(run: Run) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for row in run.ledger:
        found[row.phase, row.scope, str(row.op)] += row.calls
    return found
