"""Run -> text, markdown, json, html: one file per format, all drawing the same view."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from bitwatt.errors import UnknownNameError

if TYPE_CHECKING:
    from bitwatt.pricing import CostModel
    from bitwatt.records import Run

#: Format -> the module whose `render(view, ...)` writes it.
FORMATS = {name: f"bitwatt.reports.{name}" for name in ("text", "markdown", "json", "html")}


def report(
    run: Run,
    *,
    format: str = "text",
    by: str | None = None,
    cost_model: CostModel | str = "flops",
    width: int | None = None,
    color: bool = False,
) -> str:
    """A run in one of FORMATS. `by` (phase, scope, op or precision) keeps that table alone, at length."""
    if format not in FORMATS:
        raise UnknownNameError(f"no report format is called {format!r}; there are {', '.join(FORMATS)}")
    from bitwatt.reports.model import View

    text: str = importlib.import_module(FORMATS[format]).render(View(run, cost_model), by=by, width=width, color=color)
    return text
