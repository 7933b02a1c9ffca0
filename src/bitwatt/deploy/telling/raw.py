"""The raw times as a table, stat_benchmark_runs.csv: a line for each call, from which everything can be told again."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

from bitwatt.deploy.records import Call
from bitwatt.errors import BitwattError

NAME = "stat_benchmark_runs.csv"
_COLUMNS = tuple(one.name for one in fields(Call))


def write(calls: Iterable[Call], path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(_COLUMNS)
        lines.writerows([_cell(getattr(call, name)) for name in _COLUMNS] for call in calls)


def _cell(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def read(path: Path) -> list[Call]:
    """Columns by their names: one that is not ours is left out, `warm` may be missing."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file)
            missing = [name for name in _COLUMNS if name not in (lines.fieldnames or ()) and name != "warm"]
            if missing:
                raise BitwattError(f"{path} lacks the columns {', '.join(missing)}")
            return [_call(line, path, lines.line_num) for line in lines]
    except OSError as error:
        raise BitwattError(f"{path} cannot be read: {error.strerror or error}") from error
    except (csv.Error, UnicodeDecodeError) as error:
        raise BitwattError(f"{path} is no table: {error}") from error


def _call(line: dict[str, str], path: Path, number: int) -> Call:
    try:
        numbers = {name: int(line[name]) for name in _COLUMNS if name not in ("scenario", "warm")}
        return Call(scenario=line["scenario"], warm=(line.get("warm") or "1") in ("1", "True", "true"), **numbers)
    except (TypeError, ValueError) as error:
        raise BitwattError(f"{path}, line {number}: {error}") from error
