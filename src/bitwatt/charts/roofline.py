"""What a machine can do at best against what was done: operations a second over operations for each byte."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bitwatt.charts.chart import INK, SAID, SOFT, WIDE, Chart, Spec, axis, given, labels, lite
from bitwatt.units import format_count, format_percent

#: Pixels that the axis takes of the width.
_MARGIN = 70


@dataclass(frozen=True, slots=True)
class Roof:
    """Operations a second at best, in one number format."""

    name: str
    peak: float


@dataclass(frozen=True, slots=True)
class Point:
    """`rate` is None where no time is known: it is then drawn on the roof, as the most it can have been."""

    name: str
    intensity: float
    rate: float | None
    color: str


def roofline(title: str, roofs: Sequence[Roof], bandwidth: float, points: Sequence[Point], *,
             width: int = WIDE) -> Chart:  # fmt: skip
    """`bandwidth` in bytes a second. Points are held against the highest roof."""
    wide, top = width >= WIDE, max(roof.peak for roof in roofs)
    seen = [point for point in points if point.intensity > 0 and (point.rate is None or point.rate > 0)]
    ridges = [roof.peak / bandwidth for roof in roofs]
    left = _decade(min([*(point.intensity for point in seen), *ridges]), -1)
    right = _decade(max([*(point.intensity for point in seen), *ridges]), 1)

    def best(intensity: float) -> float:
        return min(top, bandwidth * intensity)

    rates = [point.rate or best(point.intensity) for point in seen]
    low, high = _decade(min([*rates, best(left)]), 0), _decade(top, 1)
    rising = [{"x": left, "y": best(left), "roof": "memory"}, {"x": max(ridges), "y": top, "roof": "memory"}]
    flat = [
        one
        for roof, ridge in zip(roofs, ridges, strict=True)
        for one in ({"x": ridge, "y": roof.peak, "roof": roof.name}, {"x": right, "y": roof.peak, "roof": roof.name})
    ]
    names = [{"x": right, "y": roof.peak, "text": f"{roof.name} {_rate(roof.peak)}"} for roof in roofs]
    memory = [{"x": left, "y": best(left), "text": f"memory {format_count(_short(bandwidth), 'B/s')}"}]
    marks = [
        {
            "x": point.intensity, "y": point.rate or best(point.intensity), "color": point.color,
            "said": _said(point, best(point.intensity)),
        }
        for point in seen
    ]  # fmt: skip
    timed = [mark for mark, point in zip(marks, seen, strict=True) if point.rate is not None]
    untimed = [mark for mark, point in zip(marks, seen, strict=True) if point.rate is None]
    named = _named(seen, (left, right, width - _MARGIN), (low, high, 400 if wide else 340))
    x = axis("x", "FLOP for each byte moved", type="log", domain=[left, right], nice=False)
    y = axis("y", "FLOP/s", type="log", domain=[low, high], nice=False)
    both: Spec = {"x": x, "y": y}
    fill: Spec = {"field": "color", "type": "nominal", "scale": None}
    line: Spec = {"type": "line", "color": INK, "strokeWidth": 1.5, "aria": False}
    text: Spec = {"type": "text", "aria": False}
    layers: list[Spec] = [
        {"data": given("roofs", rising + flat), "mark": line, "encoding": {**both, "detail": {"field": "roof"}}},
        {"data": given("names", names), "mark": text | {"align": "right", "dy": -8, "color": SOFT},
         "encoding": {**both, "text": {"field": "text"}}},
        {"data": given("memory", memory), "mark": text | {"align": "left", "dx": 14, "dy": 10 if wide else 14,
                                                          "baseline": "top", "color": SOFT},
         "encoding": {**both, "text": {"field": "text"}}},
        {"data": given("ops", untimed), "mark": {"type": "point", "shape": "diamond", "size": 50, "strokeWidth": 1.5},
         "encoding": {**both, "stroke": fill, **SAID}},
        {"data": given("phases", timed), "mark": {"type": "point", "filled": True, "size": 110, "opacity": 1},
         "encoding": {**both, "fill": fill, **SAID}},
    ]  # fmt: skip
    for side, shift in (("left", 10), ("right", -10)):
        data = given(side, [mark for mark in named if mark["side"] == side])
        layers += labels(data, {**both, "text": {"field": "name"}}, align=side, dx=shift, limit=160)
    about = "; ".join(_said(point, best(point.intensity)) for point in seen[:6] if point.rate is not None)
    roofs_said = ", ".join(f"{roof.name} {_rate(roof.peak)}" for roof in roofs)
    told = f"Roofs: {roofs_said}, memory {format_count(_short(bandwidth), 'B/s')}. {about}"
    legend = tuple((point.name, point.color) for point in seen if point.rate is not None)
    return Chart(title, told, lite(title, told, width, 400 if wide else 340, layer=layers), legend)


def _named(points: Sequence[Point], across: tuple[float, float, int], up: tuple[float, float, int]) -> list[Spec]:
    """Names beside the points, on the side where they hit nothing; where there is no room the legend has to do."""

    def place(value: float, low: float, high: float, size: int) -> float:
        return size * math.log(value / low) / math.log(high / low)

    spots = [(point, place(point.intensity, *across), place(point.rate, *up)) for point in points if point.rate]
    taken = [(x - 8, y - 8, x + 8, y + 8) for _, x, y in spots]
    found: list[Spec] = []
    for point, x, y in spots:
        size = min(7 * len(point.name), 160)
        for side, begin in (("left", x + 10), ("right", x - 10 - size)):  # as the text is aligned
            box = (begin, y - 8, begin + size, y + 8)
            if begin >= 0 and begin + size <= across[2] and not any(_meet(box, other) for other in taken):
                taken.append(box)
                found.append({"x": point.intensity, "y": point.rate, "name": point.name, "side": side})
                break
    return found


def _meet(a: tuple[float, float, float, float], b: tuple[float, float, float, float]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _said(point: Point, best: float) -> str:
    at = f"{format_count(_short(point.intensity))} FLOP for each byte"
    if point.rate is None:
        return f"{point.name}: {at}, at most {_rate(best)}; its time is not known"
    return f"{point.name}: {at}, {_rate(point.rate)}, {format_percent(point.rate / best)} of the roof there"


def _rate(amount: float) -> str:
    return format_count(_short(amount), "FLOP/s")


def _decade(amount: float, more: int) -> float:
    """The power of ten below; with `more`, the one above it, or below it again where it is too close."""
    power = math.log10(amount)
    return 10.0 ** (math.ceil(power + 0.15) if more > 0 else math.floor(power - (0.15 if more else 0)))


def _short(amount: float) -> float:
    return float(f"{amount:.3g}")
