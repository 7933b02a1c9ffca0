"""Amounts beside each other, one or several for each name: runs in a comparison, ranks of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bitwatt.charts.chart import INK, SAID, WIDE, Chart, Spec, axis, beside, color, given, lite

#: Pixels of one bar, and of the gap between names.
_BAR, _GAP = 16, 14


@dataclass(frozen=True, slots=True)
class Bar:
    """`low` and `high` are the ends of its interval, where one is known."""

    name: str
    series: str
    amount: float
    shown: str
    low: float | None = None
    high: float | None = None


def bars(title: str, given_bars: Sequence[Bar], unit: str, *, width: int = WIDE) -> Chart:
    wide = width >= WIDE
    names = list(dict.fromkeys(bar.name for bar in given_bars))
    series = list(dict.fromkeys(bar.series for bar in given_bars))
    colors = {one: color(i) for i, one in enumerate(series)}
    values = [
        {"name": bar.name, "series": bar.series, "amount": bar.amount, "color": colors[bar.series], "low": bar.low,
         "high": bar.high, "said": f"{', '.join(filter(None, (bar.name, bar.series)))}: {bar.shown}"}
        for bar in given_bars
    ]  # fmt: skip
    row: Spec = {"field": "name", "type": "nominal", "sort": None, "title": None,
                 "axis": {"labelColor": INK, "labelLimit": 220 if wide else 110, "ticks": False, "domain": False,
                          "labelPadding": 6, "minExtent": min(beside(names), 220 if wide else 110)},
                 "scale": {"paddingInner": 0.25}}  # fmt: skip
    within: Spec = {"field": "series", "type": "nominal", "sort": None}
    both: Spec = {"x": axis("amount", unit or None, zero=True), "y": row, "yOffset": within}
    layers: list[Spec] = [
        {"mark": {"type": "bar"},
         "encoding": {**both, "fill": {"field": "color", "type": "nominal", "scale": None}, **SAID}},
    ]  # fmt: skip
    if any(bar.low is not None for bar in given_bars):
        layers.append({
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "color": INK, "strokeWidth": 1.5},
            "encoding": {"x": {**both["x"], "field": "low"}, "x2": {"field": "high"}, "y": row, "yOffset": within},
        })  # fmt: skip
    height = len(names) * (len(series) * _BAR + _GAP) + 40
    about = "; ".join(str(value["said"]) for value in values[:8])
    spec = lite(title, about, width, height, data=given("bars", values), layer=layers)
    return Chart(title, about, spec, tuple(colors.items()) if len(series) > 1 else ())
