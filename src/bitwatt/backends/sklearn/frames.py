"""Calls of estimators under way: a stack of frames, carried by a context variable into threads and tasks."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import Any

from bitwatt.backends.sklearn.names import steps_of


class Frame:
    """One call of a method of an estimator, or a fold of a cross-validation (`estimator` is then None)."""

    __slots__ = ("children", "estimator", "method", "phase", "probes", "scope", "silent")

    def __init__(self, estimator: Any, method: str, phase: str, scope: str, silent: bool = False) -> None:
        self.estimator, self.method, self.phase, self.scope = estimator, method, phase, scope
        self.silent = silent  # its rule speaks for everything inside
        self.probes: Counter[tuple[Any, ...]] = Counter()
        self.children: Counter[str] = Counter()

    def name_of(self, child: Any) -> str:
        """What this estimator calls one of its parts: the name of a pipeline's step, else the part's class."""
        if self.estimator is None:
            return type(child).__name__
        named = steps_of(self.estimator)
        for name, part in named:
            if part is child:
                return name
        alike = [name for name, part in named if type(part) is type(child)]  # parts are cloned before they are fitted
        return alike[0] if len(alike) == 1 else type(child).__name__


STACK: ContextVar[tuple[Frame, ...]] = ContextVar("bitwatt_estimators", default=())


def top() -> Frame | None:
    frames = STACK.get()
    return frames[-1] if frames else None
