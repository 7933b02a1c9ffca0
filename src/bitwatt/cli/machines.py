"""Compare machines over the kept runs: joules and gCO2e for a TFLOP and a TBOP, with their spread.

  bitwatt machines                        all runs in the folder
  bitwatt machines baseline               those of this name: of one task, so that machines compare
  bitwatt machines --country FRA          with grams

Runs whose energy was not measured are left out and counted; --show-modelled takes modelled energy in, marked.
"""

from __future__ import annotations

import argparse
import shutil
import sys

from bitwatt.cli.options import add_store_option
from bitwatt.cli.settings import add_settings_options, settings_of

#: What grams and modelled energy hang on.
SETTINGS = ("pue", "country", "region", "intensity_g_per_kwh", "grid_provider", "grid_zone", "show_modelled")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", help="only runs of this name")
    add_store_option(parser)
    parser.add_argument("--format", metavar="FORMAT", default="text", help="text, markdown or json")
    add_settings_options(parser, only=SETTINGS)


def main(args: argparse.Namespace) -> int:
    from bitwatt.errors import UnknownNameError
    from bitwatt.reports.machines import render, survey
    from bitwatt.reports.text import WIDTH, fitting, wants_color
    from bitwatt.store import FOLDER, headers

    kept, damaged = headers(args.store)
    chosen = [header for header in kept if args.name in (None, header.name)]
    if not chosen:
        called = f" called {args.name!r}" if args.name else ""
        raise UnknownNameError(f"no run{called} is kept in {args.store or FOLDER}")
    out = sys.stdout
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns) if out.isatty() else WIDTH
    told = render(survey(chosen, settings_of(args)), args.format, width=width, color=wants_color(out))
    out.write(fitting(told, out.encoding) if args.format == "text" else told)
    for error in damaged:
        print(f"bitwatt: {error}", file=sys.stderr)
    return 0
