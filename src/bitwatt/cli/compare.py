"""Compare runs: phases, layers and ops side by side, what changed and by how much.

  bitwatt compare wider                                       (against the baseline that was set)
  bitwatt compare baseline wider
  bitwatt compare baseline wider --repeat                     (all runs like these: times with an interval)
  bitwatt compare teacher student --metric accuracy --audit-distillation
  bitwatt compare "tag:sweep=1" --pareto energy,accuracy,bops (every run that a filter finds)

Counts are compared exactly. Times and joules are ratios of medians, with a 95 % interval where runs are repeated; a
single run each is said to be that. A run is named by its id, the beginning of its id, its name or a path.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bitwatt.cli.options import add_store_option, put
from bitwatt.cli.settings import add_settings_options, settings_of

if TYPE_CHECKING:
    from bitwatt.comparing import Comparison


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="id, beginning of an id, name, path or filter")
    add_store_option(parser)
    parser.add_argument(
        "--repeat", action="store_true", help="with the runs that repeat each: same name, work, machine"
    )
    parser.add_argument("--format", metavar="FORMAT", default="text", help="text, markdown, json or html")
    parser.add_argument("--by", metavar="KEY", help="only the table by phase, scope, op or precision, at length")
    parser.add_argument("--cost-model", metavar="MODEL", help="what work is worth (default: flops, or what differs)")
    parser.add_argument("--metric", metavar="NAME", help="the metric that tells quality: what does a gain cost?")
    parser.add_argument("--lower-is-better", action="store_const", const=True, help="less of the metric is better")
    parser.add_argument("--pareto", metavar="AXES", help="the front over two or three: energy,accuracy[,bops]")
    parser.add_argument(
        "--audit-distillation",
        action="store_true",
        help="does the second (student) keep the first's (teacher's) quality at little of the energy? exit 1 if not",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write there instead of to the terminal")
    add_settings_options(parser)


def main(args: argparse.Namespace) -> int:
    from bitwatt.reports.text import fitting, wants_color

    comparison = compared(args)
    to_terminal = args.output is None and args.format == "text"
    text = comparison.render(
        args.format, by=args.by, width=width() if to_terminal else None, color=to_terminal and wants_color(sys.stdout)
    )
    if args.output is None:
        sys.stdout.write(fitting(text, sys.stdout.encoding) if args.format == "text" else text)
    else:
        put(args.output, text)
    return 0 if comparison.audited is None or comparison.audited.verdict == "passed" else 1


def compared(args: argparse.Namespace) -> Comparison:
    from bitwatt.comparing import Comparison
    from bitwatt.comparing.choosing import baseline_of, chosen, repeating
    from bitwatt.comparing.drawing import FORMATS
    from bitwatt.comparing.sides import sides
    from bitwatt.errors import BitwattError, UnknownNameError

    if args.format not in FORMATS:
        raise UnknownNameError(f"--format is one of {', '.join(FORMATS)}, not {args.format!r}")
    found = chosen(args.runs, args.store, repeat=args.repeat)
    if len(found) == 1:
        baseline = baseline_of(found[0][0], args.store)
        if baseline is None or baseline.id == found[0][0].id:
            raise BitwattError(
                f"a comparison needs two runs or more, and {args.runs[0]} is one; name another, or set a baseline: "
                "bitwatt baseline set RUN"
            )
        found.insert(0, [baseline, *(repeating(baseline, args.store) if args.repeat else ())])
    if args.audit_distillation and len(found) != 2:
        raise BitwattError(f"an audit is of two: a teacher and a student, not of {len(found)}")
    comparison = Comparison(
        sides(found),
        cost_model=args.cost_model,
        metric=args.metric,
        lower_is_better=args.lower_is_better,
        settings=settings_of(args),
    )
    if args.pareto:
        comparison.pareto(*args.pareto.split(","))
    if args.audit_distillation:
        comparison.audit()
    return comparison


def width() -> int:
    """Of the terminal; elsewhere that of a page."""
    import shutil

    from bitwatt.reports.text import WIDTH

    return min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
