"""hardware_tradeoffs_summary.json: the best in every quantity with whom it is not told from, the Pareto set, and what
to take. A pure function of the findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bitwatt.comparing.pareto import Axis, Front, front
from bitwatt.deploy.documents import as_json
from bitwatt.deploy.records import Study, cell
from bitwatt.deploy.telling.ranking import DIMENSIONS, Best, Ranker, number, setting_of
from bitwatt.deploy.telling.selection import Choice, usual
from bitwatt.deploy.telling.tradeoffs import Row

if TYPE_CHECKING:
    from bitwatt.deploy.telling.findings import Findings

NAME = "hardware_tradeoffs_summary.json"
AXES = (
    Axis("accuracy", "", lower=False),
    Axis("latency_ms_per_sample", "ms"),
    Axis("memory_mb", "MB"),
)
_LATENCY = next(one for one in DIMENSIONS if one.name == "best_latency")
#: Stands for the first where there are no labels to be accurate about.
_FLIPS = Axis("flips", "")


def settings(study: Study) -> list[tuple[int, int]]:
    return [(batch, threads) for threads in study.plan.threads for batch in study.plan.batches]


def pareto(ranker: Ranker, setting: tuple[int, int]) -> tuple[Front, tuple[str, ...]]:
    """The front in one setting, and those that are beaten only by what the measurements cannot tell from them."""
    rows = {str(row["scenario"]): row for row in ranker.rows if setting_of(row) == setting}
    axes = _axes(list(rows.values()))
    found = front(axes, {name: {a.name: number(row, a.name) for a in axes} for name, row in rows.items()})
    told = [one for axis in axes for one in DIMENSIONS if one.column == axis.name]
    undecided = tuple(
        point.name
        for point in found.points
        if point.beaten_by
        and not any(
            ranker.tells_apart(dimension, rows[other], rows[point.name])
            for other in point.beaten_by
            for dimension in told
        )
    )
    return found, undecided


def _axes(rows: Sequence[Row]) -> tuple[Axis, ...]:
    """Those of which something is known, so that what nobody measured leaves nobody out."""
    first, *others = AXES
    known = [one for one in (first, _FLIPS, *others) if any(number(row, one.name) is not None for row in rows)]
    if first in known and _FLIPS in known:
        known.remove(_FLIPS)
    return tuple(known) if len(known) > 1 else AXES


def document(findings: Findings) -> dict[str, Any]:
    study, ranker = findings.study, findings.ranker
    told: dict[str, Any] = {one.name: _best(ranker.best(one), one.column) for one in DIMENSIONS}
    told["best_by_setting"] = {
        cell(*setting): {one.name: _best(ranker.best(one, setting), one.column) for one in DIMENSIONS}
        for setting in settings(study)
    }
    told["pareto"] = _pareto(ranker, usual(study))
    told["pareto_by_setting"] = {cell(*setting): _pareto(ranker, setting) for setting in settings(study)}
    told["recommendation"] = _choice(findings.recommended) | {
        "by_setting": {cell(*one): _choice(chosen) for one, chosen in findings.recommended_by_setting.items()}
    }
    told["selection"] = [_choice(one) for one in findings.selection]
    told["quantisation"] = as_json(findings.worths)
    told["checklist"] = as_json(findings.checklist)
    told["comparisons"] = as_json(findings.duels)
    told["control"] = as_json(findings.control)
    told["not_ranked"] = _not_ranked(study)
    told["rules"] = as_json(findings.rules)
    told["case"], told["machine"], told["versions"] = as_json(study.case), as_json(study.machine), dict(study.versions)
    told["started"], told["seconds"], told["notes"] = study.started, study.seconds, list(study.notes)
    return told


def _best(best: Best | None, column: str) -> dict[str, Any] | None:
    """None where no scenario has a value: nobody wins what was not measured."""
    if best is None:
        return None
    return {
        "scenario": best.scenario, "batch_size": best.batch, "threads": best.threads, column: best.value,
        "not_told_apart_from": list(best.tied),
    }  # fmt: skip


def _pareto(ranker: Ranker, setting: tuple[int, int]) -> dict[str, Any]:
    found, undecided = pareto(ranker, setting)
    return {
        "axes": {axis.name: "less is better" if axis.lower else "more is better" for axis in found.axes},
        "batch_size": setting[0],
        "threads": setting[1],
        "front": [point.name for point in found.best],
        "beaten": {point.name: list(point.beaten_by) for point in found.points if point.beaten_by},
        "beaten_within_the_noise": list(undecided),
        "left_out": dict(found.left_out),
    }


def _choice(choice: Choice) -> dict[str, Any]:
    return {
        "need": choice.need, "scenario": choice.scenario, "rule": choice.rule, "reason": choice.why,
        "not_told_apart_from": list(choice.tied),
    }  # fmt: skip


def _not_ranked(study: Study) -> dict[str, str]:
    told = {one.name: one.failure for one in study.scenarios if one.failure}
    for one in study.scenarios:
        if one.artefact is not None and one.artefact.ranked_as:
            told[one.name] = one.artefact.precision.note or f"it is {one.artefact.ranked_as} under another name"
    return told
