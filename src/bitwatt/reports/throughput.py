"""How much was processed a second and what each cost, by the user's phases; and memory of the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from bitwatt.impact.energy import weakest
from bitwatt.observed import Observed
from bitwatt.pricing import MISSING
from bitwatt.readings import APPORTIONED, MODELLED
from bitwatt.records import TensorSpec
from bitwatt.reports.blocks import Block
from bitwatt.reports.data import Data
from bitwatt.reports.energy import joules
from bitwatt.units import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from bitwatt.reports.model import View

#: Phases that have a line.
_LISTED = 5
_DONE = {"fit": "fitted", "predict": "predicted", "transform": "transformed", "score": "scored"}
_ESTIMATORS = ("sklearn.", "xgboost.", "lightgbm.", "catboost.")


def block(view: View) -> Block | None:
    observed = _with_rows(view)
    data = Data.of(view.run)
    if observed is None or not (observed.processed or observed.device_memory or observed.device_peak):
        if data is None or not data.is_much:
            return None
        observed = observed or Observed()
    facts = [(f"in {phase}", _rates(amounts, seconds)) for phase, amounts, seconds in _phases(observed)[:_LISTED]]
    each = _each(view, observed)
    facts += _told_each(each)
    if observed.device_memory or observed.device_peak:
        facts.append(("device memory", _memory(observed)))
    if data is not None:
        facts.append(("data", str(data)))
    whole = {name: observed.total(name) for name in observed.names}
    headline = _rates(whole, view.run.seconds) if whole else "samples and tokens: not counted"
    if whole:
        headline += f" over {format_duration(_short(view.run.seconds))}"
    return Block("throughput", "Throughput", headline, tuple(facts), _document(view, observed, data, each))


def _with_rows(view: View) -> Observed | None:
    """Beside what was counted, the rows that were passed to estimators: of the calls that the program made itself, not
    of those that estimators make of each other."""
    observed = view.run.observed
    rows: dict[str, dict[str, int]] = {}
    for entry in view.entries:
        phase, op = entry.row.phase, entry.op
        given = dict(op.args).get("X")
        if op.name.startswith(_ESTIMATORS) and "." not in entry.row.scope and isinstance(given, TensorSpec):
            method = op.name.rpartition(".")[2]
            if method == phase.rpartition("/")[2] and given.shape:
                amounts, name = rows.setdefault(phase, {}), f"rows {_DONE.get(method, method)}"
                amounts[name] = amounts.get(name, 0) + given.shape[0] * entry.row.calls
    if observed is None or not rows:
        return observed
    phases = {**observed.processed, **rows}
    merged = {phase: {**rows.get(phase, {}), **observed.processed.get(phase, {})} for phase in phases}
    return replace(observed, processed=merged)


def _phases(observed: Observed) -> list[tuple[str, dict[str, int], float]]:
    """Those of the user's phases in which something was processed, and which ended: what, and in how long."""
    found = [(name, observed.inside(name), seconds) for name, (_, seconds) in observed.phases.items()]
    return sorted((one for one in found if one[1] and one[2] > 0), key=lambda one: -one[2])


def _rates(amounts: dict[str, int], seconds: float) -> str:
    told = []
    for name, n in amounts.items():
        rate = f" ({format_count(_short(n / seconds))}/s)" if seconds > 0 else ""
        told.append(f"{n:,} {name}{rate}")
    return ", ".join(told)


@dataclass(frozen=True, slots=True)
class Each:
    """What 1,000 of something took: of the phases that processed them, or of the whole run, where these are not known.
    Amounts are None where nobody knows them."""

    phases: tuple[str, ...] | None
    energy_j: float | None
    how: str
    flops: float | None
    is_least: bool  # some work has no rule

    def __str__(self) -> str:
        mark = {MODELLED: "modelled ", APPORTIONED: "~"}.get(self.how, "")
        told = [] if self.energy_j is None else [f"{mark}{joules(self.energy_j)}"]
        if self.flops is not None:
            told.append(f"{'≥ ' if self.is_least else ''}{format_count(_short(self.flops), 'FLOP')}")
        return " · ".join(told)


def _each(view: View, observed: Observed) -> dict[str, Each]:
    """By name. A phase in which some were processed is paid for by those alone: scoring has no part in fitting."""
    work = cast("dict[str, int]", view.priced["flops"].by("phase"))
    ratios = view.energy.phases if view.energy is not None else {}
    used = view.energy.used if view.energy is not None else None
    unmetered, found = used is None or used.energy_j is None, dict[str, Each]()
    for name in observed.names:
        if not (n := observed.total(name)):
            continue
        places = tuple(phase for phase, amounts in observed.processed.items() if amounts.get(name))
        inside = [
            phase
            for phase in {**work, **ratios}
            if any(phase == place or phase.startswith(f"{place}/") for place in places)
        ]
        known = [ratios[phase] for phase in inside if phase in ratios and ratios[phase].energy_j is not None]
        counted = unmetered and any(work.get(phase) for phase in inside)
        if all(places) and (known or counted):
            energy = sum(one.energy_j or 0.0 for one in known) if known else None
            how, flops = weakest(one.how for one in known), sum(work.get(phase, 0) for phase in inside)
            told: tuple[str, ...] | None = places
        else:
            energy, how = (used.energy_j, used.how) if used is not None else (None, "")
            flops, told, inside = view.priced["flops"].total, None, list(work)
        missing = any(entry.status == MISSING and entry.row.phase in inside for entry in view.entries)
        per = 1000 / n
        each = Each(told, None if energy is None else energy * per, how, flops * per if view.entries else None, missing)
        if each.energy_j is not None or each.flops is not None:
            found[name] = each
    return found


def _told_each(each: Mapping[str, Each]) -> list[tuple[str, str]]:
    return [
        (f"per 1,000 {name}" if one.phases else f"the whole run, per 1,000 {name}", str(one))
        for name, one in each.items()
    ]


def _memory(observed: Observed) -> str:
    told = [] if observed.device_peak is None else [f"{format_bytes(observed.device_peak)} at most"]
    ordered = sorted(observed.device_memory.items(), key=lambda item: -item[1])[:_LISTED]
    told += [f"{phase or 'other'} ≥ {format_bytes(n)}" for phase, n in ordered if n]
    return ", ".join(told)


def _document(view: View, observed: Observed, data: Data | None, each: Mapping[str, Each]) -> dict[str, Any]:
    seconds = view.run.seconds
    return {
        "processed": {
            name: {"count": observed.total(name), "per_second": observed.total(name) / seconds if seconds > 0 else None}
            for name in observed.names
        },
        "by_phase": {
            phase: {name: {"count": n, "per_second": n / spent} for name, n in amounts.items()}
            for phase, amounts, spent in _phases(observed)
        },
        "per_1000": {name: asdict(one) for name, one in each.items()},
        "device_memory_bytes": dict(observed.device_memory),
        "device_peak_bytes": observed.device_peak,
        "data": None if data is None else asdict(data),
    }


def _short(amount: float) -> float:
    return float(f"{amount:.3g}")
