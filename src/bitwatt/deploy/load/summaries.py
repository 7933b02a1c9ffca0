"""LoadGen's summary file as a `LoadPoint`."""

from __future__ import annotations

import re

from bitwatt.deploy.records import LoadPoint

_PERCENTILE = re.compile(r"^\s*([\d.]+) percentile latency \(ns\)\s*:\s*(\d+)", re.MULTILINE)
_FIGURE = re.compile(r"^\s*([A-Za-z/ ]+?)(?: \(ns\))?\s*:\s*([\d.]+)\s*$", re.MULTILINE)
_RESULT = re.compile(r"^\s*Result is\s*:\s*(\w+)", re.MULTILINE)
_UNMET = re.compile(r"^\s*([A-Z][a-z ]+?) satisfied\s*:\s*NO\s*$", re.MULTILINE)


def point(
    kind: str,
    summary: str,
    *,
    seconds: float,
    callers: int,
    queries: int,
    samples: int,
    failed: int = 0,
    error: str = "",
    rate: float | None = None,
    asked: str = "",
) -> LoadPoint:
    """A query is a request. Offline sends one query, so there samples are the requests. Memory is not told: LoadGen
    makes all queries beforehand, in the process that serves them, and they can take more than the model."""
    offline = kind == "offline"
    requests = samples if offline else queries
    figures = {name.strip(): float(value) for name, value in _FIGURE.findall(summary)}
    # LoadGen takes what failed for an answer, a quick one at that: then none of its latencies are told.
    latencies = {} if failed else {float(percent): int(ns) / 1e6 for percent, ns in _PERCENTILE.findall(summary)}
    measured = [figures.get(name) for name in ("Completed samples per second", "Samples per second")]
    told = next((one for one in (*measured, figures.get("QPS w/ loadgen overhead")) if one is not None), None)
    return LoadPoint(
        kind=kind,
        callers=callers,
        offered_rate=rate,
        achieved_rate=None if failed else told if told is not None else requests / seconds if seconds else None,
        seconds=seconds,
        requests=requests,
        failed=failed,
        p50_ms=latencies.get(50.0),
        p90_ms=latencies.get(90.0),
        p95_ms=latencies.get(95.0),
        p99_ms=latencies.get(99.0),
        max_ms=None if failed or "Max latency" not in figures else figures["Max latency"] / 1e6,
        mean_ms=None if failed or "Mean latency" not in figures else figures["Mean latency"] / 1e6,
        rows=1 if offline or not queries else samples // queries,
        note="; ".join(part for part in (_verdict(summary), asked, _failures(failed, samples, error)) if part),
    )


def _verdict(summary: str) -> str:
    result = _RESULT.search(summary)
    if not result:
        return "LoadGen gave no result"
    unmet = ", ".join(name.lower() for name in _UNMET.findall(summary))
    return f"LoadGen: {result[1]}" + (f" (not met: {unmet})" if unmet else "") + ", not MLPerf-legal"


def _failures(failed: int, samples: int, error: str) -> str:
    return f"{failed} of {samples} samples failed ({error}), so no latency is told" if failed else ""
