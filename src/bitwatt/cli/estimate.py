"""Count an ONNX model from its file, without running it.

The report is that of a run: work by layer and operator, bytes, precisions. Dimensions that the model leaves open are
bound by --batch and --shape: --shape input=1,3,224,224 for all of an input, --shape sequence=128 for a named dimension.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bitwatt.cli.options import add_report_options, check_report_options, written
from bitwatt.cli.settings import add_settings_options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="a .onnx file")
    parser.add_argument("--batch", type=int, metavar="N", help="the first dimension of inputs that leave it open")
    parser.add_argument(
        "--shape", action="append", default=[], metavar="NAME=SIZES", help="of an input, or one length of a dimension"
    )
    add_report_options(parser)
    add_settings_options(parser)
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write there instead of to the terminal")


def main(args: argparse.Namespace) -> int:
    from bitwatt.estimation import estimate

    check_report_options(args)
    run = estimate(args.model, batch=args.batch, shapes=dict(map(_shape, args.shape)))
    if args.output is None:
        sys.stdout.write(written(run, args, sys.stdout))
        return 0
    with args.output.open("w", encoding="utf-8") as file:
        file.write(written(run, args, file))
    return 0


def _shape(text: str) -> tuple[str, tuple[int, ...] | int]:
    """`input=1,3,224,224` is a shape; `sequence=128` the length of a dimension, `sequence=128,` a shape of one."""
    from bitwatt.errors import BitwattError

    name, equals, sizes = text.rpartition("=")
    try:
        lengths = tuple(int(size) for size in sizes.split(",") if size)
    except ValueError:
        lengths = ()
    if not equals or not name or not lengths:
        raise BitwattError(f"--shape is NAME=SIZES, as in input=1,3,224,224; not {text!r}")
    return name, lengths if "," in sizes else lengths[0]
