"""Runs the dashboard until somebody stops it."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

from bitwatt.dashboard import application, need
from bitwatt.dashboard.guard import is_loopback
from bitwatt.dashboard.prefix import plain_prefix
from bitwatt.errors import BitwattError
from bitwatt.store.index import Index

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

    from bitwatt.store import Store

#: Where a token may be said without standing in the list of processes.
VARIABLE = "BITWATT_TOKEN"
_SHORTEST = 12
#: Seconds until somebody wonders why nothing happens.
_PATIENCE = 2.0


def serve(
    store: Store = None, *, host: str = "127.0.0.1", port: int = 8765, token: str | None = None, browse: bool = False,
    prefix: str = "", out: TextIO | None = None,
) -> None:  # fmt: skip
    """On another host than this machine's own a token is needed; without one, one is made and told."""
    need()
    out = out or sys.stderr
    if not 0 <= port <= 65_535:
        raise BitwattError(f"{port} is no port: 0 to 65535, 0 for any")
    here = is_loopback(host)
    given = token if token is not None else os.environ.get(VARIABLE) or None
    if given is not None and len(given) < _SHORTEST:
        raise BitwattError(f"a token of {len(given)} letters can be guessed: {_SHORTEST} at least, or none to get one")
    known = given if given is not None or here else secrets.token_urlsafe(24)
    listener = _listening(host, port)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listener.getsockname()[1]}{plain_prefix(prefix)}/"
    app = application(store, token=known, loopback=here, prefix=prefix)
    _indexed(store, out)
    print(f"bitwatt: dashboard on {address} (Ctrl-C ends it)", file=out)
    if known is not None and given is None:
        print(f"bitwatt: it asks for this token: {known}", file=out)
    if not here:
        print("bitwatt: others can reach it, unencrypted: beyond a network you trust put a proxy with TLS", file=out)
    out.flush()
    if browse:
        threading.Timer(0.5, webbrowser.open, [address]).start()
    with listener, suppress(KeyboardInterrupt):  # which uvicorn raises again when it has closed
        server_of(app).run(sockets=[listener])


def _indexed(store: Store, out: TextIO) -> None:
    """So that the first page need not wait for it. A store that cannot be read is told of on the pages."""
    slow = threading.Timer(_PATIENCE, print, ["bitwatt: looking through the store for the first time"], {"file": out})
    slow.daemon = True
    slow.start()
    try:
        with suppress(BitwattError, OSError):
            Index(store).refresh()
    finally:
        slow.cancel()


def server_of(app: FastAPI) -> uvicorn.Server:
    """Streams end when it is to end, which it would wait for otherwise."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await app.state.stream.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=3
    )
    return Server(config)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, proto)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise BitwattError(f"nothing can listen on {host}:{port}: {why}; --port names another, 0 takes any") from error
    return listener
