"""Jobs of Ray: workers of Ray Train are ranks, and workers of Ray Data too.

    TorchTrainer(train, run_config=RunConfig(callbacks=[bitwatt.ray.Callback("my-training")]))
    dataset.map_batches(bitwatt.ray.measured(embed))

Every worker keeps a run of its own. The callback brings the files of all nodes home; bitwatt report --ranks joins them.
"""

from __future__ import annotations

import functools
import os
import secrets
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ray.train.v2._internal.execution.callback import WorkerGroupCallback

from bitwatt import store as files
from bitwatt.ranks import identity
from bitwatt.records import Run
from bitwatt.session import Session, measure


class Callback(WorkerGroupCallback):  # type: ignore[misc]
    """For the callbacks of a Ray Train RunConfig: measures every worker, and gathers their runs in `store` (by default
    .bitwatt/ where the callback is made)."""

    def __init__(self, name: str = "ray-train", store: str | Path | None = None) -> None:
        self.name = name
        self.store = str(files.absolute(files.root(store)))
        self.command = " ".join(sys.argv)

    def after_worker_group_start(self, worker_group: Any) -> None:
        job = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
        self._attempt(worker_group, _open, self.name, self.store, self.command, job, len(worker_group))

    def before_worker_group_shutdown(self, worker_group: Any) -> None:
        for name, content in self._attempt(worker_group, _close):
            _write(self.store, name, content)

    def _attempt(self, worker_group: Any, function: Any, *args: Any) -> list[Any]:
        """On every worker that lives: training goes on whatever becomes of the measurement."""
        answers = []
        for rank in range(len(worker_group)):
            try:
                answers.append(worker_group.execute_single(rank, function, *((rank, *args) if args else ())))
            except Exception as error:
                warnings.warn(f"bitwatt: worker {rank} was not reached: {type(error).__name__}: {error}", stacklevel=2)
        return [answer for answer in answers if answer is not None]


_session: list[Session] = []  # of this worker


def _open(rank: int, name: str, store: str, command: str, job: str, world: int) -> None:
    identity.given = identity.this_rank(rank, world, job) if world > 1 else None
    _session.append(measure(name, store=store, command=command).__enter__())


def _close() -> tuple[str, bytes] | None:
    """The worker's run, as a file that may have to travel."""
    if not _session:
        return None
    session = _session.pop()
    session.close()
    return (session.path.name, session.path.read_bytes()) if isinstance(session.path, Path) else None


def _write(store: str, name: str, content: bytes) -> None:
    there = files.place(store)
    if all(file.name != name for file in there.files()):  # else this worker and the one who gathers see the same disk
        there.write(name, content)


def measured(function: Any, *, name: str | None = None, store: str | Path | None = None) -> Any:
    """`function`, or a class of callables, for Ray Data's map_batches, map and so on: every process that runs it keeps
    one run, with all its calls so far. Processes of one dataset are ranks of one job."""
    label = name or str(getattr(function, "__name__", type(function).__name__))
    folder = str(files.absolute(files.root(store)))
    job = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    if isinstance(function, type):
        call = _counted(function.__call__, label, folder, job)
        return type(function.__name__, (function,), {"__call__": call, "__module__": function.__module__})
    return _counted(function, label, folder, job)


def _counted(function: Callable[..., Any], name: str, folder: str, job: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        with measure(name, keep=False, command="ray data") as session:
            result = function(*args, **kwargs)
        _tally(job, folder).add(session.run)
        return result

    return counted


class _Tally:
    """All calls in this process as one run, on disk after each: Ray ends its workers without notice."""

    def __init__(self, job: str, folder: str) -> None:
        self.job, self.folder, self.lock = job, files.root(folder), threading.Lock()
        self.run: Run | None = None

    def add(self, run: Run | None) -> None:
        if run is None:
            return
        with self.lock:
            if self.run is None:
                rank = identity.this_rank(_place(self.folder, self.job), 0, self.job)
                self.run = replace(run, rank=rank)
            else:
                seconds = {
                    phase: self.run.phase_seconds.get(phase, 0.0) + run.phase_seconds.get(phase, 0.0)
                    for phase in {**self.run.phase_seconds, **run.phase_seconds}
                }
                self.run = replace(
                    self.run, ledger=self.run.ledger + run.ledger, seconds=self.run.seconds + run.seconds,
                    phase_seconds=seconds, layers={**self.run.layers, **run.layers},
                    notes=tuple(dict.fromkeys((*self.run.notes, *run.notes))),
                )  # fmt: skip
            files.save(self.run, self.folder, sync=False)


_tallies: dict[tuple[str, str], _Tally] = {}


def _tally(job: str, folder: str) -> _Tally:
    return _tallies.setdefault((job, folder), _Tally(job, folder))


def _place(folder: Path | str, job: str) -> int:
    """The first number that no other process of this job has taken; in object storage, where none can be taken, one
    that others hardly have."""
    if isinstance(folder, str):
        return secrets.randbelow(1 << 31)
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1 << 20):
        try:
            os.close(os.open(folder / f".{job}.{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return number
    raise OSError(f"no number is free in {folder}")
