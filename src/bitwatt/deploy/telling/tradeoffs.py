"""hardware_tradeoffs.csv: a row for each scenario, batch size and number of threads. What is not known is empty: no
value stands in for it, so that nothing that could not be measured is ever the best."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bitwatt.deploy.records import Call, LoadPoint, Scenario, Study, cell
from bitwatt.deploy.telling.duels import Duel
from bitwatt.harmless import in_csv

if TYPE_CHECKING:
    from bitwatt.deploy.statistics import Times

NAME = "hardware_tradeoffs.csv"
Value = str | int | float | None
Row = Mapping[str, Value]

#: Column -> how it is obtained. The first seventeen have the names that others use.
COLUMNS = {
    "scenario": "the way to deploy it",
    "precision_mode": "what most multiply-accumulates of the executed graph are computed in",
    "batch_size": "rows in one call",
    "threads": "threads that the runtime may use",
    "accuracy": "the metric named in `metric`, on the rows given",
    "latency_ms_per_sample": "median wall time of a call over its rows",
    "throughput_samples_per_sec": "rows of a call over its median wall time",
    "memory_mb": "peak of the unshared memory (USS) of a fresh process that loads and runs it, 10^6 bytes, median",
    "rss_mb": "resident memory of the same process",
    "cpu_percent_avg": "CPU time of all timed calls over their wall time, of the process itself; 100 is one core",
    "energy_uj_measured": "microjoules of one call by RAPL or NVML; empty where neither can be read",
    "energy_mj_proxy": "latency_ms_per_sample x cpu_percent_avg, as others define it: ms x %, a CPU time and no energy",
    "preprocess_ms": "of a call, before the first linear operator or tree; from a profiled run of its own",
    "linear_operator_ms": "the linear operators or trees themselves",
    "postprocess_ms": "what comes after them",
    "memory_bandwidth_gbps": "bytes read and written by a call over its median wall time, 10^9 bytes a second",
    "memory_pressure_index": "memory_mb over throughput_samples_per_sec",
    "metric": "what the column accuracy holds",
    "failure": "why it cannot be deployed so; then all else is empty",
    "runtime": "the plug-in that loads it",
    "ranked_as": "what it really is, where its name says otherwise: such a row is in no ranking",
    "calls": "timed calls after warm-up",
    "p50_ms": "median wall time of a call",
    "p90_ms": "90 % of calls took no longer",
    "p95_ms": "95 % of calls took no longer",
    "p99_ms": "99 % of calls took no longer; empty where too few were timed to know",
    "max_ms": "the longest call",
    "ratio_to_native": "latency over that of the native baseline: ratio of block medians",
    "ratio_to_native_low": "lower end of its 95 % interval",
    "ratio_to_native_high": "upper end",
    "verdict_to_native": "faster, slower, equivalent, or no difference shown",
    "cpu_ratio_to_native": "the same of CPU times, which neighbours on the machine do not stretch",
    "ratio_to_onnx": "latency over that of ONNX FP32",
    "ratio_to_onnx_low": "lower end of its 95 % interval",
    "ratio_to_onnx_high": "upper end",
    "verdict_to_onnx": "faster, slower, equivalent, or no difference shown",
    "cpu_ratio_to_onnx": "the same of CPU times",
    "accuracy_low": "lower end of the 95 % interval of the metric, over rows",
    "accuracy_high": "upper end",
    "balanced_accuracy": "mean recall of the classes",
    "flips": "labels that differ from the baseline's",
    "rows_compared": "rows that were predicted",
    "max_difference": "largest difference of a score or value from the baseline's",
    "flips_to_onnx": "labels that differ from ONNX FP32's",
    "max_difference_to_onnx": "largest difference of a score or value from ONNX FP32's",
    "mcnemar_p": "McNemar's test of right and wrong labels against the baseline's",
    "artefact_bytes": "of the files that must be shipped",
    "library_mb": "memory that importing its library takes",
    "model_mb": "memory that loading and running the model takes",
    "import_ms": "cold start: importing the library",
    "load_ms": "cold start: loading the model",
    "first_ms": "cold start: the first call",
    "cold_start_ms": "the three together",
    "cpu_seconds": "CPU time of one call",
    "energy_source": "what the energy was read from, or why it could not be",
    "flops": "of one call, by bitwatt's rules",
    "bops": "bit-operations of one call",
    "bytes": "read and written by one call",
    "integer_share": "multiply-accumulates in integers over all, in the graph that the runtime executes",
    "integer_nodes": "nodes of that graph that compute in integers",
    "nodes": "all nodes of that graph",
    "bandwidth_level": "the cache that weights and values of a call fit in, or DRAM",
    "bandwidth_roof_gbps": "what one thread copies in that level of this machine",
    "unattributed_ms": "of a call without the profiler, what no node, step or module accounts for",
    "profiler_overhead": "profiled call over plain call, minus 1",
    "highest_rate": "requests a second up to which the service level holds",
    "load_p95_ms": "95th percentile at the highest load that did not saturate it, from the intended arrival",
    "load_memory_mb": "most unshared memory under load",
}  # fmt: skip


def rows(study: Study, calls: Sequence[Call], duels: Sequence[Duel]) -> list[Row]:
    """In the order of the scenarios; one that failed has one row."""
    times = _times(calls) if calls else {}
    fought = {(duel.scenario, duel.batch, duel.threads, duel.against): duel for duel in duels}
    baselines = {kind: baseline(study, kind) for kind in ("native", "onnx")}
    made: list[Row] = []
    for scenario in study.scenarios:
        if scenario.failure:
            made.append(_empty(scenario))
            continue
        for threads in study.plan.threads:
            for batch in study.plan.batches:
                row = _empty(scenario) | {"batch_size": batch, "threads": threads}
                row |= _timed(times.get((scenario.name, batch, threads)))
                row |= _known(scenario, batch, threads)
                for kind, name in baselines.items():
                    row |= _ratio(kind, fought.get((scenario.name, batch, threads, name or "")))
                row |= _bandwidth(study, scenario, batch, row["p50_ms"])
                made.append(_derived(row))
    return made


def _times(calls: Sequence[Call]) -> Mapping[tuple[str, int, int], Times]:
    from bitwatt.deploy import statistics

    return {(key.scenario, key.batch, key.threads): times for key, times in statistics.cells(calls).items()}


def baseline(study: Study, kind: str) -> str | None:
    """The scenario that others are held against; None where it could not be deployed."""
    return next((one.name for one in study.scenarios if one.baseline == kind and not one.failure), None)


def _empty(scenario: Scenario) -> dict[str, Value]:
    artefact = scenario.artefact
    told = {"scenario": scenario.name, "failure": scenario.failure or None, "runtime": scenario.runtime or None}
    told |= {"precision_mode": artefact.precision.mode, "ranked_as": artefact.ranked_as or None} if artefact else {}
    return dict.fromkeys(COLUMNS) | told


def _timed(times: Times | None) -> dict[str, Value]:
    if times is None:
        return {}
    return {
        "calls": times.calls, "latency_ms_per_sample": times.ms_per_sample, "p50_ms": times.p50_ms,
        "p90_ms": times.p90_ms, "p95_ms": times.p95_ms, "p99_ms": times.p99_ms, "max_ms": times.max_ms,
        "throughput_samples_per_sec": times.throughput if times.p50_ms else None,
        "cpu_percent_avg": 100 * times.cpu_per_wall, "cpu_seconds": times.cpu_ms / 1000,
    }  # fmt: skip


def _known(scenario: Scenario, batch: int, threads: int) -> dict[str, Value]:
    """What was found out apart from the timed calls."""
    told: dict[str, Value] = {}
    if (quality := scenario.quality) is not None:
        low, high = quality.interval or (None, None)
        told |= {
            "accuracy": quality.value, "metric": quality.metric, "accuracy_low": low, "accuracy_high": high,
            "balanced_accuracy": quality.balanced, "flips": quality.flips, "rows_compared": quality.rows or None,
            "max_difference": quality.max_difference, "mcnemar_p": quality.mcnemar_p,
            "flips_to_onnx": quality.flips_onnx, "max_difference_to_onnx": quality.max_difference_onnx,
        }  # fmt: skip
    if (artefact := scenario.artefact) is not None:
        precision = artefact.precision
        told |= {
            "artefact_bytes": artefact.bytes or None, "integer_share": precision.integer_share,
            "integer_nodes": precision.integer_nodes, "nodes": precision.nodes,
        }  # fmt: skip
    if (print := scenario.footprint.get(batch)) is not None:
        told |= {
            "memory_mb": print.peak_uss_mb, "rss_mb": print.rss_mb, "library_mb": print.library_mb,
            "model_mb": print.model_mb, "import_ms": print.import_ms, "load_ms": print.load_ms,
            "first_ms": print.first_ms, "cold_start_ms": print.cold_ms,
        }  # fmt: skip
    if (counts := scenario.counts.get(batch)) is not None:
        told |= {"flops": counts.flops, "bops": counts.bops, "bytes": counts.bytes}
    if (parts := scenario.breakdown.get(batch)) is not None:
        told |= {
            "preprocess_ms": parts.ms("preprocess"), "linear_operator_ms": parts.ms("linear"),
            "postprocess_ms": parts.ms("postprocess"), "unattributed_ms": parts.unattributed_ms,
            "profiler_overhead": parts.overhead,
        }  # fmt: skip
    if (joules := scenario.joules.get(cell(batch, threads))) is not None:
        told |= {"energy_uj_measured": joules.measured_uj, "energy_source": joules.source or None}
        told |= {"cpu_seconds": joules.cpu_seconds} if joules.cpu_seconds is not None else {}
    if (load := scenario.load) is not None:
        hardest = calm(load.points)
        used = [point.uss_mb for point in load.points if point.uss_mb is not None]
        told |= {
            "highest_rate": load.highest_rate, "load_p95_ms": None if hardest is None else hardest.p95_ms,
            "load_memory_mb": max(used, default=None),
        }  # fmt: skip
    return told


#: Kinds of load that say how a scenario does: others search for a limit, or go beyond it on purpose.
SAYING = ("open", "closed")


def calm(points: Iterable[LoadPoint]) -> LoadPoint | None:
    """The highest load that did not saturate it: of arrivals that do not wait for answers, where there were such."""
    known = [one for one in points if one.kind in SAYING and not one.saturated and one.p95_ms is not None]
    return max(known, key=lambda one: (one.kind == "open", one.achieved_rate or 0), default=None)


def _bandwidth(study: Study, scenario: Scenario, batch: int, median_ms: Value) -> dict[str, Value]:
    """By the caches of the machine that it was timed on."""
    from bitwatt.deploy.measuring import bandwidth

    weights = scenario.artefact.bytes if scenario.artefact is not None else 0
    took = median_ms if isinstance(median_ms, float) else None
    device = str(scenario.artefact.options.get("device", "cpu")) if scenario.artefact is not None else "cpu"
    found = bandwidth.of(scenario.counts.get(batch), took, weights, study.machine, device=device)
    return {"memory_bandwidth_gbps": found.gbps, "bandwidth_level": found.level, "bandwidth_roof_gbps": found.roof_gbps}


def _ratio(kind: str, duel: Duel | None) -> dict[str, Value]:
    if duel is None:
        return {}
    name = f"ratio_to_{kind}"
    return {name: duel.ratio, f"{name}_low": duel.low, f"{name}_high": duel.high, f"verdict_to_{kind}": duel.verdict,
            f"cpu_{name}": duel.cpu_ratio}  # fmt: skip


def _derived(row: dict[str, Value]) -> Row:
    """What is computed of two others, and is empty where one of them is."""

    def both(one: str, other: str) -> tuple[float, float] | None:
        a, b = row[one], row[other]
        return (a, b) if isinstance(a, int | float) and isinstance(b, int | float) else None

    if known := both("latency_ms_per_sample", "cpu_percent_avg"):
        row["energy_mj_proxy"] = known[0] * known[1]
    if (known := both("memory_mb", "throughput_samples_per_sec")) and known[1]:
        row["memory_pressure_index"] = known[0] / known[1]
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in row.items()}  # fmt: skip


def csv_of(made: Iterable[Row]) -> str:
    """Texts as no spreadsheet computes them; numbers to the last digit."""
    file = io.StringIO(newline="")
    lines = csv.writer(file, lineterminator="\n")
    lines.writerow(COLUMNS)
    for row in made:
        values = (row.get(name) for name in COLUMNS)
        lines.writerow(["" if v is None else in_csv(" ".join(v.split())) if isinstance(v, str) else v for v in values])
    return file.getvalue()
