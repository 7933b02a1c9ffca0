"""Runs as lines of a table on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bitwatt.store.cells import cell, default_columns, title, value

__all__ = ["cell", "default_columns", "drawn", "title", "value"]

_LEFT = ("id", "name", "status", "tags", "command", "started")
#: Without room these go first, from the left.
_SPARE = ("tags", "macs", "bops", "missing", "seconds", "energy_j", "flops")


def drawn(columns: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[str]:
    """Lines that fit: without room long texts are cut, then columns that can be spared go."""
    from bitwatt.reports.text import length, padded

    cells = [[title(name) for name in columns], *map(list, rows)]
    widths = [max(length(row[i]) for row in cells) for i in range(len(columns))]
    keep = list(range(len(columns)))

    def needed() -> int:
        return sum(widths[i] for i in keep) + 2 * (len(keep) - 1)

    def cut(name: str, least: int) -> None:
        if needed() > width and name in columns and columns.index(name) in keep:
            at = columns.index(name)
            widths[at] = min(widths[at], max(least, widths[at] - (needed() - width)))

    for name, least in (("command", 30), ("status", 30), ("tags", 20), ("name", 30)):
        cut(name, least)
    for name in (*_SPARE, *(name for name in reversed(columns) if name not in ("id", "name", "status"))):
        if needed() > width and name in columns and columns.index(name) in keep:
            keep.remove(columns.index(name))
    for name, least in (("status", 10), ("name", 8), ("id", 8)):
        cut(name, least)
    left = [columns[i] in _LEFT or _is_text(cells, i) for i in range(len(columns))]
    return ["  ".join(padded(row[i], widths[i], left[i]) for i in keep).rstrip() for row in cells]


def _is_text(cells: Sequence[Sequence[str]], at: int) -> bool:
    return any(row[at] and not row[at].lstrip("~-≥ ").lstrip(".")[:1].isdigit() for row in cells[1:])
