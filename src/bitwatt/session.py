"""measure(): open the backends, run the user's code, and close into a Run."""

from __future__ import annotations

import functools
import inspect
import os
import secrets
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from bitwatt import backends, context, store
from bitwatt.backends.harvest import Harvest
from bitwatt.backends.watchers import WATCHERS
from bitwatt.errors import BitwattError
from bitwatt.fingerprint import summary
from bitwatt.ledger import Ledger
from bitwatt.machine import describe
from bitwatt.pricing import totals
from bitwatt.records import Layer, Run

F = TypeVar("F", bound=Callable[..., Any])


class Session:
    """A measurement under way. `run` is there once it has ended, also by an exception; `path` if it was kept."""

    def __init__(
        self, name: str, *, keep: bool, root: Path | None, strict: bool, command: str, fakes: bool = False
    ) -> None:
        self.name, self.strict, self.command = name, strict, command
        self.run: Run | None = None
        self.path: Path | None = None
        self._keep, self._root = keep, (root or store.FOLDER).absolute()  # the program may change its folder
        self._process = os.getpid()
        outer = context.CONTEXT.get()
        self._phases = outer.phases if outer else ()
        self._context: AbstractContextManager[context.Context] = context.opened(name, fakes=fakes)
        WATCHERS.open()
        self._token = self._context.__enter__().token
        self._started, self._clock = datetime.now(UTC), time.perf_counter()

    def close(self, error: BaseException | None = None) -> None:
        """End the measurement. In a forked child nothing happens: the parent reports."""
        if os.getpid() != self._process or self.run is not None:
            return
        seconds = time.perf_counter() - self._clock
        harvests, notes = list[Harvest](), list[str]()
        try:
            harvests = WATCHERS.harvest(self._token)
        except Exception as problem:  # the user's program, and his exception, come first
            notes = [f"what was counted could not be collected: {type(problem).__name__}: {problem}"]
            warnings.warn(f"bitwatt: {notes[0]}", RuntimeWarning, stacklevel=3)
        finally:
            self._context.__exit__(None, None, None)
            WATCHERS.close()
        self.run = self._finished(harvests, notes, seconds, error)
        # What a session inside another one counted is part of both; an estimate computed nothing.
        if (outer := self._token.parent) is not None and not self._token.fakes:
            ledger = self.run.ledger
            outer.inner.append(ledger.within("/".join(self._phases)) if self._phases else ledger)
        if self._keep:
            try:
                self.path = store.save(self.run, self._root, summary=summary(self.run))
            except (OSError, BitwattError) as problem:
                warnings.warn(f"bitwatt could not keep the run: {problem}", stacklevel=3)
        if self.strict and error is None:
            totals(self.run, strict=True)

    def _finished(self, harvests: list[Harvest], notes: list[str], seconds: float, error: BaseException | None) -> Run:
        ledger = sum(self._token.inner, Ledger())
        spans, layers = dict[str, float](), dict[str, Layer]()
        for harvest in harvests:
            ledger += harvest.ledger
            notes += harvest.notes
            layers |= harvest.layers
            for phase, span in harvest.seconds.items():
                spans[phase] = spans.get(phase, 0.0) + span
        if not harvests and not notes:
            notes.append(f"nothing was watched: the program imported none of {', '.join(backends.FRAMEWORKS)}")
        return Run(
            id=f"{self._started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
            name=self.name,
            started=self._started.isoformat(timespec="milliseconds"),
            seconds=seconds,
            ledger=ledger,
            machine=describe(),
            phase_seconds=spans,
            layers=layers,
            command=self.command,
            status=_status(error),
            notes=tuple(notes),
        )

    def __repr__(self) -> str:
        return f"<session {self.name!r}: {'under way' if self.run is None else self.run.status}>"

    def _repr_html_(self) -> str:
        return self.run._repr_html_() if self.run is not None else f"<p>{self.name}: under way</p>"


def _status(error: BaseException | None) -> str:
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return "ok"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, SystemExit):
        return f"exited: {error.code}"
    return f"failed: {type(error).__name__}: {error}"


class Measure:
    """What measure() returns: a context manager, also an asynchronous one, and a decorator."""

    def __init__(self, name: str | None, options: dict[str, Any]) -> None:
        self._name, self._options = name, options
        self._sessions: list[Session] = []

    def __enter__(self) -> Session:
        self._sessions.append(Session(self._name or "run", **self._options))
        return self._sessions[-1]

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._sessions.pop().close(error)

    async def __aenter__(self) -> Session:
        return self.__enter__()

    async def __aexit__(self, *problem: Any) -> None:
        self.__exit__(*problem)

    def __call__(self, function: F) -> F:
        """Measure every call of `function`; the last one's session is its `session` attribute."""
        name = self._name or function.__qualname__

        def again() -> Measure:
            return Measure(name, self._options)

        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def measured(*args: Any, **kwargs: Any) -> Any:
                with again() as measured.session:  # type: ignore[attr-defined]
                    async for item in function(*args, **kwargs):
                        yield item

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def measured(*args: Any, **kwargs: Any) -> Any:
                with again() as measured.session:  # type: ignore[attr-defined]
                    yield from function(*args, **kwargs)

        elif inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def measured(*args: Any, **kwargs: Any) -> Any:
                with again() as measured.session:  # type: ignore[attr-defined]
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def measured(*args: Any, **kwargs: Any) -> Any:
                with again() as measured.session:  # type: ignore[attr-defined]
                    return function(*args, **kwargs)

        return measured  # type: ignore[return-value]


def measure(
    name: str | Callable[..., Any] | None = None,
    *,
    keep: bool = True,
    store: str | Path | None = None,
    strict: bool = False,
    command: str | None = None,
    fakes: bool = False,
) -> Any:
    """Count what runs inside: `with measure("resnet18") as session: ...`, or as a decorator.

    `keep` writes the run to the store (by default .bitwatt/ beside the project); `strict` raises at the end if an op
    was called that no rule covers. `fakes` is for estimate(): it counts fake tensors, which otherwise are torch working
    out shapes.
    """
    options = {
        "keep": keep,
        "root": Path(store) if store is not None else None,
        "strict": strict,
        "command": " ".join(sys.argv) if command is None else command,
        "fakes": fakes,
    }
    if callable(name):
        return Measure(None, options)(name)
    return Measure(name, options)
