"""Options that say what a run is about, to find it by."""

from __future__ import annotations

import argparse
from typing import Any

#: Options with a value.
VALUED = ("--tag", "--param", "--model-version", "--dataset", "--batch-size", "--parent", "--parent-kind")


def add_about_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("about the run", "kept with it, to filter and sort by: see bitwatt ls")
    group.add_argument(
        "--tag", metavar="TAG", action="append", default=[], help="a word, or name=value; may be repeated"
    )
    group.add_argument(
        "--param", metavar="NAME=VALUE", action="append", default=[], help="what it is set to; may be repeated"
    )
    group.add_argument("--model-version", metavar="TEXT", default="", help="version of the model")
    group.add_argument("--dataset", metavar="NAME", default="", help="what it is trained or run on")
    group.add_argument("--batch-size", metavar="N", type=int, help="samples in a batch")
    group.add_argument("--parent", metavar="ID", default="", help="the sweep, or whatever else it is part of")
    group.add_argument("--parent-kind", metavar="KIND", default="", help="what that is: sweep, fold, ...")


def about_of(args: argparse.Namespace) -> dict[str, Any]:
    """As measure() takes it; a mistake is told before the program runs."""
    from bitwatt.about import words

    return {
        "tags": args.tag,
        "parameters": words(args.param),
        "version": args.model_version,
        "dataset": args.dataset,
        "batch_size": args.batch_size,
        "parent": args.parent,
        "parent_kind": args.parent_kind or ("sweep" if args.parent else ""),
    }
