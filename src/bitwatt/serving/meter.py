"""meter_requests(): a run that lasts as long as a server does, and counts what it serves."""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from bitwatt.records import Run
from bitwatt.sensors.counters import Lock
from bitwatt.serving import asgi, wsgi
from bitwatt.serving.counter import RequestCounter
from bitwatt.session import Session, measure

F = TypeVar("F", bound=Callable[..., Any])


class Request:
    """One that is under way. It has failed if it raises, or if `fail` says so, unless it was cancelled."""

    __slots__ = ("_began", "_cancelled", "_counter", "_failed")

    def __init__(self, counter: RequestCounter) -> None:
        self._counter: RequestCounter | None = counter
        self._began, self._failed, self._cancelled = 0.0, False, False

    def fail(self) -> None:
        self._failed = True

    def done(self) -> None:
        """It has been served, or given up. More than once is once."""
        counter, self._counter = self._counter, None
        if counter is not None:
            counter.end(self._began, failed=self._failed and not self._cancelled, cancelled=self._cancelled)

    def __enter__(self) -> Request:
        if self._counter is not None:
            self._began = self._counter.begin()
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if _is_cancelled(error):
            self._cancelled = True
        elif error is not None and not isinstance(error, GeneratorExit):  # who stops reading got what he wanted
            self._failed = True
        self.done()


def _is_cancelled(error: BaseException | None) -> bool:
    """The client left, or the server ends: a server that runs on asyncio or trio then takes the task away."""
    kinds = (getattr(sys.modules.get("asyncio"), "CancelledError", None),
             getattr(sys.modules.get("trio"), "Cancelled", None))  # fmt: skip
    return any(kind is not None and isinstance(error, kind) for kind in kinds)


class RequestMeter:
    """A session that opens with the first request of a process: servers fork their workers."""

    def __init__(self, name: str = "serving", **options: Any) -> None:
        self.name, self._options = name, options
        self._lock = Lock()
        self._process = 0
        self._measure: Any = None
        self._session: Session | None = None
        self._counter = RequestCounter()

    def request(self) -> Request:
        """`with served.request(): ...` around the work of one."""
        if self._session is None or self._process != os.getpid():
            self._open()
        return Request(self._counter)

    def _open(self) -> None:
        with self._lock:
            if self._session is not None and self._process == os.getpid():
                return
            self._process, self._counter = os.getpid(), RequestCounter()
            self._measure = measure(self.name, **self._options)
            self._session = self._measure.__enter__()
            self._session.requests = self._counter
            atexit.register(self.close)

    def close(self) -> Run | None:
        """End the run, and keep it. None if this process has served nothing; a request that comes later begins a new
        one."""
        with self._lock:
            session, self._session = self._session, None
            if session is None or self._process != os.getpid():
                return None
            if under_way := self._counter.told().under_way:
                session.remark(f"{under_way} requests were under way when it closed: what they took till then is in it")
            self._measure.__exit__(None, None, None)
            atexit.unregister(self.close)
            return session.run

    def __enter__(self) -> RequestMeter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def asgi(self, app: asgi.Application) -> asgi.Application:
        """An ASGI application that counts what `app` serves."""
        return asgi.around(self, app)

    def wsgi(self, app: wsgi.Application) -> wsgi.Application:
        """A WSGI application that counts what `app` serves."""
        return wsgi.around(self, app)

    def __call__(self, function: F) -> F:
        """Each call of `function` is a request. One that streams its answer lasts until the last piece is taken."""
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def served(*args: Any, **kwargs: Any) -> Any:
                inner = function(*args, **kwargs)
                with self.request():
                    try:
                        piece = await anext(inner)
                        while True:
                            try:
                                sent = yield piece
                            except GeneratorExit:
                                raise
                            except BaseException as error:
                                piece = await inner.athrow(error)
                            else:
                                piece = await inner.asend(sent)
                    except StopAsyncIteration:  # the end of the inner one: none other leaves an async generator
                        return
                    finally:
                        await inner.aclose()

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def served(*args: Any, **kwargs: Any) -> Any:
                with self.request():
                    return (yield from function(*args, **kwargs))

        elif inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def served(*args: Any, **kwargs: Any) -> Any:
                with self.request():
                    return await function(*args, **kwargs)

        else:

            @functools.wraps(function)
            def served(*args: Any, **kwargs: Any) -> Any:
                with self.request():
                    return function(*args, **kwargs)

        return served  # type: ignore[return-value]


def meter_requests(name: str = "serving", *, keep: bool = True, store: str | Path | None = None) -> RequestMeter:
    """Count requests and what they cost: a decorator, `request()` blocks, `asgi` and `wsgi` middleware."""
    return RequestMeter(name, keep=keep, store=store)
