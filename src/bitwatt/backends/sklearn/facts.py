"""What a rule needs to know of a call: its arguments, hyper-parameters, and what the fitted estimator tells."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from numpy import ndarray

from bitwatt.backends.sklearn import learnt as learning
from bitwatt.backends.sklearn import specs
from bitwatt.backends.sklearn.learnt import Facts, Items, Kind, Known, Later, Reader, Same
from bitwatt.backends.sklearn.specs import MANY, PLAIN, SCALARS, SHORT, UNKNOWN
from bitwatt.records import TensorSpec

__all__ = ["Facts", "Items", "Known", "Later", "Reader", "facts", "given", "known", "named", "passes", "whole"]


class Given:
    """The arguments of a call, as far as a rule can use them, the names of those that came with one, and what came
    out. One object for equal ones, too."""

    __slots__ = ("key", "keywords", "out", "values")

    def __init__(self, key: list[Any], values: list[Any], keywords: tuple[str, ...], out: TensorSpec | None) -> None:
        self.key, self.values, self.keywords, self.out = key, values, keywords, out


_readers: dict[str, Reader] = {}
_kinds: dict[type, Kind] = {}
#: What is told of parameters, of what was learnt, and after a fit of how it went.
Told = tuple[Known, Known, Items]
#: By the identity of an estimator: itself, weakly, the values of its parameters when they were last asked for, if they
#: never change, what is told of it by methods that are no fits, how those values are compared; what marks the
#: attributes that were read, and how it is compared.
_last: dict[int, tuple[Any, tuple[Any, ...] | None, Told, Same, tuple[Any, ...], Same]] = {}
_argument_names: dict[Any, tuple[str, ...]] = {}
#: Of calls of which nothing is told.
NOTHING: tuple[Told, Given] = (Known(()), Known(()), ()), Given([], [], (), None)
_settings: dict[tuple[Any, ...], Known] = {}
_given: dict[tuple[Any, ...], Given] = {}


def facts(*classes: str) -> Callable[[Reader], Reader]:
    """Register a reader for classes by qualified name; it is also used for their subclasses."""

    def register(reader: Reader) -> Reader:
        _readers.update(dict.fromkeys(classes, reader))
        _kinds.clear()
        return reader

    return register


_passing: dict[str, frozenset[str]] = {}


def passes(kinds: str, *names: str) -> None:
    """These attributes of estimators, known by how their qualified names begin, tell how a fit went, and change no
    other method's work: calls of those are then alike."""
    _passing[kinds] = frozenset(names)
    _kinds.clear()


def _kind(kind: type) -> Kind:
    name = f"{kind.__module__}.{kind.__qualname__}"
    found = [_readers.get(f"{parent.__module__}.{parent.__qualname__}") for parent in kind.__mro__]
    passing = [names for begins, names in _passing.items() if name.startswith(begins)]
    readers = tuple(reader for reader in found if reader is not None)
    made = _kinds[kind] = Kind(_parameter_names(kind), readers, frozenset().union(*passing))
    return made


#: By class and method: whether it speaks for all that an estimator calls.
_wholes: dict[tuple[str, str], Callable[[Any], bool] | bool] = {}


def whole(kind: str, *methods: str, where: Callable[[Any], bool] | bool = True) -> None:
    """These methods of a class, and of those below it, speak for every estimator they call: a forest for its trees.
    Some do only `where` nobody gave theirs an estimator of another kind."""
    _wholes.update(dict.fromkeys([(kind, method) for method in methods], where))


def is_whole(kind: type, method: str) -> Callable[[Any], bool] | bool:
    names = (f"{parent.__module__}.{parent.__qualname__}" for parent in kind.__mro__)
    return next((_wholes[name, method] for name in names if (name, method) in _wholes), False)


#: Names of ops that leave all work to methods they call. Inside of other calls nothing is told of them but that they
#: were made: what they were given, and what their estimator has learnt, decides nothing.
hollow: set[str] = set()


def argument_names(function: Any) -> tuple[str, ...]:
    names = _argument_names.get(function)
    if names is None:
        code = getattr(inspect.unwrap(function), "__code__", None)  # below the decorators that check parameters
        names = _argument_names[function] = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    return names


def given(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any, last: Given | None = None, streams: bool = False
) -> Given:
    """Of a call; `named` gives the arguments names. The result is None where it is no data. Most calls are given what
    the `last` one was. Of a stream's labels only the number is told: which ones they are is news with every batch."""
    labels = (args[1] if len(args) > 1 else kwargs.get("y")) if streams else None
    key: list[Any]  # what decides what is told
    if result is None or type(result) is float:
        key = [None]
    elif type(result) is ndarray:
        shape = result.shape
        key = [shape, result.dtype, result.flags.fnc if len(shape) > 1 else False]
    else:
        key = [specs.output(result)]
    if kwargs:
        key.append(tuple(kwargs))
    for value in (*kwargs.values(), *args) if kwargs else args:
        kind = type(value)
        if kind is ndarray:
            shape = value.shape
            if len(shape) > 1:
                key += shape, value.dtype, value.flags.fnc
            elif shape and (shape[0] > SHORT or value is labels):
                key += shape, value.dtype
            else:
                key += specs.mark(value)
        elif kind in PLAIN:
            key += kind, value  # 1 and 1.0 and True are equal, and not the same
        elif value is labels:
            key += specs.mark_of(specs.unread(value))
        else:
            key += specs.mark_of(value)
    if last is not None and last.key == key:
        return last
    place = tuple(key)
    known = _given.get(place)
    if known is None:
        if len(_given) > MANY:
            _given.clear()
        if labels is not None:
            unread = specs.unread(labels)
            values = [unread if value is labels else specs.told(value) for value in (*args, *kwargs.values())]
        else:
            values = [specs.told(value) for value in (*args, *kwargs.values())]
        known = _given[place] = Given(key, values, tuple(kwargs), None if result is None else specs.output(result))
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
    about = _kinds.get(type(estimator)) or _kind(type(estimator))
    return _set_now(about, estimator.__dict__)[1].items


