"""A line plot as one self-contained svg: logarithmic scale, light and dark, no script."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 46, 44
_COLORS = ("#9aa3af", "#3b7ff0", "#12a3b4", "#a566f0", "#f2803a", "#2aa574", "#e0b020", "#e2559b")
_STYLE = (
    ".bitwatt-plot { --ink: #1d1e20; --soft: #62656b; --line: #e3e3df; --page: #ffffff;"
    ' font: 13px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; max-width: 100%; height: auto; }'
    "@media (prefers-color-scheme: dark) { .bitwatt-plot { --ink: #e9e9ea; --soft: #9b9ea6; --line: #2b2d31;"
    " --page: #1a1b1e; } }"
    ".bitwatt-plot text { fill: var(--soft); } .bitwatt-plot .title { fill: var(--ink); font-weight: 600; }"
    ".bitwatt-plot .page { fill: var(--page); } .bitwatt-plot .grid { stroke: var(--line); }"
    ".bitwatt-plot polyline { fill: none; stroke-width: 2.5; stroke-linejoin: round; }"
    ".bitwatt-plot .mark { stroke: var(--page); stroke-width: 1.5; }"
)


class Series(NamedTuple):
    """One line: a share of the whole for each place along the bottom; 0 is not drawn."""

    name: str
    values: tuple[float, ...]


def plot(title: str, places: Sequence[str], series: Sequence[Series]) -> str:
    drawn = [line for line in series if any(line.values)]
    values = [value for line in drawn for value in line.values if value > 0] or [1.0]
    high = max(math.ceil(math.log2(max(values)) - 0.1), 0)  # a little above a line needs no line more
    low = min(math.floor(math.log2(min(values)) + 1e-9), high - 1)

    def x(place: int) -> float:
        span = _WIDTH - _LEFT - _RIGHT
        return _LEFT + span * (place + 0.5) / len(places)

    def y(value: float) -> float:
        return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (high - math.log2(value)) / (high - low)

    parts = [f"<title>{escape(title)}</title><style>{_STYLE}</style>"]
    parts.append(f'<rect class="page" width="{_WIDTH}" height="{_HEIGHT}" rx="12"/>')
    parts.append(f'<text class="title" x="{_LEFT}" y="26">{escape(title)}</text>')
    parts.append(f'<text x="{_WIDTH - 16}" y="26" text-anchor="end">of the recorded run</text>')
    for power in range(low, high + 1, math.ceil((high - low) / 8)):
        label = str(2**power) if power >= 0 else f"1/{2**-power}"
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(2**power):.1f}" y2="{y(2**power):.1f}"/>'
            f'<text x="{_LEFT - 8}" y="{y(2**power) + 4:.1f}" text-anchor="end">{label}</text>'
        )
    parts += [
        f'<text x="{x(i):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{escape(place)}</text>'
        for i, place in enumerate(places)
    ]
    ends = _spread([y(line.values[-1]) if line.values[-1] > 0 else y(2**low) for line in drawn])
    for number, (line, end) in enumerate(zip(drawn, ends, strict=True)):
        parts.append(_line(line, _COLORS[number % len(_COLORS)], places, end, x, y))
    said = escape("; ".join(f"{line.name} {', '.join(f'{v:.3g}' for v in line.values)}" for line in drawn))
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
    spoken = f'role="img" aria-label="{said}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" class="bitwatt-plot" {box} {spoken}>{"".join(parts)}</svg>\n'


def _line(
    line: Series, color: str, places: Sequence[str], end: float, x: Callable[[int], float], y: Callable[[float], float]
) -> str:
    known = [(i, value) for i, value in enumerate(line.values) if value > 0]
    points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in known)
    marks = "".join(
        f'<circle class="mark" cx="{x(i):.1f}" cy="{y(value):.1f}" r="4.5" fill="{color}">'
        f"<title>{escape(f'{line.name}, {places[i]}: {value:.4g} of the recorded run')}</title></circle>"
        for i, value in known
    )
    name = f'<text x="{_WIDTH - _RIGHT + 10}" y="{end + 4:.1f}" style="fill: {color}">{escape(line.name)}</text>'
    return f'<polyline points="{points}" stroke="{color}"/>{marks}{name}'


def _spread(heights: list[float]) -> list[float]:
    """Names at the ends of lines, moved apart until none covers another; all go up where one would leave the page."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    placed = list(heights)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + 16)
    over = max(placed, default=0) - (_HEIGHT - _BOTTOM)
    return [height - over for height in placed] if over > 0 else placed
