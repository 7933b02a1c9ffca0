"""The production checklist, ticked from what was measured of the scenario that is recommended: passed, failed, or could
not be found out, each with the number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from bitwatt.deploy.amounts import amount, percent
from bitwatt.deploy.records import Checked, LoadPoint, Quality, Scenario
from bitwatt.deploy.telling.quantised import lost
from bitwatt.deploy.telling.ranking import number
from bitwatt.deploy.telling.selection import chosen_row, usual
from bitwatt.deploy.telling.tradeoffs import SAYING, calm
from bitwatt.deploy.telling.words import megabytes, milliseconds, of_change, rate

if TYPE_CHECKING:
    from bitwatt.deploy.telling.findings import Findings

#: Iterations that a time needs, and rows of a class below which its recall says little.
_LEAST = 10
#: What those who looked at the data called their findings.
_OF_DATA = ("edge-case rows", "input drift", "class balance")


def checklist(findings: Findings) -> list[Checked]:
    return list(_items(findings))


def _items(findings: Findings) -> Iterator[Checked]:
    name = findings.recommended.scenario
    scenario = next((one for one in findings.study.scenarios if one.name == name), None)
    yield _iterations(findings)
    yield _control(findings)
    if scenario is None:
        for what in ("accuracy tolerance", "per-class and balanced accuracy", *_OF_DATA[:2], "p95 under load",
                     "memory under concurrency", "cold start", "energy"):  # fmt: skip
            yield Checked(what, None, "no scenario is recommended")
    else:
        yield _tolerance(findings, scenario)
        yield _classes(findings, scenario)
        yield _edges(findings, scenario)
        yield from _of_data(findings)
        yield _under_load(findings, scenario)
        yield _memory(findings, scenario)
        yield _cold(findings, scenario)
        yield _energy(findings, scenario)
    yield _versions(findings)


def _iterations(findings: Findings) -> Checked:
    counts = [int(row["calls"] or 0) for row in findings.rows if not row["failure"]]
    least = min(counts, default=0)
    processes = amount(findings.processes, "process", "processes")
    told = f"{amount(least, 'timed call')} of each scenario and setting at least, in {processes}"
    return Checked(f"{_LEAST}+ iterations", least >= _LEAST if counts else None, told)


def _control(findings: Findings) -> Checked:
    control = findings.control
    if control is None or not control.comparisons:
        return Checked("A/A control", None, "no scenario was timed twice")
    return Checked("A/A control", control.wrong == 0, control.told)


def _tolerance(findings: Findings, scenario: Scenario) -> Checked:
    what, native = "accuracy tolerance", findings.ranker.native
    limit = f"may lose less than {percent(findings.rules.max_loss)}"
    if native is None:
        return Checked(what, None, "there is no native baseline")
    if scenario.name == native:
        return Checked(what, True, f"{scenario.name} is the model as it was trained")
    loss, metric = lost(findings.ranker, scenario, findings.ranker.scenarios[native])
    if loss is None:
        return Checked(what, None, f"what {scenario.name} loses is not known: give labels, as --target or in the data")
    flips = scenario.quality.flips if scenario.quality else None
    changed = (
        "" if flips is None or scenario.quality is None else f"; {flips:,} of {scenario.quality.rows:,} labels flip"
    )
    return Checked(what, loss < findings.rules.max_loss, f"{of_change(-loss)} {metric}, {limit}{changed}")


def _classes(findings: Findings, scenario: Scenario) -> Checked:
    """Against the native baseline: accuracy may stay while one class is lost."""
    what, found = "per-class and balanced accuracy", scenario.quality
    if found is None or found.balanced is None or not found.per_class:
        return Checked(what, None, "no labels of classes were given")
    native = findings.ranker.scenarios.get(findings.ranker.native or "")
    before = native.quality if native is not None else None
    told = f"balanced {found.balanced:.4g}, lowest {_lowest(found)}"
    if before is None or before.balanced is None or native is scenario:
        return Checked(what, True, told)
    falls = {
        name: before.per_class[name] - value for name, value in found.per_class.items() if name in before.per_class
    }
    worst = max(falls, key=lambda name: falls[name], default=None)
    told += f"; balanced {of_change(found.balanced - before.balanced)} against {native.name if native else ''}"
    if worst is not None and falls[worst] > 0:
        told += f", class {worst} {of_change(-falls[worst])}"
    passed = before.balanced - found.balanced < findings.rules.max_loss
    return Checked(what, passed, told)


def _lowest(found: Quality) -> str:
    name = min(found.per_class, key=lambda one: found.per_class[one])
    return f"{found.per_class[name]:.4g} (class {name})"


def _edges(findings: Findings, scenario: Scenario) -> Checked:
    """Of the recommended one; of the others only who does not pass."""
    what = _OF_DATA[0]
    if scenario.edges is None:
        tried = (one for one in findings.study.data if one.name == what)  # of all at once
        return next(tried, Checked(what, None, "no edge-case rows were tried"))
    others = [
        one.name
        for one in findings.study.scenarios
        if one.edges is not None and one.edges.passed is False and one.name != scenario.name
    ]
    aside = f" (others that differ: {', '.join(others)})" if others else ""
    return replace(scenario.edges, told=f"{scenario.name}: {scenario.edges.told}{aside}")


def _of_data(findings: Findings) -> Iterator[Checked]:
    given = {one.name: one for one in findings.study.data if one.name != _OF_DATA[0]}
    why = "not held against training data: give it with --train"
    yield given.pop("input drift", Checked("input drift", None, why))
    yield from given.values()


def _under_load(findings: Findings, scenario: Scenario) -> Checked:
    what, load = "p95 under load", scenario.load
    points = [one for one in load.points if one.p95_ms is not None and one.kind in SAYING] if load is not None else []
    if load is None or not points:
        return Checked(what, None, load.note if load is not None and load.note else "no load was put on it")
    failed, most = sum(one.failed for one in points if not one.saturated), calm(points)
    if most is None:
        return Checked(what, False, f"saturated at every load, from {_loaded(points[0])} on")
    told = f"{milliseconds(most.p95_ms)} at {_loaded(most)}"
    if load.recovered is not None:
        told += ", recovered after saturation" if load.recovered else ", did not recover after saturation"
    told += f", {amount(failed, 'request')} failed" if failed else ""
    passed = load.recovered is not False and not failed
    if load.slo:
        holds = load.highest_rate is not None
        highest = f"up to {rate(load.highest_rate)}" if holds else "at no rate that was tried"
        return Checked(what, passed and holds, f"{load.slo} holds {highest}; {told}")
    return Checked(what, passed, f"{told}; no --slo to hold it against")


def _loaded(point: LoadPoint) -> str:
    if point.offered_rate is not None:
        return f"{rate(point.offered_rate)} ({point.kind})"
    return f"{amount(point.callers or 1, 'caller')} ({point.kind})"


def _memory(findings: Findings, scenario: Scenario) -> Checked:
    what, load = "memory under concurrency", scenario.load
    used = [one for one in load.points if one.uss_mb is not None] if load is not None else []
    one = min((point.uss_mb or 0 for point in used if point.kind == "closed" and point.callers == 1), default=None)
    if not used:
        return Checked(what, None, "not measured under load")
    most = max(point.uss_mb or 0 for point in used)
    told = f"{megabytes(most)} at most"
    if one is None:
        return Checked(what, None, f"{told}; with one caller it is not known")
    growth = findings.rules.growth
    told += f", {megabytes(one)} with one caller; may grow by {percent(growth)}"
    return Checked(what, most <= (1 + growth) * one, told)


def _cold(findings: Findings, scenario: Scenario) -> Checked:
    row = chosen_row(findings.rows, findings.recommended, usual(findings.study))
    cold = None if row is None else number(row, "cold_start_ms")
    if cold is None or row is None:
        return Checked("cold start", None, "not measured")
    parts = ", ".join(f"{name} {milliseconds(number(row, f'{name}_ms'))}" for name in ("import", "load", "first"))
    return Checked("cold start", True, f"{milliseconds(cold)} ({parts})")


def _energy(findings: Findings, scenario: Scenario) -> Checked:
    row = chosen_row(findings.rows, findings.recommended, usual(findings.study))
    measured = None if row is None else number(row, "energy_uj_measured")
    if row is not None and measured is not None:
        return Checked("energy", True, f"{measured:.4g} µJ a call, by {row['energy_source'] or 'a counter'}")
    why = str(row["energy_source"] or "no counter can be read here") if row is not None else "nothing was timed"
    why = why.partition("; CPU seconds")[0]  # which follow with their number
    seconds = None if row is None else number(row, "cpu_seconds")
    told = f"; {milliseconds(1000 * seconds)} of CPU time a call" if seconds is not None else ""
    return Checked("energy", None, f"not measured: {why}{told}")


def _versions(findings: Findings) -> Checked:
    versions = findings.study.versions
    told = ", ".join(f"{name} {version}" for name, version in versions.items())
    return Checked("runtime versions", bool(versions) or None, told or "not recorded")
