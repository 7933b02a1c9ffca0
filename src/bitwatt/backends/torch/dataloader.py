"""Data loading: the loader's own time is `preprocess`, and worker processes send back what they counted."""

from __future__ import annotations

import functools
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.utils.data import TensorDataset, _utils, dataloader

from bitwatt.backends.torch import compact
from bitwatt.backends.torch.replay.events import marks_of_fetch
from bitwatt.backends.torch.replay.lessons import READS
from bitwatt.backends.torch.replay.memory import FETCH
from bitwatt.backends.torch.replay.pace import ADDED
from bitwatt.backends.torch.state import Frame, ThreadState, graph_task
from bitwatt.context import Token, current, opened
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch

_now = time.perf_counter
#: torch's own loop, taken before any session put ours in its place.
_LOOP = _utils.worker._worker_loop


class Spool:
    """A folder into which workers append their counts, a file for each: a killed worker loses one batch at most."""

    def __init__(self) -> None:
        self.folder: Path | None = None

    def path(self, token: Token) -> Path:
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="bitwatt-"))
        folder = self.folder / str(id(token))
        folder.mkdir(exist_ok=True)
        return folder

    def read(self, token: Token) -> Iterator[tuple[str, str, Op, int]]:
        if self.folder is None:
            return
        for file in sorted((self.folder / str(id(token))).glob("*.counts")):
            yield from _rows(file)
            file.unlink()

    def close(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


def _rows(file: Path) -> Iterator[tuple[str, str, Op, int]]:
    with file.open("rb") as stream:
        while True:
            try:
                yield from pickle.load(stream)
            except (EOFError, pickle.UnpicklingError):  # the end, or a batch cut short by a kill
                break


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    process = os.getpid()
    original_next = dataloader._BaseDataLoaderIter.__next__
    original_fetch = _utils.fetch._MapDatasetFetcher.fetch
    original_iter = dataloader._MultiProcessingDataLoaderIter.__init__

    def loading(state: ThreadState) -> Frame | None:
        """A frame for the loader's time, unless that is booked in a lane."""
        learner = state.learner
        in_lane = learner is not None and learner.lane is not None and not learner.watched
        return None if in_lane else state.push("preprocess", "DataLoader")

    def watched_next(self: Any) -> Any:
        if not watch.on:
            return original_next(self)
        context = current()
        if getattr(self, "_workers", None) and context is not None and _started_in(self) is not context.token:
            watch.notes[_UNSEEN] = None
        state = watch.states.here
        learner, began = state.learner, _now()
        frame = loading(state)
        try:
            batch = original_next(self)
            if learner is not None and getattr(self, "_workers", None):  # else datasets run here
                learner.loaded(began)
            return batch
        except StopIteration:
            if learner is not None and not state.pace.mute and graph_task() < 0:
                learner.halts()
            raise
        finally:
            if frame is not None:
                state.pop(frame)

    def watched_iter(self: Any, loader: Any) -> None:
        context = current()
        if watch.on and context is not None:
            self._bitwatt_token = context.token
            spool = str(watch.spool.path(context.token))
            _utils.worker._worker_loop = functools.partial(worker_loop, spool, context.phases, context.token.folder)
        learner, began = watch.states.here.learner if watch.on else None, _now()
        try:
            original_iter(self, loader)
        finally:
            _utils.worker._worker_loop = _LOOP
        if learner is not None:
            learner.loaded(began)

    def watched_fetch(self: Any, index: Any) -> Any:
        state = watch.states.here
        learner = state.learner if watch.on and graph_task() < 0 else None
        if learner is None or learner.replaying or state.pace.mute:
            return original_fetch(self, index)
        if state.pace.next is not None:
            if state.pace.next(FETCH, *marks_of_fetch(self.dataset, index)):
                return run(learner, self, index)
            learner.surprised()
        return fetch_event(state, self, index)

    def run(learner: Any, fetcher: Any, index: Any) -> Any:
        learner.pace.mute, began = ADDED, _now()
        try:
            batch = original_fetch(fetcher, index)
        except BaseException:
            learner.abort()
            raise
        learner.pace.mute = 0
        learner.loaded(began)
        return batch

    def fetch_event(state: ThreadState, fetcher: Any, index: Any) -> Any:
        learner = watch.events.ready(state)
        if learner is None:
            return original_fetch(fetcher, index)
        learner.begin(*marks_of_fetch(fetcher.dataset, index))
        if learner.step is not None and not _is_torchs(fetcher):
            learner.step.opaque, learner.step.event.enough = True, READS  # it may do what it likes with a sample
        frame = loading(state) if state.top.phase != "preprocess" else None  # where a lane has just been left
        try:
            batch = original_fetch(fetcher, index)
        except BaseException:
            learner.abort()
            raise
        finally:
            if frame is not None:
                state.pop(frame)
        learner.end(closes=False)
        return batch

    dataloader._BaseDataLoaderIter.__next__ = watched_next
    _utils.fetch._MapDatasetFetcher.fetch = watched_fetch
    dataloader._MultiProcessingDataLoaderIter.__init__ = watched_iter

    def restore() -> None:
        dataloader._BaseDataLoaderIter.__next__ = original_next
        _utils.fetch._MapDatasetFetcher.fetch = original_fetch
        dataloader._MultiProcessingDataLoaderIter.__init__ = original_iter
        if os.getpid() == process:
            watch.spool.close()

    return [restore]


def _is_torchs(fetcher: Any) -> bool:
    """Whether no code of the program's own runs when a batch is read."""
    return type(fetcher.dataset) is TensorDataset and fetcher.collate_fn.__module__.startswith("torch.")


_UNSEEN = "DataLoader workers that were started before this session are not counted; make the loader's iterator inside"


def _started_in(iterator: Any) -> Token | None:
    return getattr(iterator, "_bitwatt_token", None)


def worker_loop(spool: str, phases: tuple[str, ...], folder: Any, *args: Any) -> None:
    """Runs in the worker process in place of torch's loop, which it calls."""
    from bitwatt.backends.torch.watch import TorchWatch

    watch = TorchWatch()
    with opened("worker", phases=phases, folder=folder) as context:
        watch.start()
        watch.arrive()
        try:
            queue = _SendingQueue(args[3], watch, context.token, Path(spool) / f"{os.getpid()}.counts")
            _LOOP(*args[:3], queue, *args[4:])
        finally:
            watch.leave()
            watch.stop()


#: A file of counts longer than this is added up and written anew.
SPOOL = 4_000_000


class _SendingQueue:
    """The worker's queue of finished batches. Counts are on disk before the batch is on its way."""

    def __init__(self, queue: Any, watch: TorchWatch, token: Token, file: Path) -> None:
        self._queue, self._watch, self._token, self._file = queue, watch, token, file
        self._frame = self._loading()
        self._room = SPOOL

    def _loading(self) -> Frame:
        """What runs here is the loader's, as it is in the user's process where there are no workers."""
        return self._watch.states.here.push("preprocess", "DataLoader")

    def put(self, item: Any) -> None:
        if self._watch.on:
            self._send()
        self._queue.put(item)

    def _send(self) -> None:
        self._watch.states.here.pop(self._frame)
        rows = [(row.phase, row.scope, row.op, row.calls) for row in self._watch.collect(self._token).ledger]
        if not self._file.parent.exists():  # the session has ended and this worker lives on
            self._watch.forget()
        elif rows:
            with self._file.open("ab") as stream:
                pickle.dump(rows, stream)
                full = stream.tell() > self._room
            if full:
                self._add_up()
        self._frame = self._loading()

    def _add_up(self) -> None:
        """Batches of a day, or images of every size, must not fill the disk."""
        ledger = compact.Gathering(self._token, self._watch.scopes)
        for row in _rows(self._file):
            ledger.add(*row)
        fresh = self._file.with_suffix(".new")
        with fresh.open("wb") as stream:
            pickle.dump([(row.phase, row.scope, row.op, row.calls) for row in ledger], stream)
            self._room = max(SPOOL, 2 * stream.tell())
        fresh.replace(self._file)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)
