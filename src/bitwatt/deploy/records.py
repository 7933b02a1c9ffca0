"""What flows through the lab: the case, the ways it can be deployed, and what was measured of each. Frozen data.

A `Study` is everything that was found out but the raw times, which stay in stat_benchmark_runs.csv. Both are written to
the output folder, and all that is told (tables, verdicts, choices, pages) is a pure function of the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from bitwatt.errors import BitwattError


class UnfitError(BitwattError):
    """A way to deploy that this model cannot go, and why: a row of the report, not the end of it."""


@dataclass(frozen=True, eq=False)
class Case:
    """What is to be deployed: a fitted model and the rows it is tried on.

    `inputs` is what the model takes: an array, a DataFrame, a list of texts, a tensor, or a tuple of tensors that are
    cut along their first axis. `method` is what is asked of an estimator; what it returns is what every runtime must
    return. `classes` are the labels in the order of the columns of scores; None where values are predicted.
    """

    model: Any
    framework: str  # sklearn or torch
    name: str
    inputs: Any
    target: Any | None = None
    method: str = "predict_proba"  # predict_proba, predict; forward of a module
    classes: tuple[Any, ...] | None = None
    train: Any | None = None  # rows it was trained on, for calibration and drift
    path: Path | None = None  # the file it came from
    model_digest: str = ""
    data_digest: str = ""
    data_path: Path | None = None
    metric: Any = None  # the user's: a name that scikit-learn knows, or a function of targets and predictions
    options: Mapping[str, Any] = field(default_factory=dict)  # device: cpu, cuda
    notes: tuple[str, ...] = ()  # of loading: another version of scikit-learn, rows that were left out


@dataclass(frozen=True, slots=True)
class Precision:
    """What the graph that the runtime really executes computes in; from its optimised form, not from what was asked."""

    mode: str  # fp64, fp32, fp16, bf16, int8, mixed: by the share of multiply-accumulates
    nodes: int | None = None
    integer_nodes: int | None = None
    macs: int | None = None  # of one row
    integer_macs: int | None = None
    note: str = ""  # "INT8 changes nothing: 0 of 7 nodes are integer"
    evidence: str = ""  # how it is known: the optimised graph of onnxruntime 1.31.1, dtypes of parameters, ...

    @property
    def integer_share(self) -> float | None:
        return self.integer_macs / self.macs if self.macs and self.integer_macs is not None else None


#: In a note of an artefact: no training rows were given, so it was calibrated on those that judge it.
SAME_ROWS = "of the rows it is judged on"


@dataclass(frozen=True, slots=True)
class Artefact:
    """A model made ready for one runtime: files in a folder, which a fresh process can load."""

    scenario: str
    runtime: str  # the plug-in that loads it
    folder: str
    files: tuple[str, ...]  # names inside the folder
    method: str
    bytes: int = 0  # of the files that must be shipped
    precision: Precision = Precision("fp32")
    imports: tuple[str, ...] = ()  # modules that its library consists of, imported before it is loaded
    versions: Mapping[str, str] = field(default_factory=dict)
    ranked_as: str = ""  # onnx-fp32 where an INT8 model has no integer in it: not ranked as what it is called
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@runtime_checkable
class Loaded(Protocol):
    """A model in this process, ready to be asked. `predict` takes rows as the user has them and returns an array on the
    host: scores or values, the same from every runtime. All it takes to feed them is part of it, and is timed."""

    def predict(self, rows: Any) -> Any: ...


class Runtime(Protocol):
    """One way to run a model. A file of `deploy.runtimes` has one under the name `RUNTIME`."""

    name: str  # its scenario: onnx-int8
    baseline: str  # "" or what it is a baseline of: "native" or "onnx"
    order: int

    def applies(self, case: Case) -> bool:
        """Whether it makes sense at all: else there is no row."""
        ...

    def build(self, case: Case, folder: Path) -> Artefact:
        """Convert, compile, quantise; in this process, once. Raises `UnfitError` where the model cannot go this way."""
        ...

    def load(self, artefact: Artefact, threads: int) -> Loaded:
        """In a fresh process. Imports its library and nothing else."""
        ...


@dataclass(frozen=True, slots=True)
class Quality:
    """How good its predictions are on the rows given, and how they differ from the baseline's."""

    metric: str  # accuracy, r2, or the user's
    value: float | None
    interval: tuple[float, float] | None = None  # 95 %, over rows
    balanced: float | None = None
    per_class: Mapping[str, float] = field(default_factory=dict)
    flips: int | None = None  # labels that differ from the baseline's
    rows: int = 0
    max_difference: float | None = None  # of scores or values, against the baseline's
    mcnemar_p: float | None = None
    against: str = ""  # the baseline
    flips_onnx: int | None = None  # against the ONNX baseline: what quantising alone changes
    max_difference_onnx: float | None = None
    doubtful: bool = False  # it answers otherwise than the native model, and no rounding explains that
    warnings: tuple[str, ...] = ()  # "108 of 2,000 labels flip though nothing was quantised: a float32 cast ..."


@dataclass(frozen=True, slots=True)
class Footprint:
    """In fresh processes: memory in MB (10^6 bytes), times in ms; medians over the processes, with their range."""

    processes: int
    peak_uss_mb: float | None  # null where the system does not tell
    rss_mb: float | None
    library_mb: float | None  # what importing the library takes
    model_mb: float | None  # what loading and running the model takes
    import_ms: float | None
    load_ms: float | None
    first_ms: float | None
    spread: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    source: str = ""  # /proc/self/smaps_rollup, ...
    uss_mb: float | None = None  # after the calls, where the peak may have been before
    pss_mb: float | None = None
    base_mb: float | None = None  # the interpreter, before any import of the scenario's

    @property
    def cold_ms(self) -> float | None:
        parts = (self.import_ms, self.load_ms, self.first_ms)
        return None if None in parts else sum(part for part in parts if part is not None)


