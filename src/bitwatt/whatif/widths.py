"""Widths of layers from a table: a CSV file with the columns layer, weights and activations, or the same in Python."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bitwatt.errors import BitwattError

COLUMNS = ("layer", "weights", "activations")

Table = Path | str | Sequence[tuple[str, str | None, str | None]]


class Line(NamedTuple):
    """One line and where it stands, for messages. None: as recorded."""

    where: str
    layer: str
    weights: str | None
    activations: str | None


def lines(table: Table | None) -> Iterator[Line]:
    if table is None:
        return
    if not isinstance(table, str | Path):
        if not table:
            raise BitwattError("the table of widths has no rows")
        for number, given in enumerate(table, start=1):
            where = f"row {number} of the table"
            if isinstance(given, str) or len(given) != len(COLUMNS) or not given[0]:
                raise BitwattError(f"{where}: {given!r} is not ({', '.join(COLUMNS)})")
            yield Line(where, given[0], given[1] or None, given[2] or None)
        return
    rows = _read(table)
    header = [cell.strip().lower() for cell in rows[0]] if rows else []
    if "layer" not in header or len(header) < 2 or set(header) - set(COLUMNS) or len(set(header)) < len(header):
        raise BitwattError(f"{table}, line 1: the header is {','.join(COLUMNS)}, not {','.join(header) or 'missing'}")
    if not any(cell.strip() for row in rows[1:] for cell in row):
        raise BitwattError(f"{table} has no line below the header: it names no layer")
    for number, row in enumerate(rows[1:], start=2):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        told = dict(zip(header, cells, strict=False))
        if len(cells) > len(header) or not told.get("layer"):
            raise BitwattError(f"{table}, line {number}: {','.join(row)!r} is not {','.join(header)}")
        where = f"{table}, line {number}"
        yield Line(where, told["layer"], told.get("weights") or None, told.get("activations") or None)


def _read(path: Path | str) -> list[list[str]]:
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return list(csv.reader(file))
    except (OSError, UnicodeError) as error:
        raise BitwattError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
