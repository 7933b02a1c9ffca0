"""A run as text for a terminal: fits the width, coloured only when asked, plain ASCII where the encoding needs it."""

from __future__ import annotations

import os
import textwrap
import unicodedata
from collections.abc import Iterable
from typing import TextIO

from bitwatt.harmless import printable
from bitwatt.ranks.silence import state_of
from bitwatt.reports.blocks import blocks
from bitwatt.reports.model import View
from bitwatt.reports.replay import verdict
from bitwatt.reports.tables import Table, headline, tables, when

WIDTH = 100
_BAR = 12
_BLOCKS = " ▏▎▍▌▋▊▉█"
_PLAIN = str.maketrans(
    {"─": "-", "·": "|", "—": "-", "…": "~", "×": "x", "µ": "u", "≥": ">", "≤": "<", "≶": "?", "█": "#"}
    | dict.fromkeys("▏▎▍", " ") | dict.fromkeys("▌▋▊▉", "#") | dict(zip("▁▂▃▄▅▆▇", "._-~=+*", strict=True))
)  # fmt: skip
_BOLD, _DIM, _RED, _GREEN, _YELLOW = "1", "2", "31", "32", "33"


def render(view: View, *, by: str | None = None, width: int | None = None, color: bool = False) -> str:
    page = _Page(width or WIDTH, color)
    run = view.run
    page.line(str(view.coverage), {"bad": _RED, "fair": _YELLOW, "good": _GREEN}[view.trust])
    page.listing("missing", [f"{gap.op} {gap.calls:,}x ({gap.reason})" for gap in view.missing], _RED)
    page.listing("by dtype only", view.unknown_layers, _YELLOW)
    if told := verdict(run):
        page.wrapped(told, _GREEN if run.replay and run.replay.exact else _YELLOW, indent="  ")
    if run.status != "ok":
        page.wrapped(state_of(run), _RED)
    page.wrapped(" · ".join(filter(None, (run.name, run.command, when(run)))), _DIM)
    page.line("")
    page.wrapped(" · ".join(f"{number} {what}" if told else number for number, what, told in headline(view)), _BOLD)
    for table in tables(view, by):
        page.line("")
        page.table(table)
    if view.energy is not None and by is None:
        page.line("")
        page.wrapped(f"Energy: {view.energy.headline}", _BOLD)
        for name, told in (*view.energy.devices(), *view.energy.facts()):
            page.wrapped(f"  {name}: {told}" if told else f"  {name}", _RED if name == "beware" else "", indent="    ")
    for block in blocks(view, by):
        page.line("")
        page.wrapped(f"{block.title}: {block.headline}", _BOLD)
        for name, told in block.facts:
            page.wrapped(f"  {name}: {told}", indent="    ")
    page.line("")
    page.fact(view.model.name, f"{view.model.about} ({view.model.source})")
    if by is None:
        page.fact("fingerprint", view.fingerprint.digest)
        page.fact("machine", " · ".join(f"{name} {value}" for name, value in run.machine.facts.items()))
    for note in (*run.notes, *(view.energy.notes if view.energy is not None else ())):
        page.fact("note", note)
    return page.text()


def page(tables: Iterable[Table], notes: Iterable[str], *, width: int | None = None, color: bool = False) -> str:
    """Tables alone, and remarks below them."""
    drawn = _Page(width or WIDTH, color)
    for table in tables:
        drawn.table(table)
        drawn.line("")
    for note in notes:
        drawn.wrapped(note, _DIM, indent="  ")
    return drawn.text()


def wants_color(stream: TextIO) -> bool:
    return not os.environ.get("NO_COLOR") and stream.isatty()


def fitting(text: str, encoding: str | None) -> str:
    """The text in what the encoding can write."""
    try:
        text.encode(encoding or "ascii")
        return text
    except (UnicodeError, LookupError):
        return text.translate(_PLAIN).encode("ascii", "replace").decode("ascii")


class _Page:
    """Lines under construction."""

    def __init__(self, width: int, color: bool) -> None:
        self.width, self.color = max(width, 40), color
        self.lines: list[str] = []

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def line(self, text: str, style: str = "") -> None:
        text = printable(text.rstrip())
        self.lines.append(f"\x1b[{style}m{text}\x1b[0m" if self.color and style and text else text)

    def wrapped(self, text: str, style: str = "", indent: str = "") -> None:
        for line in textwrap.wrap(text, self.width, subsequent_indent=indent):
            self.line(line, style)

    def fact(self, name: str, text: str) -> None:
        self.wrapped(f"{name}: {text}", _DIM, indent="  ")

    def listing(self, name: str, items: list[str], style: str) -> None:
        shown = items[:8] + ([f"… {len(items) - 8} more"] if len(items) > 8 else [])
        if shown:
            self.wrapped(f"{name}: {', '.join(shown)}", style, indent="  ")

    def table(self, table: Table) -> None:
        columns, rows, total = list(table.columns), table.rows(), table.total_row()
        cells = [[column.title for column in columns], *rows, *([total] if total else [])]
        widths = [max(length(row[i]) for row in cells) for i in range(len(columns))]
        # without room: the sparest columns go, then names are cut
        keep = list(range(len(columns)))
        while self._needed(widths, keep) > self.width and any(columns[i].spare for i in keep):
            keep.remove(max(keep, key=lambda i: (columns[i].spare, i)))
        cut = self._needed(widths, keep) - self.width
        if cut > 0:
            widths[0] = max(8, widths[0] - cut)
        room = min(_BAR, self.width - self._needed(widths, keep) - 2)
        bars = [_bar(share, room) if room > _BAR // 3 else "" for share in table.shares]

        def drawn(row: list[str]) -> str:
            return "  ".join(padded(row[i], widths[i], columns[i].left) for i in keep)

        rule = "─" * self._needed(widths, keep)
        self.line(drawn(cells[0]), _BOLD)
        self.line(rule, _DIM)
        for row, bar in zip(rows, bars, strict=True):
            self.line(f"{drawn(row)}  {bar}")
        if total:
            self.line(rule, _DIM)
            self.line(drawn(total), _BOLD)

    @staticmethod
    def _needed(widths: list[int], keep: list[int]) -> int:
        return sum(widths[i] for i in keep) + 2 * (len(keep) - 1)


def _bar(share: float | None, width: int) -> str:
    eighths = round((share or 0) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_BLOCKS[rest] if rest else "")


def length(text: str) -> int:
    """Columns on a terminal: wide characters take two, marks that combine none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def padded(text: str, width: int, left: bool) -> str:
    if length(text) > width:  # what tells layers apart stands at the end
        kept = text
        while kept and length(kept) > width - 1:
            kept = kept[1:]
        text = f"…{kept}"
    space = " " * (width - length(text))
    return text + space if left else space + text
