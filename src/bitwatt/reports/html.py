"""A run as one self-contained page, or as a fragment for notebooks: no script, no outside resource, light and dark."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from bitwatt.pricing import CostModel
from bitwatt.records import Run
from bitwatt.reports.blocks import as_html
from bitwatt.reports.energy import EnergyView, names
from bitwatt.reports.model import PHASES, Line, View
from bitwatt.reports.power import chart
from bitwatt.reports.replay import verdict
from bitwatt.reports.style import PAGE_STYLE, STYLE
from bitwatt.reports.tables import Table, headline, tables, when
from bitwatt.units import format_count, format_percent

_COLORS = dict(
    zip(
        PHASES,
        ("#7c8aa0", "#3b7ff0", "#a566f0", "#f2803a", "#e0b020", "#2aa574", "#12a3b4", "#9aa3af"),
        strict=True,
    )
)
_OWN_COLORS = ("#e2559b", "#7aa928", "#6d6ff0", "#b5722d", "#c0504d", "#4f9fa8")


def render(view: View, *, by: str | None = None, width: int | None = None, color: bool = False) -> str:
    title = escape(f"{view.run.name or view.run.id} · bitwatt")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{PAGE_STYLE}</style>\n</head>\n"
        f"<body>\n{_fragment(view, by)}\n</body>\n</html>\n"
    )


def fragment(run: Run, *, by: str | None = None, cost_model: CostModel | str = "flops") -> str:
    """The same page as a piece of another one: what a notebook shows for a run."""
    return _fragment(View(run, cost_model), by)


def _fragment(view: View, by: str | None) -> str:
    paint = _Paint(view)
    parts = [_header(view), _cards(view)]
    for table in tables(view, by):
        chart = paint.stack() if table.title == "Phases" else ""
        parts.append(f"<section><h2>{table.title}</h2>{chart}{_table(table, paint)}</section>")
    if view.energy is not None and by is None:
        parts.append(_energy(view.energy))
    parts += as_html(view, by)
    parts.append(_footer(view))
    return f'<style>{STYLE}</style>\n<main class="bitwatt">\n' + "\n".join(parts) + "\n</main>"


def _header(view: View) -> str:
    run = view.run
    meta = [f"<code>{escape(run.command)}</code>"] if run.command else []
    meta += [f'<time datetime="{escape(run.started)}">{escape(when(run))}</time>', f"<span>{escape(run.id)}</span>"]
    parts = [
        f'<p class="coverage {view.trust}">{escape(str(view.coverage))}</p>',
        f"<h1>{escape(run.name or run.id)}</h1>",
        f'<p class="meta">{"".join(meta)}</p>',
    ]
    if told := verdict(run):
        parts.append(f'<p class="replay">{escape(told)}</p>')
    if run.status != "ok":
        parts.append(f'<p class="alert">{escape(run.status)}</p>')
    if view.missing:
        gaps = "".join(
            f"<li><code>{escape(gap.op)}</code> {gap.calls:,}× <span>{escape(gap.reason)}</span></li>"
            for gap in view.missing
        )
        parts.append(f'<div class="alert">Every sum is a lower bound: no work is known for <ul>{gaps}</ul></div>')
    if view.unknown_layers:
        reasons = "".join(f"<li>{escape(why)}</li>" for why in view.unknown_layers)
        parts.append(f'<div class="alert">Counted by dtype only: <ul>{reasons}</ul></div>')
    return f"<header>{''.join(parts)}</header>"


def _cards(view: View) -> str:
    cards = "".join(
        f"<div><dt>{escape(what)}</dt><dd>{_number(number)}</dd></div>" for number, what, _ in headline(view)
    )
    return f'<dl class="cards">{cards}</dl>'


def _number(text: str) -> str:
    """The unit smaller than the number."""
    number, space, unit = text.rpartition(" ")
    return f"{escape(number)}<small>{space}{escape(unit)}</small>" if number else escape(text)


def _table(table: Table, paint: _Paint) -> str:
    kinds = [f"{'name' if i == 0 else 'text' if c.left else 'number'} s{c.spare}" for i, c in enumerate(table.columns)]
    titles = ["", *(escape(column.title) for column in table.columns[1:])]  # the heading above names the first
    head = "".join(f'<th scope="col" class="{kind}">{title}</th>' for kind, title in zip(kinds, titles, strict=True))
    largest = max((paint.view.amount(line) or 0 for line in table.lines), default=0)
    phases = table.title == "Phases"  # they have their bar above the table, which is then its legend
    body = []
    for line, row in zip(table.lines, table.rows(), strict=True):
        bar = "" if phases else f'<td class="bar">{paint.bar(line, largest)}</td>'
        body.append(_row(kinds, row, paint.dot(line.name) if phases else "", bar))
    total = table.total_row()
    foot = f"<tfoot>{_row(kinds, total, '', '')}</tfoot>" if total else ""
    bars = "" if phases else '<td class="bar"></td>'
    return (
        f'<div class="scroll"><table><thead><tr>{head}{bars}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody>{foot}</table></div>"
    )


def _energy(energy: EnergyView) -> str:
    told = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
        for name, text in (*energy.devices(), *energy.facts())
        if name != "power"  # the chart shows it
    )
    drawn = chart(energy.metered.series, names(energy.metered))
    return (
        f'<section><h2>Energy</h2><p class="energy">{escape(energy.headline)}</p>{drawn}'
        f'<dl class="facts">{told}</dl></section>'
    )


def _row(kinds: list[str], cells: list[str], dot: str, bar: str) -> str:
    first, *rest = (escape(cell) for cell in cells)
    broken = first.replace(".", ".<wbr>")  # long paths break between their steps
    others = "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds[1:], rest, strict=True))
    return f'<tr><th scope="row" class="{kinds[0]}" title="{first}">{dot}{broken}</th>{others}{bar}</tr>'


def _footer(view: View) -> str:
    model = view.model
    facts = {"fingerprint": view.fingerprint.digest, **view.run.machine.facts}
    listed = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts.items())
    told = (*view.run.notes, *(view.energy.notes if view.energy is not None else ()))
    notes = "".join(f"<li>{escape(note)}</li>" for note in told)
    return (
        f"<footer>{f'<ul>{notes}</ul>' if notes else ''}"
        f'<p class="formula"><code>{escape(model.name)}</code> {escape(model.about)} '
        f"<em>{escape(model.source)}</em></p>"
        f'<dl class="facts">{listed}</dl></footer>'
    )


class _Paint:
    """Colours of phases, and the bars drawn in them."""

    def __init__(self, view: View) -> None:
        self.view = view
        paths = [line.name for line in view.phases]
        own = [path for path in paths if not set(path.split("/")) <= set(PHASES)]
        self.colors = {path: _COLORS.get(path.split("/")[-1], "") for path in paths if path not in own}
        self.colors |= {path: _OWN_COLORS[i % len(_OWN_COLORS)] for i, path in enumerate(own)}

    def dot(self, phase: str) -> str:
        color = self.colors.get(phase, _COLORS["other"])
        circle = f'<circle cx="4" cy="4" r="4" fill="{color}"/>'
        return f'<svg class="dot" viewBox="0 0 8 8" aria-hidden="true">{circle}</svg>'

    def stack(self) -> str:
        """The whole run as one bar, a piece for each phase."""
        whole = self.view.amount(self.view.total) or 0
        pieces = [(line.name, self.view.amount(line) or 0) for line in self.view.phases]
        said = ", ".join(f"{name} {format_percent(n / whole)}" for name, n in pieces if n) if whole else ""
        return self._svg("stack", pieces, whole, whole, said) if said else ""

    def bar(self, line: Line, largest: int) -> str:
        """One line's amount beside the largest, in the colours of the phases it fell into."""
        amount = self.view.amount(line) or 0
        pieces = [(phase or "other", n) for phase, n in line.by_phase.items()] or [("", amount)]
        order = list(self.colors)
        pieces.sort(key=lambda piece: order.index(piece[0]) if piece[0] in order else -1)
        return self._svg("", pieces, largest, self.view.amount(self.view.total) or 0, "") if amount and largest else ""

    def _svg(self, kind: str, pieces: Iterable[tuple[str, int]], scale: int, whole: int, said: str) -> str:
        drawn, x = [], 0.0
        for phase, n in pieces:
            if not n:
                continue
            width = 1000 * n / scale
            text = f"{format_count(n, self.view.model.unit)}, {format_percent(n / whole)} of the run"
            title = escape(f"{phase}: {text}" if phase else text)
            color = self.colors.get(phase, _COLORS["forward"])
            place = f'x="{x:.2f}" width="{width:.2f}" height="10"'
            drawn.append(f'<rect {place} fill="{color}"><title>{title}</title></rect>')
            x += width
        spoken = f'role="img" aria-label="{escape(said)}"' if said else 'aria-hidden="true"'
        box = 'viewBox="0 0 1000 10" preserveAspectRatio="none"'
        return f'<svg class="bars {kind}" {box} {spoken}>{"".join(drawn)}</svg>'
