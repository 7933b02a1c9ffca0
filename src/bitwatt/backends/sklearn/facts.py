"""What a rule needs to know of a call: its arguments, hyper-parameters, and what the fitted estimator tells."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from operator import is_, itemgetter
from typing import Any

from numpy import float64, ndarray

from bitwatt.backends.sklearn import specs
from bitwatt.backends.sklearn.specs import MANY, PLAIN, SHORT, UNKNOWN
from bitwatt.records import TensorSpec

Facts = dict[str, Any]
Items = tuple[tuple[str, Any], ...]
#: From a fitted estimator to small values that its rules take by name.
Reader = Callable[[Any], Facts]


class Later:
    """Facts that a reader gives as one value, to be read when the call is counted: together with others, all at once.
    What they are read from must not change until then."""

    __slots__ = ("told",)

    def __init__(self, told: Callable[[], Facts]) -> None:
        self.told = told


class Known:
    """Facts as one object, the same for all that are equal: who counts calls tells them apart by its identity."""

    __slots__ = ("_items", "_later", "lasting")

    def __init__(self, items: Items) -> None:
        self._items, self._later = items, False
        for _, value in items:
            if type(value) is Later:
                self._later = True
        #: Without what only a fit depends on.
        self.lasting = self

    @property
    def items(self) -> Items:
        """All of them read."""
        if self._later:
            parts = [value.told().items() if type(value) is Later else ((name, value),) for name, value in self._items]
            self._items, self._later = tuple([pair for part in parts for pair in part]), False
        return self._items


class Given:
    """The arguments of a call, as far as a rule can use them, the names of those that came with one, and what came
    out. One object for equal ones, too."""

    __slots__ = ("keywords", "out", "values")

    def __init__(self, values: list[Any], keywords: tuple[str, ...], out: TensorSpec | None) -> None:
        self.values, self.keywords, self.out = values, keywords, out


_readers: dict[str, Reader] = {}
_readers_of: dict[type, tuple[Reader, ...]] = {}
#: What is told of parameters, and of what was learnt.
Pair = tuple[Known, Known]
#: By the identity of an estimator: itself, weakly, the values of its parameters when they were last asked for, if they
#: were plain, what was told of them, of what it has learnt, and both as methods have it that are no fits.
_last: dict[int, tuple[Any, tuple[Any, ...] | None, Known, Known, Pair]] = {}
_parameters: dict[type, tuple[str, ...]] = {}
_getters: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
_argument_names: dict[Any, tuple[str, ...]] = {}
_settings: dict[tuple[Any, ...], Known] = {}
#: By class and values of parameters: equal ones that were last asked for, if they were plain, and what was told then.
_recent: dict[tuple[type, tuple[Any, ...]], tuple[tuple[Any, ...], Known]] = {}
#: What was read of attributes: their names, what decides what is told of them, that, all that is known, and what
#: readers told beside it.
_Alike = tuple[tuple[str, ...], list[Any], Facts, Known, Facts]
_learnt: dict[tuple[Any, ...], _Alike] = {}
_alike: dict[type, _Alike] = {}  # the last one of each class
_lasting: dict[tuple[Any, ...], Known] = {}
_given: dict[tuple[Any, ...], Given] = {}
_fitted_names: dict[tuple[str, ...], tuple[str, ...]] = {}
_held_names: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {}  # the last one of each class, and its attributes
#: Which samples, and how many until now, is news with every batch of a stream, and changes no work.
_NEWS = frozenset({"labels_", "support_", "core_sample_indices_", "t_", "n_samples_seen_", "n_steps_"})


def facts(*classes: str) -> Callable[[Reader], Reader]:
    """Register a reader for classes by qualified name; it is also used for their subclasses."""

    def register(reader: Reader) -> Reader:
        _readers.update(dict.fromkeys(classes, reader))
        _readers_of.clear()
        return reader

    return register


_passing: dict[str, frozenset[str]] = {}
_passing_of: dict[type, frozenset[str]] = {}


def passes(kinds: str, *names: str) -> None:
    """These attributes of estimators, known by how their qualified names begin, tell how a fit went, and change no
    other method's work: calls of those are then alike."""
    _passing[kinds] = frozenset(names)
    _passing_of.clear()


def _passing_by(kind: type) -> frozenset[str]:
    known = _passing_of.get(kind)
    if known is None:
        name = f"{kind.__module__}.{kind.__qualname__}"
        found = [names for begins, names in _passing.items() if name.startswith(begins)]
        known = _passing_of[kind] = frozenset().union(*found)
    return known


_wholes: dict[str, frozenset[str]] = {}


def whole(kind: str, *methods: str) -> None:
    """These methods of a class, and of those below it, speak for every estimator they call: a forest for its trees."""
    _wholes[kind] = _wholes.get(kind, frozenset()) | set(methods)


