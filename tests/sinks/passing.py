"""Time that passes when it is told to, and waiting for what comes when it comes."""

from __future__ import annotations

import time
from collections.abc import Callable


class Passing:
    """Stands for the module `time`: it passes where somebody sleeps and not otherwise, for tries after tries."""

    thread_time = staticmethod(time.thread_time)

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)
