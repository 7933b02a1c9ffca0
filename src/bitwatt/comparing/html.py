"""A comparison as a piece of html, for notebooks and other pages."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from bitwatt.comparing.drawing import plain
from bitwatt.comparing.tables import Table
from bitwatt.comparing.words import alerts, headlines, remarks

if TYPE_CHECKING:
    from bitwatt.comparing.comparison import Comparison


def fragment(comparison: Comparison, by: str | None = None) -> str:
    """A piece of a page: for notebooks, and for pages that have charts of their own."""
    sides = "".join(f"<li><b>{escape(s.label)}</b> {escape(plain(s.told))}</li>" for s in comparison.sides)
    told = "".join(f"<p><b>{escape(plain(line))}</b></p>" for line in headlines(comparison))
    warned = "".join(f"<li>{escape(plain(line))}</li>" for line in alerts(comparison))
    notes = "".join(f"<li>{escape(plain(line))}</li>" for line in remarks(comparison))
    from bitwatt.reports.html.style import STYLE

    sections = "".join(html_table(table) for table in comparison.tables(by))
    return (
        f'<style>{STYLE}</style>\n<main class="bitwatt"><header><h1>Comparison</h1><ul>{sides}</ul>{told}'
        f"{f'<div class=alert><ul>{warned}</ul></div>' if warned else ''}</header>{sections}"
        f"<footer>{f'<ul>{notes}</ul>' if notes else ''}</footer></main>"
    )


def html_table(table: Table) -> str:
    kinds = ["name" if i == 0 else "text" if c.left else "number" for i, c in enumerate(table.columns)]
    titles = ["", *(escape(plain(column.title)) for column in table.columns[1:])]
    head = "".join(f'<th scope="col" class="{kind}">{title}</th>' for kind, title in zip(kinds, titles, strict=True))
    body = "".join(_html_row(kinds, row) for row in table.rows)
    note = f"<p>{escape(plain(table.note))}</p>" if table.note else ""
    return (
        f"<section><h2>{escape(plain(table.columns[0].title))}</h2>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{note}</section>'
    )


def _html_row(kinds: list[str], row: tuple[str, ...]) -> str:
    first, *rest = (escape(plain(cell)) for cell in row)
    cells = "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in zip(kinds[1:], rest, strict=True))
    return f'<tr><th scope="row" class="name">{first}</th>{cells}</tr>'
