"""What became of the requests of one window. Numbers lie in flat arrays, so that the record of a load hardly shows in
the memory that the load takes."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from functools import cached_property

from bitwatt.deploy.load.percentiles import percentile

UNANSWERED, ANSWERED, FAILED, DROPPED = range(4)


class Trace:
    """Times are in seconds from the start of the window. `idle` marks requests that a worker was already waiting for:
    what they are late by is the generator's fault or the scheduler's, not the queue's."""

    def __init__(self, intended: array[float], seconds: float, start: float = 0.0) -> None:
        size = len(intended)
        self.intended, self.seconds, self.start = intended, seconds, start
        self.began, self.ended = array("d", bytes(8 * size)), array("d", bytes(8 * size))
        self.outcomes, self.idle = bytearray(size), bytearray(size)
        self.errors: Counter[str] = Counter()
        self.stuck = 0  # workers that did not come back

    def __len__(self) -> int:
        return len(self.intended)

    def part(self, first: int, last: int, seconds: float, start: float) -> Trace:
        """Requests of one phase, which began at `start` and was so many seconds long."""
        found = Trace(self.intended[first:last], seconds, start)
        found.began, found.ended = self.began[first:last], self.ended[first:last]
        found.outcomes, found.idle = self.outcomes[first:last], self.idle[first:last]
        found.errors, found.stuck = self.errors, self.stuck
        return found

    def number(self, outcome: int) -> int:
        return self.outcomes.count(outcome)

    @property
    def failed(self) -> int:
        """All that got no answer, whatever the reason."""
        return len(self) - self.number(ANSWERED)

    def latency(self, at: int) -> float:
        """In ms from when it should have been sent. What was never answered took forever, not no time."""
        return 1000 * (self.ended[at] - self.intended[at]) if self.outcomes[at] == ANSWERED else math.inf

    @cached_property
    def latencies(self) -> array[float]:
        """Of all requests, in order of size."""
        return array("d", sorted(self.latency(at) for at in range(len(self))))

    @cached_property
    def services(self) -> array[float]:
        """In ms from when it was sent: what a client that waits for its turn believes it sees."""
        answered = (at for at in range(len(self)) if self.outcomes[at] == ANSWERED)
        return array("d", sorted(1000 * (self.ended[at] - self.began[at]) for at in answered))

    @cached_property
    def lateness(self) -> array[float]:
        """In ms: how late idle workers woke."""
        idle = (at for at in range(len(self)) if self.idle[at])
        return array("d", sorted(1000 * (self.began[at] - self.intended[at]) for at in idle))

    @property
    def mean(self) -> float | None:
        """Infinite where one was never answered."""
        return sum(self.latencies) / len(self) if len(self) else None

    def statistic(self, percent: float | None) -> float | None:
        return self.mean if percent is None else percentile(self.latencies, percent)

    @property
    def rate(self) -> float | None:
        """Answers per second, until the last one came."""
        if not len(self):
            return None
        last = max((self.ended[at] for at in range(len(self)) if self.outcomes[at] == ANSWERED), default=0.0)
        return self.number(ANSWERED) / max(self.seconds, last - self.start)

    @property
    def queue_grows(self) -> bool:
        """Whether more came than could be served: some were given up, or waits grow from quarter to quarter (as 1, 3,
        5 and 7 where the queue grows evenly) and the queue outlasts the window. One stall does not look like that."""
        if self.number(DROPPED):
            return True
        size = len(self)
        if size < 12:
            return False
        waits = [max(0.0, self.began[at] - self.intended[at]) for at in range(size)]
        quarter = size // 4
        first, second, third, last = (sum(waits[part * quarter : (part + 1) * quarter]) / quarter for part in range(4))
        served = max(self.ended)
        outlasts = served - self.intended[-1] > 0.05 * self.seconds
        return outlasts and second > 1.3 * first and third > 1.15 * second and last > 1.08 * third