def is_whole(kind: type, method: str) -> bool:
    names = (f"{parent.__module__}.{parent.__qualname__}" for parent in kind.__mro__)
    return any(method in _wholes.get(name, ()) for name in names)


def argument_names(function: Any) -> tuple[str, ...]:
    names = _argument_names.get(function)
    if names is None:
        code = getattr(inspect.unwrap(function), "__code__", None)  # below the decorators that check parameters
        names = _argument_names[function] = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    return names


def given(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> Given:
    """Of a call; `named` gives the arguments names. The result is None where it is no data."""
    key: list[Any]
    if result is None or type(result) is float:
        key = [None]
    elif type(result) is ndarray:
        shape = result.shape
        key = [shape, result.dtype, len(shape) > 1 and result.flags.fnc]
    else:
        key = [specs.output(result)]
    if kwargs:
        key += (tuple(kwargs),)
        specs.marks(kwargs.values(), key)
    specs.marks(args, key)
    place = tuple(key)
    known = _given.get(place)
    if known is None:
        if len(_given) > MANY:
            _given.clear()
        values = [specs.told(value) for value in (*args, *kwargs.values())]
        known = _given[place] = Given(values, tuple(kwargs), None if result is None else specs.output(result))
    return known


def named(function: Any, values: list[Any], keywords: tuple[str, ...]) -> Items:
    names = argument_names(function)
    if keywords:
        places = len(values) - len(keywords)
        names = (*names[:places], *keywords)
        values = [*values[: len(names) - len(keywords)], *values[places:]]
    return tuple([pair for pair in zip(names, values, strict=False) if pair[1] is not UNKNOWN])  # more are varargs


def hyper_parameters(estimator: Any) -> Items:
    """Parameters by name."""
    return _set(type(estimator), _values(type(estimator), estimator.__dict__))[1].items


def known(estimator: Any, fresh: bool) -> Pair:
    """Its parameters, and what it has learnt, which is remembered until it is fitted again. Estimators of which the
    same is known share the answer, which saves most of the time. `fresh` is after a fit."""
    kind, held = type(estimator), estimator.__dict__
    try:
        values = _getters[kind](held)
    except KeyError:
        values = _values(kind, held)
    last = _last.get(id(estimator))
    if last is not None and last[0]() is estimator:
        same = last[1] is not None and all(map(is_, values, last[1]))  # the same objects: none need be looked at
        if same and not fresh:
            return last[4]
        plain, told = last[1:3] if same else _set_again(kind, values)
        learnt = _learned(estimator, kind, held) if fresh else last[3]
        if last[3] is learnt and last[2] is told and last[1] == plain:
            return (told, learnt) if fresh else last[4]
    else:
        plain, told = _set_again(kind, values)
        learnt = _learned(estimator, kind, held)
    pair = (told, learnt)
    after = pair if learnt.lasting is learnt else (told, learnt.lasting)
    if kind.__weakrefoffset__:  # else it allows no weak references
        if len(_last) > MANY:
            _last.clear()
        _last[id(estimator)] = (weakref.ref(estimator), plain, told, learnt, after)
    return pair if fresh else after


def _values(kind: type, held: Mapping[str, Any]) -> tuple[Any, ...]:
    """Of parameters."""
    try:
        return _getters[kind](held)
    except KeyError:  # a class not seen yet, or a parameter that was deleted
        _getters[kind] = _getter(kind)
        return tuple([held.get(name) for name in _parameters[kind]])


def _set_again(kind: type, values: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, Known]:
    """The same. Most of the time it is a clone of one before that is asked for: its values are the same objects."""
    try:
        recent = _recent.get((kind, values))
    except TypeError:  # a list, an array
        return _set(kind, values)
    if recent is not None and all(map(is_, values, recent[0])):
        return recent
    plain, told = _set(kind, values)
    if plain is not None:
        if len(_recent) > MANY:
            _recent.clear()
        _recent[kind, values] = plain, told
    return plain, told


def _set(kind: type, values: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, Known]:
    """The values, if they are plain, and what is told of them."""
    plain: tuple[Any, ...] | None = values
    types = tuple([type(value) for value in values])  # 1 and 1.0 and True are equal, and not the same
    if not PLAIN.issuperset(types):  # an estimator, a list, an array: it may change, and must not be held
        plain = None
        values = tuple([value if type(value) in PLAIN else specs.told(value) for value in values])
        types = tuple([type(value) for value in values])
    key = (kind, values, types)
    told = _settings.get(key)
    if told is None:
        if len(_settings) > MANY:
            _settings.clear()
        pairs = zip(_parameters[kind], values, strict=True)
        told = _settings[key] = Known(tuple([pair for pair in pairs if pair[1] is not UNKNOWN]))
    return plain, told


def _getter(kind: type) -> Callable[[Any], tuple[Any, ...]]:
    names = _parameters[kind] = _parameter_names(kind)
    return itemgetter(*names) if len(names) > 1 else lambda held: tuple([held.get(name) for name in names])


def _parameter_names(kind: type) -> tuple[str, ...]:
    find = getattr(kind, "_get_param_names", None)
    try:
        return tuple(find()) if find is not None else ()
    except RuntimeError:  # a constructor with varargs
        return ()


def forget() -> None:
    """Estimators may be fitted anew between sessions, where nobody sees it; and nothing of the program's is kept."""
    for table in (_last, _settings, _recent, _learnt, _alike, _lasting, _held_names, _given):
        table.clear()
    specs.forget()


def still_holds(estimator: Any, held: Mapping[str, Any] | None) -> bool:
    """Whether its attributes are the objects that they were."""
    now = estimator.__dict__
    return held is not None and len(held) == len(now) and all(map(is_, held.values(), now.values()))


def outdated(estimator: Any) -> None:
    """It has learnt something outside of a fit."""
    _last.pop(id(estimator), None)


def _learned(estimator: Any, kind: type, held: Mapping[str, Any]) -> Known:
    keys = tuple(held)
    last = _held_names.get(kind)
    if last is None or last[0] != keys:  # to compare takes less than to hash
        last = _held_names[kind] = keys, _names_of(keys)
    names = last[1]
    marks = _marks(names, held)
    more: Facts = {}
    for reader in _readers_for(kind):
        more |= reader(estimator)
    recent = _alike.get(kind)
    if recent is not None and recent[0] is not names:
        recent = None
    if more and Later in map(type, more.values()):  # nobody knows yet what that will be
        return _fitted(_attributes(names, marks, held, recent), more)
    if recent is not None and recent[1] == marks and recent[4] == more:  # most of the time
        return recent[3]
    passing = _passing_by(kind)
    place = (names, passing, *marks, *more.items())
    found = _learnt.get(place)
    if found is None:
        if len(_learnt) > MANY:
            _learnt.clear()
            _lasting.clear()
        attributes = _attributes(names, marks, held, recent)
        told = _fitted(attributes, more)
        if gone := passing.intersection(names):
            stays = [(name, mark) for name, mark in zip(names, marks, strict=True) if name not in gone]
            lasting = Known(tuple([pair for pair in told.items if pair[0] not in gone]))
            told.lasting = _lasting.setdefault((*stays, *more.items()), lasting)
        found = _learnt[place] = names, marks, attributes, told, more
    _alike[kind] = found
    return found[3]


def _fitted(attributes: Facts, more: Facts) -> Known:
    found = {name: told for name, told in attributes.items() if told is not UNKNOWN}
    return Known(tuple((found | more).items()))


def _readers_for(kind: type) -> tuple[Reader, ...]:
    known = _readers_of.get(kind)
    if known is None:
        found = [_readers.get(f"{parent.__module__}.{parent.__qualname__}") for parent in kind.__mro__]
        known = _readers_of[kind] = tuple(reader for reader in found if reader is not None)
    return known


def _marks(names: tuple[str, ...], held: Mapping[str, Any]) -> list[Any]:
    """What decides what `_told` says of attributes. It is asked for after every fit, as `specs.marks` is for every
    call."""
    found: list[Any] = []
    for name in names:
        value = held[name]
        kind = type(value)
        if name in _NEWS:
            told = _told(name, value)
            found.append((type(told), told))
        elif kind is ndarray:
            shape = value.shape
            found.append((shape, value.dtype, value.flags.fnc) if len(shape) > 1 else specs.mark(value))
        elif kind is int or kind is str:
            found.append((kind, value))
        elif kind is float or kind is float64 or value is None:
            found.append(kind)
        else:
            told = _told(name, value)
            found.append((type(told), told))
    return found


def _attributes(names: tuple[str, ...], marks: list[Any], held: Mapping[str, Any], recent: _Alike | None) -> Facts:
    """Sizes and numbers of things: those that differ from what was read last are told anew."""
    if recent is None:
        return {name: _told(name, held[name]) for name in names}
    found = recent[2].copy()
    for name, mark, before in zip(names, marks, recent[1], strict=True):
        if mark != before:
            found[name] = _told(name, held[name])
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


def _names_of(held: tuple[str, ...]) -> tuple[str, ...]:
    """Those of attributes that came with a fit."""
    known = _fitted_names.get(held)
    if known is None:
        if len(_fitted_names) > MANY:
            _fitted_names.clear()
        known = tuple([name for name in held if name.endswith("_") and not name.startswith("_")])
        _fitted_names[held] = known
    return known
