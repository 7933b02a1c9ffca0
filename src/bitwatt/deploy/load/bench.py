"""Puts one window of load after another on a target, and keeps what came of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bitwatt.deploy.load.arrivals import affordable, phases
from bitwatt.deploy.load.loops import Clock, Target, closed_loop, open_loop
from bitwatt.deploy.load.memory import Peak, uss_mb
from bitwatt.deploy.load.points import point
from bitwatt.deploy.load.settings import Settings
from bitwatt.deploy.load.slo import parse
from bitwatt.deploy.load.trace import Trace
from bitwatt.deploy.records import LoadPoint
from bitwatt.errors import BitwattError


class StuckError(BitwattError):
    """Callers that wait for ever are still there: whatever is measured now would be of a crowded process."""


class Bench:
    def __init__(
        self,
        target: Target,
        settings: Settings,
        tell: Callable[[LoadPoint], None] | None = None,
        *,
        memory: Callable[[], float | None] = uss_mb,
        clock: Clock = time,
    ) -> None:
        """`memory` tells what the serving process takes now."""
        self.points: list[LoadPoint] = []
        self.workers = settings.workers or max(settings.callers)
        self.slo = parse(settings.slo)
        self._target, self._settings, self._tell, self._memory, self._clock = target, settings, tell, memory, clock
        self._windows = 0

    def closed(self, callers: int) -> LoadPoint:
        with Peak(self._memory) as peak:
            seconds = self._settings.seconds
            trace, busy = self._timed(lambda: closed_loop(self._target, callers, seconds, clock=self._clock))
        return self._keep(trace, "closed", callers, None, peak, busy)

    def open(self, rate: float, seconds: float, kind: str = "open", note: str = "") -> tuple[LoadPoint, Trace]:
        seconds = affordable(rate, seconds)
        with Peak(self._memory) as peak:
            trace, _, busy = self._phases([(rate, seconds)])
        return self._keep(trace, kind, self.workers, rate, peak, busy, note), trace

    def phases(self, rates: Sequence[tuple[float, float]]) -> tuple[list[Trace], Callable[[Trace, str], LoadPoint]]:
        """One rate after another on the same queue: a trace for each, and what makes a kept point of one."""
        with Peak(self._memory) as peak:
            trace, ends, busy = self._phases(rates)
        parts, first, start = [], 0, 0.0
        for (_, seconds), last in zip(rates, ends, strict=True):
            parts.append(trace.part(first, last, seconds, start))
            first, start = last, start + seconds

        def keep(part: Trace, note: str) -> LoadPoint:
            rate = next(rate for (rate, _), one in zip(rates, parts, strict=True) if one is part)
            return self._keep(part, "overload", self.workers, rate, peak, busy, note)

        return parts, keep

    def _phases(self, rates: Sequence[tuple[float, float]]) -> tuple[Trace, list[int], float | None]:
        self._windows += 1  # no two windows have the same arrivals, and all are the same again for the same seed
        arrivals, ends = phases(rates, f"{self._settings.seed}:{self._windows}")
        trace, busy = self._timed(
            lambda: open_loop(
                self._target,
                arrivals,
                sum(seconds for _, seconds in rates),
                self.workers,
                patience_s=self._settings.patience_s,
                clock=self._clock,
            )
        )
        return trace, ends, busy

    def _timed(self, window: Callable[[], Trace]) -> tuple[Trace, float | None]:
        began, cpu = time.perf_counter(), time.process_time()
        trace = window()
        spent = time.process_time() - cpu
        return trace, spent / (time.perf_counter() - began) if self._target.remote else None

    def _keep(
        self,
        trace: Trace,
        kind: str,
        callers: int,
        rate: float | None,
        peak: Peak,
        busy: float | None,
        note: str = "",
    ) -> LoadPoint:
        found = point(
            trace, kind, callers=callers, rows=self._settings.rows, rate=rate, slo=self.slo if rate is not None else (),
            uss_mb=peak.mb, busy=busy, note=note,
        )  # fmt: skip
        self.points.append(found)
        if self._tell is not None:
            self._tell(found)
        if trace.stuck:
            raise StuckError(f"{trace.stuck} of {callers} callers waited for ever; no more load was put on it")
        return found
