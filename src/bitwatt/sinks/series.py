"""Which points of the program's metrics a sink has had: a run so far holds all of them, each is sent once."""

from __future__ import annotations

from collections.abc import Iterable

from bitwatt.records import Run

#: Name, step, seconds since the run began, value.
Told = tuple[str, int, float, float]


class Sent:
    """Points come in the order of time. Long series are thinned, so they are told apart by when they were told."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}
        self._count: dict[str, int] = {}

    def new(self, run: Run) -> list[Told]:
        """What has come since `arrived`. Points without a step are numbered."""
        found: list[Told] = []
        for name, points in run.about.series.items():
            later = [point for point in points if point[1] > self._last.get(name, -1.0)]
            first = self._count.get(name, 0)
            found += [(name, first + i if step is None else step, at, n) for i, (step, at, n) in enumerate(later)]
        return found

    def arrived(self, points: Iterable[Told]) -> None:
        for name, _, at, _ in points:
            self._last[name] = at
            self._count[name] = self._count.get(name, 0) + 1
