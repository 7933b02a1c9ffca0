"""Takes a session's run to its sinks. The program never waits for one but at its end, and there not for long.

Each sink has a thread of its own and a mailbox that holds one run, the newest: one so far holds all that the one before
it held. The threads are started without Python's threading module, as the journal's is, so that nothing that watches
threads sees them.
"""

from __future__ import annotations

import _thread
import importlib
import logging
import os
import re
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from bitwatt import context
from bitwatt.errors import BitwattError
from bitwatt.harmless import on_terminal
from bitwatt.records import Run
from bitwatt.sinks import PATIENCE, Opening, Sink

#: Seconds between two looks at the run so far. Looking may take this share of a core.
INTERVAL, SHARE = 5.0, 1 / 300
#: And telling a sink, this; but once in so many seconds it is told whatever it takes.
SINK_SHARE, SELDOMEST = 1 / 100, 60.0
#: Seconds after a failure until the next try, and the most; each time twice as long.
FIRST, MOST = 0.5, 8.0
#: Where libraries complain that somebody is not there. We say so ourselves, once, at the end.
_LOGGERS = (
    "urllib3.connectionpool", "urllib3.util.retry", "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "opentelemetry.exporter.otlp.common.http", "huggingface_hub.repocard",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a run at one sink: `where` it is, or the `problem`."""

    sink: str
    run: str
    where: str = ""
    problem: str = ""
    tries: int = 0
    ranks: bool = False  # whether it was all ranks of a job

    @property
    def note(self) -> str:
        """For the notes of the run; empty where it arrived."""
        if not self.problem:
            return ""
        tried = f" (tried {self.tries} times)" if self.tries > 1 else ""
        again = f"bitwatt report {'--ranks ' if self.ranks else ''}{self.run} --to {self.sink}"
        return f"not sent to {self.sink}: {self.problem}{tried}; send it again: {again}"


class Delivery:
    """Of one session: `so_far` gives the run until now, or None; `job`, of a run that is the first of several
    processes', what all of them did. Without a session, of one run that is sent whatever it is."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        opening: Opening,
        so_far: Callable[[], Run | None] | None = None,
        job: Callable[[Run], Run] | None = None,
    ) -> None:
        self.sinks, self._so_far, self._job, self._process = list(sinks), so_far, job, os.getpid()
        self._troubles: dict[str, None] = {}
        self._looks(ended=False)
        self._boxes = [_Mailbox(sink, opening) for sink in self.sinks]
        self._ended, self._looking = threading.Event(), threading.Lock()
        if so_far is not None and any(hasattr(sink, "live") for sink in self.sinks):
            _started(self._watch)

    def prepare(self) -> None:
        """Before the interpreter ends: what is imported later than that cannot register its own end any more."""
        importlib.import_module("concurrent.futures.thread")
        for sink in self.sinks:
            warm = getattr(sink, "warm", None)
            if warm is not None:
                try:
                    warm()
                except Exception as error:  # sending may succeed all the same
                    self._troubles[f"{sink.name}: what it needs could not be imported in time ({told(error)})"] = None

    def rest(self) -> None:
        """The run is about to end: nobody looks at it from now on."""
        self._ended.set()
        if os.getpid() == self._process:
            with self._looking:
                pass

    def finish(self, run: Run) -> list[Receipt]:
        """Send the finished run, and wait until all sinks have it, or for as long as the most patient one wants. Ctrl-C
        ends the waiting."""
        self._ended.set()
        if os.getpid() != self._process:
            return []
        self._looks(ended=True)
        self._ranked(run)
        try:
            self._post(run)
            began = time.monotonic()
            return [box.wait(began) for box in self._boxes]
        except KeyboardInterrupt:
            return [box.left() for box in self._boxes]

    @property
    def notes(self) -> list[str]:
        """What went wrong without anything being lost, once each."""
        return list(self._troubles)

    def _post(self, run: Run) -> None:
        """Who hears every rank hears this one; the others hear of the job, which may have to be waited for."""
        alone = [box for box in self._boxes if getattr(box.sink, "every_rank", False)]
        for box in alone:
            box.post(run, final=True)
        others = [box for box in self._boxes if box not in alone]
        is_one_of_many = run.rank is not None and run.rank.world != 1
        sent = self._job(run) if others and self._job is not None and is_one_of_many else run
        for box in others:
            box.post(sent, final=True)

    def _ranked(self, run: Run) -> None:
        """Sinks that want one run for a job hear of its first process alone."""
        if self._so_far is None or run.rank is None or run.rank.rank == 0:
            return
        for box in self._boxes:
            if not getattr(box.sink, "every_rank", False):
                box.give_up()
        self._boxes = [box for box in self._boxes if getattr(box.sink, "every_rank", False)]

    def _looks(self, *, ended: bool) -> None:
        for sink in self.sinks:
            look = getattr(sink, "look", None)
            if look is not None:
                try:
                    look(ended=ended)
                except Exception as error:  # a run of our own is made
                    why = f"what the program itself has open there could not be looked at ({told(error)})"
                    self._troubles[f"{sink.name}: {why}"] = None

    def _watch(self) -> None:
        due = INTERVAL
        while not self._ended.wait(due) and os.getpid() == self._process and self._so_far is not None:
            spent = time.thread_time()
            with self._looking:
                try:
                    run = self._so_far() if not self._ended.is_set() else None
                except (RuntimeError, OSError, BitwattError):  # counted into while it was read: the next may succeed
                    run = None
                if run is not None:
                    self._ranked(run)
                    for box in self._boxes:
                        if hasattr(box.sink, "live"):
                            box.post(run)
            due = max(INTERVAL, (time.thread_time() - spent) / SHARE)


class _Mailbox:
    """One sink, its thread, and the newest run for it."""

    def __init__(self, sink: Sink, opening: Opening) -> None:
        self.sink, self._opening = sink, opening
        self.patience = float(getattr(sink, "patience", PATIENCE))
        self._is_open = False
        self._run: Run | None = None
        self._final = self._given_up = False
        self._problem, self._tries = "", 0
        self._receipt: Receipt | None = None
        self._wake, self._done = threading.Event(), threading.Event()
        self._deadline = float("inf")
        self._is_running = _started(self._work)

    def post(self, run: Run, *, final: bool = False) -> None:
        self._run, self._final = run, final or self._final
        if final:
            self._deadline = time.monotonic() + self.patience
        self._wake.set()

    def give_up(self) -> None:
        self._given_up = True
        self._wake.set()

    def wait(self, began: float) -> Receipt:
        """What became of it; a sink that has not answered in time is left to itself."""
        if not self._is_running:
            return self._told(problem="no thread could be started")
        self._done.wait(max(0.0, began + self.patience - time.monotonic()))
        return self._receipt or self.left(f"no answer within {self.patience:g} s")

    def left(self, why: str = "interrupted") -> Receipt:
        self.give_up()
        return self._receipt or self._told(problem=self._problem or why)

    def _work(self) -> None:
        pause, not_before = FIRST, 0.0
        self._try(None)
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._given_up:
                return
            if self._final:
                self._finish()
                return
            if time.monotonic() < not_before:
                continue  # a newer one will come
            spent = time.thread_time()
            if self._try(getattr(self.sink, "live", None)):
                not_before, pause = time.monotonic() + min((time.thread_time() - spent) / SINK_SHARE, SELDOMEST), FIRST
            else:
                not_before, pause = time.monotonic() + pause, min(2 * pause, MOST)

    def _finish(self) -> None:
        pause, self._tries, self._problem = FIRST, 0, ""
        while not self._given_up:
            self._tries += 1
            if self._try(self.sink.close) or self._receipt is not None:
                break
            if self._deadline - time.monotonic() <= pause:
                self._receipt = self._told(problem=self._problem)
                break
            time.sleep(pause)
            pause = min(2 * pause, MOST)
        self._done.set()

    def _told(self, *, where: str = "", problem: str = "") -> Receipt:
        run = self._run
        is_job = run is not None and run.rank is None and run.id != self._opening.id
        return Receipt(self.sink.name, self._opening.id, where, problem, self._tries, is_job)

    def _try(self, deliver: Callable[[Run], Any] | None) -> bool:
        """Open it where that has not succeeded yet; then deliver, if there is something."""
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_HUSH)  # once, however often it is added
        try:
            if not self._is_open:
                self.sink.open(self._opening)
                self._is_open = True
            run = self._run
            if deliver is not None and run is not None:
                where = deliver(run)
                if self._final and deliver == self.sink.close:
                    self._receipt = self._told(where=str(where or ""))
            return True
        except BitwattError as error:  # it says itself that trying again is of no use
            self._problem = str(error)
            if self._final:
                self._receipt = self._told(problem=self._problem)
        except BaseException as error:  # libraries end threads by SystemExit, too
            self._problem = told(error)
        return False


class _Hush(logging.Filter):
    """Lets nothing through from threads of sinks."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread not in self.threads


_HUSH = _Hush()


def told(error: BaseException) -> str:
    """An exception in one line that is not too long."""
    text = on_terminal("".join(traceback.format_exception_only(error)))
    text = re.sub(r"//[^/@\s]*@", "//", text)  # a password in an address
    return text if len(text) <= 300 else f"{text[:297]}..."


def _started(work: Callable[[], None]) -> bool:
    def run() -> None:
        if hasattr(signal, "pthread_sigmask"):  # signals are to interrupt the main thread
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        context.CONTEXT.set(context.NOBODY)  # nothing that a sink computes belongs to the user's run
        _HUSH.threads.add(_thread.get_ident())
        try:
            work()
        finally:
            _HUSH.threads.discard(_thread.get_ident())

    try:
        _thread.start_new_thread(run, ())
    except RuntimeError:  # there are too many, or Python is about to end
        return False
    return True
