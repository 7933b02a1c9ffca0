"""Running totals from counters that wrap, reset, freeze and vanish, and from power that is only polled.

Never a step back, never more than the device could draw: where a step has two readings, the smaller is counted, and the
note says what may be missing.
"""

from __future__ import annotations

import os
import threading
import time


class Clock:
    """Time awake, and time with suspension: they part on a laptop that sleeps."""

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()


SYSTEM = Clock()

#: A counter that has not moved for so many of its steps, and at least so many seconds, is frozen.
FROZEN_STEPS, FROZEN_S = 20.0, 3.0
#: Power that was not seen for longer is a gap, and not bridged by a straight line.
LONGEST_GAP_S = 30.0


class Lock:
    """A lock that a child is born without: nobody there would ever open one that was held in the fork."""

    def __init__(self) -> None:
        self._lock, self._pid = threading.Lock(), os.getpid()

    def __enter__(self) -> None:
        if self._pid != os.getpid():
            self._lock, self._pid = threading.Lock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Counter:
    """One energy counter, as joules since its first value.

    `unit_j` is what one count is worth, `range` the highest count (None: it does not wrap), `ceiling_w` more than the
    device can draw, `resolution_s` how often the count moves.
    """

    def __init__(
        self,
        *,
        unit_j: float,
        ceiling_w: float,
        range: int | None = None,
        resolution_s: float = 0.001,
        clock: Clock = SYSTEM,
    ) -> None:
        self._unit, self._range, self._ceiling, self._clock = unit_j, range, ceiling_w, clock
        self._slack_s = max(2 * resolution_s, 0.05)  # a count may be one step older than its reading
        self._frozen_s = max(FROZEN_STEPS * resolution_s, FROZEN_S)
        self._lock = Lock()
        self._counts = 0  # whole counts, so that a long run loses nothing by adding small floats
        self._last: int | None = None
        self._moved = self._seen = (0.0, 0.0)  # (awake, with suspension): when the count last moved, was last judged
        self._floor_j = 0.0  # what was said already
        self._power: Power | None = None  # stands in while the counter is lost
        self._base_j = 0.0  # the total when that began
        self._gone = False  # lost since it last moved

    @property
    def total_j(self) -> float:
        """Never less than was said before."""
        return max(self._floor_j, self._counts * self._unit)

    @property
    def begun(self) -> bool:
        return self._last is not None

    def count(self, value: int) -> tuple[float | None, str]:
        """The total with this value of the counter; None where it does not tell, and in words what is doubtful."""
        with self._lock:
            now = self._clock.monotonic(), self._clock.boottime()
            if value < 0 or (self._range is not None and value > self._range):
                return None, f"the counter says {value}, which it cannot"
            if self._last is None:
                self._last, self._moved, self._seen = value, now, now
                return self.total_j, ""
            if now[0] < self._seen[0] or now[1] < self._seen[1]:
                self._moved = self._seen = now
                return None, "the clock went back: the counter's step waits for the next reading"
            self._seen = now
            if value == self._last:
                still = now[0] - self._moved[0]
                if still <= self._frozen_s:
                    return self.total_j, ""
                return None, f"the counter has stood still for {still:.0f} s: frozen"
            counts, note = self._step(value, now[0] - self._moved[0], now[1] - self._moved[1])
            self._counts += counts
            self._last, self._moved, self._gone = value, now, False
            self._settle(counted=counts > 0)
            return self.total_j, note

    def lost(self, why: str, power_w: float | None = None) -> tuple[float | None, str]:
        """It could not be read. Power read meanwhile is added up, until the counter is back and knows better."""
        with self._lock:
            self._gone = True
            if power_w is None or self._last is None:
                return None, why
            if self._power is None:
                self._power = Power(ceiling_w=self._ceiling, clock=self._clock)
                self._base_j = self.total_j
            joules, note = self._power.sample(power_w)
            if joules is None:
                return None, f"{why}; {note}"
            self._floor_j = max(self._floor_j, self._base_j + joules)
            return self.total_j, f"{why}: power is added up meanwhile" + (f"; {note}" if note else "")

    def _settle(self, counted: bool) -> None:
        """The counter is back: what it counted takes the place of what was added up; if it forgot, that stays."""
        if self._power is None:
            return
        if not counted:
            self._counts = round(self.total_j / self._unit)
        self._power = None

    def _step(self, value: int, awake: float, elapsed: float) -> tuple[int, str]:
        assert self._last is not None
        asleep = elapsed - awake > 1.0
        # Asleep, a package draws nothing or goes on: it may have gone forward all that time, but only time awake is
        # taken to make it wrap, since most counters start anew after a sleep.
        most = int(self._ceiling * (max(awake, elapsed) + self._slack_s) / self._unit)
        most_awake = int(self._ceiling * (awake + self._slack_s) / self._unit)
        step = value - self._last
        if step > most:
            return 0, (
                f"the counter leapt by {step * self._unit:.6g} J in {elapsed:.3g} s, more than {self._ceiling:g} W: "
                f"not counted"
            )
        if step < 0:
            wrapped = None if self._range is None else step + self._range
            # Where even a whole round was possible, a device that slept or was away is more likely to have been reset.
            unsure = self._range is not None and most_awake >= self._range and (asleep or self._gone)
            if wrapped is None or wrapped > most_awake or unsure:
                return 0, (
                    f"the counter went back by {-step * self._unit:.6g} J and did not wrap: it was reset; what was "
                    f"drawn in these {elapsed:.3g} s, at most {most * self._unit:.6g} J, is not counted"
                )
            step = wrapped
        if self._range is not None and step + self._range <= most_awake:
            return step, (
                f"not read for {elapsed:.3g} s, in which the counter may have wrapped more often than seen: "
                f"{step * self._unit:.6g} J is the least"
            )
        return step, ""


class Power:
    """Energy of a device without a counter: polled watts, added up as trapezoids over the time awake."""

    def __init__(self, *, ceiling_w: float, clock: Clock = SYSTEM, longest_gap_s: float = LONGEST_GAP_S) -> None:
        self._ceiling, self._clock, self._longest = ceiling_w, clock, longest_gap_s
        self._lock = Lock()
        self._last: tuple[float, float] | None = None  # awake, watts
        self._total_j = 0.0

    def sample(self, watts: float | None) -> tuple[float | None, str]:
        """The total up to now; None where the watts are no power."""
        with self._lock:
            now = self._clock.monotonic()
            if watts is None or not 0 < watts <= self._ceiling:  # also where it is not a number
                return None, implausible(watts, self._ceiling)
            if self._last is None:
                self._last = now, watts
                return self._total_j, ""
            then, before = self._last
            self._last = now, watts
            if now < then:
                return self._total_j, "the clock went back: this step is not counted"
            if now - then > self._longest:
                return self._total_j, f"power was not seen for {now - then:.3g} s, which are not counted"
            self._total_j += (now - then) * (watts + before) / 2
            return self._total_j, ""


def implausible(watts: float | None, ceiling_w: float) -> str:
    """Why such watts are not believed. A device that is switched on draws something."""
    if watts is None:
        return "no power was read"
    if watts == 0:
        return "it says 0 W, which nothing that is switched on draws"
    return f"it says {watts:.6g} W, which is not between 0 and {ceiling_w:g} W"


class Tally:
    """A counter of bytes or seconds, since its first value; a step back is a start from an unknown place."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._total = 0.0
        self._lock = Lock()

    def count(self, value: float) -> float:
        with self._lock:
            if self._last is not None:
                self._total += max(value - self._last, 0.0)
            self._last = value
            return self._total
