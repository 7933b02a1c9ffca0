"""A machine of fakes on a clock that is set by hand, and a meter that looks when told; CPU time that is burnt on paper,
and a wait for what another thread or process does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from bitwatt.metering import Meter
from bitwatt.testing import FakeClock, FakeSensor

CPU, GPU = "cpu:0", "gpu:GPU-1"


class _Spent(threading.local):
    seconds = 0.0


_SPENT = _Spent()


def burn(seconds: float) -> None:
    """So much CPU time of this thread, which takes none."""
    _SPENT.seconds += seconds


def spent() -> float:
    """In place of time.thread_time."""
    return _SPENT.seconds


def wait_for(happened: Callable[[], object], limit: float = 60.0) -> None:
    """Until it has happened. Whether it did is for the test to say."""
    end = time.monotonic() + limit
    while not happened() and time.monotonic() < end:
        time.sleep(0.02)


class Machine:
    def __init__(self, watts: dict[str, float] | None = None, **options: Any) -> None:
        self.clock = FakeClock()
        self.busy = {(GPU, "utilisation"): 1.0}
        self.sensor = FakeSensor(self.clock, {CPU: 50.0, GPU: 200.0} if watts is None else watts, levels=self.busy)
        self.process = FakeSensor(self.clock, name="process", levels={("process", "cpu_seconds"): 0.0})
        self.meter = Meter([self.sensor, self.process], clock=self.clock.monotonic, thread=False, **options)

    def run(self, seconds: float, *, cpu: float = 1.0, gpu: float | None = None, busy: float | None = None) -> None:
        """Time passes, second by second, as the thread would see it."""
        if gpu is not None:
            self.meter.read() if self.meter.windows else None  # what was drawn until now, at the watts until now
            self.sensor.watts[GPU] = gpu
        if busy is not None:
            self.sensor.levels[GPU, "utilisation"] = busy
        while seconds > 0:
            step = min(seconds, 1.0)
            self.clock.advance(step)
            self.process.levels["process", "cpu_seconds"] += cpu * step
            self.meter.tick()
            seconds -= step
