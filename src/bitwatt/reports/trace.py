"""A run as a Chrome trace (chrome://tracing, Perfetto): entries of phases and power over time, as far as they were
noted. What is known as a sum alone, such as the seconds of forward, has no place on a timeline and stands beside it."""

from __future__ import annotations

import json
from typing import Any

from bitwatt.reports.energy import names
from bitwatt.reports.model import View

_US = 1e6
_PROCESS = 1
#: The run itself is drawn above the threads.
_RUN = 0


def render(view: View, *, by: str | None = None, width: int | None = None, color: bool = False) -> str:
    run, observed = view.run, view.run.observed
    spans = observed.spans if observed is not None else ()
    events = [_meta("process_name", _RUN, f"bitwatt: {run.name or run.id}"), _meta("thread_name", _RUN, "run")]
    events.append(_complete(run.name or run.id, 0.0, run.seconds, _RUN, {"status": run.status}))
    for thread in sorted({span.thread for span in spans}):
        events.append(_meta("thread_name", 1 + thread, f"phases, thread {thread}"))
    for span in spans:
        name = span.phase.rpartition("/")[2]
        events.append(_complete(name, span.begin_s, span.seconds, 1 + span.thread, {"phase": span.phase}))
    if run.meter is not None:
        called = names(run.meter)
        for device, points in run.meter.series.items():
            title = f"power of {called.get(device, device)}"
            events += [
                {"name": title, "ph": "C", "ts": at * _US, "pid": _PROCESS, "args": {"W": watts}}
                for at, watts in points
            ]
    entries = sum(n for n, _ in observed.phases.values()) if observed is not None else 0
    document = {
        "displayTimeUnit": "ms",
        "traceEvents": events,
        "otherData": {
            "format": "bitwatt.trace",
            "run": run.id,
            "started": run.started,
            "machine": dict(run.machine.facts),
            "phase_seconds": dict(run.phase_seconds),
            "entries_left_out": entries - len(spans),
            "totals": {name: priced.total for name, priced in view.priced.items()},
        },
    }
    return json.dumps(document, indent=1) + "\n"


def _meta(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": _PROCESS, "tid": thread, "args": {"name": name}}


def _complete(name: str, begin_s: float, seconds: float, thread: int, args: dict[str, Any]) -> dict[str, Any]:
    ts, dur = begin_s * _US, seconds * _US
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "pid": _PROCESS, "tid": thread, "args": args}
