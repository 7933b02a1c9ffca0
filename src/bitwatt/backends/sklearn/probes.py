"""Calls inside a fit that attributes of the fitted estimator do not tell: counted, with their sizes where they differ.

A probe wraps one function of a library while a session is open. What it saw goes to the rule of the call under way as
`probes`: a tuple of (name, *sizes, times).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bitwatt.backends.sklearn.frames import top
from bitwatt.backends.sklearn.names import LIBRARIES
from bitwatt.imports import when_imported

#: From the arguments of a call and its result to the sizes that its cost depends on.
Sizes = Callable[[tuple[Any, ...], dict[str, Any], Any], tuple[Any, ...]]


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
    PROBES.append(Probe(path, name or path.rpartition(".")[2].rpartition(":")[2], sizes, before, handing))


_deaf: dict[str, frozenset[str]] = {}
_unheard: dict[type, frozenset[str]] = {}


def deaf(kinds: str, *names: str) -> None:
    """Rules of these estimators, known by how their qualified names begin, have no use for these probes: they cost
    inner loops that call the same functions next to nothing."""
    _deaf[kinds] = _deaf.get(kinds, frozenset()) | set(names)
    _unheard.clear()


def _unheard_by(kind: type) -> frozenset[str]:
    known = _unheard.get(kind)
    if known is None:
        name = f"{kind.__module__}.{kind.__qualname__}"
        parts = [names for begins, names in _deaf.items() if name.startswith(begins)]
        known = _unheard[kind] = frozenset().union(*parts)
    return known


#: Functions to exchange, by the identity of those that are found: (the one that is found, the one to put there).
_Exchange = dict[int, tuple[Any, Any]]


def install(watch: Any) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []
    back: _Exchange = {}
    there: dict[str, _Exchange] = {}
    for one in PROBES:
        module = one.path.partition(":")[0]
        if module in sys.modules:
            _attach(watch, one, undo, back, there.setdefault(module.partition(".")[0], {}))
        else:
            undo.append(when_imported(module, functools.partial(_attach_later, watch, one, undo, back)))
    for package, functions in there.items():
        _exchange(functions, package)

    def forget() -> None:
        while undo:
            undo.pop()()
        _exchange(back)  # also in modules that were imported meanwhile, and took our function for the library's

    return [forget]


def _attach_later(watch: Any, one: Probe, undo: list[Callable[[], None]], back: _Exchange) -> None:
    functions: _Exchange = {}
    _attach(watch, one, undo, back, functions)
    _exchange(functions, one.path.partition(".")[0])


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


def _exchange(functions: _Exchange, package: str = "") -> None:
    """Put functions in the place of others in every module of a package, or of all that are loaded."""
    if not functions:
        return
    for loaded in list(sys.modules.values()):
        name = getattr(loaded, "__name__", "") if loaded is not None else ""
        if name.partition(".")[0] != package if package else name.partition(".")[0] not in _PACKAGES:
            continue
        held = vars(loaded)
        for key, value in list(held.items()):
            found = functions.get(id(value))
            if found is not None and found[0] is value:
                held[key] = found[1]


def _before(watch: Any, one: Probe, args: tuple[Any, ...]) -> Any:
    if one.before is None:
        return None
    try:
        return one.before(args)
    except Exception as error:  # the fit comes first
        watch.notes.setdefault(f"{one.name} could not be counted: {type(error).__name__}: {error}", None)
        return None


def _counting(watch: Any, one: Probe, original: Any) -> Any:
    kind = type(original) if isinstance(original, (staticmethod, classmethod)) else None
    function = original.__func__ if kind is not None else original

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        frame = top() if watch.on else None
        if frame is None or one.name in _unheard_by(type(frame.estimator)):
            return function(*args, **kwargs)
        before = _before(watch, one, args)
        result = function(*args, **kwargs)
        try:
            told = kwargs if one.before is None else {**kwargs, "before": before}
            sizes = one.sizes(args, told, result) if one.sizes is not None else ()
        except Exception as error:  # the fit comes first; its count is then a lower bound, and says so
            watch.notes.setdefault(f"{one.name} could not be counted: {type(error).__name__}: {error}", None)
            sizes = ("unknown",)
        frame.probes[(one.name, *sizes)] += 1
        if one.handing is not None:
            probes, inner = frame.probes, f"{one.name}_inner"
            return one.handing(result, lambda *more: probes.update(((inner, *sizes, *more),)))
        return result

    counted.__bitwatt_probe__ = one.name  # type: ignore[attr-defined]
    return kind(counted) if kind is not None else counted
