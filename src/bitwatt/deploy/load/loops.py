"""Callers: closed, where each waits for an answer before it asks again, and open, where requests come when they come.

In the open loop there is no generator that could fall behind. Requests have an arrival time each, in order; a worker
that is free takes the next one, sleeps until it is due, or begins at once where it is overdue. This is a queue served
first come, first served, by as many servers as there are workers; a late start is part of the latency, as that counts
from the arrival.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from bitwatt.deploy.load.trace import ANSWERED, DROPPED, FAILED, UNANSWERED, Trace

#: Sends the request of this number and waits; "" if it was answered, else what went wrong.
Call = Callable[[int], str]
#: A caller that fails does not hammer on.
AFTER_FAILURE_S = 0.01
#: Between the moment all are ready and the first arrival.
_LEAD_S = 0.005
#: A caller that gives up in time comes back a little later.
_SLACK_S = 2.0
#: Requests that a closed loop keeps.
_MOST = 1_000_000


class Target(Protocol):
    #: How long one request may take before it is given up.
    limit_s: float
    #: Whether the work is done in another process, so that the CPU time of this one is the generator's.
    remote: bool

    def caller(self) -> Call:
        """One for each thread: an HTTP connection is not shared."""
        ...


class Clock(Protocol):
    def perf_counter(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


def closed_loop(target: Target, callers: int, seconds: float, *, clock: Clock = time) -> Trace:
    """So many callers, each of which asks again as soon as it has its answer."""
    logs = [(array("d"), array("d"), bytearray()) for _ in range(callers)]
    errors: Counter[str] = Counter()
    lock = threading.Lock()

    def work(call: Call, me: int, start: float) -> None:
        began, ended, outcomes = logs[me]
        number = me
        now = clock.perf_counter() - start
        while (now < seconds or not began) and len(began) * callers < _MOST:  # once at least: it may have begun late
            error = call(number)
            after = clock.perf_counter() - start
            began.append(now)
            ended.append(after)
            outcomes.append(FAILED if error else ANSWERED)
            if error:
                with lock:
                    errors[error] += 1
                clock.sleep(AFTER_FAILURE_S)
                after = clock.perf_counter() - start
            now, number = after, number + callers

    stuck = _together(target, callers, work, seconds + target.limit_s, clock)
    began, ended, outcomes = array("d"), array("d"), bytearray()
    for starts, ends, found in logs:
        size = len(found)  # what is stuck may still write, outcomes last
        began.extend(starts[:size])
        ended.extend(ends[:size])
        outcomes.extend(found[:size])
    waiting = array("d", [seconds]) * stuck  # for an answer that does not come
    trace = Trace(began + waiting, seconds)
    trace.began, trace.ended, trace.outcomes = (
        trace.intended,
        ended + waiting,
        outcomes + bytearray([UNANSWERED]) * stuck,
    )
    trace.errors, trace.stuck = errors, stuck
    return trace


def open_loop(
    target: Target, arrivals: array[float], seconds: float, workers: int, *, patience_s: float, clock: Clock = time
) -> Trace:
    """Requests that come at these times. One that has waited longer than `patience_s` when its turn comes is dropped,
    which bounds the queue and the time."""
    trace = Trace(arrivals, seconds)
    turn, lock = iter(range(len(arrivals))), threading.Lock()

    def work(call: Call, me: int, start: float) -> None:
        while True:
            with lock:
                at = next(turn, None)
            if at is None:
                return
            due = start + arrivals[at]
            now = clock.perf_counter()
            if now < due:
                clock.sleep(due - now)
                trace.idle[at] = 1
                now = clock.perf_counter()
            trace.began[at] = now - start
            if now - due > patience_s:
                trace.outcomes[at], trace.ended[at] = DROPPED, now - start
                continue
            error = call(at)
            trace.ended[at] = clock.perf_counter() - start
            trace.outcomes[at] = FAILED if error else ANSWERED
            if error:
                with lock:
                    trace.errors[error] += 1

    trace.stuck = _together(target, workers, work, seconds + patience_s + target.limit_s, clock)
    return trace


def _together(target: Target, size: int, work: Callable[[Call, int, float], None], limit_s: float, clock: Clock) -> int:
    """Threads that have each made one call, to connect and to warm up, and then begin at the same moment. Returns how
    many are not back when time is up: they are left behind, and nothing else should be measured in this process."""
    begun: list[float] = []
    gate = threading.Barrier(size + 1, action=lambda: begun.append(clock.perf_counter() + _LEAD_S))

    def one(me: int) -> None:
        call = target.caller()
        call(me)
        try:
            gate.wait(2 * target.limit_s + _SLACK_S)
        except threading.BrokenBarrierError:
            return
        clock.sleep(_LEAD_S)
        work(call, me, begun[0])

    threads = [threading.Thread(target=one, args=(me,), daemon=True, name=f"bitwatt-load-{me}") for me in range(size)]
    for thread in threads:
        thread.start()
    try:
        gate.wait(2 * target.limit_s + _SLACK_S)
    except threading.BrokenBarrierError:
        return size
    until = time.monotonic() + limit_s + _LEAD_S + _SLACK_S
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return sum(thread.is_alive() for thread in threads)
