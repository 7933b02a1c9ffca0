"""List the kept runs, newest first: all, or those that fulfil every filter.

  bitwatt ls name~resnet flops>1e12 --sort -energy
  bitwatt ls tag:team=vision metric.accuracy>=0.9 since=7d
  bitwatt ls status=failed --columns id,name,command,started

A filter is a field, a sign and a value, without spaces or in quotes. Signs: = != < <= > >= and ~ (has it inside), !~.
A word alone is looked for in names, ids and tags. Fields: id, name, status, command, started, since, until, seconds,
flops, bops, macs, bytes, energy, grams, cost, missing, memory, parameters, version, dataset, batch_size, commit,
branch, dirty, parent, job, rank, machine, gpu, cpu; and as many as there are of tag:NAME, param.NAME, machine.NAME
and metric.NAME (its last value; also metric.NAME.max, .min and .count).
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from bitwatt.cli.options import add_store_option

if TYPE_CHECKING:
    from bitwatt.store import Header
    from bitwatt.store.index import Index

FORMATS = ("text", "json", "csv")
LIMIT = 100


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("filter", nargs="*", help="such as name~resnet, flops>1e12, tag:team=vision, since=7d")
    add_store_option(parser)
    parser.add_argument("--tag", metavar="TAG", action="append", default=[], help="a word, or name=value")
    parser.add_argument(
        "--sort", metavar="FIELD", default="-started", help="-flops for the most first (default: -started)"
    )
    parser.add_argument("--limit", metavar="N", type=int, help=f"so many at most, 0 for all (default: {LIMIT} as text)")
    parser.add_argument("--columns", metavar="FIELDS", help="what to show of each, with commas between")
    parser.add_argument("--format", metavar="FORMAT", default="text", help="text, json or csv")


def main(args: argparse.Namespace) -> int:
    from bitwatt.errors import BitwattError, UnknownNameError
    from bitwatt.harmless import printable
    from bitwatt.jobs import so_far
    from bitwatt.store.index import Index

    if args.format not in FORMATS:
        raise UnknownNameError(f"--format is one of {', '.join(FORMATS)}, not {args.format!r}")
    if args.limit is not None and args.limit < 0:
        raise BitwattError(f"--limit {args.limit}: it is 0 for all, or more")
    where = [*args.filter, *(f"tag:{tag}" for tag in args.tag)]
    with Index(args.store) as index:
        if args.format == "text":
            _text(index, where, args)
        else:
            found = [so_far(one) for one in index.select(where, args.sort, args.limit or None)]
            (_json if args.format == "json" else _csv)(found, args)
        for error in index.damaged:
            print(f"bitwatt: {printable(str(error))}", file=sys.stderr)
    return 0


def _text(index: Index, where: list[str], args: argparse.Namespace) -> None:
    import shutil

    from bitwatt.cli.listing import cell, default_columns, drawn
    from bitwatt.jobs import so_far
    from bitwatt.reports.text import fitting

    limit = LIMIT if args.limit is None else args.limit
    lines, more = _together(index, where, args.sort, limit)
    lines = [ranks if len(ranks) > 1 else [so_far(ranks[0])] for ranks in lines]
    if not lines:
        known = index.count()
        if not known:
            print(f"no run is kept in {index.place.root}; make one with: bitwatt run script.py")
        else:
            print(f"none of the {known:,} runs in {index.place.root} fulfils {' and '.join(where)}")
        return
    columns = _columns(args) or default_columns(
        [header for ranks in lines for header in ranks], jobs=any(len(ranks) > 1 for ranks in lines)
    )
    rows = [_job(ranks, columns) if len(ranks) > 1 else [cell(ranks[0], name) for name in columns] for ranks in lines]
    width = shutil.get_terminal_size((200, 24)).columns if sys.stdout.isatty() else 200
    for line in drawn(columns, rows, width):
        print(fitting(line, sys.stdout.encoding))
    if any("~" in row[columns.index("energy_j")] for row in rows if "energy_j" in columns):
        print("~ energy that was not all measured")
    if more:
        print(f"... and {more:,} more: --limit 0 shows all")


def _columns(args: argparse.Namespace) -> list[str]:
    from bitwatt.store.filters import _ALIASES, field_of

    names = [name.strip() for name in (args.columns or "").split(",") if name.strip()]
    for name in names:
        if name != "tags":
            field_of(name)
    return [_ALIASES.get(name, name) for name in names]


def _together(index: Index, where: list[str], sort: str, limit: int) -> tuple[list[list[Header]], int]:
    """The ranks of a job stand in one line, where the first of them would; how many runs are left."""
    from bitwatt.jobs import without_joined

    lines: dict[tuple[str, ...], list[Header]] = {}
    seen, step = 0, limit + 1 if limit else None
    while chunk := index.select(where, sort, step, seen):
        seen += len(chunk)
        for header in chunk:
            key = (str(header.path),) if header.rank is None else (header.rank.job, header.name, "job")
            lines.setdefault(key, []).append(header)
        if step is None or len(lines) > limit:
            break
    alone = list(without_joined(lines).values())
    shown, hidden = alone[: limit or None], sum(map(len, lines.values())) - sum(map(len, alone))
    for ranks in shown:
        first = ranks[0]
        if first.rank is not None and len(ranks) < first.rank.world:
            ranks[:] = [one for one in index.select([f"job={first.rank.job}"]) if one.name == first.name]
    return shown, max(index.count(where) - sum(map(len, shown)) - hidden, 0) if len(alone) > len(shown) else 0


def _job(ranks: list[Header], columns: list[str]) -> list[str]:
    """Sums of what was priced when the ranks' files were closed."""
    from bitwatt.cli.listing import cell
    from bitwatt.jobs import joined, state_of_job
    from bitwatt.units import format_count, format_duration

    job = joined(ranks)
    missing = sum(header.summary.get("coverage", {}).get("missing", 0) for header in ranks)
    least = "≥ " if job.lost else ""
    known = {
        "id": job.job,
        "name": cell(ranks[0], "name"),
        "seconds": format_duration(float(f"{job.seconds:.3g}")),
        "flops": least + format_count(job.total.total[0], "FLOP"),
        "bops": least + format_count(job.total.total[1], "BOP"),
        "energy_j": "",  # ranks of one machine read the same meter: see bitwatt report --ranks
        "missing": f"{missing:,}" if missing else "",
        "status": state_of_job(ranks),
    }
    return [known[name] if name in known else cell(ranks[0], name) for name in columns]


