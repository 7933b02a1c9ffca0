"""Ask the kept runs in SQL, by DuckDB.

  bitwatt sql "select name, flops, energy_j, metric_accuracy from runs order by flops desc limit 10"
  bitwatt sql "select op, sum(bops) from ops join runs on run = id where tag_team = 'vision' group by op"
  bitwatt sql "describe runs"

Tables: runs (tags, parameters and metrics are columns tag_..., param_..., metric_...), phases, layers, ops, metrics
(every value). Only files of tables that are asked for are read. Needs DuckDB: pip install 'bitwatt[sql]'.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from bitwatt.cli.options import add_store_option

FORMATS = ("text", "json", "csv")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="one statement")
    parser.add_argument(
        "--where", metavar="FILTER", action="append", default=[], help="only of these runs: as bitwatt ls"
    )
    parser.add_argument("--format", metavar="FORMAT", default="text", help="text, json or csv")
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    import re

    from bitwatt.errors import BitwattError, UnknownNameError
    from bitwatt.store.export import connected, fill, table_of
    from bitwatt.store.index import Index
    from bitwatt.store.tables import NAMES

    if args.format not in FORMATS:
        raise UnknownNameError(f"--format is one of {', '.join(FORMATS)}, not {args.format!r}")
    database = connected("SQL needs DuckDB; pip install 'bitwatt[sql]'")
    with Index(args.store) as index:
        found = index.select(args.where)
        for error in index.damaged:
            _say(str(error))
    words = {word.lower() for word in re.findall(r"\w+", args.query)}
    for name in NAMES:
        if name in words or words & {"show", "information_schema"}:
            fill(database, table_of(name, found, _say))
    try:
        result = database.execute(args.query)
        names = [column[0] for column in result.description or ()]
        rows = result.fetchall()
    except Exception as error:  # DuckDB's own: it says what and where
        raise BitwattError(str(error).partition("\n")[0]) from None
    _print(names, rows, args.format)
    return 0


def _say(text: str) -> None:
    print(f"bitwatt: {text}", file=sys.stderr)


def _print(names: list[str], rows: list[tuple[Any, ...]], format: str) -> None:
    import csv
    import json
    from decimal import Decimal

    from bitwatt.cli.listing import drawn
    from bitwatt.harmless import in_printed_csv, on_terminal
    from bitwatt.reports.text import fitting

    def plain(cell: Any) -> Any:
        if isinstance(cell, Decimal):
            return int(cell) if cell == cell.to_integral_value() else float(cell)
        if isinstance(cell, float) and cell not in (float("inf"), -float("inf")) and cell == cell:
            return cell
        return cell if cell is None or isinstance(cell, bool | int | str) else str(cell)

    cells = [[plain(cell) for cell in row] for row in rows]
    if format == "json":
        print(json.dumps([dict(zip(names, row, strict=True)) for row in cells], indent=2))
    elif format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(map(in_printed_csv, names))
        writer.writerows([[in_printed_csv(cell) if isinstance(cell, str) else cell for cell in row] for row in cells])
    else:
        shown = [
            [
                "" if cell is None else on_terminal(f"{cell:.6g}" if isinstance(cell, float) else str(cell))
                for cell in row
            ]
            for row in cells
        ]
        for line in drawn(names, shown, 10_000):
            print(fitting(line, sys.stdout.encoding))
