"""What all charts have in common: a title, a sentence for whoever does not see it, a specification, and colours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

#: Pixels across: a page, and a phone.
WIDE, NARROW = 1000, 320
#: Eight, of one brightness: each stands out from a light and a dark page, and dark text on it can be read.
COLORS = 8
MUTED, ON_COLOR = "var(--bw-muted)", "var(--bw-on-color)"
#: Axes and labels take their colours from the page, so that one drawing is right in the light and in the dark.
INK, SOFT, LINE, CARD = (f"var(--{name})" for name in ("ink", "soft", "line", "card"))
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif"

Spec = dict[str, Any]
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Chart:
    """`legend` is drawn by the page, as text: it wraps, and can be read aloud. Entries are (name, color)."""

    title: str
    about: str
    spec: Spec
    legend: tuple[tuple[str, str], ...] = ()


def color(number: int) -> str:
    """The variable of the page that holds it."""
    return f"var(--bw-c{number % COLORS + 1})"


def lite(title: str, about: str, width: int, height: int, **parts: Any) -> Spec:
    """A Vega-Lite specification of that size, axes included."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": f"{title}. {about}",
        "width": width,
        "height": height,
        "background": None,
        "padding": 2,
        "autosize": {"type": "fit", "contains": "padding"},
        "config": CONFIG,
        **parts,
    }


AXIS: Mapping[str, Any] = {
    "aria": False,
    "domainColor": LINE,
    "gridColor": LINE,
    "labelColor": SOFT,
    "labelFontSize": 12,
    "tickColor": LINE,
    "titleColor": SOFT,
    "titleFontSize": 12,
    "titleFontWeight": 500,
    "titlePadding": 10,  # the reader's font may be wider than the one that Vega measures
}
CONFIG: Mapping[str, Any] = {
    "font": FONT,
    "axis": AXIS,
    "view": {"stroke": None},
    "text": {"color": INK, "fontSize": 12},
    "rule": {"aria": False},
}
#: Every mark says what it is: to a screen reader, and to whoever points at it.
SAID: Mapping[str, Any] = {"description": {"field": "said"}, "tooltip": {"field": "said"}}


#: Numbers as people write them: 0.95 and 250 as they are, 12k and 3µ with a prefix.
_NUMBER = "datum.value && (abs(datum.value) >= 1000 || abs(datum.value) < 0.001) ? 's' : 'g'"
_LABEL = f"format(datum.value, '~' + ({_NUMBER}))"


def axis(field: str, title: str | None, **options: Any) -> Spec:
    """One of x and y, for numbers. Options of the scale are those of Vega-Lite, all others of the axis."""
    scale = {name: options.pop(name) for name in ("type", "domain", "zero", "nice", "domainMin") if name in options}
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": scale,
        "axis": {"labelExpr": _LABEL, "tickCount": 5, **options},
    }


def beside(names: Iterable[str]) -> int:
    """Pixels for names beside an axis. Vega measures text in a font of its own, and the reader's may be wider."""
    return min(max((len(name) for name in names), default=0) * 8 + 12, 230)


def given(name: str, values: list[Spec]) -> Spec:
    """Data by value: nothing is fetched."""
    return {"name": name, "values": values}


def labels(data: Spec, encoding: Spec, **mark: Any) -> list[Spec]:
    """Layers with text that can be read over lines: once as a rim in the colour of the page, once as ink."""
    text = {"type": "text", "aria": False, **mark}
    rim = {"stroke": CARD, "strokeWidth": 4, "strokeJoin": "round"}
    return [{"data": data, "mark": {**text, **more}, "encoding": encoding} for more in (rim, {})]


def ends(points: Mapping[str, Points], x: str, y: str, both: Spec) -> list[Spec]:
    """The name of each line at its end, above it: colours are not all that tells lines apart."""
    named = [{x: line[-1][0], y: line[-1][1], "name": name} for name, line in points.items() if line]
    encoding = {**both, "text": {"field": "name"}}
    return labels(given("ends", named), encoding, align="right", baseline="bottom", dy=-6, limit=160)


def thinned(points: Points, limit: int) -> list[tuple[float, float]]:
    """About so many of them: of each stretch the lowest and the highest, so that no peak is lost."""
    if len(points) <= limit:
        return list(points)
    size = -(-2 * len(points) // limit)
    kept: list[tuple[float, float]] = []
    for first in range(0, len(points), size):
        part = points[first : first + size]
        ends = {min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])}
        kept += sorted(ends)
    return kept
