"""Findings as charts: trade-offs between two quantities, latencies with their intervals, parts of a call, load."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from bitwatt import charts
from bitwatt.charts import MUTED, Bar, Chart, Dot, Piece, Series, Stack, color
from bitwatt.comparing.drawing import plain
from bitwatt.deploy import intervals
from bitwatt.deploy.records import Breakdown, LoadPoint
from bitwatt.deploy.telling.ranking import number, setting_of
from bitwatt.deploy.telling.tables import where
from bitwatt.deploy.telling.words import milliseconds, times
from bitwatt.reports.html.layout import figure, switch

if TYPE_CHECKING:
    from bitwatt.deploy.telling.findings import Findings

Setting = tuple[int, int]
#: What is drawn against what: (title, x, its unit, more of it is better, y, its unit, more of it is better).
TRADE_OFFS = (
    ("accuracy", "latency_ms_per_sample", "ms per row", False, "accuracy", "", True),
    ("memory", "memory_mb", "MB", False, "throughput_samples_per_sec", "rows/s", True),
    ("energy", "energy", "", False, "throughput_samples_per_sec", "rows/s", True),
)
_GROUPS = {"preprocess": "preprocessing", "linear": "linear operator", "postprocess": "postprocessing"}


def trade_offs(findings: Findings, setting: Setting) -> Iterator[tuple[str, str]]:
    """(title, markup) of each plot that has something in it."""
    for name, x, x_unit, more_x, y, y_unit, more_y in TRADE_OFFS:
        if name == "energy":
            x, x_unit = _energy(findings)
        dots = [
            Dot(plain(str(row["scenario"])), across, up, plain(str(row["scenario"])))
            for row in findings.ranker.rows
            if setting_of(row) == setting
            and (across := number(row, x)) is not None
            and (up := number(row, y)) is not None
        ]
        if not dots:
            continue
        metric = next((str(row["metric"]) for row in findings.rows if row["metric"]), "accuracy")
        names = {"accuracy": plain(metric), "latency_ms_per_sample": "latency", "memory_mb": "peak memory (USS)",
                 "throughput_samples_per_sec": "throughput", "energy_uj_measured": "energy of a call",
                 "energy_mj_proxy": "latency × CPU utilisation"}  # fmt: skip
        edge = charts.front(dots, more_x=more_x, more_y=more_y)
        title = f"{names[y][:1].upper()}{names[y][1:]} against {names[x]}, {where(findings, setting)}"
        wide = min(dot.x for dot in dots) > 0 and max(dot.x for dot in dots) > 20 * min(dot.x for dot in dots)
        yield title, figure(_scatter(title, dots, (names[x], x_unit), (names[y], y_unit), wide, edge))


def _energy(findings: Findings) -> tuple[str, str]:
    """Measured where it was, else the CPU time that others call a proxy: said in the unit that it has."""
    measured = any(row["energy_uj_measured"] is not None for row in findings.rows)
    return ("energy_uj_measured", "µJ") if measured else ("energy_mj_proxy", "ms × %")


def _scatter(
    title: str, dots: list[Dot], x: tuple[str, str], y: tuple[str, str], wide: bool, edge: list[Dot]
) -> Callable[[int], Chart]:
    return lambda width: charts.scatter(title, dots, x, y, log_x=wide, edge=edge, width=width)


def latencies(findings: Findings, settings: list[Setting]) -> str:
    """Against the native baseline, so that all settings have one scale; with the intervals of the ratios."""
    native = findings.ranker.native
    if native is None:
        return ""
    bars = []
    for setting in settings:
        name = where(findings, setting)
        for row in findings.ranker.rows:
            scenario = str(row["scenario"])
            duel = findings.ranker.duels.get((scenario, native, *setting))
            if setting_of(row) != setting or (duel is None and scenario != native):
                continue
            took = milliseconds(number(row, "p50_ms"))
            if duel is None:
                bars.append(Bar(name, plain(scenario), 1.0, f"{took} a call: the baseline"))
            else:
                known = intervals.tells(duel.low, duel.high)
                said = f"{took} a call, {times(duel.ratio)} as long{'' if known else f' ({intervals.TOO_FEW})'}"
                ends = (duel.low, duel.high) if known else (None, None)
                bars.append(Bar(name, plain(scenario), duel.ratio, f"{said}: {duel.verdict}", *ends))
    title = f"Latency against {plain(native)}, which is 1; lines are 95 % intervals"
    return figure(lambda width: charts.bars(title, bars, "times as long", width=width)) if len(bars) > 1 else ""


def parts_of_calls(findings: Findings, batches: tuple[int, ...]) -> str:
    choices = []
    for batch in batches:
        stacks = [
            stack
            for one in findings.study.scenarios
            if batch in one.breakdown and (stack := _stack(one.name, one.breakdown[batch])) is not None
        ]
        if stacks:
            choices.append((f"batch {batch}", figure(_stacks(f"Parts of a call, batch {batch}", stacks))))
    return switch("parts-of-calls", "Batch", choices) if any(html for _, html in choices) else ""


def _stack(name: str, parts: Breakdown) -> Stack | None:
    known = [(title, parts.ms(group) or 0.0, color(i)) for i, (group, title) in enumerate(_GROUPS.items())]
    known.append(("outside of it", max(parts.unattributed_ms or 0.0, 0.0), MUTED))
    pieces = tuple(Piece(title, ms, milliseconds(ms), fill) for title, ms, fill in known)
    stack = Stack(plain(name), pieces)
    return stack if stack.whole > 0 else None


def _stacks(title: str, rows: list[Stack]) -> Callable[[int], Chart]:
    return lambda width: charts.stacks(title, rows, width=width)


def loads(findings: Findings) -> str:
    """Arrivals that do not wait for answers, and callers that do."""
    choices = []
    for title, x, kinds in (
        ("p95 by rate of arrivals", "requests a second", ("open",)),
        ("p95 by callers", "callers at once", ("closed",)),
    ):
        series = [
            Series(plain(one.name), tuple(sorted(points)))
            for one in findings.study.scenarios
            if one.load is not None and (points := list(_points(one.load.points, kinds)))
        ]
        if series:
            choices.append((title, figure(_lines(f"{title}, from the intended arrival", series, x))))
    return switch("loads", "Load", choices) if any(html for _, html in choices) else ""


def _points(points: tuple[LoadPoint, ...], kinds: tuple[str, ...]) -> Iterator[tuple[float, float]]:
    for point in points:
        at = point.callers if kinds == ("closed",) else point.offered_rate
        if point.kind in kinds and at is not None and point.p95_ms:
            yield float(at), point.p95_ms


def _lines(title: str, series: list[Series], x: str) -> Callable[[int], Chart]:
    return lambda width: charts.lines(title, series, x, "p95 (ms)", unit="ms", log=True, width=width)
