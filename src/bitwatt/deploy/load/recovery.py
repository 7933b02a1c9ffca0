"""Past saturation and back: calm, then more than can be served, then calm again, all on one queue without a pause."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bitwatt.deploy.load.bench import Bench
from bitwatt.deploy.load.percentiles import percentile
from bitwatt.deploy.load.points import per_second
from bitwatt.deploy.load.trace import Trace

_CALM = 0.3  # of the capacity
_FACTORS = (1.5, 3.0, 6.0)  # the next one where the queue did not grow: capacity was found too low
_AFTER_S = 10.0  # at most
#: Latency is normal up to its p99 before the overload or this multiple of its p95: neighbours make noise on both sides.
_NORMAL = 2.0
_LASTING = 3.0
_RUN, _SHARE = 20, 0.9  # normal again: of so many requests in a row, and of all that follow, this share is normal


@dataclass(frozen=True, slots=True)
class Recovery:
    saturated: bool
    recovered: bool | None
    seconds: float | None
    note: str
    served: float = 0.0  # requests per second, past saturation
    normal_ms: float = math.inf


def overload(bench: Bench, capacity: float, seconds: float) -> Recovery:
    """Tried again where it was not seen to recover, by the rate at which it served the overload: neighbours may have
    been quieter when the capacity was found, or have become loud since."""
    first = _overload(bench, capacity, seconds)
    if first.recovered or not first.served:
        return first
    second = _overload(bench, min(capacity, first.served), seconds)
    if second.normal_ms > _LASTING * first.normal_ms:  # what it takes for normal is what the first one left behind
        note = (
            f"long after the overload calm latency was {second.normal_ms / first.normal_ms:.2g} times what it had been"
        )
        return replace(second, recovered=False, seconds=None, note=note)
    return second


def _overload(bench: Bench, capacity: float, seconds: float) -> Recovery:
    calm_rate = _CALM * capacity
    calm_s = min(2 * seconds, max(seconds / 3, 2 * _RUN / calm_rate))
    told = ""
    for factor in _FACTORS:
        over_s = min(4 * seconds, max(min(1.0, seconds / 3), 40 / (factor * capacity)))
        after_s = min(max(_AFTER_S, calm_s), 2 * over_s * (factor - 1) / (1 - _CALM) + calm_s)
        parts, keep = bench.phases([(calm_rate, calm_s), (factor * capacity, over_s), (calm_rate, after_s)])
        before, during, after = parts
        kept = keep(during, f"{factor:g} times the capacity of {per_second(capacity)} for {over_s:.2g} s")
        if kept.saturated:
            served = during.rate or 0.0
            return _judged(before, after, served, _drains_s(during, served, calm_rate), told)
        told = f"the queue did not grow at {factor:g} times the capacity that a closed loop had shown"
    return Recovery(False, None, None, told)


def _drains_s(during: Trace, served: float, calm_rate: float) -> float:
    """How long the queue takes to drain while requests still come, if nothing is broken."""
    left = max(0.0, len(during) - served * during.seconds)
    return left / (served - calm_rate) if served > calm_rate else math.inf


def _judged(before: Trace, after: Trace, served: float, drains_s: float, told: str) -> Recovery:
    usual, rare = (percentile(before.latencies, percent) or math.inf for percent in (95, 99))
    if not math.isfinite(usual) or len(after) < _RUN:
        return Recovery(True, None, None, "too few requests were answered to tell what is normal", served)
    normal = max(_NORMAL * usual, rare if math.isfinite(rare) else 0.0)
    back = normal_from(after, normal)
    if back is None:
        note = f"latency was still above {normal:.3g} ms {after.seconds:.2g} s after the overload"
        if drains_s > 0.7 * after.seconds:
            return Recovery(
                True, None, None, f"{note}, which is too soon for a queue that drains so slowly", served, normal
            )
        return Recovery(True, False, None, note, served, normal)
    seconds = max(0.0, after.intended[back] - after.start)
    note = f"normal again (below {normal:.3g} ms, as before) {seconds:.2g} s after the overload"
    return Recovery(True, True, seconds, "; ".join(part for part in (told, note) if part), served, normal)


def normal_from(after: Trace, normal_ms: float) -> int | None:
    """The first request from which on latency stays normal."""
    fine = [after.latency(at) <= normal_ms for at in range(len(after))]
    following = sum(fine)
    for at in range(len(fine) - _RUN + 1):
        run = sum(fine[at : at + _RUN])
        if fine[at] and run >= _SHARE * _RUN and following >= _SHARE * (len(fine) - at):
            return at
        following -= fine[at]
    return None
