"""Sizes that vary: which of them freely, how others follow from them, and the products that integers are sums of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

try:
    import numpy as np
except ImportError:  # torch does not need it: then calls at other sizes are counted
    np = None  # type: ignore[assignment]

from bitwatt.backends.torch.replay.marks import Sizes

__all__ = ["GRIDS", "Basis", "Grid", "np", "solve"]

#: Powers of sizes whose products are tried, by how many sizes vary: the first that will do. More that vary on their own
#: are too many to learn.
_POWERS: dict[int, tuple[list[tuple[int, ...]], ...]] = {
    1: ([(0,), (1,)], [(2,)]),
    2: ([(0, 0), (1, 0), (0, 1), (1, 1)], [(2, 0), (0, 2)], [(2, 1), (1, 2)]),
    3: (
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)],
        [(1, 1, 1)],
        [(2, 0, 0), (0, 2, 0), (0, 0, 2)],
    ),
}


@dataclass(frozen=True)
class Grid:
    """Kernels pad a size to the next multiple of what they take at once, strides leave something over: sizes that lie
    alike on a grid are learned by themselves. Either the multiple is one more size, for those that are none, or
    (`strides`) each remainder is by itself."""

    step: int = 1
    strides: bool = False

    def kind(self, values: list[int]) -> tuple[int, ...]:
        return tuple([n % self.step if self.strides else int(n % self.step > 0) for n in values])

    def padded(self, values: list[int]) -> list[int]:
        return [] if self.strides else [-(-n // self.step) * self.step for n in values if n % self.step]


#: A family speaks for sizes that are multiples of so many where it has been seen at one: there kernels are others.
_ALIGNED = Grid(8)
#: In the order in which they are tried.
GRIDS = (Grid(), Grid(8), Grid(16), Grid(2, strides=True), Grid(4, strides=True), Grid(64))


class Basis:
    """Of sizes that lie on a grid as the last of them do (`alike`)."""

    def __init__(self, sizes: list[Sizes], grid: Grid) -> None:
        whole = np.array(sizes, dtype=np.float64)
        self._grid, self.free = grid, list[int]()
        self._group(sizes)
        for i in range(whole.shape[1]):
            table = whole[self.alike]
            enough = len(table) > len(self.free) + 1  # else any column would seem to follow
            if len(set(whole[:, i].tolist())) > 1 and (
                not enough or solve(_affine(table[:, self.free]), table[:, [i]]) is None
            ):
                self.free.append(i)
                self._group(sizes)
        table = whole[self.alike]
        varying = [i for i in range(whole.shape[1]) if len(set(table[:, i].tolist())) > 1]
        features = _affine(table[:, self.free])
        self.fixed = {i: int(table[0, i]) for i in range(whole.shape[1]) if i not in {*varying, *self.free}}
        self.following = {i: solve(features, table[:, [i]]) for i in varying if i not in self.free}
        self._powers: list[tuple[int, ...]] = []
        self._seen = {self._aligned(one) for one, alike in zip(sizes, self.alike, strict=True) if alike}

    def _aligned(self, sizes: Sizes) -> tuple[int, ...]:
        return _ALIGNED.kind([sizes[i] for i in self.free if i < len(sizes)])

    def sees(self, sizes: Sizes) -> None:
        """It was found to hold there, too."""
        self._seen.add(self._aligned(sizes))

    def _group(self, sizes: list[Sizes]) -> None:
        kinds = [self._grid.kind([one[i] for i in self.free]) for one in sizes]
        self._kind = kinds[-1]
        self.alike = [kind == self._kind for kind in kinds]

    def grows(self) -> Iterator[int]:
        """Ever more products; yields how many."""
        for powers in _POWERS.get(len(self.free), ()):
            self._powers = self._powers + powers
            yield len(self._powers) + (0 if self._grid.strides else sum(self._kind) * (self._grid.step > 1))

    def kept(self) -> Basis:
        """As it is now."""
        return copy(self)

    def features(self, sizes: Sizes) -> list[float]:
        values = [sizes[i] for i in self.free]
        products = [float(math.prod(map(pow, values, powers))) for powers in self._powers]
        return [*products, *map(float, self._grid.padded(values))]

    def covers(self, sizes: Sizes) -> bool:
        """Whether sizes, or the first of them, are of a kind that was seen."""
        aligned, kind = self._aligned(sizes), self._grid.kind([sizes[i] for i in self.free if i < len(sizes)])
        return kind == self._kind[: len(kind)] and any(one[: len(aligned)] == aligned for one in self._seen)

    def holds(self, sizes: Sizes) -> bool:
        """Whether sizes never seen keep to what the samples had in common."""
        kind = self._grid.kind([sizes[i] for i in self.free])
        if kind != self._kind or any(sizes[i] != n for i, n in self.fixed.items()):
            return False
        free = np.array([1.0, *[sizes[i] for i in self.free]])
        return all(c is not None and round(float((free @ c)[0])) == sizes[i] for i, c in self.following.items())


def _affine(columns: Any) -> Any:
    return np.hstack([np.ones((columns.shape[0], 1)), columns])


def solve(features: Any, values: Any) -> Any:
    """Coefficients that give every value exactly, else None."""
    scale = np.abs(features).max(axis=0)  # squares of sizes and ones have little in common else
    found, *_ = np.linalg.lstsq(features / scale, values, rcond=None)
    found = np.round(found / scale[:, None] * 4096) / 4096
    return found if np.abs(features @ found - values).max(initial=0.0) < 1e-3 else None
