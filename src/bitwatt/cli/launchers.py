"""Launchers of several processes (torchrun, accelerate launch): every process is measured, and all are joined."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitwatt.cli.settings import settings_of

if TYPE_CHECKING:
    from bitwatt.config import Settings

#: What to type -> how to start it: with the arguments of the launcher, and how to call bitwatt in each process.
Launch = Callable[[list[str], list[str]], None]


def launcher(program: list[str]) -> tuple[Launch, list[str]] | None:
    """The launcher that a command line names, and its arguments; None for a program of the user's own."""
    words = program[1:] if program[:1] == ["-m"] else program
    if not words or (words is program and os.path.exists(words[0]) and not _is_installed(words[0])):
        return None
    name = os.path.basename(words[0])
    if name == "torchrun" or (
        words is not program and words[0] in ("torch.distributed.run", "torch.distributed.launch")
    ):
        return _torchrun, words[1:]
    if name == "accelerate" and words[1:2] == ["launch"]:
        return _accelerate, words[2:]
    if words is not program and words[0] == "accelerate.commands.launch":
        return _accelerate, words[1:]
    return None


def _is_installed(path: str) -> bool:
    """A command given by its full path, and no script of the user's that has the same name."""
    folders = [os.path.dirname(sys.executable), *os.environ.get("PATH", "").split(os.pathsep)]
    return os.path.dirname(os.path.abspath(path)) in [os.path.abspath(folder) for folder in folders if folder]


def _torchrun(arguments: list[str], ours: list[str]) -> None:
    from importlib import import_module

    run: Any = import_module("torch.distributed.run")
    run.run(_through_bitwatt(run.get_args_parser().parse_args(arguments), ours))


def _accelerate(arguments: list[str], ours: list[str]) -> None:
    from importlib import import_module

    launch: Any = import_module("accelerate.commands.launch")
    launch.launch_command(_through_bitwatt(launch.launch_command_parser().parse_args(arguments), ours))


def _through_bitwatt(args: Any, ours: list[str]) -> Any:
    """Both parsers name the script alike: in its place comes `-m bitwatt run`, followed by the script."""
    if getattr(args, "no_python", False):
        return args
    script = ["-m", args.training_script] if args.module else [args.training_script]
    args.training_script_args = ["run", *ours, *script, *args.training_script_args]
    args.training_script, args.module = "bitwatt", True
    return args


def run(launch: Launch, arguments: list[str], options: list[str], args: Any) -> int:
    """Start the launcher in this process, which measures nothing itself, and report all ranks as one."""
    began = datetime.now(UTC)
    try:
        launch(arguments, [*options, "--quiet"])
    finally:
        if not args.quiet and not args.no_keep:
            sys.stdout.flush()
            sys.stderr.write(told(args.store, began, settings_of(args)))
            sys.stderr.flush()
    return 0


def told(store: Path | None, began: datetime, settings: Settings | None = None) -> str:
    """The jobs of a store that began since then, as text."""
    from bitwatt.jobs import since
    from bitwatt.reports.ranks import render
    from bitwatt.reports.text import fitting

    option = f" --store {store}" if store else ""
    texts = [
        f"\n{render(job, settings=settings)}show it again with: bitwatt report --ranks{option} {job.job}\n"
        for job in since(began, store)
    ]
    return fitting("".join(texts), sys.stderr.encoding)


def told_by_first(store: Path | None, run: Any, patience: float = 5.0) -> str:
    """Of the job that `run` is rank 0 of, once the others have closed their files too, or after `patience` seconds."""
    from bitwatt.jobs import join
    from bitwatt.ranks.join import UNDER_WAY
    from bitwatt.reports.ranks import render
    from bitwatt.reports.text import fitting

    until = time.monotonic() + patience
    while True:
        job = join(run.id, store)
        closed = [part for part in job.parts if part.kept.status != UNDER_WAY or part.is_lost]
        if len(closed) == job.world or time.monotonic() > until:
            return fitting("\n" + render(job), sys.stderr.encoding)
        time.sleep(0.1)