def _json(found: list[Header], args: argparse.Namespace) -> None:
    import json

    from bitwatt.store.cells import document as whole
    from bitwatt.store.cells import value

    names = _columns(args)

    def document(header: Header) -> dict[str, Any]:
        if names:
            return {"id": header.id, **{name: _plain(value(header, name)) for name in names}}
        return {**whole(header), "path": str(header.path)}

    print(json.dumps([document(header) for header in found], indent=2))


def _plain(found: Any) -> Any:
    return None if isinstance(found, float) and found != found else found


def _csv(found: list[Header], args: argparse.Namespace) -> None:
    import csv

    from bitwatt.cli.listing import value
    from bitwatt.harmless import in_printed_csv
    from bitwatt.store.tables import runs_table

    writer = csv.writer(sys.stdout, lineterminator="\n")
    if names := _columns(args):
        table: Any = ({name: value(header, name) for name in names} for header in found)
    else:
        made = runs_table(found)
        names, table = list(made.columns), made.rows
    writer.writerow([in_printed_csv(name) for name in names])
    for row in table:
        cells = (
            " ".join(f"{k}={v}" if v else k for k, v in one.items()) if isinstance(one := row[name], dict) else one
            for name in names
        )
        writer.writerow([in_printed_csv(one) if isinstance(one, str) else one for one in cells])
