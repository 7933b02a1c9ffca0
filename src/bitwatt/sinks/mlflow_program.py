"""Which runs the program itself has in MLflow while a session is open.

MLflow tells of the active run of the current thread alone, and forgets those that have ended; so the class of its
active runs is listened to, on whatever thread they begin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from bitwatt.imports import when_imported

_MODULE = "mlflow.tracking.fluent"


class ProgramRuns:
    """From `begin` to `end`."""

    def __init__(self) -> None:
        self._before: str | None = None
        self._begun: dict[str, None] = {}
        self._undo: list[Callable[[], None]] = []

    def begin(self) -> None:
        self._before = self._outermost()
        self._undo.append(when_imported(_MODULE, self._listen))

    def end(self) -> None:
        while self._undo:
            self._undo.pop()()

    @property
    def one(self) -> str | None:
        """The run that was active when the session began, or the only one that has begun in it; of several, none is
        what was measured."""
        if self._before is not None:
            return self._before
        return next(iter(self._begun)) if len(self._begun) == 1 else None

    def _listen(self) -> None:
        kind: Any = getattr(sys.modules[_MODULE], "ActiveRun", None)
        original = getattr(kind, "__init__", None)
        if original is None:  # another version: runs that are active at the beginning are still found
            return

        def init(run: Any, *args: Any, **kwargs: Any) -> None:
            original(run, *args, **kwargs)
            outermost = self._outermost()
            if outermost is None:  # else it is nested
                self._begun[run.info.run_id] = None

        kind.__init__ = init

        def undo() -> None:
            if kind.__init__ is init:
                kind.__init__ = original

        self._undo.append(undo)

    @staticmethod
    def _outermost() -> str | None:
        """Of this thread."""
        stack: Any = getattr(sys.modules.get(_MODULE), "_active_run_stack", None)
        active = stack.get() if stack is not None else ()
        return str(active[0].info.run_id) if active else None
