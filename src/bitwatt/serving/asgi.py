"""Requests of an ASGI application: from the call to the last byte of the body. Websockets count from open to close."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitwatt.serving.meter import RequestMeter

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

#: From this status on a request has failed on the server's side; one that the client got wrong was served.
FAILED = 500


def around(meter: RequestMeter, app: Application) -> Application:
    async def application(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, _closing(meter, send))
            return
        if scope["type"] not in ("http", "websocket"):
            await app(scope, receive, send)
            return
        with meter.request() as request:

            async def sending(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] >= FAILED:
                    request.fail()
                await send(message)

            await app(scope, receive, sending)

    return application


def _closing(meter: RequestMeter, send: Send) -> Send:
    """The server is about to end: the run is kept before it says so."""

    async def sending(message: Message) -> None:
        if message["type"].startswith("lifespan.shutdown"):
            meter.close()
        await send(message)

    return sending
