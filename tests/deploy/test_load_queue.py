"""The open and the closed loop against what queueing theory says, in time that a fake clock makes."""

from __future__ import annotations

import itertools
import math
import random
import threading
import time
from array import array
from statistics import median
from typing import Any

import pytest

from bitwatt.deploy.load.arrivals import MOST, affordable, phases, poisson
from bitwatt.deploy.load.loops import closed_loop, open_loop
from bitwatt.deploy.load.percentiles import enough, interval, percentile
from bitwatt.deploy.load.points import point
from bitwatt.deploy.load.trace import DROPPED, UNANSWERED, Trace
from deploy.virtual import Served, VirtualClock

SERVICE = 0.002


def asked(rate: float, seconds: float, takes: Any = lambda number: SERVICE, **settings: Any) -> Trace:
    clock = VirtualClock()
    arrivals = poisson(rate, seconds, "a seed")
    return open_loop(
        Served(clock, takes), arrivals, seconds, 1, patience_s=settings.get("patience_s", 1e9), clock=clock
    )


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_waits_are_those_of_a_queue_with_one_server_and_constant_service(share: float) -> None:
    # M/D/1: W = rho s / (2 (1 - rho)); at rho = 0.5 and s = 2 ms that is 1 ms, so 3 ms from arrival to answer.
    trace = asked(share / SERVICE, 150 / share)
    wait = share * SERVICE / (2 * (1 - share))
    assert trace.mean == pytest.approx(1000 * (SERVICE + wait), rel=0.05)
    assert not trace.queue_grows
    assert trace.failed == 0


def test_what_a_server_serves_is_what_is_served_in_order() -> None:
    trace = asked(400, 20)
    for at in range(1, len(trace)):
        assert trace.began[at] == pytest.approx(max(trace.intended[at], trace.ended[at - 1]), abs=1e-9)


def test_a_stall_is_felt_by_all_that_should_have_come_meanwhile() -> None:
    # 200 ms in which 50 of 2,500 requests come: 2 % wait, although one call alone was slow.
    trace = asked(250, 10, lambda number: 0.2 if number == 1000 else SERVICE)
    found = point(trace, "open", callers=1, rate=250)
    assert found.p99_ms is not None
    assert found.p99_ms > 80
    assert found.service_p95_ms == pytest.approx(2.0)
    assert percentile(trace.services, 99) == pytest.approx(2.0)  # what a closed loop would have called its p99
    assert not found.saturated  # one stall is not a queue that grows


def test_a_closed_loop_does_not_see_that_stall_in_its_p99() -> None:
    clock = VirtualClock()
    trace = closed_loop(Served(clock, lambda number: 0.2 if number == 1000 else SERVICE), 1, 10, clock=clock)
    assert percentile(trace.latencies, 99) == pytest.approx(2.0)
    assert trace.latencies[-1] == pytest.approx(200.0)
    assert trace.rate == pytest.approx(500, rel=0.05)


@pytest.mark.parametrize("factor", [1.2, 1.5, 4.0])
def test_more_than_can_be_served_is_told_as_saturation(factor: float) -> None:
    found = point(asked(factor / SERVICE, 2), "open", callers=1, rate=factor / SERVICE)
    assert found.saturated
    assert found.achieved_rate == pytest.approx(1 / SERVICE, rel=0.05)


def test_who_has_waited_too_long_is_dropped_and_counts_as_slowest() -> None:
    trace = asked(2 / SERVICE, 4, patience_s=0.5)
    found = point(trace, "open", callers=1, rate=2 / SERVICE)
    assert found.dropped == trace.number(DROPPED) > 1000
    assert found.failed == found.dropped
    assert found.saturated
    assert found.p99_ms is None  # no such latency: more than 1 % got no answer
    assert found.max_ms is not None
    assert found.max_ms <= 502.1
    assert "dropped" in found.note
    assert max(trace.ended) < 4 + 0.5 + 0.01  # the window ends


def test_failures_are_never_fast() -> None:
    # Every tenth request is refused in no time; the p95 is not theirs, and the p50 still is one of an answer.
    trace = asked(100, 20, lambda number: None if number % 10 == 0 else SERVICE)
    found = point(trace, "open", callers=1, rate=100)
    assert found.failed == pytest.approx(200, rel=0.2)
    assert found.p50_ms is not None
    assert found.p50_ms > 1.99
    assert found.p95_ms is None
    assert found.mean_ms is None
    assert "refused" in found.note


def test_a_caller_that_begins_when_the_time_is_over_asks_once() -> None:
    clock = VirtualClock()
    assert len(closed_loop(Served(clock, lambda number: SERVICE), 2, 0.0, clock=clock)) == 2


def test_a_caller_that_fails_does_not_hammer() -> None:
    clock = VirtualClock()
    trace = closed_loop(Served(clock, lambda number: None), 1, 1.0, clock=clock)
    assert 50 < len(trace) <= 101  # one each 10 ms
    assert trace.rate == 0.0


def test_arrivals_are_poisson_and_the_same_for_a_seed() -> None:
    times = poisson(1000, 20, "7")
    assert times == poisson(1000, 20, "7")
    assert times != poisson(1000, 20, "8")
    assert len(times) == pytest.approx(20_000, abs=5 * math.sqrt(20_000))
    gaps = [after - before for before, after in itertools.pairwise(times)]
    mean = sum(gaps) / len(gaps)
    spread = math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps))
    assert spread / mean == pytest.approx(1.0, abs=0.05)  # exponential gaps: as wide as they are long
    assert all(gap >= 0 for gap in gaps)


