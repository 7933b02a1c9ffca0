"""Chrome traces that torch.profiler exports: kernels of the GPU, ops of the host, and what the program marked."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from typing import Any

from bitwatt.profiles.profile import Profile, union

_GZIP = b"\x1f\x8b"
_US = 1e-6
_ENGINE = "autograd::engine::evaluate_function"
#: Numbers that tell one entry from the next: ProfilerStep#3.
_NUMBER = re.compile(r"#\d+$")


def is_one(data: bytes) -> bool:
    return data[:2] == _GZIP or data.lstrip()[:1] in (b"{", b"[")


def profile(data: bytes) -> Profile:
    document: Any = json.loads(gzip.decompress(data) if data[:2] == _GZIP else data)
    listed = document["traceEvents"] if isinstance(document, dict) else document
    if isinstance(document, dict) and document.get("otherData", {}).get("format") == "bitwatt.trace":
        raise ValueError("it was written by bitwatt, not by torch.profiler")
    events = [one for one in listed if one.get("ph") == "X" and "dur" in one and one.get("cat") != "Trace"]
    if not events:
        raise ValueError("it holds no event with a duration")
    first = min(one["ts"] for one in events)
    events = [{**one, "ts": one["ts"] - first} for one in events]  # of a clock that began long ago
    kernels = [one for one in events if one.get("cat") == "kernel"]
    ops = [one for one in events if one.get("cat") == "cpu_op"]
    marks = [one for one in events if one.get("cat") == "user_annotation"]
    backward = [one for one in ops if one["name"].startswith(_ENGINE)]
    phases = _outermost(marks, lambda name: _NUMBER.sub("", name))
    if backward:
        phases["backward"] = union([_span(one) for one in backward])
    return Profile(
        "torch.profiler",
        span_s=max(_span(one)[1] for one in events),
        kernels=len(kernels),
        kernel_s=sum(one["dur"] for one in kernels) * _US if kernels else None,
        busy_s=union([_span(one) for one in kernels]) if kernels else None,
        by_kernel=_sums((one["name"], one["dur"] * _US) for one in kernels),
        by_op=_own(ops),
        by_phase=phases,
    )


def _span(event: Any) -> tuple[float, float]:
    return event["ts"] * _US, (event["ts"] + event["dur"]) * _US


def _sums(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, seconds in pairs:
        found[name] = found.get(name, 0.0) + seconds
    return found


def _outermost(events: list[Any], name_of: Any) -> dict[str, float]:
    """Time under each name, however its entries nest."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for one in events:
        spans.setdefault(name_of(one["name"]), []).append(_span(one))
    return {name: union(known) for name, known in spans.items()}


def _own(ops: list[Any]) -> dict[str, float]:
    """Host time of each op without the ops it calls. On one thread, ops that overlap are nested."""
    found: dict[str, float] = {}
    threads: dict[tuple[Any, Any], list[Any]] = {}
    for one in ops:
        threads.setdefault((one.get("pid"), one.get("tid")), []).append(one)
    for events in threads.values():
        open_: list[tuple[str, float]] = []
        for one in sorted(events, key=lambda one: (one["ts"], -one["dur"])):
            while open_ and open_[-1][1] <= one["ts"]:
                open_.pop()
            if open_:
                found[open_[-1][0]] = found.get(open_[-1][0], 0.0) - one["dur"] * _US
            found[one["name"]] = found.get(one["name"], 0.0) + one["dur"] * _US
            open_.append((one["name"], one["ts"] + one["dur"]))
    return {name: max(seconds, 0.0) for name, seconds in found.items()}
