"""Calls inside a fit that attributes of the fitted estimator do not tell: counted, with their sizes where they differ.

A probe wraps one function of a library while a session is open. What it saw goes to the rule of the call under way as
`probes`: a tuple of (name, *sizes, times).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bitwatt.backends.sklearn.frames import STACK
from bitwatt.backends.sklearn.names import LIBRARIES
from bitwatt.imports import when_imported

#: From the arguments of a call and its result to the sizes that its cost depends on; None where nothing is to be told
#: (only for probes that look `before` the call).
Sizes = Callable[[tuple[Any, ...], dict[str, Any], Any], tuple[Any, ...] | None]


@dataclass(frozen=True)
class Probe:
    """`path` is `module:name` or `module:Class.name`; `name` is what rules call it."""

    path: str
    name: str
    sizes: Sizes | None = None
    before: Callable[[tuple[Any, ...]], Any] | None = None
    handing: Callable[[Any, Callable[..., None]], Any] | None = None


PROBES: list[Probe] = []
#: Where functions that are counted may have been imported to.
_PACKAGES = frozenset({*LIBRARIES, "scipy"})


def probe(
    path: str,
    name: str = "",
    sizes: Sizes | None = None,
    before: Callable[[tuple[Any, ...]], Any] | None = None,
    handing: Callable[[Any, Callable[..., None]], Any] | None = None,
) -> None:
    """Count calls of a function inside estimators. What `before` reads from the arguments ahead of the call (a counter
    that the call moves on) reaches `sizes` as the keyword argument `before`. A function that hands out another one to
    be called many times (a product with a Hessian) goes through `handing`: it gets the result and `tick`, which counts
    one call of `name` + "_inner" with the sizes it is given, and returns what the caller gets instead."""
    _unheard.clear()
    PROBES.append(Probe(path, name or path.rpartition(".")[2].rpartition(":")[2], sizes, before, handing))


_hears: dict[str, tuple[str, ...]] = {}
_unheard: dict[type, frozenset[str]] = {}


def hears(kinds: str, *names: str) -> None:
    """Rules of these estimators, known by how their qualified names begin, use these probes, known by how theirs
    begin, and no others: those then cost next to nothing. Who is not named hears all; the longest name counts."""
    _hears[kinds] = names
    _unheard.clear()


def unheard_by(kind: type) -> frozenset[str]:
    """Names of the probes that an estimator has no use for."""
    known = _unheard.get(kind)
    if known is None:
        name = f"{kind.__module__}.{kind.__qualname__}"
        begins = max((begins for begins in _hears if name.startswith(begins)), key=len, default=None)
        heard = ("",) if begins is None else _hears[begins]
        known = _unheard[kind] = frozenset(one.name for one in PROBES if not one.name.startswith(heard))
    return known


#: Functions to exchange, by the identity of those that are found: (the one that is found, the one to put there).
_Exchange = dict[int, tuple[Any, Any]]
#: The names of a module, and one of them.
_Place = tuple[dict[str, Any], str]
_NONE: Mapping[int, int] = {}


def install(watch: Any) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []
    back: _Exchange = {}
    there: dict[str, _Exchange] = {}
    places: list[_Place] = []
    for one in PROBES:
        module = one.path.partition(":")[0]
        if module in sys.modules:
            _attach(watch, one, undo, back, there.setdefault(module.partition(".")[0], {}))
        else:
            undo.append(when_imported(module, functools.partial(_attach_later, watch, one, undo, back, places)))
    for package, functions in there.items():
        places += _exchange(functions, package)
    sizes = {id(loaded): len(vars(loaded)) for loaded in list(sys.modules.values()) if hasattr(loaded, "__dict__")}

    def forget() -> None:
        while undo:
            undo.pop()()
        for held, key in places:
            found = back.get(id(held.get(key)))
            if found is not None and found[0] is held[key]:
                held[key] = found[1]
        _exchange(back, unless=sizes)  # modules that changed meanwhile took our function for the library's

    return [forget]


def _attach_later(
    watch: Any, one: Probe, undo: list[Callable[[], None]], back: _Exchange, places: list[_Place]
) -> None:
    functions: _Exchange = {}
    _attach(watch, one, undo, back, functions)
    places += _exchange(functions, one.path.partition(".")[0])


def _attach(watch: Any, one: Probe, undo: list[Callable[[], None]], back: _Exchange, there: _Exchange) -> None:
    """Count a method on its class; a function of a module lives on under its name in every module that imported it."""
    module, _, name = one.path.partition(":")
    owner: Any = sys.modules[module]
    *classes, attribute = name.split(".")
    for part in classes:
        owner = getattr(owner, part, None)
    original = owner.__dict__.get(attribute) if owner is not None else None
    if original is None and classes and hasattr(owner, attribute):  # a method of a compiled parent that cannot change
        setattr(owner, attribute, _counting(watch, one, getattr(owner, attribute)))
        undo.append(lambda: delattr(owner, attribute))
        return
    if original is None:  # another version of the library
        watch.notes.setdefault(f"{one.path} is not there to be counted", None)
        return
    if getattr(original, "__bitwatt_probe__", None) == one.name or id(original) in there:  # it is counted already
        return
    ours = _counting(watch, one, original)
    if classes:
        setattr(owner, attribute, ours)
        undo.append(lambda: setattr(owner, attribute, original))
        return
    there[id(original)] = (original, ours)
    back[id(ours)] = (ours, original)


def _exchange(functions: _Exchange, package: str = "", unless: Mapping[int, int] = _NONE) -> list[_Place]:
    """Put functions in the place of others in every module of a package, or of all that are loaded, unless they are as
    large as before. Looking at all of them takes milliseconds."""
    places: list[_Place] = []
    if not functions:
        return places
    for loaded in list(sys.modules.values()):
        name = getattr(loaded, "__name__", "") if loaded is not None else ""
        if name.partition(".")[0] != package if package else name.partition(".")[0] not in _PACKAGES:
            continue
        held = vars(loaded)
        if unless.get(id(loaded)) == len(held):
            continue
        for key, value in list(held.items()):
            found = functions.get(id(value))
            if found is not None and found[0] is value:
                held[key] = found[1]
                places.append((held, key))
    return places


def _counting(watch: Any, one: Probe, original: Any) -> Any:
    """The function, counted; each kind of probe has the least that it needs between the program and its function."""
    kind = type(original) if isinstance(original, (staticmethod, classmethod)) else None
    function = original.__func__ if kind is not None else original
    make = _simple if one.before is None and one.handing is None else _around
    counted = functools.wraps(function)(make(watch, one, function))
    counted.__bitwatt_probe__ = one.name  # type: ignore[attr-defined]
    return kind(counted) if kind is not None else counted


def _simple(watch: Any, one: Probe, function: Any) -> Any:
    name, sizes, alone = one.name, one.sizes, (one.name,)

    def counted(*args: Any, **kwargs: Any) -> Any:
        frames = STACK.get() if watch.on else ()
        if not frames or name in frames[-1].unheard:
            return function(*args, **kwargs)
        result = function(*args, **kwargs)
        seen = alone
        if sizes is not None:
            try:
                seen = (name, *(sizes(args, kwargs, result) or ()))
            except Exception as error:
                seen = _lost(watch, name, error)
        frames[-1].probes[seen] += 1
        return result

    return counted


def _around(watch: Any, one: Probe, function: Any) -> Any:
    def counted(*args: Any, **kwargs: Any) -> Any:
        frames = STACK.get() if watch.on else ()
        if not frames or one.name in frames[-1].unheard:
            return function(*args, **kwargs)
        told: dict[str, Any] = kwargs
        if one.before is not None:
            told = {**kwargs, "before": None}
            try:
                told["before"] = one.before(args)
            except Exception as error:
                _lost(watch, one.name, error)
        result = function(*args, **kwargs)
        try:
            found = one.sizes(args, told, result) if one.sizes is not None else ()
            if found is None:
                return result
            seen = (one.name, *found)
        except Exception as error:
            seen = _lost(watch, one.name, error)
        probes = frames[-1].probes
        probes[seen] += 1
        if one.handing is None:
            return result
        inner = (f"{one.name}_inner", *seen[1:])

        def tick(*more: Any) -> None:
            probes[(*inner, *more)] += 1

        return one.handing(result, tick)

    return counted


def _lost(watch: Any, name: str, error: Exception) -> tuple[Any, ...]:
    """The fit comes first; its count is then a lower bound, and says so."""
    watch.notes.setdefault(f"{name} could not be counted: {type(error).__name__}: {error}", None)
    return (name, "unknown")
