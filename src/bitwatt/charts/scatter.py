"""Runs as dots between two quantities, such as quality against cost, with the front of those that none beats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bitwatt.charts.chart import INK, SAID, WIDE, Chart, Spec, axis, color, given, lite
from bitwatt.units import format_count

#: Dots on the front that have their name beside them.
_NAMED = 12


@dataclass(frozen=True, slots=True)
class Dot:
    """`group` gives it a colour: a model, a version, a machine."""

    name: str
    x: float
    y: float
    group: str = ""


def front(dots: Sequence[Dot], *, more_x: bool = False, more_y: bool = True) -> list[Dot]:
    """Those that no other beats in one quantity without being worse in the other; `more_*` says whether more is
    better. In the order of x."""
    signs = (-1 if more_x else 1, -1 if more_y else 1)
    found: list[Dot] = []
    for dot in sorted(dots, key=lambda dot: (signs[0] * dot.x, signs[1] * dot.y)):
        if not found or signs[1] * dot.y < signs[1] * found[-1].y:
            found.append(dot)
    return sorted(found, key=lambda dot: dot.x)


def scatter(title: str, dots: Sequence[Dot], x: tuple[str, str], y: tuple[str, str], *, log_x: bool = False,
            edge: Sequence[Dot] = (), width: int = WIDE) -> Chart:  # fmt: skip
    """`x` and `y`: what it is, and its unit. `edge` are the dots to join by a line, as `front` finds them."""
    groups = list(dict.fromkeys(dot.group for dot in dots))
    colors = {group: color(i) for i, group in enumerate(groups)}

    def values(chosen: Sequence[Dot], named: bool) -> list[Spec]:
        return [
            {"x": dot.x, "y": dot.y, "color": colors.get(dot.group, color(0)), "name": dot.name if named else "",
             "said": f"{dot.name}: {x[0]} {_shown(dot.x, x[1])}, {y[0]} {_shown(dot.y, y[1])}"}
            for dot in chosen
        ]  # fmt: skip

    scale = {"type": "log"} if log_x and all(dot.x > 0 for dot in dots) else {"zero": False}
    both: Spec = {"x": axis("x", _titled(x), **scale), "y": axis("y", _titled(y), zero=False)}
    fill: Spec = {"field": "color", "type": "nominal", "scale": None}
    layers: list[Spec] = [
        {"data": given("edge", values(edge, True)), "mark": {"type": "line", "color": INK, "strokeWidth": 1.25,
                                                             "strokeDash": [4, 3], "aria": False}, "encoding": both},
        {"data": given("dots", values(dots, False)), "mark": {"type": "point", "filled": True, "size": 64,
                                                              "opacity": 0.85}, "encoding": {**both, "fill": fill,
                                                                                             **SAID}},
        *({"data": given(f"names-{align}", values(named, True)),
           "mark": {"type": "text", "aria": False, "align": align, "dx": dx, "dy": -7, "limit": 140},
           "encoding": {**both, "text": {"field": "name"}}}
          for align, dx, named in _beside(edge[:_NAMED], dots, "type" in scale) if named),
    ]  # fmt: skip
    told = ", ".join(dot.name for dot in edge[:_NAMED])
    about = f"{len(dots):,} runs" + (f"; none is better in both than {told}" if told else "")
    legend = tuple(colors.items()) if len(groups) > 1 else ()
    return Chart(title, about, lite(title, about, width, 380 if width >= WIDE else 300, layer=layers), legend)


def _beside(edge: Sequence[Dot], dots: Sequence[Dot], log: bool) -> list[tuple[str, int, list[Dot]]]:
    """On which side of its dot a name stands, and how far: towards the middle, so that none runs out of the chart."""
    ends = [choose(dot.x for dot in (*dots, *edge)) for choose in (min, max)] if edge else [0.0, 0.0]
    middle = math.sqrt(ends[0] * ends[1]) if log else sum(ends) / 2
    left = [dot for dot in edge if dot.x <= middle]
    return [("left", 7, left), ("right", -7, [dot for dot in edge if dot.x > middle])]


def _titled(what: tuple[str, str]) -> str:
    return f"{what[0]} ({what[1]})" if what[1] else what[0]


def _shown(amount: float, unit: str) -> str:
    return format_count(float(f"{amount:.4g}"), unit)
