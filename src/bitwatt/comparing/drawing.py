"""A comparison as text, markdown, json or html. Names of runs and layers are anybody's: none is taken for markup."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

from bitwatt.comparing.tables import GONE, LESS, MANY, MORE, NEW, Table
from bitwatt.comparing.words import alerts, headlines, remarks
from bitwatt.errors import UnknownNameError
from bitwatt.harmless import on_terminal
from bitwatt.reports.text import WIDTH, length, padded

if TYPE_CHECKING:
    from bitwatt.comparing.comparison import Comparison

FORMATS = ("text", "markdown", "json", "html")
#: A text is cut to no less.
_LEAST = 8
_BOLD, _DIM, _COLORS = "1", "2", {MORE: "31", LESS: "32", NEW: "33", GONE: "36"}


def render(
    comparison: Comparison,
    format: str = "text",
    *,
    by: str | None = None,
    width: int | None = None,
    color: bool = False,
) -> str:
    if format not in FORMATS:
        raise UnknownNameError(f"no format of a comparison is called {format!r}; there are {', '.join(FORMATS)}")
    if format == "json":
        return json.dumps(comparison.json(), indent=2, allow_nan=False) + "\n"
    if format == "html":
        from bitwatt.comparing.page import page_of

        return page_of(comparison, by)
    return text(comparison, by, width or WIDTH, color) if format == "text" else markdown(comparison, by)


def plain(text: str) -> str:
    """One line that steers no terminal, and that XML can hold: neither takes what cannot be printed."""
    return "".join(c if c.isprintable() else "?" for c in on_terminal(text))


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of a sentence; a percent sign stays with its number."""
    lines = textwrap.wrap(plain(text).replace(" %", "\0%"), width, subsequent_indent=indent)
    return [line.replace("\0", " ") for line in lines]


def text(comparison: Comparison, by: str | None, width: int, color: bool) -> str:
    lines: list[str] = []

    def say(text: str, style: str = "", indent: str = "  ") -> None:
        for line in wrapped(text, max(width, 40), indent):
            lines.append(f"\x1b[{style}m{line}\x1b[0m" if color and style else line)

    for side in comparison.sides if len(comparison.sides) <= MANY else ():  # the table names them too
        say(f"{side.label}  {side.told}", _DIM, "   ")
    lines += [""] if lines else []
    for told in headlines(comparison):
        say(told, _BOLD)
    for told in alerts(comparison):
        say(told, "31")
    for table in comparison.tables(by):
        lines += ["", *draw(table, max(width, 40), color)]
    if by is None and (notes := remarks(comparison)):
        lines.append("")
        for told in notes:
            say(f"note: {told}", _DIM)
    return "\n".join(lines) + "\n"


def draw(table: Table, width: int, color: bool = False) -> list[str]:
    """A table in so many columns: what can be spared goes, then the widest texts are cut."""
    cells = [[plain(cell) for cell in row] for row in ([c.title for c in table.columns], *table.rows)]
    widths = [max(length(row[i]) for row in cells) for i in range(len(table.columns))]
    keep = list(range(len(table.columns)))

    def needed() -> int:
        return sum(widths[i] for i in keep) + 2 * (len(keep) - 1)

    while needed() > width and any(table.columns[i].spare for i in keep):
        most = max(table.columns[i].spare for i in keep)
        keep = [i for i in keep if table.columns[i].spare != most]
    soft = [i for i in keep if table.columns[i].left and not table.columns[i].firm]
    while needed() > width and any(widths[i] > _LEAST for i in soft):
        widths[max(soft, key=lambda i: (widths[i], -i))] -= 1
    lines: list[str] = []
    for row, tone in zip(cells, ["", *(table.tones or [""] * len(table.rows))], strict=True):
        drawn = "  ".join(_cell(row[i], widths[i], i, table) for i in keep).rstrip()
        style = _BOLD if not lines else _COLORS.get(tone, "")
        lines.append(f"\x1b[{style}m{drawn}\x1b[0m" if color and style else drawn)
    lines.insert(1, "─" * min(needed(), width))
    dropped = [c.title for i, c in enumerate(table.columns) if i not in keep and c.title]
    notes = [table.note] if table.note else []
    notes += (
        [f"no room for {', '.join(dropped)}: widen the terminal, or ask for markdown, html or json"] if dropped else []
    )
    return [*lines, *(line for note in notes for line in wrapped(note, width))]


def _cell(text: str, width: int, i: int, table: Table) -> str:
    left = table.columns[i].left
    if i and left and length(text) > width:  # of a sentence the beginning matters; of a layer's name the end
        while length(text) > width - 1:
            text = text[:-1]
        text += "…"
    return padded(text, width, left)


def markdown(comparison: Comparison, by: str | None = None) -> str:
    title = " against ".join(f"{side.label} {side.name}" for side in reversed(comparison.sides[:2]))
    blocks = [f"## {marked(title)}"] if len(comparison.sides) == 2 else [f"## {len(comparison.sides)} runs"]
    blocks.append("\n".join(f"- **{side.label}** {marked(side.told)}" for side in comparison.sides))
    blocks.append("\n".join(f"**{marked(told)}**  " for told in headlines(comparison)))
    if warned := alerts(comparison):
        blocks.append("\n".join(f"> {marked(told)}" for told in warned))
    blocks += [markdown_table(table) for table in comparison.tables(by)]
    if by is None and (notes := remarks(comparison)):
        blocks.append("\n".join(f"- {marked(told)}" for told in notes))
    return "\n\n".join(blocks) + "\n"


def markdown_table(table: Table) -> str:
    rows = [[c.title for c in table.columns], *table.rows]
    drawn = ["| " + " | ".join(marked(cell) or " " for cell in row) + " |" for row in rows]
    ruler = "|" + "|".join(" :-- " if column.left else " --: " for column in table.columns) + "|"
    return "\n".join([drawn[0], ruler, *drawn[1:], *(["", marked(table.note)] if table.note else [])])


def marked(text: str) -> str:
    """Text that markdown would read as markup, a link or a picture, kept as text."""
    return "".join(f"\\{c}" if c in "\\`*<>[]|#" else c for c in plain(text))
