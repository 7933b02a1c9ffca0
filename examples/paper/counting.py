"""Counts of one step, by cost model and phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import bitwatt
from bitwatt.records import Run

MODELS = ("flops", "flops:paper", "bops:paper", "bops", "bops:executed", "bops:product")
Counts = dict[str, dict[str, int]]


def measured(step: Callable[[], Any], warm: int = 1) -> Run:
    """The run of one step, after as many that are not counted: optimizers make their state in the first."""
    for _ in range(warm):
        step()
    with bitwatt.measure("paper", keep=False, meter=False) as session:
        step()
    assert session.run is not None
    return session.run


def estimated(step: Callable[..., Any], *arguments: Any) -> Run:
    """The same on tensors without values: nothing is computed."""
    return bitwatt.estimate(step, *arguments)


def counts(run: Run, models: tuple[str, ...] = MODELS) -> Counts:
    """Cost model -> phase -> amount. Every op must have a rule."""
    found: Counts = {}
    for model in models:
        totals = bitwatt.totals(run, model)
        assert not totals.missing, totals.missing
        found[model] = {}
        for phase, amount in totals.by("phase").items():
            place = phase.split("/")[0]
            found[model][place] = found[model].get(place, 0) + amount
    return found


def passes(found: Counts, model: str) -> int:
    """Forward and backward, what the paper calls an iteration."""
    return sum(found[model].get(phase, 0) for phase in ("forward", "backward"))


def seeded() -> None:
    torch.manual_seed(0)
