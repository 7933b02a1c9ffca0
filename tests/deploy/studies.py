"""Studies made by hand, with answers that are known."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bitwatt.deploy.records import (
    CONTROL,
    Artefact,
    Breakdown,
    Call,
    Checked,
    Counts,
    Footprint,
    Joules,
    Load,
    LoadPoint,
    Plan,
    Precision,
    Quality,
    Scenario,
    Stage,
    Study,
    cell,
)
from bitwatt.deploy.telling.findings import Findings, found

EVIL = "<img src=x onerror=alert(1)>\x1b[31m'; =cmd()"
PLAN = Plan(batches=(1, 32), threads=(1,), processes=5, blocks=12)
#: Microseconds of one call at batch 1; at 32 it is four times as much.
MICROSECONDS = {"sklearn-fp64": 200.0, "onnx-fp32": 20.0, "onnx-int8": 10.0}


def calls(times: Mapping[str, float], plan: Plan = PLAN, *, control: str = "", noise: float = 0.02) -> list[Call]:
    """Every scenario in every block, in random order; each process is a little quicker or slower than the others."""
    chance = random.Random(7)
    found = []
    named = dict(times) | ({f"{control}{CONTROL}": times[control]} if control else {})
    for process in range(plan.processes):
        pace = chance.gauss(1, noise)
        for threads in plan.threads:
            for batch in plan.batches:
                for block in range(plan.blocks):
                    order = list(named)
                    chance.shuffle(order)
                    for position, name in enumerate(order):
                        base = 1000 * named[name] * (1 if batch == 1 else 4) * pace * chance.gauss(1, noise)
                        for call in range(3):
                            wall = round(base * chance.gauss(1, noise))
                            found.append(Call(process, block, position, name, batch, threads, call, wall, wall // 2))
    return found


def quality(value: float | None, flips: int | None = 0, p: float | None = 1.0, **more: Any) -> Quality:
    near = None if value is None else (value - 0.02, value + 0.02)
    return Quality("accuracy", value, near, flips=flips, rows=1000, mcnemar_p=p, against="sklearn-fp64", **more)


def scenario(name: str, mode: str = "fp32", *, memory: float | None = 80.0, **more: Any) -> Scenario:
    integer = mode == "int8"
    precision = Precision(mode, 5, 3 if integer else 0, 1000, 995 if integer else 0)
    prints = {
        batch: Footprint(5, memory, None if memory is None else memory + 20, 20.0, 10.0, 50.0, 10.0, 5.0,
                         {} if memory is None else {"peak_uss_mb": (memory - 0.2, memory + 0.2)})
        for batch in PLAN.batches
    }  # fmt: skip
    made = Scenario(
        name, name, artefact=Artefact(name, name, f"/nowhere/{name}", ("model",), "predict_proba", 1000, precision),
        quality=quality(0.9), footprint=prints,
        counts={batch: Counts(2000 * batch, 1e6, 8000 * batch) for batch in PLAN.batches},
        joules={cell(batch, 1): Joules(None, 1e-5, "no RAPL") for batch in PLAN.batches},
    )  # fmt: skip
    return replace(made, **more)


def study(*scenarios: Scenario, **more: Any) -> Study:
    case = {"name": "mlp", "class": "MLPClassifier", "framework": "sklearn", "rows": 1000, "features": 20}
    fields: dict[str, Any] = {
        "case": case, "machine": {"cpu": "a processor", "flags": "avx2 avx512_vnni"},
        "versions": {"onnxruntime": "1.31"},
        "plan": PLAN, "scenarios": scenarios or usual(), "started": "2026-11-16T00:00:00+00:00", "seconds": 60.0,
    }  # fmt: skip
    return Study(**fields | more)


def usual() -> tuple[Scenario, ...]:
    """Native, ONNX, and an INT8 that is good: half the latency, 0.1 % of accuracy lost."""
    stages = (Stage("MatMul", "linear", 0.015), Stage("Softmax", "postprocess", 0.002))
    points = (
        LoadPoint("closed", callers=1, achieved_rate=9000, requests=900, p50_ms=0.1, p95_ms=0.2, p99_ms=0.3,
                  uss_mb=70.0),
        LoadPoint("open", offered_rate=500, achieved_rate=498, requests=900, p50_ms=0.2, p95_ms=0.9, p99_ms=2.0,
                  service_p95_ms=0.1, uss_mb=72.0),
        LoadPoint("open", offered_rate=5e4, achieved_rate=9000, requests=900, p50_ms=90, p95_ms=200, p99_ms=300,
                  saturated=True),
    )  # fmt: skip
    return (
        scenario("sklearn-fp64", "fp64", memory=160.0, baseline="native", quality=quality(0.9, None, None)),
        scenario("onnx-fp32", baseline="onnx", breakdown={1: Breakdown(1, stages, 0.5, 0.02, "a profile")}),
        scenario(
            "onnx-int8", "int8", memory=70.0,
            quality=quality(0.899, 12, 0.6, balanced=0.88, per_class={"a": 0.8, "b": 0.96}),
            load=Load(points, "p99<20ms", 500.0, True, 0.4, "ours"),
        ),
    )  # fmt: skip


@functools.cache
def usual_findings() -> Findings:
    """With a control, and with what was found of the data."""
    return found(study(data=checked_data()), calls(MICROSECONDS, control="sklearn-fp64"))


@functools.cache
def usual_page() -> str:
    """Drawing takes seconds."""
    return usual_findings().page()


def checked_data() -> tuple[Checked, ...]:
    return (Checked("edge-case rows", True, "5 of 5 rows agree"), Checked("input drift", False, "feature 3 moved"))
