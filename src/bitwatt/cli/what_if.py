"""Price a kept run in other number formats, by layer, without running it again.

  bitwatt what-if --weights int4 --except-layers lm_head
  bitwatt what-if baseline --weights int8 --activations int8 --save w8a8
  bitwatt what-if --table widths.csv
  bitwatt what-if --sweep fp32,fp16,int8,int4 --plot sweep.svg

Formats: fp32, fp16, bf16, fp8, int8, int4 and every other width, ternary, nf4, fp4, mxfp8, mxfp6, mxfp4, nvfp4.
Scales are written behind a colon: int4:g128 (groups of 128), int4:g128:zp (with zero points), int8:tensor.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bitwatt.cli.options import add_store_option

if TYPE_CHECKING:
    from bitwatt.records import Run
    from bitwatt.whatif import Sweep, WhatIf

FORMATS = ("text", "markdown", "json")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", help="id, beginning of an id, name or path (default: the newest)")
    parser.add_argument("--weights", metavar="FORMAT", help="what weights are written in")
    parser.add_argument("--activations", metavar="FORMAT", help="what goes into the layers (default: as recorded)")
    parser.add_argument("--layers", metavar="PATTERN", nargs="+", help='which layers, such as "*.mlp.*" (default: all)')
    parser.add_argument("--except-layers", metavar="PATTERN", nargs="+", help="layers to leave as they are")
    parser.add_argument("--table", metavar="CSV", type=Path, help="formats by layer: columns layer,weights,activations")
    parser.add_argument("--sweep", metavar="FORMATS", help="several formats side by side, with commas between; "
                        "activations as the weights unless given, none: as recorded")  # fmt: skip
    parser.add_argument("--plot", metavar="SVG", type=Path, help="write the plot of a sweep there")
    parser.add_argument("--save", metavar="NAME", help="keep the changed run under this name")
    parser.add_argument("--format", metavar="FORMAT", default="text", help="text, markdown or json")
    add_store_option(parser)


def main(args: argparse.Namespace) -> int:
    import json

    from bitwatt.errors import UnknownNameError
    from bitwatt.reports.text import fitting
    from bitwatt.store import load

    if args.format not in FORMATS:
        raise UnknownNameError(f"--format is one of {', '.join(FORMATS)}, not {args.format!r}")
    _check(args)
    result = _result(load(args.run, args.store), args)
    if args.format == "json":
        print(json.dumps(result.json(), indent=2))
    else:
        text = result.markdown().rstrip() if args.format == "markdown" else repr(result)
        print(fitting(text, sys.stdout.encoding))
    return 0


def _check(args: argparse.Namespace) -> None:
    from bitwatt.errors import BitwattError

    if args.plot and not args.sweep:
        raise BitwattError("--plot draws a sweep: say which formats with --sweep fp32,fp16,int8,int4")
    for option in ("weights", "table", "save"):
        if args.sweep and getattr(args, option):
            raise BitwattError(f"--sweep and --{option} do not go together")


def _result(run: Run, args: argparse.Namespace) -> WhatIf | Sweep:
    from dataclasses import replace

    from bitwatt.fingerprint import summary
    from bitwatt.store import save
    from bitwatt.whatif import sweep, what_if

    layers, exceptions = args.layers or "*", args.except_layers or ()
    if args.sweep:
        formats = [name.strip() for name in args.sweep.split(",") if name.strip()]
        inputs = {None: "same", "none": None}.get(args.activations, args.activations)
        result = sweep(run, formats, activations=inputs, layers=layers, except_layers=exceptions)
        if args.plot:
            result.save(args.plot)
        return result
    changed = what_if(run, args.weights, args.activations, layers, exceptions, args.table)
    if args.save:
        # Its metrics were of the formats that it ran in.
        about = replace(run.about, metrics={}, series={}, parent=run.id, parent_kind="what-if")
        kept = replace(changed.run, name=args.save, about=about)
        save(kept, args.store, summary=summary(kept))
    return changed
