"""The whole load on one target: callers in a closed loop, rates in an open one, the SLO, overload and recovery."""

from __future__ import annotations

import math

from bitwatt.deploy.amounts import amount
from bitwatt.deploy.load.bench import Bench, StuckError
from bitwatt.deploy.load.percentiles import interval, percentile
from bitwatt.deploy.load.recovery import Recovery, overload
from bitwatt.deploy.load.search import highest
from bitwatt.deploy.load.settings import Settings
from bitwatt.deploy.load.trace import Trace
from bitwatt.deploy.records import Load

SOURCE = "bitwatt's generator"
#: Of the capacity: where nobody asked for rates or for an SLO.
_SHARES = (0.5, 0.8)
_SOME = 40  # requests that should come, also to a slow model
#: More callers are taken for the open loop if they get this much more out of it.
_BETTER = 1.05


def run(bench: Bench, settings: Settings) -> Load:
    """Ends early, with what was measured, where nothing is answered or callers get stuck."""
    capacity: float | None = None
    rate: float | None = None
    past: Recovery | None = None
    notes: list[str] = []
    try:
        capacity = _capacity(bench, settings)
        if not capacity:
            notes.append(f"no request was answered: {bench.points[-1].note}")
        else:
            for asked in settings.rates:
                bench.open(asked, settings.seconds)
            for share in () if settings.rates or bench.slo else _SHARES:
                asked = share * capacity
                bench.open(asked, min(4 * settings.seconds, max(settings.seconds, _SOME / asked)))
            if bench.slo:
                rate, told = _search(bench, settings, capacity)
                notes.append(told)
            if settings.overload:
                past = overload(bench, capacity, settings.seconds)
                notes.append(past.note)
            elif settings.why_not:
                notes.append(settings.why_not)
    except StuckError as error:
        notes.append(str(error))
    return Load(
        points=tuple(bench.points),
        slo=settings.slo,
        highest_rate=rate,
        recovered=past.recovered if past is not None else None,
        recovery_s=past.seconds if past is not None else None,
        source=SOURCE,
        capacity=capacity or None,
        note="; ".join(note for note in notes if note),
    )


def _capacity(bench: Bench, settings: Settings) -> float:
    """The highest rate of answers that callers got in a closed loop, and as many workers for what follows."""
    best, workers = 0.0, settings.callers[0]
    for callers in sorted(settings.callers):
        found = bench.closed(callers)
        if not found.requests > found.failed:
            break
        if (found.achieved_rate or 0.0) > _BETTER * best:
            best, workers = found.achieved_rate or 0.0, callers
    if settings.workers is None:
        bench.workers = workers
    return best


def _search(bench: Bench, settings: Settings, capacity: float) -> tuple[float | None, str]:
    last: list[Trace] = []

    def attempt(rate: float, seconds: float, kind: str) -> tuple[bool, float]:
        point, trace = bench.open(rate, seconds, kind)
        last[:] = [trace]
        values = [(trace.statistic(one.percent), one.limit_ms) for one in bench.slo]
        missed = max(math.inf if value is None else value / limit for value, limit in values)
        return bool(point.holds) and not point.saturated, missed

    found = highest(
        lambda rate, seconds: attempt(rate, seconds, "probe"),
        lambda rate, seconds: attempt(rate, seconds, "open"),
        capacity,
        needed=max(one.needed for one in bench.slo),
        seconds=settings.seconds,
        limit_s=max(one.limit_ms for one in bench.slo) / 1000,
    )
    sure = _sureness(bench, last[0]) if found.rate else _busy(bench, last[0])
    return found.rate, f"{settings.slo}: {found.note}{sure}"


def _busy(bench: Bench, trace: Trace) -> str:
    """Where nothing holds: whether that may be the machine's doing."""
    late = percentile(trace.lateness, 95)
    if late is None or late < 0.3 * min(one.limit_ms for one in bench.slo):
        return ""
    return f"; the machine is busy: idle workers woke {late:.3g} ms late (p95) at the last rate that was tried"


def _sureness(bench: Bench, trace: Trace) -> str:
    """What the confirming window says of each condition, and how far that can be trusted."""
    told = ""
    for one in bench.slo:
        told += f"; {one.name} {trace.statistic(one.percent):.3g} ms of {amount(len(trace), 'request')}"
        if one.percent is not None and one.percent < 100:
            low, high = interval(trace.latencies, one.percent)
            upper = "unknown" if high is None or not math.isfinite(high) else f"{high:.3g}"
            told += f" (95 % interval {low:.3g} to {upper} ms, as if they were independent)"
        if len(trace) < one.needed:
            told += f", uncertain: {one.needed} are needed"
    return told
