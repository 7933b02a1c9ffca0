"""Runs side by side: counts exactly, times and joules with their spread, what else differs, and what it was worth."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bitwatt.comparing.comparison import Comparison
from bitwatt.comparing.sides import sides
from bitwatt.config import Settings
from bitwatt.records import Run


def compare(
    *runs: Run | str | Path | Sequence[Run],
    repeat: bool = False,
    cost_model: str | None = None,
    metric: str | None = None,
    lower_is_better: bool | None = None,
    settings: Settings | None = None,
    store: Path | str | None = None,
) -> Comparison:
    """Two runs or more against the first. Each is a run, or a list of runs that repeat each other (then times and
    joules come with an interval), or what `bitwatt compare` takes: an id, name, path or filter. With `repeat` those
    bring along the kept runs that repeat them.

    `metric` is what the programs noted as their quality; with it the comparison tells what a gain costs. Phases, layers
    and ops are compared in `cost_model`: by default the first of FLOPs, BOPs and bytes that differs."""
    from bitwatt.comparing.choosing import chosen
    from bitwatt.config import settings as configured

    return Comparison(
        sides(chosen(runs, store, repeat=repeat)),
        cost_model=cost_model,
        metric=metric,
        lower_is_better=lower_is_better,
        settings=configured() if settings is None else settings,
    )


__all__ = ["Comparison", "compare"]
