"""What a fitted estimator tells by its attributes: sizes and small values, read after every fit.

Estimators of a class are much alike. What was read of the last one stays with the class (`Kind`), and of the next one
only that is read which decides whether it tells the same.
"""

from __future__ import annotations

import functools
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
#: Classes of most attributes, and their names where code is written.
_CLASSES: dict[Any, str] = {
    int: "int", bool: "bool", str: "str", float: "float", float64: "float64", type(None): "NoneType", ndarray: "ndarray",
}  # fmt: skip
Marking = Callable[[Mapping[str, Any]], tuple[Any, ...] | None]


class Later:
    """Facts that a reader gives as one value, to be read when the call is counted: together with others, all at once.
    What they are read from must not change until then."""

    __slots__ = ("told",)

    def __init__(self, told: Callable[[], Facts]) -> None:
        self.told = told


class Known:
    """Facts as one object, the same for all that are equal: who counts calls tells them apart by its identity."""

    __slots__ = ("_items", "_later", "names")

    def __init__(self, items: Items, later: bool = False, names: tuple[str, ...] = ()) -> None:
        self._items, self._later = items, later
        self.names = names  # in their order, with those that tell how a fit went

    @property
    def items(self) -> Items:
        """All of them read."""
        if self._later:
            parts = [value.told().items() if type(value) is Later else ((name, value),) for name, value in self._items]
            self._items, self._later = tuple([pair for part in parts for pair in part]), False
        return self._items

    def together(self, went: Items) -> Items:
        """With what tells how a fit went, each in its place."""
        if not went:
            return self.items
        found = {**dict(went), **dict(self.items)}
        order = {name: found.pop(name) for name in self.names if name in found}
        return (*order.items(), *found.items())


#: What was read of attributes: what decides what is told of them, that, all that is known, and what readers told
#: beside it.
_Alike = tuple[tuple[Any, ...], Facts, Known, Facts]
_learnt: dict[tuple[Any, ...], _Alike] = {}


def forget() -> None:
    _learnt.clear()


def picker(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """From a mapping to these values of it."""
    if len(names) > 1:
        return itemgetter(*names)
    return (lambda held: (held[names[0]],)) if names else lambda held: ()


class Holding:
    """What estimators of a class hold by name, and what the last of them was like. Attributes that came with a fit tell
    something. Several threads may ask at once: but for `alike` it never changes."""

    __slots__ = ("alike", "keys", "marks", "names", "went")

    def __init__(self, held: Mapping[str, Any], passing: frozenset[str]) -> None:
        self.keys = [*held]
        self.names = tuple([name for name in held if name.endswith("_") and not name.startswith("_")])
        self.went = tuple([name for name in self.names if name in passing])
        self.marks = _marking({name: held[name] for name in self.names if name not in passing})
        self.alike: _Alike | None = None

    def told(self, held: Mapping[str, Any]) -> Facts:
        """Sizes and numbers of things."""
        return {name: _told(name, held[name]) for name in self.names if name not in self.went}


def _marking(attributes: Mapping[str, Any]) -> Marking:
    """A function from what an estimator holds to what decides what `_told` says of these attributes; None where one of
    them is of another class than here, or no longer short. It is asked for after every fit, so it is written out: a
    line for each attribute, as `namedtuple` does."""
    reads, same, marks = [], ["True"], []
    for i, (name, value) in enumerate(attributes.items()):
        kind = type(value)
        reads.append(f"    v{i} = held[{name!r}]\n")
        if kind in _CLASSES:
            same.append(f"type(v{i}) is {_CLASSES[kind]}")
        if kind is ndarray:
            if value.ndim == 1 and value.shape[0] <= SHORT and value.dtype.kind in "iu" and name not in _NEWS:
                same.append(f"v{i}.size <= {SHORT}")
                marks.append(f"v{i}.dtype, *v{i}.tolist()")  # it is told as it is
            else:
                marks.append(f"v{i}.shape, v{i}.dtype" + f", v{i}.flags.fnc" * (value.ndim > 1))
        elif kind not in _CLASSES:
            marks.append(f"*of({name!r}, v{i})")
        elif kind in (int, bool, str) and name not in _NEWS:  # of others all that is told is that they are there
            marks.append(f"v{i}")
    told = f"({', '.join(marks)},)" if marks else "()"
    return _written(f"def marks(held):\n{''.join(reads)}    if {' and '.join(same)}:\n        return {told}\n")


@functools.lru_cache(1_000)
def _written(source: str) -> Marking:
    """Compiling it takes as long as a fit: it outlives sessions, and holds nothing of a program's."""
    names = {name: kind for kind, name in _CLASSES.items()} | {"of": _typed}
    exec(source, names)
    return names["marks"]


def _typed(name: str, value: Any) -> tuple[Any, Any]:
    told = _told(name, value)
    return type(told), told


class Kind:
    """A class of estimators: its parameters, its readers, the attributes that tell only how a fit went; and what its
    last fitted estimator held."""

    __slots__ = ("last", "parameters", "passing", "readers", "set", "values")

    def __init__(self, parameters: tuple[str, ...], readers: tuple[Reader, ...], passing: frozenset[str]) -> None:
        self.parameters, self.readers, self.passing = parameters, readers, passing
        self.values = picker(parameters)
        #: By values of parameters: equal ones that were last asked for, if they were plain, and what was told then.
        self.set: dict[tuple[Any, ...], tuple[tuple[Any, ...], Known]] = {}
        self.last: Holding | None = None

    def forget(self) -> None:
        self.set.clear()
        if self.last is not None:
            self.last.alike = None

    def learnt(self, estimator: Any, held: Mapping[str, Any]) -> tuple[Known, Items]:
        """What it tells, and beside it how its last fit went."""
        one = self.last
        marks = one.marks(held) if one is not None and one.keys == [*held] else None  # to compare takes less than to hash
        if one is None or marks is None:
            one = self.last = Holding(held, self.passing)
            marks = one.marks(held) or ()
        went: Items = ()
        for name in one.went:
            value = held[name]
            if type(value) is ndarray and value.dtype.kind in "iu" and 0 < value.size <= SHORT:  # most of the time
                value = tuple(value.tolist()) if value.ndim == 1 else _told(name, value)
            elif type(value) is not int:
                value = _told(name, value)
            if value is not UNKNOWN:
                went += ((name, value),)
        more: Facts = {}
        for reader in self.readers:
            more |= reader(estimator)
        alike = one.alike
        if alike is not None and alike[0] == marks:
            if alike[3] == more:  # most of the time
                return alike[2], went
            attributes: Facts | None = alike[1]
        else:
            attributes = None
        if more and Later in map(type, more.values()):  # nobody knows yet what that will be
            attributes = attributes or one.told(held)
            known = Known(_items(attributes, more), True, one.names)
            one.alike = marks, attributes, known, {}
            return known, went
        place = (one.names, one.went, *marks, *more.items())
        found = _learnt.get(place)
        if found is None:
            if len(_learnt) > MANY:
                forget()
            attributes = attributes or one.told(held)
            found = _learnt[place] = marks, attributes, Known(_items(attributes, more), names=one.names), more
        one.alike = found
        return found[2], went


def _items(attributes: Facts, more: Facts) -> Items:
    return tuple(({name: told for name, told in attributes.items() if told is not UNKNOWN} | more).items())


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
