"""Calls of estimators under way: the innermost is in a context variable, which carries it into threads and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from bitwatt.backends.sklearn.names import parts_like, steps_by_identity, steps_of

#: Names, and what they name: a part, or the qualified name of its class where the part is in another process.
Parts = tuple[tuple[str, Any], ...]
_NOTHING: frozenset[str] = frozenset()


class Frame:
    """A call of an estimator, with those of its own methods that it calls in turn (`method` is the one under way); or a
    fold of a cross-validation (`estimator` is then None). It has no constructor, which would take longer: there is one
    for every call. `framed` makes the rarer ones."""

    __slots__ = (
        "again", "began", "calls", "estimator", "held", "kinds", "mark", "method", "names", "phase", "probes", "scope",
        "silent", "told", "unheard",
    )  # fmt: skip

    estimator: Any
    method: str
    phase: str
    scope: str
    probes: dict[tuple[Any, ...], int]
    silent: bool  # its rule speaks for everything inside
    unheard: frozenset[str]  # probes that its rule has no use for
    kinds: Parts  # parts that went to a worker, or stayed where their estimator is
    again: tuple[Any, ...] | None  # what a probe was called with last, and the sizes it read
    began: float  # by the clock, for the outermost; else 0
    mark: Any  # of the meter's, for the outermost
    calls: Any  # where it is noted, for the outermost
    names: dict[int, tuple[str, Any]] | None  # of parts in lists, by identity, once they are asked for
    told: tuple[Any, ...] | None  # parameters and facts, as a method that was called in turn has read them
    held: Mapping[str, Any] | None  # attributes of the estimator then, if that was a fit

    def parts(self) -> Parts:
        """What this estimator calls its parts."""
        return self.kinds if self.estimator is None else (*self.kinds, *steps_of(self.estimator))

    def name_of(self, child: Any) -> str:
        """What this estimator calls one of its parts: the name of a pipeline's step, else the part's class. Parts are
        cloned before they are fitted, so they are known by their class, if no other part is of it."""
        for name, part in self.kinds:
            if part is child:
                return name
        if self.names is None:
            self.names = {} if self.estimator is None else steps_by_identity(self.estimator)
        found = self.names.get(id(child))
        if found is not None and found[1] is child:
            return found[0]
        kind = type(child)
        held = [] if self.estimator is None else parts_like(self.estimator, child)
        for name, part in held:
            if part is child:
                return name
        if self.kinds:
            held += [
                one for one in self.kinds if type(one[1]) is kind or (type(one[1]) is str and one[1] == qualified(kind))
            ]
        if not held:
            return kind.__name__
        alike = {name for name, _ in held}
        return alike.pop() if len(alike) == 1 else kind.__name__


def framed(
    estimator: Any, method: str, phase: str, scope: str, silent: bool = False, kinds: Parts = (),
    unheard: frozenset[str] = _NOTHING,
) -> Frame:  # fmt: skip
    frame = Frame()
    frame.estimator, frame.method, frame.phase, frame.scope = estimator, method, phase, scope
    frame.silent, frame.kinds, frame.unheard, frame.probes = silent, kinds, unheard, {}
    frame.again = frame.told = frame.held = frame.mark = frame.names = None
    frame.began = 0.0
    return frame


def tally(probes: dict[tuple[Any, ...], int], more: Mapping[tuple[Any, ...], int]) -> None:
    for what, times in more.items():
        probes[what] = probes.get(what, 0) + times


def qualified(kind: type) -> str:
    """By what classes are known in other processes: one that is pickled by value forgets its qualified name."""
    return f"{kind.__module__}.{kind.__name__}"


TOP: ContextVar[Frame | None] = ContextVar("bitwatt_estimators", default=None)
