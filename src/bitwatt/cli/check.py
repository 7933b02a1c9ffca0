"""Hold a run against a budget, for CI: exit code 0 within, 1 over, 2 where something is wrong with the budget.

  bitwatt check                                   (the newest run, the budget of bitwatt.toml)
  bitwatt check ci --baseline main --summary      (limits such as "+2 %", and a table for GitHub)
  bitwatt check ci --baseline main --repeat       (time and energy too: they need repetitions)

FLOPs, BOPs, bytes and other counts gate hard. Time and energy gate only with repeated runs and an interval.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bitwatt.cli.options import add_store_option, put

if TYPE_CHECKING:
    from bitwatt.budgets.checking import Outcome
    from bitwatt.records import Run

FORMATS = ("text", "markdown", "json")
_STEP = "GITHUB_STEP_SUMMARY"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="id, beginning of an id, name or path (default: the newest)")
    parser.add_argument(
        "--budget", metavar="FILE", type=Path, help="TOML with [budget] (default: bitwatt.toml, upward)"
    )
    parser.add_argument("--baseline", metavar="RUN", help='the run that limits such as "+2 %%" are held against')
    parser.add_argument(
        "--repeat", action="store_true", help="with the runs that repeat each: same name, work, machine"
    )
    add_store_option(parser)
    parser.add_argument("--format", metavar="FORMAT", default="text", help="text, markdown or json")
    parser.add_argument(
        "--summary", metavar="FILE", nargs="?", const="", help=f"append markdown there (default: ${_STEP})"
    )
    parser.add_argument("--junit", metavar="FILE", type=Path, help="write JUnit XML")
    parser.add_argument("--benchmark-json", metavar="FILE", type=Path, help="write it for github-action-benchmark")


def main(args: argparse.Namespace) -> int:
    import json

    from bitwatt.budgets import telling
    from bitwatt.budgets.checking import check
    from bitwatt.budgets.reading import read
    from bitwatt.cli.compare import width
    from bitwatt.cli.settings import settings_of
    from bitwatt.errors import BitwattError, UnknownNameError
    from bitwatt.reports.text import fitting, wants_color

    if args.format not in FORMATS:
        raise UnknownNameError(f"--format is one of {', '.join(FORMATS)}, not {args.format!r}")
    if args.summary == "" and not os.environ.get(_STEP):
        raise BitwattError(f"--summary without a file needs ${_STEP}, which GitHub sets; write --summary FILE")
    budget, settings = read(args.budget), settings_of(args)
    runs = _with_repetitions(args.run, args)
    relative = any(limit.is_relative for limit in budget.limits)
    baseline = _baseline(args, budget.baseline, runs[0]) if relative or args.baseline else []
    for one in (*runs, *baseline):
        if one.status != "ok":
            raise BitwattError(f"run {one.id} did not end well ({one.status}): it says nothing about a budget")
    if same := {run.id for run in runs} & {run.id for run in baseline}:
        raise BitwattError(f"run {min(same)} stands on both sides: a run is not held against itself")
    outcomes = check(budget, runs, baseline, settings)
    if args.format == "text":
        text = telling.text(outcomes, runs, width(), wants_color(sys.stdout))
        sys.stdout.write(fitting(text, sys.stdout.encoding))
    elif args.format == "json":
        print(json.dumps(telling.document(outcomes, runs), indent=2, allow_nan=False))
    else:
        sys.stdout.write(_markdown(outcomes, runs, baseline))
    _write(args, outcomes, runs, baseline)
    return 1 if any(one.fails for one in outcomes) else 0


def _with_repetitions(which: str | None, args: argparse.Namespace) -> list[Run]:
    from bitwatt.comparing.choosing import repeating
    from bitwatt.store import load

    run = load(which, args.store)
    return [run, *(repeating(run, args.store) if args.repeat else ())]


def _baseline(args: argparse.Namespace, named: str, run: Run) -> list[Run]:
    """As the flag says, or the budget, or what `bitwatt baseline set` chose."""
    from bitwatt.comparing.choosing import baseline_of, repeating

    if which := args.baseline or named:
        return _with_repetitions(which, args)
    found = baseline_of(run, args.store)
    if found is None:
        return []
    return [found, *(repeating(found, args.store) if args.repeat else ())]


def _markdown(outcomes: list[Outcome], runs: list[Run], baseline: list[Run]) -> str:
    from bitwatt.budgets import telling
    from bitwatt.comparing import compare

    return telling.markdown(outcomes, compare(baseline, runs) if baseline else None)


def _write(args: argparse.Namespace, outcomes: list[Outcome], runs: list[Run], baseline: list[Run]) -> None:
    import json

    from bitwatt.budgets import telling
    from bitwatt.errors import BitwattError

    try:
        if args.summary is not None:
            with open(args.summary or os.environ[_STEP], "a", encoding="utf-8") as file:
                file.write(_markdown(outcomes, runs, baseline) + "\n")
        if args.junit is not None:
            put(args.junit, telling.junit(outcomes, runs))
        if args.benchmark_json is not None:
            found = json.dumps(telling.benchmark(outcomes, runs), indent=2, allow_nan=False)
            put(args.benchmark_json, found + "\n")
    except OSError as error:
        raise BitwattError(f"{error.filename} could not be written: {error.strerror or error}") from error
