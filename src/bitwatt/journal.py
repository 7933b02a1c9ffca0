"""Writes runs that are under way to disk now and then, so that a killed process leaves what it had counted.

One thread for the process, started without Python's threading module: nothing that watches threads should see it. It
sleeps until the next run is due; the more a write costs, the seldomer it comes.
"""

from __future__ import annotations

import _thread
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from bitwatt import store
from bitwatt.endings import Ending
from bitwatt.errors import BitwattError
from bitwatt.ranks.identity import from_environment, here
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.ranks.silence import PROCESS
from bitwatt.records import Machine
from bitwatt.store.places import Where, place

if TYPE_CHECKING:
    from bitwatt.session import Session

#: Seconds until the first write and between later ones; of a rank sooner, since one that is lost takes the others down
#: with it.
FIRST, INTERVAL = 5.0, 5.0
RANK_FIRST, RANK_INTERVAL = 0.5, 2.0
#: Writing may take this share of the time; of a rank's first minute more, since most that fail do so early.
SHARE, EARLY = 1 / 300, 1 / 100


class _Entry:
    __slots__ = ("began", "due", "ending", "interval", "lock", "process", "root", "session", "slowest")

    def __init__(self, session: Session, root: Where) -> None:
        self.session, self.root = session, root
        self.slowest = place(root).interval
        self.process = os.getpid()
        self.interval = RANK_FIRST
        self.began = time.monotonic()
        self.due = self.began + RANK_FIRST
        self.lock = _thread.allocate_lock()
        self.ending: Ending | None = None


_entries: list[_Entry] = []
_running = [0]  # the process whose thread runs


def begin(session: Session, root: Where) -> None:
    """Keep `session` from now on."""
    entry = _Entry(session, root)
    if from_environment() is not None:  # a launcher ends all ranks when one has failed
        entry.ending = Ending.stand(lambda: _keep(entry, "ended by SIGTERM"))
    _entries.append(entry)
    if _running[0] != os.getpid():
        _running[0] = os.getpid()
        try:
            _thread.start_new_thread(_run, (os.getpid(),))
        except RuntimeError:  # there are too many, or Python is about to end: the run is kept at its end
            _running[0] = 0


@contextmanager
def closing(session: Session) -> Iterator[None]:
    """It closes itself. Waits for a write that is under way, since its file has the same name."""
    mine = [entry for entry in _entries if entry.session is session]
    for entry in mine:
        if entry.ending is not None:
            entry.ending.closing = True
        _entries.remove(entry)
        with entry.lock:
            pass
    try:
        yield
    finally:
        for entry in mine:
            if entry.ending is not None:
                entry.ending.withdraw()


def _run(process: int) -> None:
    if hasattr(signal, "pthread_sigmask"):  # signals are to interrupt the main thread
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while _running[0] == process and os.getpid() == process:
        mine = [entry for entry in list(_entries) if entry.process == process]
        if not mine:
            _running[0] = 0
            if not any(entry.process == process for entry in list(_entries)):
                return
            _running[0] = process  # one began just now and saw us running
            continue
        now = time.monotonic()
        for entry in mine:
            if entry.due <= now:
                _keep(entry)
        time.sleep(min(0.25, RANK_FIRST / 2))


def _keep(entry: _Entry, status: str = UNDER_WAY) -> None:
    began, spent = time.monotonic(), time.thread_time()
    with entry.lock:
        if entry not in _entries:  # it has closed since
            return
        if not entry.session.is_rank and began - entry.began < FIRST:
            entry.due = began + RANK_FIRST
            return
        try:
            run = entry.session.so_far(status)
            if run is not None:
                facts = {**run.machine.facts, PROCESS: here()}  # who asks sees whether it lives
                store.save(replace(run, machine=Machine(facts)), entry.root, sync=False)
        except (RuntimeError, OSError, BitwattError):  # counted into while read, or no room: the next may succeed
            return
        except Exception as error:  # ours: the run is kept at its end
            entry.session.remark(f"it was not written while it ran: {type(error).__name__}: {error}")
            with suppress(ValueError):  # it is closing
                _entries.remove(entry)
        finally:
            spent = time.thread_time() - spent
            is_rank = entry.session.is_rank
            usual = RANK_INTERVAL if is_rank else INTERVAL
            entry.interval = min(2 * entry.interval, max(usual, entry.slowest))
            share = EARLY if is_rank and began - entry.began < 60 else SHARE
            entry.due = began + max(entry.interval, spent / share)