@dataclass(frozen=True, slots=True)
class Counts:
    """Of one batch: what the model computes, by bitwatt's rules."""

    flops: int | None = None
    bops: float | None = None
    bytes: int | None = None
    macs: int | None = None
    missing: tuple[str, ...] = ()  # ops without a rule
    source: str = ""  # onnx graph, sklearn rules, torch dispatcher


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of a prediction, timed in a profiled run of its own."""

    name: str  # the node, step or module
    group: str  # preprocess, linear, postprocess
    ms: float  # median, of one batch


@dataclass(frozen=True, slots=True)
class Breakdown:
    batch: int
    stages: tuple[Stage, ...]
    overhead: float | None = None  # profiled over plain, minus 1
    plain_ms: float | None = None  # a call without the profiler
    source: str = ""  # onnxruntime's node profile, pipeline steps, module hooks
    note: str = ""

    def ms(self, group: str) -> float | None:
        return sum(stage.ms for stage in self.stages if stage.group == group) if self.stages else None

    @property
    def unattributed_ms(self) -> float | None:
        return None if self.plain_ms is None else self.plain_ms - sum(stage.ms for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Joules:
    """Energy of one batch. `measured_uj` is null where no counter was read; `cpu_seconds` is never an energy."""

    measured_uj: float | None = None
    cpu_seconds: float | None = None
    source: str = ""  # RAPL, NVML, none: why


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One load that was put on a scenario. Latencies in ms count from the intended arrival."""

    kind: str  # closed, open, probe (of the search for a rate), overload, single-stream, multi-stream, server, offline
    callers: int | None = None
    offered_rate: float | None = None  # per second
    achieved_rate: float | None = None
    seconds: float = 0.0
    requests: int = 0
    failed: int = 0
    p50_ms: float | None = None
    p90_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    max_ms: float | None = None
    service_p95_ms: float | None = None  # what a closed loop would have told
    uss_mb: float | None = None  # under this load, in the serving process
    saturated: bool = False
    note: str = ""
    mean_ms: float | None = None
    late_ms: float | None = None  # p95 of what idle workers woke too late: the generator's share of the latency
    dropped: int = 0  # of the failed: given up since they had waited too long
    rows: int = 1  # of each request
    slo_ms: float | None = None  # the statistic that the SLO (its first condition) is about
    holds: bool | None = None  # the SLO


@dataclass(frozen=True, slots=True)
class Load:
    points: tuple[LoadPoint, ...] = ()
    slo: str = ""
    highest_rate: float | None = None  # that holds the SLO
    recovered: bool | None = None  # after saturation
    recovery_s: float | None = None
    source: str = ""  # bitwatt's generator, mlcommons-loadgen 6.0.17
    note: str = ""
    capacity: float | None = None  # requests answered per second in the best closed loop


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to deploy the case, and everything found out about it but its times."""

    name: str
    runtime: str = ""
    failure: str = ""  # why it cannot be deployed so; then the rest is empty
    artefact: Artefact | None = None
    quality: Quality | None = None
    footprint: Mapping[int, Footprint] = field(default_factory=dict)  # by batch size
    counts: Mapping[int, Counts] = field(default_factory=dict)  # by batch size
    breakdown: Mapping[int, Breakdown] = field(default_factory=dict)  # by batch size
    joules: Mapping[str, Joules] = field(default_factory=dict)  # by "batch x threads", as `cell` writes it
    load: Load | None = None
    baseline: str = ""  # native, onnx: what the others are held against
    edges: Checked | None = None  # whether it answers unusual rows as the native one does


def cell(batch: int, threads: int) -> str:
    """One setting that all scenarios are timed in."""
    return f"{batch}x{threads}"


@dataclass(frozen=True, slots=True)
class Call:
    """One timed call: a row of stat_benchmark_runs.csv."""

    process: int
    block: int
    position: int  # in the block
    scenario: str
    batch: int
    threads: int
    call: int
    wall_ns: int
    cpu_ns: int
    warm: bool = True  # False: before the times were steady, kept and not used


#: The scenario that is timed a second time under this name's end: the A/A control.
CONTROL = "#control"


@dataclass(frozen=True, slots=True)
class Plan:
    """How thoroughly to measure."""

    batches: tuple[int, ...] = (1, 32, 256)
    threads: tuple[int, ...] = (1,)
    processes: int = 15  # fresh ones, which are what repeats
    blocks: int = 20
    block_ms: float = 3.0
    cell_s: float = 5.0  # a process gives one setting no more, but for its first five blocks
    fresh: int = 5  # processes for memory and cold start
    load_seconds: float = 3.0
    part_s: float = 0.6  # for a look at where the time of one batch size goes
    seed: int = 0
    scenarios: tuple[str, ...] = ()  # empty: all that apply
    loaded: bool = True  # put load on them
    mlperf: bool = True  # also by MLPerf's LoadGen, where it is installed
    slo: str = ""
    rates: tuple[float, ...] = ()
    callers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """One line of the production checklist."""

    name: str
    passed: bool | None  # None: could not be found out
    told: str


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that was found out, but the raw times."""

    case: Mapping[str, Any]  # name, class, framework, rows, features, classes, clusters, digests, path
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    plan: Plan
    scenarios: tuple[Scenario, ...]
    started: str
    seconds: float
    surroundings: Mapping[str, float] = field(default_factory=dict)  # load, steal, PSI before and after
    data: Sequence[Checked] = ()  # drift, balance: what the checklist needs of the data
    notes: tuple[str, ...] = ()
    format: int = 1
    calls: int = 0  # that were timed, each a line of stat_benchmark_runs.csv; 0: not known
