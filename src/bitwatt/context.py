"""Which session and which of the user's phases the running code belongs to; a context variable, so async is safe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Token:
    """Stands for one open session; backends count under it and hand the counts over when it closes."""

    name: str = ""
    open: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Context:
    """A session and the path of phases that the user opened in it."""

    token: Token
    phases: tuple[str, ...] = ()


@dataclass(slots=True)
class _Sessions:
    """Contexts of the open sessions, oldest first. Threads that inherited no context belong to the newest."""

    contexts: list[Context] = field(default_factory=list)


CONTEXT: ContextVar[Context | None] = ContextVar("bitwatt_context", default=None)
_sessions = _Sessions()


def current() -> Context | None:
    """The context of the running code; where it has none, or a closed one, that of the newest open session."""
    context = CONTEXT.get()
    if context is not None and context.token.open:
        return context
    return _sessions.contexts[-1] if _sessions.contexts else None


@contextmanager
def opened(name: str) -> Iterator[Context]:
    """A new session's context, current inside the block."""
    context = Context(Token(name))
    reset = CONTEXT.set(context)
    _sessions.contexts.append(context)
    try:
        yield context
    finally:
        context.token.open = False
        _sessions.contexts.remove(context)
        CONTEXT.reset(reset)


@contextmanager
def phase(name: str) -> Iterator[None]:
    """Name a span of the program. It nests with the phases bitwatt finds; outside measure() it does nothing."""
    context = current()
    if context is None:
        yield
        return
    reset = CONTEXT.set(Context(context.token, (*context.phases, name)))
    try:
        yield
    finally:
        CONTEXT.reset(reset)


def phase_path(found: str, base: tuple[str, ...], now: tuple[str, ...]) -> str:
    """`base` was open when the found phase began, `now` is open: evaluate + inference + attention."""
    inner = now[len(base) :] if now[: len(base)] == base else ()
    middle = () if found == "other" and (base or inner) else (found,)
    return "/".join((*base, *middle, *inner))
