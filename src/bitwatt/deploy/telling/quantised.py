"""Was quantisation worthwhile? By measured loss and gain in every setting, and where it was not, why not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bitwatt.deploy.amounts import amount, percent
from bitwatt.deploy.records import Breakdown, Scenario, Study
from bitwatt.deploy.telling.duels import FASTER, SLOWER, Duel
from bitwatt.deploy.telling.ranking import Ranker
from bitwatt.deploy.telling.tradeoffs import Row, baseline
from bitwatt.deploy.telling.words import of_change

_NAMED = re.compile(r"(?i)(?:^|[^a-z])(u?int\d+|[wa]\d+|qdq|quant\w*|fp8|nf4)(?![a-z0-9])")
#: Operators that only change the format of values, by their names.
_CASTS = re.compile(r"(?i)quantize(?!.*(?:matmul|gemm|conv))|dequantize")
#: What a processor that multiplies 8-bit integers faster than floats has among its flags.
_INTEGER_UNITS = ("vnni", "amx_int8", "asimddp", "i8mm", "dotprod")
#: A share of a call's time that is worth a word, and one below which a part is no bottleneck.
_FELT, _SMALL = 0.1, 0.5
#: And the share that parts must account for to be told.
_KNOWN = 0.5


@dataclass(frozen=True, slots=True)
class Worth:
    """`worthwhile` is None where it could not be found out. `loss` and `gain` are shares of one, against the scenario
    of the same runtime in floats."""

    scenario: str
    against: str
    batch: int | None
    threads: int | None
    loss: float | None
    gain: float | None
    worthwhile: bool | None
    told: str
    why: tuple[str, ...] = ()


def quantised(scenario: Scenario) -> bool:
    """Asked to be, or found to be: a scenario that failed to become one is told of too."""
    precision = scenario.artefact.precision if scenario.artefact else None
    integer = precision is not None and (precision.mode.startswith(("int", "uint")) or bool(precision.integer_macs))
    return integer or bool(_NAMED.search(scenario.name))


def worths(study: Study, ranker: Ranker) -> list[Worth]:
    return [one for scenario in study.scenarios if quantised(scenario) for one in _worths(study, ranker, scenario)]


def reference(study: Study, scenario: Scenario) -> str | None:
    """In floats, in the same runtime as far as there is one: else a gain of the runtime would pass for one of the
    format."""
    onnx, native = baseline(study, "onnx"), baseline(study, "native")
    same = onnx is not None and scenario.name.partition("-")[0] == onnx.partition("-")[0]
    return onnx if same else native or onnx


def _worths(study: Study, ranker: Ranker, scenario: Scenario) -> Iterator[Worth]:
    name, artefact = label(scenario), scenario.artefact
    if scenario.failure or artefact is None:
        told = f"{name}: not possible: {scenario.failure or 'there is no artefact'}"
        yield Worth(scenario.name, "", None, None, None, None, False if scenario.failure else None, told)
        return
    if artefact.ranked_as:
        note = artefact.precision.note or f"it is {artefact.ranked_as} under another name"
        yield Worth(
            scenario.name, artefact.ranked_as, None, None, None, None, False, f"{name}: not quantisable: {note}"
        )
        return
    against = reference(study, scenario)
    if against is None or against == scenario.name:
        told = f"{name}: nothing in floats to hold it against"
        yield Worth(scenario.name, "", None, None, None, None, None, told)
        return
    for row in ranker.rows:
        if row["scenario"] == scenario.name:
            yield _worth(study, ranker, scenario, ranker.scenarios[against], row)


def _worth(study: Study, ranker: Ranker, scenario: Scenario, other: Scenario, row: Row) -> Worth:
    rules, batch, threads = ranker.rules, int(row["batch_size"] or 0), int(row["threads"] or 0)
    duel = ranker.duels.get((scenario.name, other.name, batch, threads))
    loss, metric = lost(ranker, scenario, other)
    gain = None if duel is None else 1 - duel.ratio
    where = f"batch {batch}" + (f", {amount(threads, 'thread')}" if len(study.plan.threads) > 1 else "")
    parts = [f"{metric} not known" if loss is None else f"{of_change(-loss)} {metric}"]
    parts.append("latency not known" if duel is None or gain is None else f"{of_change(-gain)} latency {_told(duel)}")
    head = f"{label(scenario)}, {where}: {', '.join(parts)} against {other.name}"
    if duel is None or gain is None:
        return Worth(scenario.name, other.name, batch, threads, loss, gain, None, f"{head}: could not be found out")
    shown = duel.verdict == FASTER
    cheap = loss is None or loss < rules.max_loss
    if shown and gain > rules.min_gain and loss is None:
        told = f"{head}: quicker, but what it loses is not known"
        return Worth(scenario.name, other.name, batch, threads, loss, gain, None, told)
    if shown and gain > rules.min_gain and cheap:
        return Worth(scenario.name, other.name, batch, threads, loss, gain, True, f"{head}: worthwhile")
    why = []
    if not cheap:
        why.append(f"it loses {percent(loss or 0)} and may lose less than {percent(rules.max_loss)}")
    if not shown:
        why.append("it is slower" if duel.verdict == SLOWER else "no gain of latency is shown")
    elif gain <= rules.min_gain:
        why.append(f"it gains {percent(gain)}, which is not more than {percent(rules.min_gain)}")
    reasons = tuple(causes(study, scenario, other, batch)) if gain <= rules.min_gain or not shown else ()
    told = f"{head}: not worthwhile ({'; '.join(why)})"
    return Worth(scenario.name, other.name, batch, threads, loss, gain, False, told, reasons)


def _told(duel: Duel) -> str:
    """The interval of a change of latency; where neighbours made the longer calls wait, also that of CPU time."""
    spent = duel.cpu_ratio if duel.disturbed else None
    return duel.between + (f" ({of_change(spent - 1)} by CPU time)" if spent else "")


def label(scenario: Scenario) -> str:
    """INT8 (onnx-int8): the format that was asked for, and whose it is."""
    found = _NAMED.search(scenario.name)
    mode = scenario.artefact.precision.mode if scenario.artefact else ""
    format = found[1].upper() if found else mode.upper()
    return f"{format} ({scenario.name})" if format else scenario.name


def lost(ranker: Ranker, scenario: Scenario, other: Scenario) -> tuple[float | None, str]:
    """Of quality; where no labels are given, the share of predictions that flip: no more than that can be lost."""
    a, b = scenario.quality, other.quality
    if a is None or b is None:
        return None, "accuracy"
    loss = ranker.rules.loss(a.value, b.value)
    flips = a.flips_onnx if other.baseline == "onnx" and a.flips_onnx is not None else a.flips
    if loss is None and flips is not None and a.rows:
        return flips / a.rows, "labels kept"
    return loss, a.metric


def causes(study: Study, scenario: Scenario, other: Scenario, batch: int) -> Iterator[str]:
    """Why integers were not quicker, as far as it was measured."""
    assert scenario.artefact is not None
    precision = scenario.artefact.precision
    share = precision.integer_share
    if precision.integer_nodes == 0:
        yield f"no integer kernel: 0 of {precision.nodes} nodes are integer"
    elif share is not None and share < 1 - _FELT:
        yield f"only {percent(share)} of the multiply-accumulates are in integers"
    on_gpu = "cuda" in str(scenario.artefact.options.get("device", ""))
    flags = None if on_gpu else study.machine.get("flags")
    if flags is not None and not any(unit in flags for unit in _INTEGER_UNITS):
        yield "this processor has no VNNI or its like: products of 8-bit integers are no quicker than those of floats"
    if (casts := _casting(scenario.breakdown.get(batch))) is not None and casts > _FELT:
        yield f"quantising and dequantising values takes {percent(casts)} of a call"
    linear = _linear(other.breakdown.get(batch))
    if linear is not None and linear < _SMALL:
        yield f"the linear operators are only {percent(linear)} of a call of {other.name}: little can be gained there"
    before = other.artefact.precision.nodes if other.artefact else None
    if before is not None and precision.nodes is not None and precision.nodes > before:
        yield f"the graph has {precision.nodes} nodes instead of {before}"


def _whole(parts: Breakdown | None) -> float | None:
    """Of a call; None where parts account for less than half of it: the rest may be neighbours', and shares of it would
    say nothing."""
    if parts is None or not parts.stages:
        return None
    known = sum(stage.ms for stage in parts.stages)
    whole = parts.plain_ms or known
    return whole if whole and known >= _KNOWN * whole else None


def _casting(parts: Breakdown | None) -> float | None:
    whole = _whole(parts)
    if whole is None or parts is None:
        return None
    return sum(stage.ms for stage in parts.stages if _CASTS.search(stage.name)) / whole


def _linear(parts: Breakdown | None) -> float | None:
    whole = _whole(parts)
    return None if whole is None or parts is None else (parts.ms("linear") or 0) / whole
