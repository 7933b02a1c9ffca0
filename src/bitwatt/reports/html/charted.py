"""A run's data for charts, section by section."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from bitwatt import charts
from bitwatt.charts import Bin, Chart, Piece, Point, Roof, Span, Stack, Tile, color
from bitwatt.pricing import totals
from bitwatt.reports import power as plain
from bitwatt.reports.energy import joules, names
from bitwatt.reports.html.layout import figure, note, plain_table, switch
from bitwatt.reports.html.paint import Paint
from bitwatt.reports.model import Line, View
from bitwatt.reports.requests import SHARES
from bitwatt.reports.roofs import roofs
from bitwatt.served import WIDER
from bitwatt.units import format_bytes, format_count, format_duration

#: Bins of latencies, at most, and number formats that have a piece of their own.
_BINS, _FORMATS = 40, 7


def phases(view: View, paint: Paint) -> str:
    """Every quantity of which phases have shares, under each other: where they differ is what to look at."""

    def row(name: str, amount: Callable[[Line], float | None], show: Callable[[float], str]) -> Stack:
        known = [(line.name, amount(line) or 0) for line in view.phases]
        return Stack(name, tuple(Piece(phase, n, show(n), paint.of(phase)) for phase, n in known))

    rows = [
        row("FLOPs", lambda line: line.amounts.get("flops"), lambda n: format_count(int(n), "FLOP")),
        row("BOPs", lambda line: line.amounts.get("bops"), lambda n: format_count(int(n), "BOP")),
        row("Bytes moved", lambda line: line.bytes_moved, lambda n: format_bytes(int(n))),
        row("Time", lambda line: line.seconds, _time),
        row("GPU time", lambda line: line.device_seconds, _time),
        row("Energy", lambda line: _energy(view, line), joules),
    ]
    if not any(row.whole for row in rows):
        return ""
    return figure(lambda width: charts.stacks("Share of each phase", rows, width=width), paint.stack())


def _energy(view: View, line: Line) -> float | None:
    found = view.energy.phase(line.name) if view.energy is not None else None
    return found.energy_j if found is not None else None


def layers(view: View, paint: Paint) -> str:
    kinds = {name: layer.kind for name, layer in view.run.layers.items()}
    choices = []
    for name, title, unit in (("flops", "FLOPs", "FLOP"), ("bops", "BOPs", "BOP"), ("bytes", "Bytes", "B")):
        tiles = [Tile(line.name, kinds.get(line.name, ""), _amount(line, name)) for line in view.scopes]
        if any(tile.amount for tile in tiles):
            choices.append(
                (title, figure(_treemap(f"Layers by {title if name != 'bytes' else 'bytes moved'}", tiles, unit)))
            )
    return switch("layers-by", "Size of the tiles", choices) if any(html for _, html in choices) else ""


def _amount(line: Line, name: str) -> int:
    return (line.bytes_moved if name == "bytes" else line.amounts.get(name)) or 0


def _treemap(title: str, tiles: list[Tile], unit: str) -> Callable[[int], Chart]:
    return lambda width: charts.treemap(title, tiles, unit, width=width)


def precision(view: View, paint: Paint) -> str:
    """What values carry beside what the machine worked in, by operations and by bits."""
    ran: dict[str, int] = {}
    devices = view.devices
    for part in [*devices.work(view.entries, gpu=True), *devices.work(view.entries, gpu=False)]:
        ran[part.format] = ran.get(part.format, 0) + part.flops
    amounts = {
        "FLOPs, effective": ("FLOP", _by_precision(view, "flops")),
        "FLOPs, executed": ("FLOP", ran),
        "BOPs, effective": ("BOP", _by_precision(view, "bops")),
        "BOPs, executed": ("BOP", _by_precision(view, "bops:executed")),
    }
    sums: dict[str, float] = {}
    for _, found in amounts.values():
        for name, n in found.items():
            sums[name] = sums.get(name, 0) + n
    ordered = sorted(sums, key=lambda name: -sums[name])
    colors = {name: color(i) if i < _FORMATS else charts.MUTED for i, name in enumerate(ordered)}
    rows = [
        Stack(title, tuple(Piece(name, found.get(name, 0), format_count(found.get(name, 0), unit), colors[name])
                           for name in ordered))
        for title, (unit, found) in amounts.items()
    ]  # fmt: skip
    if not any(row.whole for row in rows):
        return ""
    told = note("Effective is what the values carry; executed is the format the multiplier worked in.")
    drawn = figure(lambda width: charts.stacks("Share of each number format", rows, width=width))
    return told + drawn if drawn else ""


def _by_precision(view: View, model: str) -> dict[str, int]:
    return {str(name): n for name, n in totals(view.run, model).by("precision").items() if n}


def roofline(view: View, paint: Paint) -> str:
    found = roofs(view)
    if isinstance(found, str):
        return note(f"No roofline: {found}.")
    many = f"{found.devices} × " if found.devices > 1 else ""
    peaks = [Roof(peak.format, peak.value * found.devices) for peak in found.peaks]
    points = [Point(one.name, one.intensity, one.rate, paint.of(one.name)) for one in found.phases]
    points += [Point(one.name, one.intensity, None, charts.MUTED) for one in found.ops]
    title = f"{many}{found.device}. Dots are phases; diamonds on the roof are ops, whose time is not known"
    bandwidth = found.bandwidth.value * found.devices
    drawn = figure(lambda width: charts.roofline(title, peaks, bandwidth, points, width=width))
    rows = [
        (f"{peak.format}, {peak.kind}", format_count(_short(peak.value), "FLOP/s"), peak.source) for peak in found.peaks
    ]
    rows.append(("memory", format_count(_short(found.bandwidth.value), "B/s"), found.bandwidth.source))
    about = "Bytes are those that ops read and wrote, as if there were no cache: with one, a point lies further right."
    return drawn + note(about) + plain_table("Roofs", ("Roof of one device", "At best", "Source"), rows, (1,))


def power(view: View, paint: Paint) -> str:
    assert view.energy is not None
    metered, observed = view.energy.metered, view.run.observed
    called = names(metered)
    series = {called.get(device, device): points for device, points in metered.series.items() if len(points) > 1}
    if not series:
        return note("Power over time: no device told it, or the run was too short.")
    entries = observed.spans if observed is not None else ()
    spans = _outer(Span(one.phase, one.begin_s, one.begin_s + one.seconds) for one in entries)
    drawn = figure(
        lambda width: charts.power("Power over time", series, spans, colors=paint.colors, width=width),
        plain.chart(metered.series, called),
    )
    if spans:
        return drawn
    return drawn + note("No phases behind it: when they ran is known of those that you mark, with bitwatt.phase(name).")


def _outer(spans: Iterable[Span]) -> list[Span]:
    """Entries of the outermost phases, or of those inside where there is only one."""
    known = list(spans)
    for depth in range(1, 4):
        level = [span for span in known if span.phase.count("/") == depth - 1]
        if len({span.phase for span in level}) > 1:
            return level
    return [span for span in known if "/" not in span.phase]


def latencies(view: View) -> str:
    requests = view.run.requests
    if requests is None or not requests.latencies:
        return ""
    first, last = min(requests.latencies), max(requests.latencies)
    step = math.ceil((last - first + 1) / _BINS)
    counts: dict[int, int] = {}
    for number, n in requests.latencies.items():
        counts[(number - first) // step] = counts.get((number - first) // step, 0) + n
    low = first - 1
    bins = [Bin(WIDER ** (low + i * step), WIDER ** (low + (i + 1) * step), counts[i]) for i in sorted(counts)]
    marks = [(f"p{100 * share:.0f}", at) for share in SHARES if (at := requests.percentile(share))]
    return figure(lambda width: charts.histogram("How long requests took", bins, marks, width=width))


def _time(seconds: float) -> str:
    return format_duration(_short(seconds))


def _short(amount: float) -> float:
    return float(f"{amount:.3g}")