def test_phases_follow_each_other_without_a_pause() -> None:
    times, ends = phases([(100, 10), (1000, 1), (100, 10)], "a")
    assert len(ends) == 3
    assert all(time < 10 for time in times[: ends[0]])
    assert all(10 <= time < 11 for time in times[ends[0] : ends[1]])
    assert ends[1] - ends[0] == pytest.approx(1000, rel=0.2)


def test_the_number_of_arrivals_is_bounded() -> None:
    assert len(poisson(1e9, 10, "a")) == MOST
    assert affordable(1e9, 10) * 1e9 < MOST


def test_a_percentile_is_a_latency_that_somebody_had() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, percent) for percent in (50, 90, 99, 99.9, 100)] == [50, 90, 99, 100, 100]
    assert percentile([], 50) is None
    assert percentile([3.0], 99) == 3.0


def test_how_many_requests_a_percentile_needs() -> None:
    assert [enough(percent) for percent in (50, 90, 95, 99, 99.9)] == [30, 30, 60, 300, 3000]


def test_the_interval_of_a_percentile_covers_it() -> None:
    # 200 samples of a known distribution; the 95 % interval should hold the true p90 about 190 times of 200.
    draw, hits = random.Random(1), 0
    for _ in range(200):
        low, high = interval(sorted(draw.random() for _ in range(500)), 90)
        hits += low <= 0.9 <= (high if high is not None else 1.0)
    assert 180 <= hits <= 200
    assert interval([float(value) for value in range(100)], 99)[1] is None  # beyond the slowest that was seen


def test_a_percentile_of_few_requests_is_marked() -> None:
    assert "uncertain" in point(asked(100, 1), "open", callers=1, rate=100).note
    assert "uncertain" not in point(asked(400, 2), "open", callers=1, rate=400).note


def test_callers_that_never_come_back_are_left_behind_and_counted() -> None:
    held = threading.Event()

    class Stuck:
        remote, limit_s = False, 0.2

        def caller(self) -> Any:
            return lambda number: str((number >= 5 and not held.wait(300)) or "")

    began = time.monotonic()
    trace = open_loop(Stuck(), array("d", [0.01 * at for at in range(10)]), 0.1, 2, patience_s=3.0)
    closed = closed_loop(Stuck(), 6, 0.1)
    assert time.monotonic() - began < 120
    held.set()
    assert trace.stuck == 2
    assert trace.number(UNANSWERED) == 5
    assert trace.failed == 5
    assert closed.stuck == 6  # already in their first call, or soon after
    assert closed.failed == 6
    assert "never came back" in point(trace, "open", callers=2, rate=100).note


def test_late_starts_are_in_the_latency_and_told() -> None:
    class Lazy(VirtualClock):
        """Wakes 5 ms late."""

        def sleep(self, seconds: float, /) -> None:
            super().sleep(seconds + 0.005 if seconds > SERVICE else seconds)

    clock = Lazy()
    trace = open_loop(Served(clock, lambda _: SERVICE), poisson(20, 50, "b"), 50, 1, patience_s=9, clock=clock)
    found = point(trace, "open", callers=1, rate=20)
    assert found.late_ms == pytest.approx(5, abs=0.5)
    assert found.p50_ms == pytest.approx(7, abs=0.5)
    assert "woke" in found.note


def test_a_real_queue_waits_for_those_that_came_before_and_for_nothing_else() -> None:
    """Real time, real threads: a request begins when it is due and the one before it has its answer, noise and all."""

    class Sleeps:
        remote, limit_s = False, 30.0

        def caller(self) -> Any:
            def call(number: int) -> str:
                time.sleep(SERVICE)
                return ""

            return call

    trace = open_loop(Sleeps(), poisson(200, 1.5, "c"), 1.5, 1, patience_s=30)
    assert trace.failed == 0
    free = [0.0, *trace.ended[:-1]]
    late = [began - max(due, idle) for began, due, idle in zip(trace.began, trace.intended, free, strict=True)]
    assert min(late) >= 0
    assert median(late) < 0.02  # some wait for a processor; the others begin at once
    waits = [began - due for began, due in zip(trace.began, trace.intended, strict=True)]
    assert trace.mean == pytest.approx(1000 * sum(waits) / len(waits) + sum(trace.services) / len(trace))


def test_a_real_stall_is_in_the_latency_and_not_in_the_service_time() -> None:
    """300 ms in which nobody is served: some 45 of 210 requests at 150/s should have come meanwhile."""

    class Stalls:
        remote, limit_s = False, 30.0

        def caller(self) -> Any:
            def call(number: int) -> str:
                time.sleep(0.3 if number == 100 else 0.001)
                return ""

            return call

    found = point(open_loop(Stalls(), poisson(150, 1.4, "d"), 1.4, 1, patience_s=30), "open", callers=1, rate=150)
    assert found.failed == 0
    assert found.p95_ms is not None
    assert found.service_p95_ms is not None
    assert found.p95_ms > 100
    assert found.p95_ms > 1.5 * found.service_p95_ms
