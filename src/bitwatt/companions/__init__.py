"""Other meters that the user's program runs: their figures are read and shown beside ours. One file for each.

A companion's class is wrapped where its measurement begins, so that it is known, while a session is open. Nothing of it
is called, and its own numbers are read when the session ends.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from bitwatt.companions.codecarbon import CodeCarbon
from bitwatt.companions.zeus import Zeus
from bitwatt.imports import when_imported
from bitwatt.observed import Figure
from bitwatt.sensors.counters import Lock


class Companion(Protocol):
    """`module` is what it is known by once the program has imported it."""

    name: str
    module: str

    def hook(self, module: Any) -> Callable[[], None]:
        """Listen from now on; what comes back stops it."""

    def marks(self) -> Any:
        """What its meters say now, to be taken off at the end."""

    def figures(self, began: float, marks: Any) -> list[Figure]:
        """What they said since `began` (time.perf_counter)."""


class _Listening:
    """Once for all sessions of a process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sessions = 0
        self._undo: list[Callable[[], None]] = []
        self.companions: list[Companion] = []
        self.failed: dict[str, str] = {}

    def open(self) -> None:
        with self._lock:
            self._sessions += 1
            if self._sessions == 1:
                self.companions, self.failed = [CodeCarbon(), Zeus()], {}
                for one in self.companions:
                    self._undo.append(when_imported(one.module, self._starter(one)))

    def close(self) -> None:
        with self._lock:
            self._sessions -= 1
            while not self._sessions and self._undo:
                self._undo.pop()()

    def _starter(self, companion: Companion) -> Callable[[], None]:
        def start() -> None:
            try:
                self._undo.append(companion.hook(sys.modules[companion.module]))
            except Exception as error:  # another version of it: then its figure is not shown
                self.failed[companion.name] = f"{type(error).__name__}: {error}"

        return start


_LISTENING = _Listening()


class Beside:
    """For one session."""

    def __init__(self, began: float) -> None:
        self._began = began
        _LISTENING.open()
        self._marks = {one.name: self._safely(one, one.marks, None) for one in _LISTENING.companions}
        self._open = True

    def figures(self) -> list[Figure]:
        """Until now."""
        found: list[Figure] = []
        for one in _LISTENING.companions:
            found += self._safely(one, partial(one.figures, self._began, self._marks.get(one.name)), [])
        return found

    def close(self) -> None:
        if self._open:
            self._open = False
            _LISTENING.close()

    def notes(self) -> list[str]:
        failed = _LISTENING.failed.items()
        return [f"{name} runs beside, but its figure could not be read: {why}" for name, why in failed]

    @staticmethod
    def _safely(companion: Companion, ask: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return ask()
        except Exception as error:  # it is theirs, and may have changed
            _LISTENING.failed[companion.name] = f"{type(error).__name__}: {error}"
            return otherwise
