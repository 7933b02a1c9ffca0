"""Tables of what_if and sweep as text, markdown and html. The first column names a row, the others hold numbers."""

from __future__ import annotations

import textwrap
from html import escape

from bitwatt.reports.html.style import STYLE
from bitwatt.reports.text import WIDTH

Rows = list[list[str]]


def text(title: str, rows: Rows, remarks: list[str]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    drawn = [
        "  ".join(cell.rjust(width) if i else cell.ljust(width) for i, (cell, width) in enumerate(cells)).rstrip()
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
    notes = [line for remark in remarks for line in textwrap.wrap(remark, WIDTH, subsequent_indent="  ")]
    return "\n".join([*textwrap.wrap(title, WIDTH), "", drawn[0], rule, *drawn[1:], *([""] if notes else []), *notes])


def markdown(title: str, rows: Rows, remarks: list[str]) -> str:
    drawn = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    ruler = "| :-- |" + " --: |" * (len(rows[0]) - 1)
    return "\n".join([f"**{title}**", "", drawn[0], ruler, *drawn[1:], *([""] if remarks else []),
                      *(f"- {remark}" for remark in remarks)]) + "\n"  # fmt: skip


def html(title: str, rows: Rows, remarks: list[str], picture: str = "") -> str:
    head = "".join(f'<th scope="col" class="{_kind(i)}">{escape(cell)}</th>' for i, cell in enumerate(rows[0]))
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows[1:])
    notes = "".join(f"<li>{escape(remark)}</li>" for remark in remarks)
    return (
        f'<style>{STYLE}</style>\n<main class="bitwatt"><section><h2>{escape(title)}</h2>{picture}'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></section>'
        f"<footer>{f'<ul>{notes}</ul>' if notes else ''}</footer></main>"
    )


def _row(cells: list[str]) -> str:
    first, *rest = (escape(cell) for cell in cells)
    return f'<th scope="row" class="name">{first}</th>' + "".join(f'<td class="number">{cell}</td>' for cell in rest)


def _kind(column: int) -> str:
    return "number" if column else "name"
