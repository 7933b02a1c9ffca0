"""Calls of estimators under way: a stack of frames, carried by a context variable into threads and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from bitwatt.backends.sklearn.names import listed_name, steps_of

#: Names, and what they name: a part, or the qualified name of its class where the part is in another process.
Parts = tuple[tuple[str, Any], ...]


class Frame:
    """One call of a method of an estimator, or a fold of a cross-validation (`estimator` is then None)."""

    __slots__ = ("again", "began", "estimator", "kinds", "mark", "method", "outer", "phase", "probes", "scope",
                 "silent", "told", "unheard")  # fmt: skip

    def __init__(
        self, estimator: Any, method: str, phase: str, scope: str, silent: bool = False, kinds: Parts = (),
        unheard: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        self.estimator, self.method, self.phase, self.scope = estimator, method, phase, scope
        self.silent = silent  # its rule speaks for everything inside
        self.unheard = unheard  # probes that its rule has no use for
        self.probes: dict[tuple[Any, ...], int] = {}
        self.again: tuple[Any, ...] | None = None  # what a probe was called with last, and the sizes it read
        self.began = 0.0  # by the clock, for the outermost
        self.mark: Any = None  # of the meter's, for the outermost
        self.outer: Frame | None = None  # the method of the same estimator that called this one
        self.told: tuple[Any, Any] | None = None  # parameters and facts, as such a method that it called has read them
        self.kinds = kinds  # parts that went to a worker, or stayed where their estimator is

    def parts(self) -> Parts:
        """What this estimator calls its parts."""
        return self.kinds if self.estimator is None else (*self.kinds, *steps_of(self.estimator))

    def name_of(self, child: Any) -> str:
        """What this estimator calls one of its parts: the name of a pipeline's step, else the part's class. Parts are
        cloned before they are fitted, so they are known by their class, if no other part is of it."""
        for name, part in self.kinds:
            if part is child:
                return name
        if self.estimator is not None and (known := listed_name(self.estimator, child)) is not None:
            return known
        parts, kind = self.parts(), type(child)
        for name, part in parts:
            if part is child:
                return name
        alike = {name for name, part in parts if type(part) is kind or (type(part) is str and part == qualified(kind))}
        return alike.pop() if len(alike) == 1 else kind.__name__


def tally(probes: dict[tuple[Any, ...], int], more: Mapping[tuple[Any, ...], int]) -> None:
    for what, times in more.items():
        probes[what] = probes.get(what, 0) + times


def qualified(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


STACK: ContextVar[tuple[Frame, ...]] = ContextVar("bitwatt_estimators", default=())


def top() -> Frame | None:
    frames = STACK.get()
    return frames[-1] if frames else None
