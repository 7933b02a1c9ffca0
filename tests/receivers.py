"""Servers for the tests of sinks: they take what comes, refuse it, hang, or are not there."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def held_port() -> Iterator[int]:
    """A port that the system gives nobody else meanwhile. Who asks for it by number and says SO_REUSEADDR, as servers
    do, can listen on it; until then connections are refused."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield int(holder.getsockname()[1])


class Receiver:
    """An HTTP server that keeps the bodies it gets. `status` may change; `hang` lets requests wait for ever."""

    def __init__(self, port: int = 0) -> None:
        self.bodies: list[bytes] = []
        self.status, self.asked = 200, 0
        self.hang, self._over = False, threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                receiver.asked += 1
                if receiver.hang:
                    receiver._over.wait()
                    return
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if receiver.status == 200:
                    receiver.bodies.append(body)
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    server = Receiver(port)
    try:
        yield server
    finally:
        server.close()
