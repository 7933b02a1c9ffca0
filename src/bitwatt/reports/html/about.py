"""What a run is about: tags, version, code, data, parameters, and its metrics over time."""

from __future__ import annotations

import math
from collections.abc import Callable

from bitwatt import charts
from bitwatt.about import About, Point
from bitwatt.charts import Chart, Series
from bitwatt.reports.html.layout import facts, figure, plain_table, switch
from bitwatt.reports.model import View

#: Metrics that have a chart.
_DRAWN = 4


def about(view: View) -> str:
    """Nothing where nobody said anything."""
    found = view.run.about
    told = facts((name, text) for name, text in _told(found) if text)
    if found.parameters:
        rows = [(name, str(value)) for name, value in found.parameters.items()]
        told += plain_table("Parameters", ("Parameter", "Value"), rows)
    return told


def metrics(view: View) -> str:
    found = view.run.about
    if not found.metrics:
        return ""
    drawn = [
        (name, figure(_lines(name, points)))
        for name, points in list(found.series.items())[:_DRAWN]
        if len(points) > 1 and any(math.isfinite(value) for _, _, value in points)
    ]
    rows = [
        (name, *(_number(one.get(key)) for key in ("last", "min", "max", "count")))
        for name, one in found.metrics.items()
    ]
    table = plain_table("Metrics", ("Metric", "Last", "Least", "Greatest", "Values"), rows, (1, 2, 3, 4))
    return (switch("metric", "Metric", drawn) if any(html for _, html in drawn) else "") + table


def _told(found: About) -> list[tuple[str, str]]:
    tags = ", ".join(f"{name}={value}" if value else name for name, value in found.tags.items())
    git = found.git
    dirty = " (with changes)" if git.get("dirty") == "yes" else ""
    code = " ".join(filter(None, (git.get("commit", "")[:12], git.get("branch", "")))) + (dirty if git else "")
    parent = f"{found.parent_kind} {found.parent}".strip()
    batch = "" if found.batch_size is None else f"{found.batch_size:,}"
    return [("tags", tags), ("version", found.version), ("code", code), ("dataset", found.dataset),
            ("batch size", batch), ("part of", parent)]  # fmt: skip


def _lines(name: str, points: tuple[Point, ...]) -> Callable[[int], Chart]:
    """By step where every value has one, else by time."""
    steps = all(step is not None for step, _, _ in points)
    known = [(step if steps else at, value) for step, at, value in points if math.isfinite(value)]
    series = [Series(name, tuple((float(x or 0), y) for x, y in known))]
    return lambda width: charts.lines(name, series, "step" if steps else "seconds", name, width=width)


def _number(value: float | None) -> str:
    return "—" if value is None else f"{value:.6g}"
