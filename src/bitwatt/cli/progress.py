"""A bar with the time that is left, on a terminal; elsewhere nothing."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TextIO

from bitwatt.harmless import on_terminal
from bitwatt.reports.text import fitting
from bitwatt.units import format_duration

_WIDTH, _PAUSE_S = 24, 0.1


class Bar:
    """Called with how much is done, of how much, and what is being done."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._shown = stream, stream.isatty()
        self._began, self._next, self._length = time.monotonic(), 0.0, 0

    def __call__(self, done: float, of: float, what: str) -> None:
        now = time.monotonic()
        if not self._shown or now < self._next:
            return
        self._next = now + _PAUSE_S
        self._draw(line(done, of, what, now - self._began))

    def _draw(self, text: str) -> None:
        import shutil

        text = fitting(text, self._stream.encoding)[: max(shutil.get_terminal_size((80, 24)).columns - 1, 20)]
        self._stream.write(f"\r{text}{' ' * (self._length - len(text))}")
        self._stream.flush()
        self._length = len(text)

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if self._shown and self._length:
            self._draw("")
            self._stream.write("\r")
            self._stream.flush()


def line(done: float, of: float, what: str, seconds: float) -> str:
    """What is left is reckoned from what is done, once there is something to reckon from."""
    share = min(max(done / of, 0.0), 1.0) if of > 0 else 0.0
    full = round(share * _WIDTH)
    left = f"{format_duration(float(round(seconds * (1 - share) / share)))} left" if share > 0.02 else "…"
    return f"{'█' * full}{'─' * (_WIDTH - full)} {100 * share:3.0f} %  {left}  {on_terminal(what)}"
