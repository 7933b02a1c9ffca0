"""List the kept runs, newest first."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bitwatt.cli.options import add_store_option

if TYPE_CHECKING:
    from bitwatt.store import Header


def configure(parser: argparse.ArgumentParser) -> None:
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.reports.text import fitting
    from bitwatt.store import FOLDER, headers
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
    rows = [_job(ranks) if len(ranks) > 1 else cells(ranks[0]) for ranks in _together(kept)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width)
        print(fitting(line.rstrip(), sys.stdout.encoding))
    for error in damaged:
        print(f"bitwatt: {error}", file=sys.stderr)
    return 0


def _together(kept: list[Header]) -> list[list[Header]]:
    """The ranks of a job stand in one line, where the newest of them would."""
    lines: dict[tuple[str, ...], list[Header]] = {}
    for header in kept:
        key = (header.id,) if header.rank is None else (header.rank.job, header.name, "job")
        lines.setdefault(key, []).append(header)
    return list(lines.values())


def _job(ranks: list[Header]) -> tuple[str, ...]:
    """Sums of what was priced when the ranks' files were closed."""
    from bitwatt.jobs import joined
    from bitwatt.units import format_count, format_duration

    job = joined(ranks)
    missing = sum(header.summary.get("coverage", {}).get("missing", 0) for header in ranks)
    ended = next((header.status for header in ranks if header.status not in ("ok", "under way")), "")
    lost = f"{len(job.lost)} lost" if job.lost else ""
    return (
        job.job,
        job.name,
        format_duration(float(f"{job.seconds:.3g}")),
        format_count(job.total.total[0], "FLOP"),
        f"{missing} missing" if missing else "",
        ", ".join(filter(None, (f"{len(job.parts)} of {job.world} ranks", lost, " ".join(ended.split())[:60]))),
    )
