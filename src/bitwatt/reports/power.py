"""Power over time as a picture: a line of blocks for a terminal, a small chart for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from bitwatt.units import format_count, format_duration

Points = Sequence[tuple[float, float]]
_BLOCKS = "▁▂▃▄▅▆▇█"
_COLORS = {"gpu": "#3b7ff0", "cpu": "#f2803a", "dram": "#a566f0"}
_WIDTH, _HEIGHT = 1000, 160


def sparkline(points: Points, width: int = 32) -> str:
    """Means over equal parts of the time, from nothing to the peak."""
    if len(points) < 2:
        return ""
    first, last = points[0][0], points[-1][0]
    span = (last - first) or 1.0
    sums = [[0.0, 0.0] for _ in range(min(width, len(points)))]
    for at, watts in points:
        cell = sums[min(int((at - first) / span * len(sums)), len(sums) - 1)]
        cell[0] += watts
        cell[1] += 1
    top = max(watts for _, watts in points) or 1.0
    drawn, level = "", 0.0
    for watts, count in sums:
        level = watts / count if count else level
        drawn += _BLOCKS[min(int(level / top * len(_BLOCKS)), len(_BLOCKS) - 1)]
    return drawn


def chart(series: Mapping[str, Points], names: Mapping[str, str]) -> str:
    """One line for each device, on one scale, as inline svg."""
    drawn = {device: points for device, points in series.items() if len(points) > 1}
    if not drawn:
        return ""
    top = max(watts for points in drawn.values() for _, watts in points) or 1.0
    end = max(points[-1][0] for points in drawn.values()) or 1.0
    lines, said = [], []
    for device, points in drawn.items():
        path = " ".join(f"{at / end * _WIDTH:.1f},{_HEIGHT - watts / top * (_HEIGHT - 4):.1f}" for at, watts in points)
        peak = format_count(float(f"{max(w for _, w in points):.3g}"), "W")
        name = escape(f"{names.get(device, device)}: up to {peak}")
        color = _COLORS.get(device.partition(":")[0], "#7c8aa0")
        lines.append(f'<polyline points="{path}" fill="none" stroke="{color}"><title>{name}</title></polyline>')
        said.append(f'<span><svg class="dot" viewBox="0 0 8 8" aria-hidden="true"><circle cx="4" cy="4" r="4" '
                    f'fill="{color}"/></svg>{name}</span>')  # fmt: skip
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none"'
    label = escape(
        f"power over {format_duration(float(f'{end:.3g}'))}, from 0 to {format_count(float(f'{top:.3g}'), 'W')}"
    )
    return (
        f'<svg class="power" {box} role="img" aria-label="{label}">{"".join(lines)}</svg>'
        f'<p class="meta">{"".join(said)}<span>{label}</span></p>'
    )
