"""A window of requests as a `LoadPoint`: what is told about it, with its doubts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bitwatt.deploy.amounts import amount, percent
from bitwatt.deploy.load.percentiles import enough, percentile
from bitwatt.deploy.load.slo import Condition
from bitwatt.deploy.load.trace import DROPPED, Trace
from bitwatt.deploy.records import LoadPoint

#: Of one core, from which on a generator in Python is what limits the rate.
_BUSY = 0.85


def point(
    trace: Trace,
    kind: str,
    *,
    callers: int,
    rows: int = 1,
    rate: float | None = None,
    slo: Sequence[Condition] = (),
    uss_mb: float | None = None,
    busy: float | None = None,
    note: str = "",
) -> LoadPoint:
    """`busy` is the CPU time of the generator over time, where it is a process of its own."""
    answered = len(trace) - trace.failed
    values = [trace.statistic(condition.percent) for condition in slo]
    return LoadPoint(
        kind=kind,
        callers=callers,
        offered_rate=rate,
        achieved_rate=trace.rate,
        seconds=trace.seconds,
        requests=len(trace),
        failed=trace.failed,
        p50_ms=_finite(percentile(trace.latencies, 50)),
        p90_ms=_finite(percentile(trace.latencies, 90)),
        p95_ms=_finite(percentile(trace.latencies, 95)),
        p99_ms=_finite(percentile(trace.latencies, 99)),
        max_ms=trace.latencies[answered - 1] if answered else None,
        mean_ms=_finite(trace.mean),
        service_p95_ms=percentile(trace.services, 95),
        late_ms=percentile(trace.lateness, 95),
        dropped=trace.number(DROPPED),
        rows=rows,
        uss_mb=uss_mb,
        saturated=rate is not None and trace.queue_grows,
        slo_ms=_finite(values[0]) if values else None,
        holds=all(one.holds(value) for one, value in zip(slo, values, strict=True)) if slo and len(trace) else None,
        note="; ".join([*([note] if note else []), *_doubts(trace, slo, rate, busy)]),
    )


def _doubts(trace: Trace, slo: Sequence[Condition], rate: float | None, busy: float | None) -> list[str]:
    size, found = len(trace), []
    wanted = [(one.name, one.needed) for one in slo] or [("p99", enough(99))]
    if trace.failed < size or not size:  # where none is answered there is nothing to be sure of
        found += [
            f"{name} is uncertain: {amount(size, 'request')}, {need} are needed" for name, need in wanted if size < need
        ]
    if trace.failed:
        most = trace.errors.most_common(1)
        why = f", most often {most[0][0]}" if most else ""
        found.append(f"{trace.failed} of {size} requests got no answer{why}: they count as slower than all others")
    if dropped := trace.number(DROPPED):
        found.append(f"{dropped} were dropped after they had waited too long")
    if trace.stuck:
        found.append(f"{amount(trace.stuck, 'caller')} never came back")
    if busy is not None and busy > _BUSY:
        found.append(f"the generator took {percent(busy)} of a core: the rate may be its limit, not the server's")
    late, all_of_it = percentile(trace.lateness, 95), percentile(trace.latencies, 95)
    if rate is not None and late and all_of_it and late > 0.5 * all_of_it:
        found.append(f"idle workers woke {late:.3g} ms late (p95), which is most of the latency")
    return found


def per_second(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s"


def _finite(value: float | None) -> float | None:
    """None where it is infinite: so many got no answer that there is no such latency."""
    return value if value is not None and math.isfinite(value) else None
