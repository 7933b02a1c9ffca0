"""A process that its launcher ends by SIGTERM, as when another rank has failed, keeps its run and ends all the same.

Python runs a handler between two of its own instructions, which may be long in coming: a rank that waits in C++ for
one that is dead hears nothing. So the signal also wakes a thread, which does not wait for anybody.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import threading
from collections.abc import Callable
from typing import Any


class Ending:
    """While it stands, SIGTERM calls `keep` and then ends the process."""

    def __init__(self, keep: Callable[[], None]) -> None:
        self._keep, self._process = keep, os.getpid()
        self.closing = False  # the run is being closed: the signal waits for that
        self._pending = False
        self._lock = _thread.allocate_lock()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        signal.signal(signal.SIGTERM, self._handle)
        self._before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        if self._before != -1:  # somebody else listens: his thread is the main one, which then runs the handler
            signal.set_wakeup_fd(self._before)
        _thread.start_new_thread(self._listen, ())

    @classmethod
    def stand(cls, keep: Callable[[], None]) -> Ending | None:
        """None where the program minds the signal itself, or this is not the thread that may."""
        main = threading.current_thread() is threading.main_thread()
        return cls(keep) if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL else None

    @property
    def listens(self) -> bool:
        """Whether the signal wakes our thread."""
        return self._before == -1

    def withdraw(self) -> None:
        """The run is closed. Leave the signal as it was found; from another thread, only forget what to keep."""
        self._keep = _nothing
        if self._pending:
            self._end()
        self.closing = False
        if os.getpid() != self._process or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self.listens:
            now = signal.set_wakeup_fd(-1)
            if now not in (-1, self._writer):  # set by the program since
                signal.set_wakeup_fd(now)
        os.close(self._writer)  # ends the thread, which closes the other end

    def _handle(self, *_: Any) -> None:
        self._asked()

    def _listen(self) -> None:
        if hasattr(signal, "pthread_sigmask"):  # signals are to interrupt the main thread
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while received := os.read(self._reader, 64):
            if signal.SIGTERM in received and signal.getsignal(signal.SIGTERM) == self._handle:
                self._asked()
        os.close(self._reader)

    def _asked(self) -> None:
        if self.closing:
            self._pending = True
        else:
            self._end()

    def _end(self) -> None:
        with self._lock:  # the second of both callers comes too late
            if os.getpid() == self._process:
                self._keep()
            ctypes.CDLL(None).signal(int(signal.SIGTERM), None)  # Python's own may be called from the main thread only
            os.kill(os.getpid(), signal.SIGTERM)


def _nothing() -> None:
    pass


def _in_child() -> None:
    """A forked worker is ended by its parent, at once, and its signals are none of the parent's business."""
    ending = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if isinstance(ending, Ending):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if ending.listens:
            signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
