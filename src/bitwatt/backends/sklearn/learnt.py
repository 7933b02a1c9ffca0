"""What a fitted estimator tells by its attributes: sizes and small values, read after every fit.

Estimators of a class are much alike. What was read of the last one stays with the class (`Kind`), and of the next one
only that is read which decides whether it tells the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from numpy import dtype, float64, ndarray

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
_CLASSES = {kind: kind.__name__ for kind in (int, bool, str, float, float64, type(None), dict, ndarray)}
#: Most arrays have one of these, the very object.
_DTYPES = {f"d{one.num}": one for one in map(dtype, ("f8", "f4", "i8", "i4", "u1", "?"))}
#: Whether a mapping holds these very objects.
Same = Callable[[Mapping[str, Any], tuple[Any, ...]], bool]
Marking = Callable[[Mapping[str, Any]], tuple[Any, ...] | None]


class Later:
    """Facts that a reader gives as one value, to be read when the call is counted: together with others, all at once.
    What they are read from must not change until then."""

    __slots__ = ("told",)

    def __init__(self, told: Callable[[], Facts]) -> None:
        self.told = told


class Known:
    """Facts as one object, the same for all that are equal: who counts calls tells them apart by its identity."""

    __slots__ = ("_items", "_later", "_places")

    def __init__(self, items: Items, later: bool = False, places: Mapping[str, int] | None = None) -> None:
        self._items, self._later = items, later
        self._places = places or {}  # where among them belongs what tells how a fit went

    @property
    def items(self) -> Items:
        """All of them read."""
        if self._later:
            parts = [value.told().items() if type(value) is Later else ((name, value),) for name, value in self._items]
            self._items, self._later = tuple([pair for part in parts for pair in part]), False
        return self._items

    def together(self, went: Items) -> Items:
        """With what tells how a fit went."""
        if not went:
            return self.items
        found = list(self.items)
        for pair in went:
            found.insert(self._places.get(pair[0], len(found)), pair)
        return tuple(found)


#: What was read of attributes: what decides what is told of them, that, all that is known, and what readers told
#: beside it.
_Alike = tuple[tuple[Any, ...], Facts, Known, Facts]
_learnt: dict[tuple[Any, ...], _Alike] = {}
#: In the place of what readers told, if some of it is read later: nothing equals it.
_LATER: Facts = {"": object()}


def forget() -> None:
    _learnt.clear()


def picker(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """From a mapping to these values of it."""
    if len(names) > 1:
        return itemgetter(*names)
    return (lambda held: (held[names[0]],)) if names else lambda held: ()


@functools.lru_cache(1_000)
def _comparing(names: tuple[str, ...]) -> Same:
    """Whether a mapping holds these very objects by these names. It is asked for every call, so it is written out: to
    pick them and to compare them in turn takes three times as long."""
    if not names:
        return lambda held, values: True
    unpacked = "".join(f"v{i}, " for i in range(len(names)))
    same = " and ".join(f"held[{name!r}] is v{i}" for i, name in enumerate(names))
    source = f"def same(held, values):\n    {unpacked}= values\n    try:\n        return {same}\n"
    made: dict[str, Any] = {}
    exec(f"{source}    except KeyError:\n        return False\n", made)
    found: Same = made["same"]
    return found


#: What decides whether attributes are what they were, and whether they still are.
Marked = tuple[Callable[[Mapping[str, Any]], tuple[Any, ...]], Same]
#: Of attributes of other classes only the identity is kept: they may hold on to their estimator.
_HELD = frozenset({ndarray, int, bool, str, type(None)})
#: What scikit-learn lends an estimator while it is fitted by another one.
_PASSED = frozenset({"_parent_callback_ctx", "_callback_fit_ctx", "_skl_callbacks", "_skl_callbacks_to_teardown"})
#: Of these it is told only that they are there.
_FLOATS = frozenset({float, float64})


@functools.lru_cache(1_000)
def _remembering(kept: tuple[str, ...], others: tuple[str, ...], lists: tuple[str, ...]) -> Marked:
    """A program may give a fitted estimator other attributes, or shorten its list of estimators. It is asked for every
    call, and written out as `_comparing` is."""
    names, ids, lengths = ([f"held[{name!r}]" for name in names] for names in (kept, others, lists))
    now = [*names, *(f"id({one})" for one in ids), *(f"len({one})" for one in lengths)]
    same = [f"{one} {'is' if i < len(kept) else '=='} v{i}" for i, one in enumerate(now)] or ["True"]
    unpacked = f"{''.join(f'v{i}, ' for i in range(len(now)))}= values" if now else "pass"
    source = (
        f"def mark(held):\n    return ({', '.join(now)}{',' if now else ''})\n"
        f"def same(held, values):\n    try:\n        {unpacked}\n        return {' and '.join(same)}\n"
        "    except (KeyError, TypeError):\n        return False\n"
    )
    made: dict[str, Any] = {}
    exec(source, made)
    return made["mark"], made["same"]


class Holding:
    """What estimators of a class hold by name, and what the last of them was like. Attributes that came with a fit tell
    something. Several threads may ask at once: but for `alike` it never changes."""

    __slots__ = ("alike", "keys", "marks", "names", "remember", "went")

    def __init__(self, held: Mapping[str, Any], passing: frozenset[str], more: tuple[str, ...] = ()) -> None:
        """`more` are attributes that its readers may look at."""
        self.keys = [*held]
        self.names = tuple([name for name in held if name.endswith("_") and not name.startswith("_")])
        self.went = tuple([name for name in self.names if name in passing])
        self.marks = _marking({name: held[name] for name in self.names if name not in passing})
        looked = [name for name in (*self.names, *more) if name not in passing and type(held[name]) not in _FLOATS]
        kept = tuple([name for name in looked if type(held[name]) in _HELD])
        others = tuple([name for name in looked if name not in kept])
        self.remember = _remembering(kept, others, tuple([name for name in others if type(held[name]) is list]))
        self.alike: _Alike | None = None

    def told(self, held: Mapping[str, Any]) -> Facts:
        """Sizes and numbers of things."""
        return {name: _told(name, held[name]) for name in self.names if name not in self.went}

    def known(self, attributes: Facts, more: Facts, later: bool = False) -> Known:
        told = {name: value for name, value in attributes.items() if value is not UNKNOWN}
        order = [name for name in self.names if name in told or name in self.went]
        return Known(tuple((told | more).items()), later, {name: order.index(name) for name in self.went})


def _marking(attributes: Mapping[str, Any]) -> Marking:
    """A function from what an estimator holds to what decides what `_told` says of these attributes; None where one of
    them is of another class than here, or no longer short. It is asked for after every fit, so it is written out: a
    line for each attribute, as `namedtuple` does."""
    reads, same, marks = [], ["True"], []
    for i, (name, value) in enumerate(attributes.items()):
        kind = type(value)
        reads.append(f"    v{i} = held[{name!r}]\n")
        if kind not in _CLASSES or (kind is ndarray and not value.ndim):
            marks.append(f"*of({name!r}, v{i})")
            continue
        same.append(f"type(v{i}) is {_CLASSES[kind]}")
        if kind is ndarray:
            number, usual = value.dtype.num, _DTYPES.get(f"d{value.dtype.num}") is value.dtype
            same.append(f"v{i}.dtype is d{number}" if usual else f"(t{i} := v{i}.dtype).num == {number}")
            same.append(f"v{i}.ndim == {value.ndim}")
            if not usual:
                marks.append(f"t{i}")
            if value.ndim > 1:
                marks.append(f"v{i}.shape, v{i}.flags.fnc")
            elif value.dtype.kind not in "iu" or name in _NEWS:
                marks.append(f"len(v{i})")
            elif value.shape[0] > SHORT:
                same.append(f"len(v{i}) > {SHORT}")
                marks.append(f"len(v{i})")
            else:
                same.append(f"len(v{i}) <= {SHORT}")
                marks.append(f"len(v{i}), *v{i}.tolist()")  # it is told as it is
        elif kind in (int, bool, str) and name not in _NEWS:  # of others all that is told is that they are there
            marks.append(f"v{i}")
    told = f"({', '.join(marks)},)" if marks else "()"
    return _written(f"def marks(held):\n{''.join(reads)}    if {' and '.join(same)}:\n        return {told}\n")


@functools.lru_cache(1_000)
def _written(source: str) -> Marking:
    """Compiling it takes as long as a fit: it outlives sessions, and holds nothing of a program's."""
    names: dict[str, Any] = {name: kind for kind, name in _CLASSES.items()} | _DTYPES | {"of": _typed}
    exec(source, names)
    marking: Marking = names["marks"]
    return marking


