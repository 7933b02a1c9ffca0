"""What a rule needs to know of a call: its arguments, hyper-parameters, and what the fitted estimator tells."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Mapping
from operator import is_
from typing import Any

from numpy import ndarray

from bitwatt.backends.sklearn import learnt as learning
from bitwatt.backends.sklearn import specs
from bitwatt.backends.sklearn.learnt import Facts, Items, Kind, Known, Later, Reader
from bitwatt.backends.sklearn.specs import MANY, PLAIN, SHORT, UNKNOWN
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
#: were plain, and what is told of it by methods that are no fits.
_last: dict[int, tuple[Any, tuple[Any, ...] | None, Told]] = {}
_argument_names: dict[Any, tuple[str, ...]] = {}
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
    return _set_again(about, _values(about, estimator.__dict__))[1].items


def known(estimator: Any, fresh: bool) -> Told:
    """Its parameters, and what it has learnt, which is remembered until it is fitted again. Estimators of which the
    same is known share the answer, which saves most of the time. `fresh` is after a fit: how it went is told, too."""
    kind, held = type(estimator), estimator.__dict__
    about = _kinds.get(kind) or _kind(kind)
    try:
        values = about.values(held)
    except KeyError:
        values = _values(about, held)
    last = _last.get(id(estimator))
    if last is not None:
        met, plain, told = last
        if met() is estimator:
            same = plain is not None and all(map(is_, values, plain))  # the same objects: none need be looked at
            if not fresh:
                if same:
                    return told
                learnt, went = told[1:]
            else:
                learnt, went = about.learnt(estimator, held)
                if same and told[1] is learnt:
                    return (told[0], learnt, went) if went else told
            return _remember(estimator, _set_again(about, values), learnt, went)
    return _remember(estimator, _set_again(about, values), *about.learnt(estimator, held), fresh)


def _remember(
    estimator: Any, of: tuple[tuple[Any, ...] | None, Known], learnt: Known, went: Items, fresh: bool = True
) -> Told:
    plain, settings = of
    told = (settings, learnt, ())
    if type(estimator).__weakrefoffset__:  # else it allows no weak references
        if len(_last) > MANY:
            _last.clear()
        _last[id(estimator)] = (weakref.ref(estimator), plain, told)
    return (settings, learnt, went) if went and fresh else told


def _values(about: Kind, held: Mapping[str, Any]) -> tuple[Any, ...]:
    """Of parameters, some of which may have been deleted."""
    return tuple([held.get(name) for name in about.parameters])


def _set_again(about: Kind, values: tuple[Any, ...]) -> tuple[tuple[Any, ...] | None, Known]:
    """The values, if they are plain, and what is told of them. Most of the time it is a clone of one before that is
    asked for: its values are the same objects."""
    types = tuple(map(type, values))  # 1 and 1.0 and True are equal, and not the same
    if not PLAIN.issuperset(types):  # an estimator, a list, an array: it may change, and must not be held
        told = tuple([value if type(value) in PLAIN else specs.told(value) for value in values])
        return None, _set(about, told, tuple(map(type, told)))
    recent = about.set.get(values)
    if recent is not None and recent[2] == types:
        return recent[:2]
    if len(about.set) > MANY:
        about.set.clear()
    known = _set(about, values, types)
    about.set[values] = values, known, types
    return values, known


def _set(about: Kind, values: tuple[Any, ...], types: tuple[type, ...]) -> Known:
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
