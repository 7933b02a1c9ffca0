"""List the kept runs, newest first."""

from __future__ import annotations

import argparse
import sys

from bitwatt.cli.options import add_store_option


def configure(parser: argparse.ArgumentParser) -> None:
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.reports.text import fitting
    from bitwatt.store import FOLDER, Header, headers
    from bitwatt.units import format_count, format_duration

    def cells(header: Header) -> tuple[str, ...]:
        totals, coverage = header.summary.get("totals", {}), header.summary.get("coverage", {})
        flops, missing = totals.get("flops"), coverage.get("missing")
        return (
            header.id,
            header.name,
            format_duration(header.seconds),
            "" if flops is None else format_count(flops, "FLOP"),
            f"{missing} missing" if missing else "",
            " ".join(header.status.split())[:80] if header.status != "ok" else "",
        )

    kept, damaged = headers(args.store)
    if not kept:
        print(f"no run is kept in {args.store or FOLDER}; make one with: bitwatt run script.py")
    rows = [cells(header) for header in kept]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
        print(fitting(line.rstrip(), sys.stdout.encoding))
    for error in damaged:
        print(f"bitwatt: {error}", file=sys.stderr)
    return 0