def known(estimator: Any, fresh: bool) -> Told:
    """Its parameters, and what it has learnt, which is remembered until it is fitted again, or has got other
    attributes. Estimators of which the same is known share the answer, which saves most of the time. `fresh` is after a
    fit: how it went is told, too."""
    kind, held = type(estimator), estimator.__dict__
    last = _last.get(id(estimator))
    if last is not None and last[0]() is not estimator:
        last = None
    if last is not None and not fresh:
        if not last[5](held, last[4]):
            last = None
        elif last[1] is not None and last[3](held, last[1]):
            return last[2]  # most of the time: none of its parameters need be looked at
    about = _kinds.get(kind) or _kind(kind)
    if last is None or fresh:
        learnt, went = about.learnt(estimator, held)
        marks, still = about.marked(held)
    else:
        learnt, went, marks, still = last[2][1], (), last[4], last[5]
    plain, settings = (last[1], last[2][0]) if last is not None else (None, None)
    if settings is None or plain is None or not about.same(held, plain):
        plain, settings = _set_now(about, held)
    told: Told = (settings, learnt, ())
    if last is not None and settings is last[2][0] and learnt is last[2][1]:
        told = last[2]
    if kind.__weakrefoffset__:  # else it allows no weak references
        if len(_last) > MANY:
            _last.clear()
        met = last[0] if last is not None else weakref.ref(estimator, functools.partial(_gone, id(estimator)))
        _last[id(estimator)] = met, plain, told, about.same, marks, still
    return (settings, learnt, went) if went and fresh else told


def _gone(key: int, met: Any) -> None:
    """An estimator is no more, and nothing that it held is kept."""
    last = _last.get(key)
    if last is not None and last[0] is met:
        del _last[key]


def _set_now(about: Kind, held: Mapping[str, Any]) -> tuple[tuple[Any, ...] | None, Known]:
    """The values of its parameters, if they never change, and what is told of them. Most of the time it is a clone of
    the last one that is asked for: its values are the same objects."""
    recent = about.recent
    if recent is not None and about.same(held, recent[0]):
        return recent
    try:
        values = about.values(held)
    except KeyError:  # some have been deleted
        values = tuple([held.get(name) for name in about.parameters])
    listed = about.listed
    if listed is not None and _as_before(values, listed[0]):
        return None, listed[1]
    types = tuple(map(type, values))  # 1 and 1.0 and True are equal, and not the same
    if SCALARS.issuperset(types):
        found = about.set.get(values)
        if found is None or found[1] != types:
            if len(about.set) > MANY:
                about.set.clear()
            simple = tuple(map(specs.told, values))
            found = about.set[values] = values, types, _set(about, simple, tuple(map(type, simple)))
        recent = about.recent = found[0], found[2]
        return recent
    others = [value for value in values if type(value) not in SCALARS]
    told = [value if type(value) in PLAIN else specs.told(value) for value in values]
    inner = [tuple(map(type, value)) if type(value) is tuple else type(value) for value in told]
    known = _set(about, tuple(told), tuple(inner))
    if all(type(value) is tuple and PLAIN.issuperset(map(type, value)) for value in others):
        recent = about.recent = values, known
        return recent
    about.listed = [*map(specs.mark_in, values)], known  # an estimator, a list, an array: it may change: it is not held
    return None, known


def _as_before(values: tuple[Any, ...], before: list[Any]) -> bool:
    for value, last in zip(values, before, strict=True):
        if value is not last:
            now = specs.steps_like(value) if type(last) is list else specs.told(value)
            if now is not last and (type(last) is not list or now != last):
                return False
    return True


def _set(about: Kind, values: tuple[Any, ...], types: tuple[Any, ...]) -> Known:
    key = (about, values, types)
    told = _settings.get(key)
    if told is None:
        if len(_settings) > MANY:
            _settings.clear()
        pairs = zip(about.parameters, values, strict=True)
        told = _settings[key] = Known(tuple([pair for pair in pairs if pair[1] is not UNKNOWN]))
    return told


def _parameter_names(kind: type) -> tuple[str, ...]:
    find = getattr(kind, "_get_param_names", None)
    try:
        return tuple(find()) if find is not None else ()
    except RuntimeError:  # a constructor with varargs
        return ()


def forget() -> None:
    """Estimators may be fitted anew between sessions, where nobody sees it; and nothing of the program's is kept."""
    for table in (_last, _settings, _given):
        table.clear()
    for about in _kinds.values():
        about.forget()
    learning.forget()
    specs.forget()


def still_holds(estimator: Any, held: Mapping[str, Any] | None) -> bool:
    """Whether its attributes are the objects that they were."""
    now = estimator.__dict__
    return held is not None and len(held) == len(now) and all(map(is_, held.values(), now.values()))


def outdated(estimator: Any) -> None:
    """It has learnt something outside of a fit."""
    _last.pop(id(estimator), None)


def all_outdated() -> None:
    """A model has changed that may be part of any estimator."""
    _last.clear()
