"""Which session and which of the user's phases the running code belongs to; a context variable, so async is safe."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

#: Phases of one session that keep the name the user gave them. Of those that come later ("step 1001") numbers become
#: "#"; where that does not help either, they are one.
PHASES = 1_000
MANY = "(more phases)"


@dataclass(eq=False, slots=True)
class Token:
    """Stands for one open session; backends count under it and hand the counts over when it closes."""

    name: str = ""
    parent: Token | None = None  # the session in which it was opened
    fakes: bool = False  # an estimate: fake tensors are what it counts
    exactness: str = "always"  # or "auto", "sample": whether steps that are known may be credited instead of counted
    open: bool = True
    ended: float | None = None  # when the measured code ended, by time.perf_counter: closing takes time of its own
    #: How too many distinct calls are folded: from the layers known by then to a backends.harvest.Folder.
    folder: Callable[[Any], Any] | None = None
    contexts: dict[tuple[str, ...], Context] = field(default_factory=dict)
    #: What processes started inside need to keep runs of their own beside this one's.
    offer: dict[str, str] | None = None

    inner: list[Any] = field(default_factory=list)  # ledgers of the sessions that opened and closed in it
    inner_seconds: dict[str, float] = field(default_factory=dict)  # of phases in them, by the host's clock
    inner_device_seconds: dict[str, float] = field(default_factory=dict)  # and by the device's
    meter: Any = None  # told where phases begin and end that may be long enough to be measured
    observer: Any = None  # told where phases begin and end, and what is processed (observing.Observer)
    about: Any = None  # told metrics, tags and parameters (telling.Teller)

    def within(self, phases: tuple[str, ...]) -> Context:
        """The context of this session and these phases: the same one each time, so that equal places are one place."""
        context = self.contexts.get(phases)
        if context is None:
            if len(self.contexts) >= PHASES:
                phases = tuple([re.sub(r"\d+", "#", phase) for phase in phases])
                if phases not in self.contexts and len(self.contexts) >= 2 * PHASES:
                    phases = (MANY,)
            context = self.contexts.setdefault(phases, Context(self, phases))
        return context


@dataclass(frozen=True, eq=False, slots=True)
class Context:
    """A session and the path of phases that the user opened in it."""

    token: Token
    phases: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sessions:
    """Contexts of the open sessions, oldest first."""

    contexts: list[Context] = field(default_factory=list)

    def innermost(self) -> Context | None:
        """The newest session if each was opened inside the one before: then all that runs belongs to it."""
        nested = all(b.token.parent is a.token for a, b in pairwise(self.contexts))
        return self.contexts[-1] if self.contexts and nested else None


CONTEXT: ContextVar[Context | None] = ContextVar("bitwatt_context", default=None)
_sessions = _Sessions()


def forget_all() -> None:
    """In a forked child: the sessions are the parent's."""
    for context in _sessions.contexts:
        context.token.open = False
    _sessions.contexts.clear()
    CONTEXT.set(None)


#: Left behind by a session that has closed: the code after it is not part of the sessions of other threads.
NOBODY = Context(Token("nobody", open=False))


def current() -> Context | None:
    """The context of the running code. A thread that inherited none belongs to the open session, if it is only one;
    of several at the same time none can claim it."""
    context = CONTEXT.get()
    if context is not None and context.token.open:
        return context
    return None if context is NOBODY else _sessions.innermost()


@contextmanager
def opened(
    name: str, *, fakes: bool = False, phases: tuple[str, ...] = (), exactness: str = "always", folder: Any = None
) -> Iterator[Context]:
    """A new session's context, current inside the block."""
    outer = CONTEXT.get()
    parent = outer.token if outer and outer.token.open else None
    context = Token(name, parent, fakes, exactness, folder=folder).within(phases)
    CONTEXT.set(context)
    _sessions.contexts.append(context)
    try:
        yield context
    finally:
        if context.token.open:  # else this is a forked child, and the session its parent's
            context.token.open = False
            _sessions.contexts.remove(context)
            # No reset: a session may be closed in another context than it was opened in.
            now = CONTEXT.get()
            if now is None or now.token is context.token or not now.token.open:  # else one that is closed later
                CONTEXT.set(outer if outer is not None else NOBODY)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Name a span of the program. It nests with the phases bitwatt finds; outside measure() it does nothing."""
    context = current()
    if context is None:
        yield
        return
    before = CONTEXT.get()
    inside = context.token.within((*context.phases, name))
    CONTEXT.set(inside)
    mark = entered(inside)
    try:
        yield
    finally:
        left(inside, mark)
        if CONTEXT.get() is inside:  # a generator may be closed where another context is current
            CONTEXT.set(before)


def entered(context: Context | None, *found: str) -> Any:
    """Tell the session's meter and observer that a phase begins; what comes back is for `left`."""
    token = context.token if context is not None else None
    if token is None or context is None or (token.meter is None and token.observer is None):
        return None
    path = (*context.phases, *found)
    seen = None if token.observer is None else token.observer.enter(path)
    return None if token.meter is None else token.meter.enter(path), seen


def left(context: Context | None, mark: Any) -> None:
    if mark is None or context is None or not context.token.open:
        return
    measured, seen = mark
    if measured is not None:
        context.token.meter.leave(measured)
    if seen is not None:
        context.token.observer.leave(seen)


def phase_path(found: str, base: tuple[str, ...], now: tuple[str, ...]) -> str:
    """`base` was open when the found phase began, `now` is open: evaluate + inference + attention."""
    inner = now[len(base) :] if now[: len(base)] == base else ()
    middle = () if found == "other" and (base or inner) else (found,)
    return "/".join((*base, *middle, *inner))
