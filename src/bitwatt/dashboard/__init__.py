"""The dashboard: pages over a store, for a browser. It reads runs and changes nothing.

`application` makes the ASGI app, for whoever has a server of his own; `bitwatt serve` runs it.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from bitwatt.errors import BitwattError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from bitwatt.store import Store

HOW_TO_GET = "the dashboard needs FastAPI and uvicorn: pip install 'bitwatt[dashboard]'"


def application(store: Store = None, *, token: str | None = None, loopback: bool = True, prefix: str = "") -> FastAPI:
    """With a token, everything but the form that asks for it is behind it. `loopback` says that only programs of this
    machine can reach the server: then, without a token, a request that names another host is refused. `prefix` is the
    path that a proxy serves it under."""
    need()
    from bitwatt.dashboard.app import made
    from bitwatt.dashboard.catalog import Catalog
    from bitwatt.dashboard.guard import Guard
    from bitwatt.dashboard.prefix import plain_prefix

    hung = plain_prefix(prefix)
    app = made(Catalog(store), token=token)
    app.add_middleware(Guard, token=token, loopback=loopback, prefix=hung)
    return app


def need() -> None:
    if any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise BitwattError(HOW_TO_GET)
