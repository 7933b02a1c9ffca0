"""Write the kept runs to a Parquet or CSV file, for Spark, Trino, DuckDB, pandas or a spreadsheet.

  bitwatt export --to runs.parquet
  bitwatt export tag:team=vision --table ops --to ops.parquet

One row for each run, or with --table for each of its phases, layers, ops or values of metrics. Counts are exact: in
Parquet decimals of 38 digits. Filters are those of bitwatt ls.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bitwatt.cli.options import add_store_option


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("filter", nargs="*", help="only these runs: as bitwatt ls")
    parser.add_argument("--to", metavar="FILE", type=Path, required=True, help="a name that ends in .parquet or .csv")
    parser.add_argument("--table", metavar="NAME", default="runs", help="runs, phases, layers, ops or metrics")
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.store.export import table_of, write
    from bitwatt.store.index import Index

    def say(text: str) -> None:
        print(f"bitwatt: {text}", file=sys.stderr)

    with Index(args.store) as index:
        found = index.select(args.filter)
        for error in index.damaged:
            say(str(error))
    rows = write(table_of(args.table, found, say), args.to)
    of = f"{len(found):,} {'run' if len(found) == 1 else 'runs'}"
    print(f"{rows:,} {'row' if rows == 1 else 'rows'} of {of} in {args.to}")
    return 0
