"""How many of each size, over a logarithmic axis: latencies of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bitwatt.charts.chart import INK, SAID, SOFT, WIDE, Chart, Spec, axis, color, given, lite
from bitwatt.units import format_duration


@dataclass(frozen=True, slots=True)
class Bin:
    """How many took longer than `low` and up to `high` seconds."""

    low: float
    high: float
    count: int


def histogram(title: str, bins: Sequence[Bin], marks: Sequence[tuple[str, float]] = (), *, width: int = WIDE) -> Chart:
    """`marks` are places to point out, such as the median."""
    values = [
        {"low": one.low, "high": one.high, "count": one.count, "zero": 0,
         "said": f"{one.count:,} from {_time(one.low)} to {_time(one.high)}"}
        for one in bins
    ]  # fmt: skip
    places: list[Spec] = []
    for name, at in marks:  # those at one place share a line
        if places and places[-1]["low"] == at:
            name = f"{places.pop()['text']}, {name}"
        places.append({"low": at, "text": name, "said": f"{name}: {_time(at)}"})
    x = axis("low", "seconds", type="log", nice=False)
    layers: list[Spec] = [
        {"data": given("bins", values), "mark": {"type": "rect", "fill": color(0)},
         "encoding": {"x": x, "x2": {"field": "high"}, "y": axis("count", "requests", zero=True),
                      "y2": {"field": "zero"}, **SAID}},
        {"data": given("marks", places), "mark": {"type": "rule", "color": INK, "strokeDash": [4, 3], "aria": True},
         "encoding": {"x": x, **SAID}},
        {"data": given("texts", places), "mark": {"type": "text", "aria": False, "align": "left", "dx": 4, "y": 6,
                                                  "baseline": "top", "color": SOFT},
         "encoding": {"x": x, "text": {"field": "text"}}},
    ]  # fmt: skip
    told = ", ".join(str(place["said"]) for place in places)
    about = f"{sum(one.count for one in bins):,} requests. {told}"
    return Chart(title, about, lite(title, about, width, 240, layer=layers))


def _time(seconds: float) -> str:
    return format_duration(float(f"{seconds:.3g}"))
