"""--to: where a run is sent beside the store, for the verbs that have one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitwatt.records import Run


def add_sink_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", metavar="NAME[=OPTIONS]", action="append",
        help="send the run there as well: mlflow, wandb, tensorboard, otel, prometheus, csv, model-card (repeatable)",
    )  # fmt: skip


def told_briefly(receipts: Iterable[Any], *, quiet: bool = False) -> str:
    """What became of it, a line for each; quietly, only of those that failed."""
    return "".join(
        f"not sent to {one.sink}: {one.problem}\n" if one.problem else f"sent to {one.sink}: {one.where}\n"
        for one in receipts
        if one.problem or not quiet
    )


def send(run: Run, args: argparse.Namespace) -> tuple[str, int]:
    """A kept run, now: what to say, and the exit status."""
    from bitwatt.cli.settings import settings_of
    from bitwatt.sinks import send

    receipts = send(run, args.to, settings_of(args))
    return told_briefly(receipts), 1 if any(one.problem for one in receipts) else 0
