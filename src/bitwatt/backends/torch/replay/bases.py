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

__all__ = ["GRIDS", "Basis", "Grid", "np"]

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


#: Kernels pad a size to the next multiple of what they take at once.
_PADS = (8, 16, 32, 64, 128)
#: Samples that must agree beside those that give the coefficients: lengths of 51, 99 and 115 all lack five to a
#: multiple of 8, and of multiples one of so many may do by chance.
_AGREE, _CHANCE = 2, 4


@dataclass(frozen=True)
class Grid:
    """What kernels do beside where a size is no such multiple, or what a stride leaves over (`strides`): sizes that lie
    alike on a grid are learned by themselves. So is 1, along which tensors are laid out anyhow."""

    step: int = 1
    strides: bool = False

    def kind(self, values: list[int]) -> tuple[int, ...]:
        return tuple([-1 if n == 1 else n % self.step if self.strides else int(n % self.step > 0) for n in values])


#: A family speaks for sizes that are multiples of so many where it has been seen at one: there kernels are others.
_ALIGNED = Grid(8)
#: In the order in which they are tried.
GRIDS = (Grid(), Grid(8), Grid(16), Grid(2, strides=True), Grid(4, strides=True))


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
        self._seen = set[tuple[int, ...]]()
        self._cells: dict[tuple[int, int], set[int]] = {}
        for one, alike in zip(sizes, self.alike, strict=True):
            if alike:
                self.sees(one)

    def sees(self, sizes: Sizes) -> None:
        """It was found to hold there, too."""
        self._seen.add(self._aligned(sizes))
        for place, cell in self._cell(sizes):
            self._cells.setdefault(place, set()).add(cell)

    def covers(self, sizes: Sizes) -> bool:
        """Whether sizes, or the first of them, are of a kind that was seen, and none of them comes where a multiple
        would be another one for the first time."""
        aligned, kind = self._aligned(sizes), self._grid.kind([sizes[i] for i in self.free if i < len(sizes)])
        return (
            kind == self._kind[: len(kind)]
            and any(one[: len(aligned)] == aligned for one in self._seen)
            and all(cell in (known := self._cells[place]) or len(known) > 1 for place, cell in self._cell(sizes))
        )

    def _aligned(self, sizes: Sizes) -> tuple[int, ...]:
        return _ALIGNED.kind([sizes[i] for i in self.free if i < len(sizes)])

    def _cell(self, sizes: Sizes) -> Iterator[tuple[tuple[int, int], int]]:
        for i in self.free:
            for step in _PADS if i < len(sizes) else ():
                yield (i, step), -(-sizes[i] // step)

    def _group(self, sizes: list[Sizes]) -> None:
        kinds = [self._grid.kind([one[i] for i in self.free]) for one in sizes]
        self._kind = kinds[-1]
        self.alike = [kind == self._kind for kind in kinds]

    def grows(self) -> Iterator[int]:
        """Ever more products; yields how many."""
        for powers in _POWERS.get(len(self.free), ()):
            self._powers = self._powers + powers
            yield len(self._powers)

    def kept(self) -> Basis:
        """As it is now."""
        return copy(self)

    def features(self, sizes: Sizes) -> list[float]:
        """The products, and behind them the multiples."""
        values = [sizes[i] for i in self.free]
        products = [float(math.prod(map(pow, values, powers))) for powers in self._powers]
        return [*products, *[float(-(-n // step) * step) for n in values for step in _PADS]]

    def explain(self, features: Any, values: Any) -> Any:
        """Coefficients of the products that give every value exactly, or of those and one multiple; else None."""
        products = len(self._powers)
        found, left = np.zeros((features.shape[1], values.shape[1])), np.arange(values.shape[1])
        for multiple in range(products - 1, features.shape[1]):
            columns = [*range(products), *([multiple] if multiple >= products else [])]
            if len(features) < len(columns) + (_AGREE if multiple < products else _CHANCE):
                break
            some, exact = _solved(features[:, columns], values[:, left])
            found[np.ix_(columns, left[exact])] = some[:, exact]
            left = left[~exact]
            if not len(left):
                return found
        return None

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
    found, exact = _solved(features, values)
    return found if exact.all() else None


def _solved(features: Any, values: Any) -> tuple[Any, Any]:
    """Coefficients, and which values they give exactly."""
    scale = np.abs(features).max(axis=0)  # squares of sizes and ones have little in common else
    found, *_ = np.linalg.lstsq(features / scale, values, rcond=None)
    found = np.round(found / scale[:, None] * 4096) / 4096
    return found, np.abs(features @ found - values).max(axis=0) < 1e-3
