"""Made-up runs with something in every section of a page: what the browser opens and the pictures in docs/ show."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bitwatt import charts
from bitwatt.about import About
from bitwatt.charts import Bar, Bin, Dot, Piece, Point, Roof, Series, Stack, Tile, color
from bitwatt.ledger import Row
from bitwatt.observed import Observed, Span
from bitwatt.pricing import totals
from bitwatt.ranks.arrivals import Recorder
from bitwatt.readings import Device, Energy, Metered, PhaseEnergy
from bitwatt.records import Axis, Layer, Machine, Op, Rank, Run, spread
from bitwatt.served import Requests, bucket
from factories import add_op, make_run, mm_op

#: What somebody may call a run, a phase, a layer, a device, a metric.
HOSTILE = (
    "</script><script>window.hacked = 1</script>",
    "\"><img src=x onerror='window.hacked = 1'>",
    "{{constructor.constructor('window.hacked = 1')()}}",
    "<svg onload=window.hacked=1>",
    "]]></style><style>*{display:none}</style>",
    "javascript:window.hacked=1",
    "\u202e evil \x1b[31m",
)
GPU, CPU = "gpu:GPU-0", "cpu:0"


def training_run(layers: int = 12, width: int = 768, steps: int = 400, name: str = "small-gpt", **fields: Any) -> Run:
    """A language model on one H200, at about a third of its peak, with an evaluation at the end."""
    tokens, words = 16 * 1024, 50304
    rows, kinds = [], dict[str, Layer]()
    for i in range(layers):
        block = f"transformer.h.{i}"
        for place, n, kind in (("attn.qkv", 3 * width, "bfloat16"), ("attn.out", width, "bfloat16"),
                               ("mlp.up", 4 * width, "bfloat16"), ("mlp.down", 4 * width, "bfloat16")):  # fmt: skip
            scope = f"{block}.{place}"
            kinds[scope] = Layer("Linear", kind, width * n)
            rows += [
                Row("forward", scope, mm_op(tokens, width, n, kind), steps),
                Row("backward", scope, mm_op(tokens, n, width, kind), steps),
                Row("backward", scope, mm_op(n, tokens, width, kind), steps),
                Row("inference", scope, mm_op(tokens, width, n, kind), steps // 10),
            ]
        kinds[f"{block}.ln"] = Layer("LayerNorm", "float32", 2 * width)
        rows += [
            Row("forward", f"{block}.ln", add_op(tokens, width), 6 * steps),
            Row("backward", f"{block}.ln", add_op(tokens, width), 9 * steps),
        ]
    kinds["lm_head"] = Layer("Linear", "bfloat16", width * words)
    rows += [
        Row("forward", "lm_head", mm_op(tokens, width, words, "bfloat16"), steps),
        Row("backward", "lm_head", mm_op(tokens, words, width, "bfloat16"), 2 * steps),
        Row("inference", "lm_head", mm_op(tokens, width, words, "bfloat16"), steps // 10),
        Row("loss", "", add_op(tokens, words), 3 * steps),
        Row("optimizer", "", add_op(layers * 12 * width * width), 7 * steps),
        Row("preprocess", "", Op("toy.tokenize", (("characters", 4 * tokens),)), steps),
    ]
    run = make_run(rows, name=name, layers=kinds, command="train.py --layers 12", machine=_machine())
    flops = totals(run, "flops").by("phase")
    rates = {"forward": 3.4e14, "backward": 3.1e14, "inference": 3.8e14, "loss": 4.4e11, "optimizer": 4e11}
    seconds = {str(phase): n / rates[str(phase)] for phase, n in flops.items() if str(phase) in rates}
    seconds["preprocess"] = 0.02 * sum(seconds.values())
    known = {
        "seconds": 1.08 * sum(seconds.values()), "phase_seconds": seconds,
        "device_seconds": {phase: 0.93 * spent for phase, spent in seconds.items() if phase != "preprocess"},
    }  # fmt: skip
    run = replace(run, **known, about=_about(steps))
    return replace(run, meter=_meter(run), observed=_observed(run, tokens * steps), **fields)


def _machine() -> Machine:
    return Machine({
        "os": "Debian GNU/Linux 13", "cpu": "Intel(R) Xeon(R) Platinum 8480C", "cores": "16 usable of 112",
        "memory": "135 GB", "gpu": "NVIDIA H200", "driver": "580.159.04", "python": "3.12.3", "torch": "2.13.0",
        "cuda": "13.0",
    })  # fmt: skip


def _about(steps: int) -> About:
    loss = tuple((i, i * 0.1, 3.1 + 7.7 * math.exp(-i / 60) + 0.05 * math.sin(i)) for i in range(0, steps, 4))
    told = {"last": loss[-1][2], "min": min(one[2] for one in loss), "max": loss[0][2], "count": float(len(loss))}
    return About(
        tags={"team": "language", "good": ""}, version="1.4.0", git={"commit": "3f2a90c1d4e5", "branch": "main"},
        parameters={"lr": 6e-4, "layers": 12, "compile": True}, dataset="fineweb-10B", batch_size=16,
        metrics={"loss": told}, series={"loss": loss},
    )  # fmt: skip


def _meter(run: Run) -> Metered:
    whole, train = run.seconds, 0.88 * run.seconds
    points = [(i * whole / 900, _watts(i * whole / 900, train)) for i in range(901)]
    used = sum(watts for _, watts in points) / len(points) * whole
    host = tuple((at, 168 + 9 * math.sin(at)) for at, _ in points[::3])
    gpu = Energy(Device(GPU, "gpu", "NVIDIA H200", 700.0, 0.1), used, "measured", "NVML energy counter", whole,
                 used / whole, max(watts for _, watts in points), 77.0, 0.06 * whole, 0.06 * whole * 77)  # fmt: skip
    cpu = Energy(
        Device(CPU, "cpu", "package 0", 350.0, 0.001), 168 * whole, "measured", "RAPL package", whole, 168.0, 181.0
    )
    inside = sum(run.phase_seconds.values())
    phases = {
        name: PhaseEnergy({GPU: 0.95 * used * spent / inside, CPU: 160 * spent}, "apportioned", spent)
        for name, spent in run.phase_seconds.items()
    }
    use = {"cpu_seconds": 1.2 * whole, "memory_bytes_peak": 9e9}
    series = {GPU: tuple(points), CPU: host}
    return Metered(whole, (gpu, cpu), phases, {GPU: 0.05 * used, CPU: 8 * whole}, use, series, 0.002 * whole)


def _watts(at: float, train: float) -> float:
    if at < 0.03 * train:
        return 120 + 60 * math.sin(9 * at)
    return (610 + 35 * math.sin(3.1 * at) + 18 * math.sin(17 * at)) if at < train else 520 + 90 * math.sin(8 * at)


def _observed(run: Run, tokens: int) -> Observed:
    whole = run.seconds
    spans = (Span("train", 0.03 * whole, 0.85 * whole), Span("evaluate", 0.89 * whole, 0.1 * whole))
    phases = {span.phase: (1, span.seconds) for span in spans}
    return Observed({"train": {"tokens": tokens}}, phases, spans, {"train": 41_000_000_000}, 43_000_000_000)


def serving_run() -> Run:
    """The same model behind a server, one process of two."""
    times = [0.02 * math.exp(0.5 * math.sin(i) + 0.25 * math.cos(3 * i)) for i in range(4000)]
    latencies: dict[int, int] = {}
    for seconds in times:
        latencies[bucket(seconds)] = latencies.get(bucket(seconds), 0) + 1
    served = Requests(len(times), 12, 70.0, sum(times), max(times), latencies)
    rank = Rank(0, 2, "job-7", node="node-a", comm_seconds={"default": 1.5})
    rows = [Row("inference", "head", mm_op(16, 768, 5000, "bfloat16"), 4000)]
    return make_run(rows, name="serve", seconds=96.0, requests=served, rank=rank, machine=_machine())


def job_runs(ranks: int = 4, name: str = "spread") -> list[Run]:
    """Processes of one job, of which the last comes late and the first two read the same meter."""
    runs = []
    for number in range(ranks):
        recorder, late = Recorder(), number == ranks - 1
        for step in range(40):
            recorder.add(0.08 if late else 0.05 + 0.001 * (step % 3), 0.001 if late else 0.03)
        rank = Rank(number, ranks, "job-1", node=f"node-{number // 2}", machine=f"machine-{number // 2}",
                    axes=(Axis("data", spread(range(ranks)), "DDP"),), groups={"0": spread(range(ranks))},
                    comm_seconds={"0": 0.04 if late else 1.2}, arrivals=recorder.packed())  # fmt: skip
        rows = [Row("forward", "a", mm_op(512, 512, 512), 40), Row("optimizer", "", add_op(512 * 512), 40)]
        runs.append(make_run(rows, id=f"{name}-{number}", name=name, rank=rank, seconds=3.4, machine=_machine()))
    return runs


def hostile_run() -> Run:
    """Every text that a page shows, as bad as it can be."""
    rows = [Row(evil, f"{evil}.0.{evil}", mm_op(64, 64, 64 + i), 3) for i, evil in enumerate(HOSTILE)]
    rows += [Row("forward", evil, Op(evil, (("evil", evil),)), 1) for evil in HOSTILE]
    kinds = {f"{evil}.0.{evil}": Layer(evil, "float32", 64) for evil in HOSTILE}
    first = HOSTILE[0]
    series = {one: tuple((float(i), 10.0 + i) for i in range(9)) for one in HOSTILE[:3]}
    energy = tuple(Energy(Device(one, "gpu", one), 5.0, "measured", one, 9.0, note=one) for one in HOSTILE[:3])
    meter = Metered(9.0, energy, {one: PhaseEnergy({first: 1.0}, "measured", 1.0) for one in HOSTILE}, series=series,
                    settings={one: one for one in HOSTILE}, notes=HOSTILE)  # fmt: skip
    points = tuple((i, float(i), float(i)) for i in range(5))
    about = About(
        dict.fromkeys(HOSTILE, first), first, dict.fromkeys(("commit", "branch"), first), dict.fromkeys(HOSTILE, first),
        first, 1, {one: {"last": 1.0, "min": 0.0, "max": 2.0, "count": 5.0} for one in HOSTILE}, first, first,
        dict.fromkeys(HOSTILE[:3], points),
    )  # fmt: skip
    spans = tuple(Span(one, float(i), 1.0) for i, one in enumerate(HOSTILE))
    return make_run(
        rows, id=first, name=first, started=first, command=first, status=first, notes=HOSTILE, layers=kinds,
        machine=Machine(dict(zip(HOSTILE, HOSTILE, strict=True)) | {"cpu": first}),
        phase_seconds=dict.fromkeys(HOSTILE, 0.5), rank=Rank(0, 2, first, node=first, comm_seconds={first: 1.0}),
        meter=meter, about=about, observed=Observed({first: {first: 4}}, dict.fromkeys(HOSTILE, (1, 1.0)), spans),
    )  # fmt: skip


def empty_run() -> Run:
    return make_run(name="empty", seconds=0.0)


def every_chart(name: str, width: int) -> list[charts.Chart]:
    """One of each, with `name` wherever a name may stand."""
    spans = [charts.Span(name, 0, 3), charts.Span("b", 3, 4)]
    return [
        charts.bars(name, [Bar(name, name, 3, name, 2, 4), Bar("b", name, 1, "1")], name, width=width),
        charts.histogram(name, [Bin(0.1, 0.2, 3), Bin(0.2, 0.4, 5)], [(name, 0.2)], width=width),
        charts.lines(name, [Series(name, ((1, 2.0), (2, 3.0)))], name, name, width=width),
        charts.lines(name, [Series("s", ((name, 2.0), ("v2", 3.0)))], "x", "y", unit="J", width=width),
        charts.power(name, {name: [(0, 1), (4, 9)], "b": [(0, 3), (4, 3)]}, spans, width=width),
        charts.roofline(name, [Roof(name, 1e12)], 1e10, [Point(name, 3, 1e9, color(0)), Point(name, 9, None, color(1))],
                        width=width),
        charts.scatter(name, [Dot(name, 1, 2, name), Dot("b", 2, 3, "g")], (name, "J"), (name, ""),
                       edge=[Dot(name, 1, 2)], width=width),
        charts.stacks(name, [Stack(name, (Piece(name, 3, name, color(0)), Piece("b", 1, "1", color(1))))], width=width),
        charts.treemap(name, [Tile(f"a.0.{name}", name, 3), Tile(name, name, 1), Tile("", "", 1)], "FLOP", width=width),
    ]  # fmt: skip
