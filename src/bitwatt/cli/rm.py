"""Remove kept runs for good: by name, or all that fulfil every filter. The ranks of a job go together.

  bitwatt rm 20260102-030405-abc123 old-baseline
  bitwatt rm status=failed until=2026-01-31

What would be removed is shown, and nothing is removed before you agree (or say --yes). Filters are those of bitwatt ls.
A name stands for the newest run of that name.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from bitwatt.cli.options import add_store_option

if TYPE_CHECKING:
    from bitwatt.store import Header, Where
    from bitwatt.store.index import Index

_SHOWN = 20


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("which", nargs="+", help="runs by id, beginning of an id, name or path; or filters")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.store.changes import remove, with_their_jobs
    from bitwatt.store.index import Index

    with Index(args.store) as index:
        found = with_their_jobs(chosen := _chosen(index, args), index.select() if any(h.rank for h in chosen) else ())
        if not found:
            print("no run fulfils that: nothing is removed")
            return 0
        _show(found, args)
        if not args.yes and not _agreed(len(found)):
            print("nothing was removed")
            return 1
        gone = remove(header.path for header in found)
        print(f"{len(gone)} {'run' if len(gone) == 1 else 'runs'} removed")
    return 0


def _chosen(index: Index, args: argparse.Namespace) -> list[Header]:
    """Runs that are named, or those that fulfil all filters: a mixture is not clear enough to remove anything."""
    from bitwatt.errors import BitwattError, UnknownNameError
    from bitwatt.store import absolute, find, place, read, split
    from bitwatt.store.filters import is_condition

    filters = [word for word in args.which if is_condition(word) and not word.endswith(".run")]
    if filters and len(filters) < len(args.which):
        raise BitwattError("write either names of runs or filters, not both")
    if filters:
        return index.select(filters)
    found: dict[Where, Header] = {}
    for word in args.which:
        there, name = split(find(word, args.store))
        headers, damaged = read(there, [name])
        if damaged:
            raise damaged[0]
        if not headers:
            raise UnknownNameError(f"there is no run {word!r} in {place(args.store).root}")
        found[absolute(headers[0].path)] = headers[0]
    return list(found.values())


def _show(found: list[Header], args: argparse.Namespace) -> None:
    from bitwatt.cli.listing import cell, drawn
    from bitwatt.reports.text import fitting
    from bitwatt.store.baselines import known

    columns = ["id", "name", "started", "seconds", "flops", "tags", "status"]
    lines = drawn(columns, ([cell(header, name) for name in columns] for header in found[:_SHOWN]), 200)
    for line in lines:
        print(fitting(line, sys.stdout.encoding))
    if len(found) > _SHOWN:
        print(f"... and {len(found) - _SHOWN:,} more")
    ids = {header.id for header in found}
    for baseline in known(args.store):
        if baseline.run in ids:
            print(f"{baseline.run} is the baseline of {baseline.project}")


def _agreed(number: int) -> bool:
    if not sys.stdin.isatty():
        print("say --yes to remove them: there is nobody to ask")
        return False
    answer = input(f"remove {'this run' if number == 1 else f'these {number:,} runs'} for good? [y/N] ")
    return answer.strip().lower() in ("y", "yes")
