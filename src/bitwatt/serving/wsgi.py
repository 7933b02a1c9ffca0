"""Requests of a WSGI application: from the call until the server has taken the last piece of the body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitwatt.serving.meter import Request, RequestMeter

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def around(meter: RequestMeter, app: Application) -> Application:
    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        request = meter.request()
        request.__enter__()

        def starting(status: str, *rest: Any, **named: Any) -> Any:
            if status[:1] == "5":
                request.fail()
            return start_response(status, *rest, **named)

        try:
            body = app(environ, starting)
        except BaseException as error:
            request.__exit__(type(error), error, None)
            raise
        return SizedBody(body, request) if isinstance(body, Sized) else Body(body, request)

    return application


class Body:
    """The pieces of an answer. Servers call `close` also when the client has gone away."""

    def __init__(self, body: Iterable[bytes], request: Request) -> None:
        self._body, self._request = body, request

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._body
        except GeneratorExit:  # a client that stops reading got what it wanted
            raise
        except BaseException:
            self._request.fail()
            raise
        finally:
            self._request.done()

    def close(self) -> None:
        try:
            if close := getattr(self._body, "close", None):
                close()
        finally:
            self._request.done()


class SizedBody(Body):
    """Of a body whose pieces can be counted: from one piece alone servers tell the length."""

    def __len__(self) -> int:
        return len(self._body)  # type: ignore[arg-type]
