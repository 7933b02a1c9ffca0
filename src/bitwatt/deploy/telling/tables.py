"""Findings as tables of cells that people read, and as sentences. Terminal, markdown and page only draw them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bitwatt.comparing.tables import GONE, LESS, MORE, Column, Table
from bitwatt.deploy.amounts import amount, percent
from bitwatt.deploy.records import SAME_ROWS, Checked
from bitwatt.deploy.telling.duels import EQUIVALENT, FASTER, SLOWER, Duel
from bitwatt.deploy.telling.ranking import number, setting_of
from bitwatt.deploy.telling.summary import settings
from bitwatt.deploy.telling.tradeoffs import Row, baseline
from bitwatt.deploy.telling.words import listed, megabytes, milliseconds, size
from bitwatt.reports.tables import UNKNOWN
from bitwatt.units import format_count, format_duration

if TYPE_CHECKING:
    from bitwatt.deploy.telling.findings import Findings

#: How an item of the checklist is marked.
MARKS = {True: "✓", False: "✗", None: "?"}
WORDS = {True: "passed", False: "failed", None: "unknown"}


def headline(findings: Findings) -> str:
    choice = findings.recommended
    return f"Take {choice.scenario}: {choice.why}" if choice.scenario else f"Take none: {choice.why}"


def elsewhere(findings: Findings) -> list[str]:
    """Settings in which another would be taken."""
    here = findings.recommended.scenario
    others: dict[str, list[str]] = {}
    for setting, choice in findings.recommended_by_setting.items():
        if choice.scenario is not None and choice.scenario != here:
            others.setdefault(choice.scenario, []).append(where(findings, setting))
    return [f"at {listed(places)}, take {name}" for name, places in others.items()]


def where(findings: Findings, setting: tuple[int, int]) -> str:
    threads = f", {amount(setting[1], 'thread')}" if len(findings.study.plan.threads) > 1 else ""
    return f"batch {setting[0]}{threads}"


def about(findings: Findings) -> str:
    case = findings.study.case
    parts = [str(case.get("name") or "model"), str(case.get("class") or "")]
    for name, one in (("rows", "row"), ("features", "feature")):
        if isinstance(number := case.get(name), int):
            parts.append(amount(number, one))
    classes = case.get("classes")
    if isinstance(classes, list | tuple) or (isinstance(classes, int) and not isinstance(classes, bool)):
        count = classes if isinstance(classes, int) else len(classes)
        parts.append(amount(count, "cluster") if case.get("clusters") else amount(count, "class", "classes"))
    parts += [
        findings.study.started[:19].replace("T", " "),
        f"measured in {format_duration(round(findings.study.seconds, 1))}",
    ]
    return " · ".join(filter(None, parts))


def tables(findings: Findings) -> list[Table]:
    made = [scenarios(findings, setting) for setting in settings(findings.study)]
    return [table for table in made if table.rows]


def scenarios(findings: Findings, setting: tuple[int, int]) -> Table:
    """Without numbers that nobody has: a regressor has no labels to flip."""
    study = findings.study
    native, onnx = baseline(study, "native"), baseline(study, "onnx")
    against = [(name, spare) for name, spare in ((native, 0), (onnx, 1)) if name]
    rows = [row for row in findings.rows if setting_of(row) == setting]
    metric = next((str(row["metric"]) for row in rows if row["metric"]), "accuracy")
    columns = (
        Column(where(findings, setting), left=True), Column("in", left=True, spare=4, firm=True), Column("latency"),
        Column("p95", spare=7), *(Column(f"vs {name}", left=True, spare=spare, firm=True) for name, spare in against),
        Column("rows/s", spare=6), Column(metric, spare=0), Column("flips", spare=3), Column("memory", spare=2),
        Column("size", spare=5), Column("cold start", spare=5), Column("CPU", spare=8),
    )  # fmt: skip
    fought = {(one.scenario, one.against): one for one in findings.duels if (one.batch, one.threads) == setting}
    made, tones = [], []
    for row in rows:
        name = str(row["scenario"])
        compared = [_verdict(name, other, fought.get((name, other))) for other, _ in against]
        made.append((
            name, str(row["precision_mode"] or UNKNOWN), milliseconds(number(row, "p50_ms")),
            milliseconds(number(row, "p95_ms")), *compared, _count(row, "throughput_samples_per_sec"),
            _metric(row), _count(row, "flips"), _of(row, "memory_mb", megabytes), _of(row, "artefact_bytes", size),
            milliseconds(number(row, "cold_start_ms")), _of(row, "cpu_percent_avg", lambda value: percent(value / 100)),
        ))  # fmt: skip
        first = fought.get((name, against[0][0])) if against else None
        tones.append({FASTER: LESS, SLOWER: MORE}.get(first.verdict, "") if first else GONE if row["ranked_as"] else "")
    known = [i for i, one in enumerate(columns) if not made or one.left or any(row[i] != UNKNOWN for row in made)]
    shown = tuple(tuple(row[i] for i in known) for row in made)
    return Table(where(findings, setting), tuple(columns[i] for i in known), shown, tuple(tones))


def _verdict(name: str, other: str, duel: Duel | None) -> str:
    if duel is None:
        return "" if name == other else UNKNOWN
    if duel.verdict in (FASTER, SLOWER):
        quick = duel.verdict == FASTER
        said = f"{1 / duel.ratio if quick else duel.ratio:.3g}× {duel.verdict}"
        if not duel.disturbed or not duel.cpu_ratio:
            return said
        return f"{said}, CPU {1 / duel.cpu_ratio if quick else duel.cpu_ratio:.3g}×"
    return "equal" if duel.verdict == EQUIVALENT else "no difference"


def _of(row: Row, column: str, tell: object) -> str:
    value = number(row, column)
    return UNKNOWN if value is None else str(tell(value)) if callable(tell) else UNKNOWN


def _count(row: Row, column: str) -> str:
    return _of(row, column, lambda value: format_count(float(f"{value:.3g}")))


def _metric(row: Row) -> str:
    return _of(row, "accuracy", lambda value: f"{value:.4g}")


def failures(findings: Findings) -> list[tuple[str, str]]:
    """What cannot be deployed, or is not what its name says: (scenario, why)."""
    told = [(one.name, one.failure) for one in findings.study.scenarios if one.failure]
    for one in findings.study.scenarios:
        if one.artefact is not None and one.artefact.ranked_as:
            told.append((one.name, f"ranked as {one.artefact.ranked_as}: {one.artefact.precision.note}"))
    return told


def selected(findings: Findings) -> list[tuple[str, str, str, str]]:
    """(need, scenario, why, rule)."""
    return [(one.need, one.scenario or "none", one.why, one.rule) for one in findings.selection]


def quantisation(findings: Findings) -> list[str]:
    return [f"{one.told}{': ' if one.why else ''}{'; '.join(one.why)}" for one in findings.worths]


def warnings(findings: Findings) -> Iterator[str]:
    """What the reader must know before the numbers: labels that flip without a reason, rows that both calibrated
    and judged, a machine that was not quiet."""
    for one in findings.study.scenarios:
        for told in one.quality.warnings if one.quality is not None else ():
            yield f"{one.name}: {told}"
        for told in one.artefact.notes if one.artefact is not None else ():
            if SAME_ROWS in told:
                yield f"{one.name}: {told}"
    yield from findings.study.notes
    if stretched := sum(one.disturbed and one.verdict == FASTER for one in findings.duels):
        yield (
            "neighbours made long calls wait longer than short ones: "
            f"{amount(stretched, 'ratio differs', 'ratios differ')} by more than a quarter from those of CPU time, "
            "which stand beside them"
        )


def remarks(findings: Findings) -> Iterator[str]:
    """How the numbers came."""
    plan = findings.study.plan
    yield (
        f"ratios of block medians over {amount(findings.processes, 'process', 'processes')} of "
        f"{amount(plan.blocks, 'block')}, all scenarios in random order in each; 95 % intervals by hierarchical "
        f"bootstrap; equal: shown to be within ±{percent(findings.rules.margin)}"
    )
    if (control := findings.control) is not None:
        yield f"A/A control: {control.told}"
    yield f"how it was chosen: {findings.recommended.rule}"
    if all(row["energy_uj_measured"] is None for row in findings.rows):
        source = next((str(row["energy_source"]) for row in findings.rows if row["energy_source"]), "no counter")
        yield f"energy was not measured ({source.partition(' (')[0]}): energy_mj_proxy is a CPU time"
    yield from made(findings)


def made(findings: Findings) -> Iterator[str]:
    """What should be known of how scenarios were made, once for all that share it; but for what is told elsewhere."""
    shared: dict[str, list[str]] = {}
    for one in findings.study.scenarios:
        if one.artefact is not None and not one.failure:
            known = one.artefact.precision.note if one.artefact.ranked_as else None
            for told in one.artefact.notes:
                if SAME_ROWS not in told and told != known:
                    shared.setdefault(told, []).append(one.name)
    yield from (f"{listed(names)}: {told}" for told, names in shared.items())


def checked(findings: Findings) -> list[Checked]:
    return findings.checklist
