"""Pareto fronts over two or three axes: the runs that none beats on every one. Plain data, for text and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bitwatt.errors import BitwattError


@dataclass(frozen=True, slots=True)
class Axis:
    """`lower` says that less is better."""

    name: str
    unit: str = ""
    lower: bool = True


@dataclass(frozen=True, slots=True)
class Point:
    """One run, or the median of several. `values` by axis; `beaten_by` names those of the front that are as good on
    every axis and better on some; for one on the front there are none."""

    name: str
    values: Mapping[str, float]
    beaten_by: tuple[str, ...] = ()

    @property
    def on_front(self) -> bool:
        return not self.beaten_by


@dataclass(frozen=True, slots=True)
class Front:
    """`left_out` are those with an axis unknown, and why."""

    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    left_out: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def best(self) -> tuple[Point, ...]:
        return tuple(point for point in self.points if point.on_front)


def front(axes: Sequence[Axis], values: Mapping[str, Mapping[str, float | None]], notes: Sequence[str] = ()) -> Front:
    """`values`: name of a run -> axis -> value. Sorted by the first axis, the better end first."""
    if not 2 <= len(axes) <= 3 or len({axis.name for axis in axes}) < len(axes):
        raise BitwattError(f"a front has two or three different axes, not {', '.join(axis.name for axis in axes)}")
    left_out, known = dict[str, str](), dict[str, dict[str, float]]()
    for name, row in values.items():
        if unknown := [axis.name for axis in axes if row.get(axis.name) is None]:
            left_out[name] = f"{', '.join(unknown)} not known"
        else:
            known[name] = {axis.name: float(row[axis.name] or 0) for axis in axes}
    costs = {name: tuple(row[a.name] if a.lower else -row[a.name] for a in axes) for name, row in known.items()}
    points, best = list[Point](), list[str]()
    for name in sorted(known, key=lambda name: costs[name]):  # who beats one comes before it
        beaten_by = tuple(other for other in best if _beats(costs[other], costs[name]))
        points.append(Point(name, known[name], beaten_by))
        best += [] if beaten_by else [name]
    return Front(tuple(axes), tuple(points), left_out, tuple(notes))


def _beats(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
