"""Calls of estimators under way: a stack of frames, carried by a context variable into threads and tasks."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import Any

from bitwatt.backends.sklearn.names import steps_of

Kinds = tuple[tuple[str, type], ...]


class Frame:
    """One call of a method of an estimator, or a fold of a cross-validation (`estimator` is then None)."""

    __slots__ = ("estimator", "kinds", "method", "phase", "probes", "scope", "silent")

    def __init__(
        self, estimator: Any, method: str, phase: str, scope: str, silent: bool = False, kinds: Kinds = ()
    ) -> None:
        self.estimator, self.method, self.phase, self.scope = estimator, method, phase, scope
        self.silent = silent  # its rule speaks for everything inside
        self.probes: Counter[tuple[Any, ...]] = Counter()
        self.kinds = kinds  # names and classes of the parts of an estimator that is in another process

    def parts(self) -> Kinds:
        """What this estimator calls its parts, and their classes."""
        if self.estimator is None:
            return self.kinds
        return tuple((name, type(part)) for name, part in steps_of(self.estimator))

    def name_of(self, child: Any) -> str:
        """What this estimator calls one of its parts: the name of a pipeline's step, else the part's class. Parts are
        cloned before they are fitted, so they are known by their class, if no other part is of it."""
        if self.estimator is not None:
            for name, part in steps_of(self.estimator):
                if part is child:
                    return name
        alike = list(dict.fromkeys(name for name, kind in self.parts() if kind is type(child)))
        return alike[0] if len(alike) == 1 else type(child).__name__


STACK: ContextVar[tuple[Frame, ...]] = ContextVar("bitwatt_estimators", default=())


def top() -> Frame | None:
    frames = STACK.get()
    return frames[-1] if frames else None
