"""A run as a piece of another page: tables and small bars, no script."""

from __future__ import annotations

from html import escape

from bitwatt.reports.blocks import as_html
from bitwatt.reports.energy import names
from bitwatt.reports.html.layout import facts
from bitwatt.reports.html.paint import Paint
from bitwatt.reports.html.parts import cards, energy, formula, header, notes, table
from bitwatt.reports.html.style import STYLE
from bitwatt.reports.model import View
from bitwatt.reports.power import chart
from bitwatt.reports.tables import tables


def of_view(view: View, by: str | None = None) -> str:
    paint = Paint(view)
    parts = [f"<header>{header(view)}</header>", cards(view)]
    for one in tables(view, by):
        stack = paint.stack() if one.title == "Phases" else ""
        parts.append(f"<section><h2>{escape(one.title)}</h2>{stack}{table(one, paint)}</section>")
    if view.energy is not None and by is None:
        drawn = chart(view.energy.metered.series, names(view.energy.metered))
        parts.append(f"<section><h2>Energy</h2>{energy(view.energy, drawn)}</section>")
    parts += as_html(view, by)
    about = facts({"fingerprint": view.fingerprint.digest, **view.run.machine.facts}.items())
    parts.append(f"<footer>{notes(view)}{formula(view)}{about}</footer>")
    return f'<style>{STYLE}</style>\n<div class="bitwatt">\n' + "\n".join(parts) + "\n</div>"
