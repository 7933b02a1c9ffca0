"""Power over time in a bounded number of points: when there are too many, neighbours become one."""

from __future__ import annotations

POINTS = 240


class Series:
    """Means over stretches of equal length, which doubles as the run grows."""

    __slots__ = ("_seconds", "_sum", "_width", "peak", "points")

    def __init__(self) -> None:
        self.points: list[tuple[float, float]] = []  # (end of the stretch, watts)
        self.peak: float | None = None
        self._width = 0.0
        self._sum = self._seconds = 0.0

    def add(self, at: float, seconds: float, watts: float) -> None:
        """`watts` over the `seconds` that ended at `at`."""
        self.peak = watts if self.peak is None else max(self.peak, watts)
        self._sum += watts * seconds
        self._seconds += seconds
        if self._seconds < self._width or self._seconds <= 0:
            return
        self.points.append((at, self._sum / self._seconds))
        self._sum = self._seconds = 0.0
        if len(self.points) > POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            self.points = [(b[0], (a[1] + b[1]) / 2) for a, b in pairs]
            self._width = (self.points[-1][0] - self.points[0][0]) / len(self.points) * 0.99

    def told(self) -> tuple[tuple[float, float], ...]:
        return tuple((round(at, 3), round(watts, 3)) for at, watts in self.points)
