"""Counts requests from any thread or task: how long each took, and how long any was under way."""

from __future__ import annotations

import time
from collections import Counter

from bitwatt.sensors.counters import Lock
from bitwatt.served import Requests, bucket


class RequestCounter:
    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way = 0
        self._since = 0.0  # when the first of those under way began
        self._count = self._failed = self._cancelled = 0
        self._busy = self._sum = self._slowest = 0.0
        self._latencies: Counter[int] = Counter()

    def begin(self) -> float:
        with self._lock:
            now = time.perf_counter()  # in here: who waited for the lock must not begin before another has ended
            if not self._under_way:
                self._since = now
            self._under_way += 1
        return now

    def end(self, began: float, *, failed: bool = False, cancelled: bool = False) -> None:
        with self._lock:
            now = time.perf_counter()
            spent = now - began
            self._under_way -= 1
            if not self._under_way:
                self._busy += now - self._since
            self._count += 1
            self._failed += failed
            self._cancelled += cancelled
            self._sum += spent
            self._slowest = max(self._slowest, spent)
            self._latencies[bucket(spent)] += 1

    def told(self) -> Requests:
        """Until now; what is under way has not been served yet, but keeps the server busy."""
        with self._lock:
            busy = self._busy + (time.perf_counter() - self._since if self._under_way else 0.0)
            return Requests(
                self._count, self._failed, busy, self._sum, self._slowest, dict(self._latencies), self._cancelled,
                self._under_way,
            )  # fmt: skip
