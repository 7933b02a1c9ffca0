"""Time that passes when someone sleeps and not otherwise, and models whose service times are known."""

from __future__ import annotations

from collections.abc import Callable

from bitwatt.deploy.load.loops import Call


class VirtualClock:
    """For one worker at a time."""

    def __init__(self) -> None:
        self.now = 100.0

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float, /) -> None:
        self.now += max(0.0, seconds)


class Served:
    """Answers after as long as `seconds` says of the request of this number; where that is None, it fails at once."""

    remote = False
    limit_s = 60.0

    def __init__(self, clock: VirtualClock, seconds: Callable[[int], float | None]) -> None:
        self._clock, self._seconds = clock, seconds

    def caller(self) -> Call:
        def call(number: int) -> str:
            takes = self._seconds(number)
            self._clock.sleep(takes or 0.0)
            return "" if takes is not None else "refused"

        return call
