"""Watts over time, a line for each device, with the phases behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bitwatt.charts.chart import SAID, WIDE, Chart, Points, Spec, axis, color, ends, given, lite, thinned
from bitwatt.units import format_count, format_duration

#: Of a line; and places along it that tell their value.
_DRAWN, _TOLD = 600, 40
#: Entries of one phase closer than this share of the whole time are drawn as one.
_GAP = 0.004


@dataclass(frozen=True, slots=True)
class Span:
    """One entry of a phase, in seconds since the beginning."""

    phase: str
    begin: float
    end: float


def power(title: str, series: Mapping[str, Points], spans: Sequence[Span] = (), *,
          colors: Mapping[str, str] | None = None, width: int = WIDE) -> Chart:  # fmt: skip
    """`series`: what a device is called -> (second, watts). `colors` are those of phases, where they have some."""
    drawn = {name: points for name, points in series.items() if len(points) > 1}
    end = max((points[-1][0] for points in drawn.values()), default=1.0) or 1.0
    begin = min((points[0][0] for points in drawn.values()), default=0.0)
    phases = list(dict.fromkeys(span.phase for span in spans))
    shades = {phase: (colors or {}).get(phase) or color(i + len(drawn)) for i, phase in enumerate(phases)}
    lines = {name: color(i) for i, name in enumerate(drawn)}
    behind = [
        {"begin": span.begin, "end": span.end, "color": shades[span.phase],
         "said": f"{span.phase}: {_time(span.begin)} to {_time(span.end)}"}
        for span in _joined(spans, end)
    ]  # fmt: skip
    values = [{"at": at, "watts": watts, "device": name, "color": lines[name]}
              for name, points in drawn.items() for at, watts in thinned(points, _DRAWN)]  # fmt: skip
    told = [
        {"at": at, "watts": watts, "color": lines[name], "said": f"{name}: {_watts(watts)} at {_time(at)}"}
        for name, points in drawn.items()
        for at, watts in thinned(points, _TOLD)
    ]
    stroke: Spec = {"field": "color", "type": "nominal", "scale": None}
    x = axis("at", "seconds", domain=[min(begin, 0.0), end], nice=False)
    both: Spec = {"x": x, "y": axis("watts", "watts", zero=True)}
    layers: list[Spec] = [
        {"data": given("behind", behind), "mark": {"type": "rect", "opacity": 0.25},
         "encoding": {"x": {**x, "field": "begin"}, "x2": {"field": "end"}, "fill": stroke, **SAID}},
        {"data": given("lines", values), "mark": {"type": "line", "strokeWidth": 1.75, "aria": False,
                                                  "interpolate": "linear"},
         "encoding": {**both, "stroke": stroke, "detail": {"field": "device"}}},
        {"data": given("told", told), "mark": {"type": "point", "filled": True, "size": 60, "opacity": 0},
         "encoding": {**both, "fill": stroke, **SAID}},
        *ends(drawn, "at", "watts", both),
    ]  # fmt: skip
    about = "; ".join(
        f"{name}: {_watts(min(w for _, w in points))} to {_watts(max(w for _, w in points))} over {_time(end)}"
        for name, points in drawn.items()
    )
    legend = (*lines.items(), *shades.items())
    height = 300 if width >= WIDE else 260
    return Chart(title, about, lite(title, about, width, height, layer=layers), legend)


def _joined(spans: Sequence[Span], whole: float) -> list[Span]:
    """Entries that a line's width would not tell apart, as one."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.begin, span.end)):
        last = found[-1] if found else None
        if last is not None and last.phase == span.phase and span.begin - last.end < _GAP * whole:
            found[-1] = Span(last.phase, last.begin, max(last.end, span.end))
        else:
            found.append(span)
    return found


def _watts(amount: float) -> str:
    return format_count(float(f"{amount:.3g}"), "W")


def _time(seconds: float) -> str:
    return format_duration(float(f"{seconds:.3g}"))
