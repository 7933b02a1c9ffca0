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
from bitwatt.imports import when_imported

#: From the arguments of a call and its result to the sizes that its cost depends on.
Sizes = Callable[[tuple[Any, ...], dict[str, Any], Any], tuple[Any, ...]]


@dataclass(frozen=True)
class Probe:
    """`path` is `module:name` or `module:Class.name`; `name` is what rules call it."""

    path: str
    name: str
    sizes: Sizes | None = None


PROBES: list[Probe] = []


def probe(path: str, name: str = "", sizes: Sizes | None = None) -> None:
    """Count calls of a function inside estimators."""
    PROBES.append(Probe(path, name or path.rpartition(".")[2].rpartition(":")[2], sizes))


def install(watch: Any) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []
    for one in PROBES:
        module = one.path.partition(":")[0]
        undo.append(when_imported(module, functools.partial(_attach, watch, one, undo)))
    return undo


def _attach(watch: Any, one: Probe, undo: list[Callable[[], None]]) -> None:
    module, _, name = one.path.partition(":")
    owner: Any = sys.modules[module]
    *classes, attribute = name.split(".")
    for part in classes:
        owner = getattr(owner, part, None)
    original = owner.__dict__.get(attribute) if owner is not None else None
    if original is None:  # another version of the library
        watch.notes.setdefault(f"{one.path} is not there to be counted", None)
        return
    ours = _counting(watch, one, original)
    if classes:
        setattr(owner, attribute, ours)
        undo.append(lambda: setattr(owner, attribute, original))
        return
    # a function of a module lives on under its name in every module that imported it
    holders = [
        (held, key)
        for loaded in list(sys.modules.values())
        if loaded is not None and getattr(loaded, "__name__", "").partition(".")[0] == module.partition(".")[0]
        for held in [vars(loaded)]
        for key, value in list(held.items())
        if value is original
    ]
    for held, key in holders:
        held[key] = ours

    def restore() -> None:
        for held, key in holders:
            if held.get(key) is ours:
                held[key] = original

    undo.append(restore)


def _counting(watch: Any, one: Probe, original: Any) -> Any:
    is_static = isinstance(original, staticmethod)
    function = original.__func__ if is_static else original

    @functools.wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        frame = top()
        if watch.on and frame is not None:
            try:
                sizes = one.sizes(args, kwargs, result) if one.sizes is not None else ()
            except Exception as error:  # the fit comes first; its count is then a lower bound, and says so
                watch.notes.setdefault(f"{one.name} could not be counted: {type(error).__name__}: {error}", None)
                sizes = ("unknown",)
            frame.probes[(one.name, *sizes)] += 1
        return result

    return staticmethod(counted) if is_static else counted
