"""A comparison as one self-contained page: what changed in sentences, as bars and in tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING

from bitwatt import charts
from bitwatt.charts import Bar, Chart, Dot
from bitwatt.comparing.changes import Change, shortened
from bitwatt.comparing.drawing import plain
from bitwatt.comparing.tables import LESS, MORE, Table, percent
from bitwatt.comparing.words import alerts, headlines, remarks
from bitwatt.reports.html.layout import Parts, figure, how_to_get_charts, note, page, scroll
from bitwatt.reports.tables import heading
from bitwatt.units import format_count

if TYPE_CHECKING:
    from bitwatt.comparing.comparison import Comparison

#: Sides and places that bars can tell apart.
_SIDES, _PLACES = 8, 10
#: What a cell of a difference looks like: it gets the row's colour.
_CHANGE = re.compile(r"[+-][\d.e+-]+ %|[\d.e+-]+×|new|gone")
_DRAWN = {"Phases": "phase", "Layers": "scope", "Ops": "op"}


def page_of(comparison: Comparison, by: str | None = None) -> str:
    return page(*parts_of(comparison, by))


def parts_of(comparison: Comparison, by: str | None = None) -> Parts:
    title = plain(" and ".join(side.name for side in comparison.sides[:4]))
    notes = "".join(f"<li>{escape(plain(line))}</li>" for line in remarks(comparison))
    sections = list(_sections(comparison, by))
    return Parts(title, _head(comparison), sections, f"<ul>{notes}</ul>" if notes else "")


def _head(comparison: Comparison) -> str:
    sides = "".join(
        f"<li><strong>{escape(side.label)}</strong> <span>{escape(plain(side.told))}</span></li>"
        for side in comparison.sides
    )
    told = "".join(f'<p class="energy">{escape(plain(line))}</p>' for line in headlines(comparison))
    warned = "".join(f"<li>{escape(plain(line))}</li>" for line in alerts(comparison))
    warning = f'<div class="alert"><ul>{warned}</ul></div>' if warned else ""
    return f'<h1>Comparison</h1><ul class="sides">{sides}</ul>{told}{warning}{how_to_get_charts()}'


def _sections(comparison: Comparison, by: str | None) -> Iterator[tuple[str, str, str]]:
    for table in comparison.tables(by):
        yield _slug(table.title), plain(table.title), _chart(comparison, table) + _table(table)


def _slug(title: str) -> str:
    return re.sub(r"[^a-z]+", "-", title.lower()).strip("-")


def _chart(comparison: Comparison, table: Table) -> str:
    if table.title == "Pareto front":
        return _front(comparison)
    if len(comparison.sides) > _SIDES:
        return ""
    if table.title == "Totals":
        return _ratios(comparison)
    if table.title in _DRAWN:
        return _amounts(comparison, _DRAWN[table.title])
    return ""


def _ratios(comparison: Comparison) -> str:
    """Every total against the first side's, so that all have one scale."""
    labels = [f"{side.label} {plain(side.name)}" for side in comparison.sides]
    bars: list[Bar] = []
    for change in comparison.totals.values():
        if change.amounts[0]:
            bars += [
                Bar(change.name, labels[i], ratio, f"{_count(change, i)}, {percent(ratio) if i else 'the first'}")
                for i in range(len(labels))
                if (ratio := change.ratio(i)) is not None
            ]
    for one in comparison.measures.values():
        bars += [Bar(one.name, labels[0], 1.0, "the first")] if one.medians[0] else []
        for i, found in enumerate(one.ratios):
            if found is not None:
                low, high = (found.low, found.high) if found.is_known else (None, None)
                bars.append(Bar(one.name, labels[i], found.value, f"{found.value:.3g}×, {one.spread(i)}", low, high))
    title = f"Against {labels[0]}, which is 1"
    return figure(lambda width: charts.bars(title, bars, "times as much", width=width)) if bars else ""


def _amounts(comparison: Comparison, axis: str) -> str:
    """Phases as they are; of layers and ops, those that changed most."""
    labels = [f"{side.label} {plain(side.name)}" for side in comparison.sides]
    changes = comparison.changes(axis)
    kept = changes if axis == "phase" else [c for c in shortened(changes, _PLACES) if not c.is_equal][:_PLACES]
    bars = [
        Bar(plain(change.name) or "(no layer)", labels[i], amount or 0, _count(change, i))
        for change in kept
        for i, amount in enumerate(change.amounts)
    ]
    title = f"{heading(comparison.model)} of each {'layer' if axis == 'scope' else axis}"
    more = "" if axis == "phase" else ", those that changed most"
    return figure(_bars(title + more, bars, kept[0].unit)) if any(bar.amount for bar in bars) else ""


def _bars(title: str, bars: list[Bar], unit: str) -> Callable[[int], Chart]:
    return lambda width: charts.bars(title, bars, unit, width=width)


def _count(change: Change, side: int) -> str:
    return format_count(change.amounts[side] or 0, change.unit)


def _front(comparison: Comparison) -> str:
    front = comparison.front
    if front is None or not front.points:
        return ""
    x, y = front.axes[:2]
    dots = [Dot(plain(one.name), one.values[x.name], one.values[y.name]) for one in front.points]
    edge = [dot for dot, one in zip(dots, front.points, strict=True) if one.on_front]
    edge.sort(key=lambda dot: dot.x)
    joined = edge if len(front.axes) == 2 else []  # a line over two of three axes would say something else
    wide = max(dot.x for dot in dots) > 30 * max(min(dot.x for dot in dots), 1e-300)
    return figure(
        lambda width: charts.scatter(f"{y.name} against {x.name}", dots, (x.name, x.unit), (y.name, y.unit),
                                     log_x=wide, edge=joined, width=width)
    )  # fmt: skip


def _table(table: Table) -> str:
    kinds = [f"{'name' if i == 0 else 'text' if c.left else 'number'} s{c.spare}" for i, c in enumerate(table.columns)]
    heads = "".join(
        f'<th scope="col" class="{kind}">{escape(plain(column.title))}</th>'
        for kind, column in zip(kinds, table.columns, strict=True)
    )
    tones = table.tones or ("",) * len(table.rows)
    body = "".join(_row(kinds, row, tone) for row, tone in zip(table.rows, tones, strict=True))
    caption = scroll(plain(table.title), f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>")
    return caption + (note(plain(table.note)) if table.note else "")


def _row(kinds: list[str], row: tuple[str, ...], tone: str) -> str:
    first, *rest = (escape(plain(cell)) for cell in row)
    cells = "".join(
        f'<td class="{kind}{" change" if _CHANGE.fullmatch(cell) else ""}">{cell}</td>'
        for kind, cell in zip(kinds[1:], rest, strict=True)
    )
    shade = f' class="{tone}"' if tone in (MORE, LESS) else ""
    broken = first.replace(".", ".<wbr>")
    return f'<tr{shade}><th scope="row" class="name">{broken}</th>{cells}</tr>'
