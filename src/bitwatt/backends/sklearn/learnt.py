"""What a fitted estimator tells by its attributes: sizes and small values, read after every fit.

Estimators of a class are much alike. What was read of the last one stays with the class (`Kind`), and of the next one
only that is read which decides whether it tells the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from numpy import float64, ndarray

from bitwatt.backends.sklearn import specs
from bitwatt.backends.sklearn.specs import MANY, SHORT, UNKNOWN
from bitwatt.records import TensorSpec

Facts = dict[str, Any]
Items = tuple[tuple[str, Any], ...]
#: From a fitted estimator to small values that its rules take by name.
Reader = Callable[[Any], Facts]

#: Which samples, and how many until now, is news with every batch of a stream, and changes no work.
_NEWS = frozenset({"labels_", "support_", "core_sample_indices_", "t_", "n_samples_seen_", "n_steps_"})


class Later:
    """Facts that a reader gives as one value, to be read when the call is counted: together with others, all at once.
    What they are read from must not change until then."""

    __slots__ = ("told",)

    def __init__(self, told: Callable[[], Facts]) -> None:
        self.told = told


class Known:
    """Facts as one object, the same for all that are equal: who counts calls tells them apart by its identity."""

    __slots__ = ("_items", "_later", "lasting")

    def __init__(self, items: Items, later: bool = False) -> None:
        self._items, self._later = items, later
        #: Without what only a fit depends on.
        self.lasting = self

    @property
    def items(self) -> Items:
        """All of them read."""
        if self._later:
            parts = [value.told().items() if type(value) is Later else ((name, value),) for name, value in self._items]
            self._items, self._later = tuple([pair for part in parts for pair in part]), False
        return self._items


#: What was read of attributes: what decides what is told of them, that, all that is known, and what readers told
#: beside it.
_Alike = tuple[list[Any], Facts, Known, Facts]
_learnt: dict[tuple[Any, ...], _Alike] = {}
_lasting: dict[tuple[Any, ...], Known] = {}


def forget() -> None:
    _learnt.clear()
    _lasting.clear()


def picker(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """From a mapping to these values of it."""
    if len(names) > 1:
        return itemgetter(*names)
    return (lambda held: (held[names[0]],)) if names else lambda held: ()


class Holding:
    """What estimators of a class hold by name, and what the last of them was like. Attributes that came with a fit tell
    something. Several threads may ask at once: but for `alike` it never changes."""

    __slots__ = ("alike", "keys", "marked", "names", "news", "pick")

    def __init__(self, keys: tuple[str, ...] = ()) -> None:
        self.keys = keys
        self.names = tuple([name for name in keys if name.endswith("_") and not name.startswith("_")])
        self.news = tuple([name for name in self.names if name in _NEWS])
        stays = tuple([name for name in self.names if name not in _NEWS])
        self.marked = stays + self.news
        self.pick = picker(stays)
        self.alike: _Alike | None = None

    def attributes(self, marks: list[Any], held: Mapping[str, Any], alike: _Alike | None) -> Facts:
        """Sizes and numbers of things: those that differ from what was read last are told anew."""
        if alike is None:
            return {name: _told(name, held[name]) for name in self.names}
        found = alike[1].copy()
        for name, mark, before in zip(self.marked, marks, alike[0], strict=True):
            if mark != before:
                found[name] = _told(name, held[name])
        return found

    def leave_out(self, gone: frozenset[str], found: _Alike) -> None:
        marks, _, told, more = found
        stays = [(name, mark) for name, mark in zip(self.marked, marks, strict=True) if name not in gone]
        lasting = Known(tuple([pair for pair in told.items if pair[0] not in gone]))
        told.lasting = _lasting.setdefault((*stays, *more.items()), lasting)


class Kind:
    """A class of estimators: its parameters, its readers, the attributes that tell only how a fit went; and what its
    last fitted estimator held."""

    __slots__ = ("last", "parameters", "passing", "readers", "set", "values")

    def __init__(self, parameters: tuple[str, ...], readers: tuple[Reader, ...], passing: frozenset[str]) -> None:
        self.parameters, self.readers, self.passing = parameters, readers, passing
        self.values = picker(parameters)
        #: By values of parameters: equal ones that were last asked for, if they were plain, and what was told then.
        self.set: dict[tuple[Any, ...], tuple[tuple[Any, ...], Known]] = {}
        self.last = Holding()

    def forget(self) -> None:
        self.set.clear()
        self.last = Holding()

    def learnt(self, estimator: Any, held: Mapping[str, Any]) -> Known:
        keys, one = tuple(held), self.last
        if keys != one.keys:  # to compare takes less than to hash
            one = self.last = Holding(keys)
        marks = _marks(one.pick(held))
        for name in one.news:
            told = _told(name, held[name])
            marks.append((type(told), told))
        more: Facts = {}
        for reader in self.readers:
            more |= reader(estimator)
        alike = one.alike
        if more and Later in map(type, more.values()):  # nobody knows yet what that will be
            attributes = one.attributes(marks, held, alike)
            told = Known(_items(attributes, more), later=True)
            one.alike = marks, attributes, told, {}
            return told
        if alike is not None and alike[0] == marks and alike[3] == more:  # most of the time
            return alike[2]
        place = (one.names, self.passing, *marks, *more.items())
        found = _learnt.get(place)
        if found is None:
            if len(_learnt) > MANY:
                forget()
            attributes = one.attributes(marks, held, alike)
            found = _learnt[place] = marks, attributes, Known(_items(attributes, more)), more
            if gone := self.passing.intersection(one.names):
                one.leave_out(gone, found)
        one.alike = found
        return found[2]


def _items(attributes: Facts, more: Facts) -> Items:
    return tuple(({name: told for name, told in attributes.items() if told is not UNKNOWN} | more).items())


def _marks(values: tuple[Any, ...]) -> list[Any]:
    """What decides what `_told` says of attributes. It is asked for after every fit, as `specs.marks` is for every
    call."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is ndarray:
            shape = value.shape
            if len(shape) > 1:
                found.append((shape, value.dtype, value.flags.fnc))
            elif shape and (shape[0] > SHORT or value.dtype.kind not in "iu"):
                found.append((shape, value.dtype))
            else:
                found.append((ndarray, tuple(value.tolist()) if shape else value.item()))  # it is told as it is
        elif kind is int or kind is str:
            found.append((kind, value))
        elif kind is float or kind is float64 or value is None:
            found.append(kind)
        else:
            told = _told("", value)
            found.append((type(told), told))
    return found


def _told(name: str, value: Any) -> Any:
    """Of an attribute. Floats are results, scores and losses: that they are there is all that is told."""
    kind = type(value)
    if kind is list and len(value) <= SHORT and value and isinstance(value[0], float):
        told: Any = "<floats>"
    else:
        told = specs.told(value)
    if type(told) is float:
        told = "<float>"
    return told if name not in _NEWS or type(told) is TensorSpec else UNKNOWN
