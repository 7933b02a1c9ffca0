"""Requests as a record: how many, how long each took, and how long the server was at work on any of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

#: Latencies fall into buckets each so much wider than the one before: a percentile is good to half of that.
WIDER = 1.02
_LOG = math.log(WIDER)


def bucket(seconds: float) -> int:
    """Which one a latency falls into: number n holds what is above WIDER**(n-1) and up to WIDER**n seconds."""
    return math.ceil(math.log(max(seconds, 1e-9)) / _LOG)


@dataclass(frozen=True, slots=True)
class Requests:
    """Those that ended, `failed` and `cancelled` ones too (the client left), and those that were `under_way` when the
    run closed. `busy_s` is the time in which at least one was under way, `sum_s` what those that ended took in all."""

    count: int = 0
    failed: int = 0
    busy_s: float = 0.0
    sum_s: float = 0.0
    slowest_s: float = 0.0
    latencies: Mapping[int, int] = field(default_factory=dict)  # bucket -> requests
    cancelled: int = 0
    under_way: int = 0

    def percentile(self, share: float) -> float | None:
        """The latency that `share` (0 to 1) of the requests did not exceed; None without a request."""
        if not self.count:
            return None
        rank, seen = max(1, math.ceil(share * self.count)), 0
        for number in sorted(self.latencies):
            seen += self.latencies[number]
            if seen >= rank:
                return min(float(WIDER ** (number - 0.5)), self.slowest_s)
        return self.slowest_s

    def __add__(self, other: Requests) -> Requests:
        """Of another process, at work at the same time or not: busy seconds add up."""
        latencies = dict(self.latencies)
        for number, n in other.latencies.items():
            latencies[number] = latencies.get(number, 0) + n
        return Requests(
            self.count + other.count, self.failed + other.failed, self.busy_s + other.busy_s, self.sum_s + other.sum_s,
            max(self.slowest_s, other.slowest_s), latencies, self.cancelled + other.cancelled,
            self.under_way + other.under_way,
        )  # fmt: skip


def requests_json(requests: Requests) -> dict[str, Any]:
    """For a file; `requests_of` reads it."""
    return asdict(requests) | {"latencies": [list(pair) for pair in sorted(requests.latencies.items())]}


def requests_of(fields: Mapping[str, Any]) -> Requests:
    return Requests(**{**fields, "latencies": {int(number): n for number, n in fields["latencies"]}})
