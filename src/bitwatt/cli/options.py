"""Options that several verbs share, and how they print a report."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from bitwatt.cli.settings import settings_of

if TYPE_CHECKING:
    from bitwatt.records import Run


def add_report_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", metavar="FORMAT", default="text", help="text, markdown, json, html or trace")
    parser.add_argument("--by", metavar="KEY", help="only the table by phase, scope, op or precision, at length")
    parser.add_argument("--cost-model", metavar="MODEL", default="flops", help="what work is worth: see bitwatt models")


def put(path: Path, text: str) -> None:
    """Write a file completely or not at all, so that a full disk costs nobody the one that was there."""
    from bitwatt.errors import BitwattError

    temporary = path.resolve().with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        if path.exists() and not path.is_file():  # a terminal, a pipe
            path.write_text(text, encoding="utf-8")
            return
        try:
            temporary.write_text(text, encoding="utf-8")
            os.replace(temporary, path.resolve())
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise BitwattError(f"{path} could not be written: {error.strerror or error}") from error


def add_store_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--store", metavar="DIR", help="folder or URL of the runs (default: .bitwatt)")


def check_report_options(args: argparse.Namespace) -> None:
    """Complain about a name before hours of computing, not after."""
    from bitwatt.errors import UnknownNameError
    from bitwatt.pricing import find_model
    from bitwatt.reports import FORMATS
    from bitwatt.reports.tables import TABLES

    find_model(args.cost_model)
    settings_of(args)
    for option, value, known in (("format", args.format, FORMATS), ("by", args.by, TABLES)):
        if value is not None and value not in known:
            raise UnknownNameError(f"--{option} is one of {', '.join(known)}, not {value!r}")


def kept(session: Any, args: argparse.Namespace, folder: str | None = None) -> str:
    """Where a run was kept, seen from the folder that the user is in, and how to show it again."""
    path, ranks = session.path, " --ranks" if session.run.rank is not None else ""
    if session.trouble:
        return f"kept in {path}; show it again with: bitwatt report {shlex.quote(str(path))}\n"
    shown = path if isinstance(path, str) else os.path.relpath(path, folder)
    option = f" --store {shlex.quote(str(args.store))}" if args.store else ""
    return f"kept in {shown}; show it again with: bitwatt report{ranks}{option} {session.run.id}\n"


#: Instead of a run: all others of its name.
MEDIAN = "median"


def beside(args: argparse.Namespace, run: Run) -> dict[str, Any]:
    """What `bitwatt report` shows beside a run: the run that trained its model, runs of the same task, a trace of
    another tool."""
    from bitwatt.store import load

    training = getattr(args, "lifetime", None)
    return {
        "against": _against(args, run),
        "lifetime": None if training is None else load(training, args.store),
        "beside": getattr(args, "beside", None),
    }


def _against(args: argparse.Namespace, run: Run) -> list[Run]:
    from bitwatt.errors import UnknownNameError
    from bitwatt.ranks.join import UNDER_WAY
    from bitwatt.store import load, runs

    which = getattr(args, "against", None)
    if which is None:
        return []
    if which != MEDIAN:
        return [load(which, args.store)]
    alike = [
        kept.path
        for kept in runs(args.store)
        if kept.name == run.name and kept.id != run.id and kept.rank is None and kept.status != UNDER_WAY
    ]
    if not alike:
        raise UnknownNameError(f"no other run is called {run.name!r}, so there is no median of them")
    return [load(path) for path in alike]


def written(run: Run, args: argparse.Namespace, stream: TextIO) -> str:
    """A report for this stream: its width, its colours, its encoding."""
    from bitwatt.reports import report
    from bitwatt.reports.text import WIDTH, fitting, wants_color

    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if stream.isatty() else WIDTH
    text = report(
        run, format=args.format, by=args.by, cost_model=args.cost_model, width=width, color=wants_color(stream),
        settings=settings_of(args), **beside(args, run),
    )  # fmt: skip
    return fitting(text, stream.encoding) if args.format == "text" else text
