"""Run -> text, markdown, json, html, or a Chrome trace: one file per format, all drawing the same view."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from bitwatt.errors import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from bitwatt.config import Settings
    from bitwatt.pricing import CostModel
    from bitwatt.records import Run

#: Format -> the module whose `render(view, ...)` writes it.
FORMATS = {name: f"bitwatt.reports.{name}" for name in ("text", "markdown", "json", "html", "trace")}


def report(
    run: Run | str | Path,
    *,
    format: str = "text",
    by: str | None = None,
    cost_model: CostModel | str = "flops",
    width: int | None = None,
    color: bool = False,
    settings: Settings | None = None,
    lifetime: Run | None = None,
    beside: Path | str | None = None,
    against: Iterable[Run] = (),
) -> str:
    """A run, or the kept one of a name, id or path, in one of FORMATS. `by` (phase, scope, op or precision) keeps that
    table alone, at length. `settings`, such as place and prices, are those of the current folder unless given.
    `lifetime` is the run that trained what this one serves, `beside` a trace of torch.profiler or a CSV of ncu to show
    beside it, `against` runs of the same task to place it beside, of several by their median."""
    if format not in FORMATS:
        raise UnknownNameError(f"no report format is called {format!r}; there are {', '.join(FORMATS)}")
    from bitwatt.reports.model import View
    from bitwatt.store import kept_or_given

    view = View(kept_or_given(run), cost_model, settings)
    view.training, view.against = lifetime, tuple(against)
    if beside is not None:
        from bitwatt.profiles import read

        view.beside = read(beside)
    text: str = importlib.import_module(FORMATS[format]).render(view, by=by, width=width, color=color)
    return text
