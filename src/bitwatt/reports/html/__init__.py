"""A run as one self-contained page, or as a fragment for notebooks: nothing is fetched; light, dark, phone and print.

The page has charts where Vega is installed, and the same tables with and without them.
"""

from __future__ import annotations

from bitwatt.pricing import CostModel
from bitwatt.records import Run
from bitwatt.reports.html.fragment import of_view
from bitwatt.reports.model import View


def render(view: View, *, by: str | None = None, width: int | None = None, color: bool = False) -> str:
    from bitwatt.reports.html.run import page_of

    return page_of(view, by)


def fragment(run: Run, *, by: str | None = None, cost_model: CostModel | str = "flops") -> str:
    """What a notebook shows for a run: a piece of another page, without charts and script."""
    return of_view(View(run, cost_model), by)
