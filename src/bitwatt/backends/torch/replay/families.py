"""Calls that differ in sizes alone: from the calls counted at a few sizes to those at any.

Every integer in the key of a call (a dimension, a count), and how often it is called, is taken as a sum of products of
the sizes that vary: `c0 + c1 * length + c2 * batch + c3 * length * batch`. Coefficients come from the samples, one more
of them than there are coefficients must agree, and the sizes themselves must keep the relations they had (the mask is
one longer than the cache).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

try:
    import numpy as np
except ImportError:  # torch does not need it: then calls at other sizes are counted
    np = None  # type: ignore[assignment]

from bitwatt.backends.torch.replay.marks import Sizes
from bitwatt.backends.torch.state import Place

#: In the order in which they ran.
Log = list[tuple[Place, Any]]
#: The calls of one stretch: at each place, how often each key.
Rows = dict[Place, dict[Any, int]]
#: More sizes than this that vary on their own are too many to learn.
_FREE = 3
#: Powers of sizes whose products are tried, by how many sizes vary: the first that will do.
_POWERS: dict[int, tuple[list[tuple[int, ...]], ...]] = {
    1: ([(0,), (1,)], [(2,)]),
    2: ([(0, 0), (1, 0), (0, 1), (1, 1)], [(2, 0), (0, 2)], [(2, 1), (1, 2)]),
    3: (
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (1, 0, 1), (0, 1, 1)],
        [(1, 1, 1)],
        [(2, 0, 0), (0, 2, 0), (0, 0, 2)],
    ),
}
#: Integers beyond this are no sizes (a slice to the end says 2**63 - 1), and no float holds them exactly.
_LARGEST = 2**52


@dataclass(frozen=True)
class Flat:
    """Different calls of a stretch: where, of what form, how many integers; and the integers of all, the last of each
    how often it was called."""

    forms: list[tuple[Place, Any, int]]
    numbers: list[int]

    @staticmethod
    def of(rows: Rows) -> Flat:
        forms, numbers = list[tuple[Place, Any, int]](), list[int]()
        for place, keys in rows.items():
            for key, times in keys.items():
                before = len(numbers)
                form = flatten(key, numbers)
                numbers.append(times)
                forms.append((place, form, len(numbers) - before))
        return Flat(forms, numbers)


@dataclass(frozen=True)
class Sample:
    """The calls of a stretch of code and of the event after it, at one set of sizes."""

    sizes: Sizes
    gap: Rows
    event: Rows
    nodes: tuple[int, int] = (0, 0)  # of the graph, that they made
    inside: int = 0  # how often modules were called, and how much went into them

    @cached_property
    def flat(self) -> tuple[Flat, Flat]:
        """Asked where there are others to compare it with: most programs have one set of sizes."""
        return Flat.of(self.gap), Flat.of(self.event)


def flatten(key: Any, numbers: list[int]) -> Any:
    """A key without the integers that may be sizes, which go to `numbers`."""
    kind = type(key)
    if kind is int and -_LARGEST < key < _LARGEST:
        numbers.append(key)
        return int
    if kind is torch.Size:
        numbers.extend(key)
        return ("size", len(key))
    if isinstance(key, tuple):
        return (kind, *[flatten(part, numbers) for part in key])
    return key


def restore(form: Any, numbers: Any) -> Any:
    """The key behind a form; `numbers` is an iterator over its integers."""
    if form is int:
        return next(numbers)
    if type(form) is not tuple:
        return form
    kind, *rest = form
    if kind == "size":
        return torch.Size([next(numbers) for _ in range(rest[0])])
    parts = [restore(part, numbers) for part in rest]
    return tuple(parts) if kind is tuple else kind(parts)


class Basis:
    """Which sizes vary freely, how the others follow from them, and the products to sum."""

    def __init__(self, sizes: list[Sizes]) -> None:
        table = np.array(sizes, dtype=np.float64)
        varying = [i for i in range(table.shape[1]) if len(set(table[:, i].tolist())) > 1]
        self.fixed = {i: int(table[0, i]) for i in range(table.shape[1]) if i not in varying}
        self.free: list[int] = []
        for i in varying:
            enough = len(sizes) > len(self.free) + 1  # else any column would seem to follow
            if not enough or _solve(_affine(table[:, self.free]), table[:, [i]]) is None:
                self.free.append(i)
        features = _affine(table[:, self.free])
        self.following = {i: _solve(features, table[:, [i]]) for i in varying if i not in self.free}
        self._powers: list[tuple[int, ...]] = []

    def grows(self) -> Iterator[int]:
        """Ever more products; yields how many."""
        for powers in _POWERS.get(len(self.free), ()):
            self._powers = self._powers + powers
            yield len(self._powers)

    def kept(self) -> Basis:
        """As it is now."""
        return copy(self)

    def features(self, sizes: Sizes) -> list[float]:
        values = [sizes[i] for i in self.free]
        return [float(math.prod(map(pow, values, powers))) for powers in self._powers]

    def holds(self, sizes: Sizes) -> bool:
        """Whether sizes never seen keep to what the samples had in common."""
        if any(sizes[i] != n for i, n in self.fixed.items()):
            return False
        free = np.array([1.0, *[sizes[i] for i in self.free]])
        return all(c is not None and round(float((free @ c)[0])) == sizes[i] for i, c in self.following.items())


def _affine(columns: Any) -> Any:
    return np.hstack([np.ones((columns.shape[0], 1)), columns])


def _solve(features: Any, values: Any) -> Any:
    """Coefficients that give every value exactly, else None."""
    scale = np.abs(features).max(axis=0)  # squares of sizes and ones have little in common else
    found, *_ = np.linalg.lstsq(features / scale, values, rcond=None)
    found = np.round(found / scale[:, None] * 4096) / 4096
    return found if np.abs(features @ found - values).max(initial=0.0) < 1e-3 else None


class Family:
    """The calls of one stretch as a function of sizes. What speaks for it is pooled over them."""

    def __init__(self, basis: Basis, forms: list[tuple[Place, Any, int]], coefficients: Any, samples: int) -> None:
        self.basis = basis
        self.agreed, self.missed = samples, 0  # looks in a row that found what it says, and those that did not
        self.credited = False  # to sizes that were not counted
        self.inside: Any = None  # the coefficients of that checksum
        #: Calls that are alike at all sizes, each once (layers repeat themselves), with the columns of their integers;
        #: and at each place which of them are called.
        self._calls: list[tuple[Any, slice]] = []
        self._at: dict[Place, list[int]] = {}
        known: dict[tuple[Any, bytes], int] = {}
        columns, end, width = list[int](), 0, 0
        for place, form, count in forms:
            begin, end = end, end + count
            which = known.setdefault((form, coefficients[:, begin:end].tobytes()), len(known))
            if which == len(self._calls):
                self._calls.append((form, slice(width, width + count)))
                columns += range(begin, end)
                width += count
            self._at.setdefault(place, []).append(which)
        self._coefficients = coefficients[:, columns]
        self.places = list(self._at)

    def misses(self) -> None:
        """Something else happened."""
        self.agreed, self.missed = 0, self.missed + 1

    def holds(self, sizes: Sizes) -> bool:
        """Whether sizes never seen keep to what the samples had in common, and give whole numbers: a stride of 16 is
        divided by in no other way."""
        numbers = np.array([self.basis.features(sizes)]) @ self._coefficients
        return self.basis.holds(sizes) and bool(np.abs(numbers - np.rint(numbers)).max(initial=0.0) < 1e-3)

    def rows(self, sizes: Sizes) -> Rows:
        numbers = np.rint(np.array([self.basis.features(sizes)]) @ self._coefficients).astype(np.int64)[0].tolist()
        calls = [
            (restore(form, iter(numbers[columns.start : columns.stop - 1])), numbers[columns.stop - 1])
            for form, columns in self._calls
        ]
        return {place: _added(calls[which] for which in at) for place, at in self._at.items()}


def _added(calls: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """Two that differ at other sizes may be alike at these."""
    found: dict[Any, int] = {}
    for key, n in calls:
        found[key] = found.get(key, 0) + n
    return found


def inside_at(family: Family, sizes: Sizes) -> int | None:
    """What the checksum of module calls will be."""
    if family.inside is None:
        return None
    return round(float((np.array(family.basis.features(sizes)) @ family.inside)[0]))


def fit(samples: list[Sample]) -> tuple[Family | None, Family] | None:
    """The families of gap and event, if the samples are enough and alike; of the event alone, if what leads to it goes
    by other sizes than those known."""
    if np is None or len(samples) < 3 or not _alike(samples, 1):
        return None
    sizes = [sample.sizes for sample in samples]
    gaps, events = _Stretch(samples, 0), _Stretch(samples, 1)
    basis = Basis(sizes)
    for width in basis.grows():
        if sum(events.usual) <= width:
            return None
        features = np.array([basis.features(one) for one in sizes])
        inside = _solve(features, np.array([[float(sample.inside)] for sample in samples]))
        event = events.family(basis, features) if inside is not None else None
        if event is not None:
            event.inside = inside
            return gaps.family(basis, features), event
    return None


def _alike(samples: list[Sample], which: int) -> bool:
    """Whether they made as many graph nodes at all sizes, by which a replay is checked."""
    return len({one.nodes[which] for one in samples}) == 1


class _Stretch:
    """The samples of one stretch, and which of them have the form of most. Where two calls are alike by chance at some
    sizes, that sample has another form."""

    def __init__(self, samples: list[Sample], which: int) -> None:
        self._samples = [(one.sizes, (one.gap, one.event)[which], one.flat[which]) for one in samples]
        self._alike = _alike(samples, which)
        kinds = list[list[tuple[Place, Any, int]]]()
        kind = list[int]()
        for _, _, flat in self._samples:
            if flat.forms not in kinds:
                kinds.append(flat.forms)
            kind.append(kinds.index(flat.forms))
        most = max(kind, key=kind.count)
        self._forms = kinds[most]
        self.usual = [one == most for one in kind]

    def family(self, basis: Basis, features: Any) -> Family | None:
        """It comes from those, and of the others it must give what they are."""
        if not self._alike or sum(self.usual) <= features.shape[1]:
            return None
        samples = list(zip(self._samples, self.usual, strict=True))
        coefficients = np.zeros((features.shape[1], 0))
        if self._forms:
            table = [flat.numbers for (_, _, flat), usual in samples if usual]
            coefficients = _solve(features[self.usual], np.array(table, dtype=np.float64))
        if coefficients is None:
            return None
        found = Family(basis.kept(), self._forms, coefficients, len(samples))
        agrees = all(usual or (found.holds(sizes) and found.rows(sizes) == rows) for (sizes, rows, _), usual in samples)
        return found if agrees else None


def exchanged(rows: Rows, sizes: Sizes, others: Sizes) -> Rows:
    """The same calls where sizes are others: each integer that was one of `sizes` becomes its counterpart."""
    counterparts = {a: b for a, b in zip(sizes, others, strict=False) if a != b}
    found: Rows = {}
    for place, keys in rows.items():
        at = found.setdefault(place, {})
        for key, n in keys.items():
            numbers: list[int] = []
            form = flatten(key, numbers)
            new = restore(form, iter([counterparts.get(number, number) for number in numbers]))
            at[new] = at.get(new, 0) + n
    return found
