"""Calls that differ in sizes alone: from the calls counted at a few sizes to those at any.

Every integer in the key of a call (a dimension, a count), and how often it is called, is taken as a sum of products of
the sizes that vary: `c0 + c1 * length + c2 * batch + c3 * length * batch`. Coefficients come from the samples, one more
of them than there are coefficients must agree, and the sizes themselves must keep the relations they had (the mask is
one longer than the cache).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from bitwatt.backends.torch.replay.bases import GRIDS, Basis, Grid, np
from bitwatt.backends.torch.replay.marks import Sizes
from bitwatt.backends.torch.state import Place

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.lessons import Step

#: In the order in which they ran.
Log = list[tuple[Place, Any]]
#: The calls of one stretch: at each place, how often each key.
Rows = dict[Place, dict[Any, int]]
#: Samples kept that no family explains, and after how many it is tried whether they make one: later now and then.
_SAMPLES, _TRIED = 32, frozenset({3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32})
#: Forms known of one mark: more are those of a program that is never the same.
_FORMS = 20_000
#: A call without its integers: where, of what form, and how many they are.
Form = tuple[Place, Any, int]
#: Integers beyond this are no sizes (a slice to the end says 2**63 - 1), and no float holds them exactly.
_LARGEST = 2**52


@dataclass(frozen=True)
class Flat:
    """Different calls of a stretch: where, of what form, how many integers; and the integers of all, the last of each
    how often it was called."""

    forms: list[Form]
    numbers: list[int]

    @staticmethod
    def of(rows: Rows, known: dict[Form, Form]) -> Flat:
        """Forms are `known` once: those of a deep model at many sizes would take a hundred megabytes."""
        forms, numbers = list[Form](), list[int]()
        for place, keys in rows.items():
            for key, times in keys.items():
                before = len(numbers)
                form = flatten(key, numbers)
                numbers.append(times)
                whole = place, form, len(numbers) - before
                forms.append(known.setdefault(whole, whole))
        return Flat(forms, numbers)


@dataclass(frozen=True)
class Sample:
    """The calls of a stretch of code and of the event after it, at one set of sizes."""

    sizes: Sizes
    gap: Rows
    event: Rows
    nodes: tuple[int, int] = (0, 0)  # of the graph, that they made
    inside: int = 0  # how often modules were called, and how much went into them
    forms: dict[Form, Form] = field(default_factory=dict)  # of these and of others

    @cached_property
    def flat(self) -> tuple[Flat, Flat]:
        """Asked where there are others to compare it with: most programs have one set of sizes."""
        return Flat.of(self.gap, self.forms), Flat.of(self.event, self.forms)


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


class Family:
    """The calls of one stretch as a function of sizes. What speaks for it is pooled over them."""

    def __init__(self, basis: Basis, forms: list[Form], coefficients: Any, samples: int) -> None:
        self.basis = basis
        self.agreed, self.missed = samples, 0  # looks in a row that found what it says, and those that did not
        self.refuted = False  # by the last of those
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

    def misses(self, *, refuted: bool) -> None:
        """Something else happened; or a checksum says so, and it may yet be as it was."""
        self.agreed, self.missed, self.refuted = 0, self.missed + 1, refuted

    def holds(self, sizes: Sizes) -> bool:
        """Whether sizes never seen keep to what the samples had in common, and give whole numbers: a stride of 16 is
        divided by in no other way."""
        if not self.basis.holds(sizes):
            return False
        numbers = np.array([self.basis.features(sizes)]) @ self._coefficients
        return bool(np.abs(numbers - np.rint(numbers)).max(initial=0.0) < 1e-3)

    def rows(self, sizes: Sizes) -> Rows:
        numbers = np.rint(np.array([self.basis.features(sizes)]) @ self._coefficients).astype(np.int64)[0].tolist()
        calls = [
            (restore(form, iter(numbers[columns.start : columns.stop - 1])), numbers[columns.stop - 1])
            for form, columns in self._calls
        ]
        return {place: _added(calls[which] for which in at) for place, at in self._at.items()}

    def inside_at(self, sizes: Sizes) -> int | None:
        """What the checksum of module calls will be."""
        if self.inside is None:
            return None
        return round(float((np.array(self.basis.features(sizes)) @ self.inside)[0]))


def _added(calls: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """Two that differ at other sizes may be alike at these."""
    found: dict[Any, int] = {}
    for key, n in calls:
        found[key] = found.get(key, 0) + n
    return found


class Kin(NamedTuple):
    """The families of a gap and its event, for sizes of one kind, and a step that stands for those at other sizes. That
    of the gap is missing if what leads to the event goes by other sizes than those known."""

    gap: Family | None
    event: Family
    twin: Step

    @property
    def refuted(self) -> bool:
        return self.event.refuted or (self.gap is not None and self.gap.refuted)

    def hold(self, sizes: Sizes) -> bool:
        return self.event.holds(sizes) and (self.gap is None or self.gap.holds(sizes))

    def tells(self, sample: Sample) -> bool:
        sizes = sample.sizes
        if not self.hold(sizes) or (self.gap is not None and self.gap.rows(sizes) != sample.gap):
            return False
        return self.event.rows(sizes) == sample.event


class Families:
    """What is known of a mark at sizes that vary."""

    def __init__(self) -> None:
        self._found: list[Kin] = []
        self._samples: list[Sample] = []
        self._forms: dict[Form, Form] = {}
        self._taken = self._missed = 0  # samples, and families that did not tell what happened

    def at(self, sizes: Sizes) -> Kin | None:
        if any(kin.refuted for kin in self._found):
            self._found = [kin for kin in self._found if not kin.refuted]
            self._missed += 1
        return next((kin for kin in self._found if kin.event.basis.covers(sizes) and kin.hold(sizes)), None)

    def cover(self, sizes: Sizes) -> bool:
        """Whether what begins with such sizes is known, as far as they tell."""
        return any(kin.event.basis.covers(sizes) for kin in self._found)

    def adds(self, sample: Sample, twin: Step) -> None:
        """One more of which nothing is known."""
        known = next((kin for kin in self._found if kin.tells(sample)), None)
        if known is not None:
            known.event.basis.sees(sample.sizes)
            return
        if any(one.sizes == sample.sizes for one in self._samples):
            return
        if len(self._forms) > _FORMS:
            self._forms = {}
        self._samples = [*self._samples[1 - _SAMPLES :], replace(sample, forms=self._forms)]
        self._taken += 1
        if self._taken in _TRIED or not self._taken & (self._taken - 1):
            kin = _fit(self._samples, twin)
            if kin is not None:
                kin.event.missed = self._missed
                self._found.append(kin)
                self._samples = [one for one in self._samples if not kin.hold(one.sizes)]
                self._taken = len(self._samples)


def _fit(samples: list[Sample], twin: Step) -> Kin | None:
    """The families of sizes that lie like the last ones."""
    for grid in GRIDS if np is not None and len(samples) >= 3 else ():
        kin = _fit_on(grid, samples, twin)
        if kin is not None:
            return kin
    return None


def _fit_on(grid: Grid, samples: list[Sample], twin: Step) -> Kin | None:
    basis = Basis([sample.sizes for sample in samples], grid)
    samples = [one for one, alike in zip(samples, basis.alike, strict=True) if alike]
    if len(samples) < 3 or not _alike(samples, 1):
        return None
    events = _Stretch(samples, 1)
    for width in basis.grows():
        if sum(events.usual) <= width:
            return None
        features = np.array([basis.features(one.sizes) for one in samples])
        inside = basis.explain(features, np.array([[float(sample.inside)] for sample in samples]))
        event = events.family(basis, features) if inside is not None else None
        if event is not None:
            event.inside = inside
            return Kin(_Stretch(samples, 0).family(basis, features), event, twin)
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
        kinds = list[list[Form]]()
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
        if not self._alike:
            return None
        samples = list(zip(self._samples, self.usual, strict=True))
        coefficients = np.zeros((features.shape[1], 0))
        if self._forms:
            table = [flat.numbers for (_, _, flat), usual in samples if usual]
            coefficients = basis.explain(features[self.usual], np.array(table, dtype=np.float64))
        if coefficients is None:
            return None
        found = Family(basis.kept(), self._forms, coefficients, len(samples))
        agrees = all(usual or (found.holds(sizes) and found.rows(sizes) == rows) for (sizes, rows, _), usual in samples)
        return found if agrees else None


def tells_apart(sizes: Sizes, others: Sizes) -> bool:
    """Whether equal sizes have equal counterparts."""
    pairs = set(zip(sizes, others, strict=False))
    return len(pairs) == len({one for one, _ in pairs})


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