def _typed(name: str, value: Any) -> tuple[Any, Any]:
    told = _told(name, value)
    return type(told), told


class Kind:
    """A class of estimators: its parameters, its readers, the attributes that tell only how a fit went; and what its
    last fitted estimator held."""

    __slots__ = ("last", "listed", "parameters", "passing", "readers", "recent", "same", "set", "values")

    def __init__(self, parameters: tuple[str, ...], readers: tuple[Reader, ...], passing: frozenset[str]) -> None:
        self.parameters, self.readers, self.passing = parameters, readers, passing
        self.values, self.same = picker(parameters), _comparing(parameters)
        #: By plain values of parameters: those that were last asked for, their classes, and what was told of them.
        self.set: dict[tuple[Any, ...], tuple[tuple[Any, ...], tuple[type, ...], Known]] = {}
        #: Values that never change and were asked for last, and what was told of them.
        self.recent: tuple[tuple[Any, ...], Known] | None = None
        #: The same of others: what decides what is told in their places.
        self.listed: tuple[list[Any], Known] | None = None
        self.last: Holding | None = None

    def forget(self) -> None:
        self.set.clear()
        self.recent = self.listed = None
        if self.last is not None:
            self.last.alike = None

    def marked(self, held: Mapping[str, Any]) -> tuple[tuple[Any, ...], Same]:
        """What tells later whether the estimator that was just read is what it was."""
        if self.last is None:  # a session has just ended in another thread
            return (), lambda held, values: False
        mark, same = self.last.remember
        try:
            return mark(held), same
        except (KeyError, TypeError):  # another thread read one of another kind
            return (), lambda held, values: False

    def learnt(self, estimator: Any, held: Mapping[str, Any]) -> tuple[Known, Items]:
        """What it tells, and beside it how its last fit went."""
        one = self.last
        marks = one.marks(held) if one is not None and one.keys == [*held] else None
        if one is None or marks is None:
            private = [name for name in held if name[:1] == "_" and name not in self.parameters and name not in _PASSED]
            one = self.last = Holding(held, self.passing, tuple(private) if self.readers else ())
            marks = one.marks(held)
            assert marks is not None  # they were written for it
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
            known = one.known(attributes, more, later=True)
            one.alike = marks, attributes, known, _LATER
            return known, went
        place = (one.marks, one.names, *marks, *more.items())  # the first says which classes they are of
        found = _learnt.get(place)
        if found is None:
            if len(_learnt) > MANY:
                forget()
            attributes = attributes or one.told(held)
            found = _learnt[place] = marks, attributes, one.known(attributes, more), more
        one.alike = found
        return found[2], went


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
