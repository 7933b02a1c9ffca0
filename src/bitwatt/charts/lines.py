"""Values along an axis, a line for each series: a metric by step, a quantity by version."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bitwatt.charts.chart import SAID, WIDE, Chart, Spec, axis, color, ends, given, lite, thinned
from bitwatt.units import format_count

#: Points of a line, at most; and those among them that tell their value.
_DRAWN, _TOLD = 600, 60


@dataclass(frozen=True, slots=True)
class Series:
    """Points (x, y); x is a number, or a name where places have no distance, such as versions."""

    name: str
    points: tuple[tuple[float | str, float], ...]


def lines(title: str, series: Sequence[Series], x: str, y: str, *, unit: str = "", log: bool = False,
          order: Sequence[str] = (), width: int = WIDE) -> Chart:  # fmt: skip
    """`x` and `y` are the titles of the axes; `unit` stands behind a value that is told; `order` is that of names
    along x, which is else the one in which they come."""
    drawn = [one for one in series if one.points]
    colors = {one.name: color(i) for i, one in enumerate(drawn)}
    numbers = all(isinstance(at, int | float) for one in drawn for at, _ in one.points)
    values: list[Spec] = []
    for one in drawn:
        points = thinned(one.points, _DRAWN) if numbers else one.points  # type: ignore[arg-type]
        every = max(1, -(-len(points) // _TOLD))
        for i, (at, value) in enumerate(points):
            shown = f"{at:g}" if isinstance(at, float) else at
            values.append({"x": at, "y": value, "series": one.name, "color": colors[one.name],
                           "said": f"{one.name}, {x} {shown}: {format_count(float(f'{value:.4g}'), unit)}",
                           "told": i % every == 0 or i == len(points) - 1})  # fmt: skip
    along = axis("x", x, zero=False, nice=False)
    if not numbers:
        along = {"field": "x", "type": "ordinal", "sort": list(order) or None, "title": x,
                 "axis": {"labelAngle": -30, "labelLimit": 110, "labelOverlap": True}}  # fmt: skip
    both: Spec = {"x": along, "y": axis("y", y, **(_decades(drawn) if log else {"zero": False}))}
    stroke: Spec = {"field": "color", "type": "nominal", "scale": None}
    layers: list[Spec] = [
        {"mark": {"type": "line", "strokeWidth": 2, "aria": False},
         "encoding": {**both, "stroke": stroke, "detail": {"field": "series"}}},
        {"transform": [{"filter": "datum.told"}],
         "mark": {"type": "point", "filled": True, "size": 45, "opacity": 1 if len(values) <= _TOLD else 0},
         "encoding": {**both, "fill": stroke, **SAID}},
    ]  # fmt: skip
    if len(drawn) > 1:
        layers.extend(ends({one.name: one.points for one in drawn}, "x", "y", both))  # type: ignore[misc]
    about = "; ".join(f"{one.name}: {_ends(one, unit)}" for one in drawn[:6])
    spec = lite(title, about, width, 300 if width >= WIDE else 260, data=given("values", values), layer=layers)
    return Chart(title, about, spec, tuple(colors.items()) if len(drawn) > 1 else ())


def _decades(drawn: Sequence[Series]) -> Spec:
    """A logarithmic axis, with a line for each power of ten where there are several: Vega draws ten for each."""
    values = [value for one in drawn for _, value in one.points if value > 0]
    low, high = (math.floor(math.log10(f(values))) for f in (min, max)) if values else (0, 0)
    return {"type": "log", **({"values": [10.0**k for k in range(low, high + 2)]} if high - low >= 2 else {})}


def _ends(series: Series, unit: str) -> str:
    first, last = (format_count(float(f"{series.points[i][1]:.4g}"), unit) for i in (0, -1))
    return f"{first} to {last} in {len(series.points)} points"
