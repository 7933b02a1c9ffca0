"""Calls that differ in sizes alone: from the calls counted at a few sizes to those at any.

Every integer in the key of a call (a dimension, a count) is taken as a sum of products of the sizes that vary:
`c0 + c1 * length + c2 * batch + c3 * length * batch`. Coefficients come from the samples, one more of them than there
are coefficients must agree, and the sizes themselves must keep the relations they had (the mask is one longer than the
cache).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
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
#: More sizes than this that vary on their own are too many to learn.
_FREE = 3
#: Integers beyond this are no sizes (a slice to the end says 2**63 - 1), and no float holds them exactly.
_LARGEST = 2**52


@dataclass(frozen=True)
class Flat:
    """The calls of a stretch in their order: where, of what form, how many integers; and the integers of all."""

    forms: list[tuple[Place, Any, int]]
    numbers: list[int]

    @staticmethod
    def of(log: Log) -> Flat:
        forms, numbers = list[tuple[Place, Any, int]](), list[int]()
        for place, key in log:
            before = len(numbers)
            form = flatten(key, numbers)
            forms.append((place, form, len(numbers) - before))
        return Flat(forms, numbers)


@dataclass(frozen=True)
class Sample:
    """The calls of a stretch of code and of the event after it, at one set of sizes."""

    sizes: Sizes
    gap: Log
    event: Log
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
        self.width = len(self.features(sizes[0]))

    def features(self, sizes: Sizes) -> list[float]:
        values = [sizes[i] for i in self.free]
        return [1.0, *values, *[float(a * b) for a, b in combinations(values, 2)]]

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
    found, *_ = np.linalg.lstsq(features, values, rcond=None)
    found = np.round(found * 4096) / 4096
    return found if np.abs(features @ found - values).max(initial=0.0) < 1e-3 else None


class Family:
    """The calls of one stretch as a function of sizes. What speaks for it is pooled over them."""

    def __init__(self, basis: Basis, forms: list[tuple[Place, Any, int]], coefficients: Any, samples: int) -> None:
        self.basis = basis
        self.agreed, self.missed = samples, 0  # looks in a row that found what it says, and those that did not
        self.credited = False  # to sizes that were not counted
        self.inside: Any = None  # the coefficients of that checksum
        #: Calls that are alike at all sizes, each once (layers repeat themselves), with the columns of their integers;
        #: and at each place how often which.
        self._calls: list[tuple[Any, slice]] = []
        self._at: dict[Place, dict[int, int]] = {}
        known: dict[tuple[Any, bytes], int] = {}
        columns, end, width = list[int](), 0, 0
        for place, form, count in forms:
            begin, end = end, end + count
            which = known.setdefault((form, coefficients[:, begin:end].tobytes()), len(known))
            if which == len(self._calls):
                self._calls.append((form, slice(width, width + count)))
                columns += range(begin, end)
                width += count
            at = self._at.setdefault(place, {})
            at[which] = at.get(which, 0) + 1
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

    def rows(self, sizes: Sizes) -> dict[Place, dict[Any, int]]:
        numbers = np.rint(np.array([self.basis.features(sizes)]) @ self._coefficients).astype(np.int64)[0].tolist()
        keys = [restore(form, iter(numbers[columns])) for form, columns in self._calls]
        return {place: _added((keys[which], n) for which, n in at.items()) for place, at in self._at.items()}


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
    if np is None or len(samples) < 3:
        return None
    basis = Basis([sample.sizes for sample in samples])
    if not basis.free or len(basis.free) > _FREE or len(samples) <= basis.width:
        return None
    features = np.array([basis.features(sample.sizes) for sample in samples])
    gaps, events = zip(*[sample.flat for sample in samples], strict=True)
    event = _family(basis, features, events)
    inside = _solve(features, np.array([[float(sample.inside)] for sample in samples]))
    if event is None or inside is None:
        return None
    event.inside = inside
    return _family(basis, features, gaps), event


def _family(basis: Basis, features: Any, logs: Sequence[Flat]) -> Family | None:
    forms = logs[0].forms
    if any(log.forms != forms for log in logs):
        return None
    table = np.array([log.numbers for log in logs], dtype=np.float64)
    coefficients = _solve(features, table) if forms else np.zeros((basis.width, 0))
    return None if coefficients is None else Family(basis, forms, coefficients, len(logs))


def exchanged(rows: dict[Place, dict[Any, int]], sizes: Sizes, others: Sizes) -> dict[Place, dict[Any, int]]:
    """The same calls where sizes are others: each integer that was one of `sizes` becomes its counterpart."""
    counterparts = {a: b for a, b in zip(sizes, others, strict=False) if a != b}
    found: dict[Place, dict[Any, int]] = {}
    for place, keys in rows.items():
        at = found.setdefault(place, {})
        for key, n in keys.items():
            numbers: list[int] = []
            form = flatten(key, numbers)
            new = restore(form, iter([counterparts.get(number, number) for number in numbers]))
            at[new] = at.get(new, 0) + n
    return found
