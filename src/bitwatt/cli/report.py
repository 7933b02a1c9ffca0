"""Show a kept run: by default the newest.

A run is named by its id, the beginning of its id, its name (the newest of that name), or a path to its file. With --to
it is sent elsewhere instead of shown; with --ranks, all ranks of a job as one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bitwatt.cli.options import add_report_options, add_store_option, beside, put, written
from bitwatt.cli.settings import add_settings_options, settings_of
from bitwatt.cli.sinks import add_sink_option, send

if TYPE_CHECKING:
    from bitwatt.records import Run

#: Formats in which a deployment study has a report of its own.
_OF_STUDIES = ("text", "markdown", "html")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="id, beginning of an id, name or path (default: the newest)")
    add_store_option(parser)
    add_report_options(parser)
    add_sink_option(parser)
    add_settings_options(parser)
    parser.add_argument(
        "--ranks", action="store_true", help="all ranks of a job as one: who did what, who held up whom"
    )
    parser.add_argument("--lifetime", metavar="RUN", help="the run that trained what this one serves")
    parser.add_argument(
        "--against", metavar="RUN", help="place it beside another run of the same task, or the median of its name"
    )
    parser.add_argument("--beside", metavar="FILE", type=Path, help="a torch.profiler trace, or a CSV of ncu")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write there instead of to the terminal")


def main(args: argparse.Namespace) -> int:
    from bitwatt.reports import report
    from bitwatt.store import load

    if args.ranks:
        _only_for_ranks(args)
    if args.to:
        text, status = send(_whole(args) if args.ranks else load(args.run, args.store), args)
        sys.stdout.write(text)
        return status
    if args.ranks:
        text = ranks(args)
    else:
        run = load(args.run, args.store)
        if run.deployment is not None and args.format in _OF_STUDIES:
            text = study(run, args)
        elif args.output is None:
            sys.stdout.write(written(run, args, sys.stdout))
            if run.rank is not None and args.format == "text":
                print(f"rank {run.rank.rank} of {run.rank.world}; all of them: bitwatt report --ranks {run.rank.job}")
            return 0
        else:
            text = report(
                run, format=args.format, by=args.by, cost_model=args.cost_model, settings=settings_of(args),
                **beside(args, run),
            )  # fmt: skip
    if args.output is None:
        sys.stdout.write(text)
        return 0
    put(args.output, text)
    return 0


def _only_for_ranks(args: argparse.Namespace) -> None:
    """What is asked for and would not be answered is an error, not silence."""
    from bitwatt.errors import BitwattError

    if asked := _more(args):
        raise BitwattError(f"{', '.join(asked)}: a report of --ranks has no such part; ask for it of one rank's run")


def _more(args: argparse.Namespace) -> list[str]:
    """Options that ask for parts of the report of a run."""
    asked = [f"--{name}" for name in ("lifetime", "against", "beside", "by") if getattr(args, name) is not None]
    return asked + (["--cost-model"] if args.cost_model != "flops" else [])


def study(run: Run, args: argparse.Namespace) -> str:
    """What `bitwatt deploy` told when the run was kept."""
    import shutil

    from bitwatt.deploy.telling.kept import findings_of
    from bitwatt.errors import BitwattError
    from bitwatt.harmless import on_terminal
    from bitwatt.reports.text import WIDTH, fitting, wants_color

    if asked := _more(args):
        raise BitwattError(f"{', '.join(asked)}: run {run.id} is a deployment study, whose report has no such part")
    findings = findings_of(run)
    if args.format != "text":
        return findings.markdown() if args.format == "markdown" else findings.page()
    on_screen = args.output is None
    width = shutil.get_terminal_size((WIDTH, 24)).columns if on_screen and sys.stdout.isatty() else WIDTH
    head = on_terminal(f"run {run.id} of {run.started[:19].replace('T', ' ')}: {run.name}")
    text = f"{head}\n{findings.text(width, on_screen and wants_color(sys.stdout))}"
    return fitting(text, sys.stdout.encoding) if on_screen else text


def _whole(args: argparse.Namespace) -> Run:
    from bitwatt.jobs import join, whole

    return whole(join(args.run, args.store))


def ranks(args: argparse.Namespace) -> str:
    from bitwatt.jobs import join
    from bitwatt.reports.ranks import render
    from bitwatt.reports.text import fitting

    text = render(join(args.run, args.store), args.format, settings_of(args))
    return fitting(text, sys.stdout.encoding) if args.output is None else text
