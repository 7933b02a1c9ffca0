"""What the page and the fragment have in common: the head, the cards, the tables and the energy of a run."""

from __future__ import annotations

from html import escape

from bitwatt.ranks.silence import state_of
from bitwatt.reports.energy import EnergyView, joules
from bitwatt.reports.footprint import grams, money
from bitwatt.reports.html.layout import facts, scroll
from bitwatt.reports.html.paint import Paint
from bitwatt.reports.model import View
from bitwatt.reports.replay import verdict
from bitwatt.reports.tables import Table, headline, when

#: Ops without a rule that the head names.
_GAPS = 8


def header(view: View) -> str:
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
        parts.append(f'<p class="alert">{escape(state_of(run))}</p>')
    if view.missing:
        gaps = "".join(
            f"<li><code>{escape(gap.op)}</code> {gap.calls:,}× <span>{escape(gap.reason)}</span></li>"
            for gap in view.missing[:_GAPS]
        )
        more = len(view.missing) - _GAPS
        gaps += f"<li>{more} more</li>" if more > 0 else ""
        parts.append(f'<div class="alert">Every sum is a lower bound: no work is known for <ul>{gaps}</ul></div>')
    if view.unknown_layers:
        reasons = "".join(f"<li>{escape(why)}</li>" for why in view.unknown_layers)
        parts.append(f'<div class="alert">Counted by dtype only: <ul>{reasons}</ul></div>')
    return "".join(parts)


def cards(view: View) -> str:
    told = [(number, what) for number, what, _ in headline(view)] + _spent(view.energy)
    shown = "".join(f"<div><dt>{escape(what)}</dt><dd>{_number(number)}</dd></div>" for number, what in told)
    return f'<dl class="cards">{shown}</dl>'


def _spent(energy: EnergyView | None) -> list[tuple[str, str]]:
    """Energy, carbon and money, each where it is known."""
    if energy is None:
        return []
    found = []
    if energy.used.energy_j is not None:
        found.append((joules(energy.used.energy_j), f"energy, {energy.used.how}"))
    if energy.carbon.total_g is not None:
        found.append((grams(energy.carbon.total_g), "CO2e"))
    if energy.cost.total is not None:
        found.append((money(energy.cost.total, energy.cost.currency), "cost"))
    return found


def _number(text: str) -> str:
    """The unit smaller than the number."""
    number, space, unit = text.rpartition(" ")
    return f"{escape(number)}<small>{space}{escape(unit)}</small>" if number else escape(text)


def table(table: Table, paint: Paint) -> str:
    kinds = [f"{'name' if i == 0 else 'text' if c.left else 'number'} s{c.spare}" for i, c in enumerate(table.columns)]
    heads = "".join(
        f'<th scope="col" class="{kind}">{escape(column.title)}</th>'
        for kind, column in zip(kinds, table.columns, strict=True)
    )
    largest = max((paint.view.amount(line) or 0 for line in table.lines), default=0)
    phases = table.title == "Phases"  # they have their bar above the table, which is then its legend
    bars = not phases and any(table.shares)
    body = []
    for line, row in zip(table.lines, table.rows(), strict=True):
        bar = f'<td class="bar">{paint.bar(line, largest)}</td>' if bars else ""
        body.append(_row(kinds, row, paint.dot(line.name) if phases else "", bar))
    total = table.total_row()
    foot = f"<tfoot>{_row(kinds, total, '', '')}</tfoot>" if total else ""
    last = '<td class="bar"></td>' if bars else ""
    return scroll(table.title, f"<thead><tr>{heads}{last}</tr></thead><tbody>{''.join(body)}</tbody>{foot}")


def _row(kinds: list[str], cells: list[str], dot: str, bar: str) -> str:
    first, *rest = (escape(cell) for cell in cells)
    broken = first.replace(".", ".<wbr>")  # long paths break between their steps
    others = "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds[1:], rest, strict=True))
    return f'<tr><th scope="row" class="{kinds[0]}" title="{first}">{dot}{broken}</th>{others}{bar}</tr>'


def energy(found: EnergyView, chart: str) -> str:
    """`chart` is markup of its power over time."""
    told = [(name, text) for name, text in (*found.devices(), *found.facts()) if name != "power"]  # the chart shows it
    return f'<p class="energy">{escape(found.headline)}</p>{chart}{facts(told)}'


def notes(view: View) -> str:
    told = (*view.run.notes, *(view.energy.notes if view.energy is not None else ()))
    listed = "".join(f"<li>{escape(note)}</li>" for note in told)
    return f"<ul>{listed}</ul>" if listed else ""


def formula(view: View) -> str:
    model = view.model
    about = f"<code>{escape(model.name)}</code> {escape(model.about)} <em>{escape(model.source)}</em>"
    return f'<p class="formula">{about}</p>'
