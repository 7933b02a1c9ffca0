"""Values that a call was given or gave, where its cost depends on them: looked at when the call ends.

Functions of the C library take other ways for small, known or large arguments. What is found goes to the rule of the
call as one of its `probes`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: From the estimator, the arguments of a call by place and its result to what is told; None where that is nothing.
Look = Callable[[Any, tuple[Any, ...], Any], tuple[Any, ...] | None]

_looks: dict[tuple[str, str], tuple[str, Look]] = {}


def look(method: str, name: str, reader: Look, *classes: str) -> None:
    """Look at this method of these classes, known by their qualified names, and of those below them."""
    _looks.update(dict.fromkeys([(kind, method) for kind in classes], (name, reader)))


def looks_at(kind: type, method: str) -> tuple[str, Look] | None:
    """Who looks at this method, and the name for what is seen."""
    names = (f"{parent.__module__}.{parent.__qualname__}" for parent in kind.__mro__)
    return next((_looks[name, method] for name in names if (name, method) in _looks), None)


def told(found: tuple[str, Look], estimator: Any, args: tuple[Any, ...], result: Any) -> tuple[Any, ...] | None:
    """(name, *values)."""
    try:
        values = found[1](estimator, args, result)
    except (AttributeError, LookupError, TypeError, ValueError):  # data of another kind: lists, frames, keywords
        return None
    return (found[0], *values) if values is not None else None
