"""A server on the loopback in a process of its own, with paths that behave well and badly. Prints its port."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

ONE_AT_A_TIME = threading.Lock()
COUNT = iter(range(10**9))
SEEN: list[str] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self.respond(b"")

    def do_POST(self) -> None:
        self.respond(self.rfile.read(int(self.headers["Content-Length"])))

    do_PUT = do_POST  # noqa: N815 - http.server calls it so

    def respond(self, body: bytes) -> None:
        parts = urlsplit(self.path)
        told = {name: values[0] for name, values in parse_qs(parts.query).items()}
        seconds, number = float(told.get("seconds", "0")), next(COUNT)
        if parts.path == "/echo":
            SEEN.append(
                f"{self.command} {self.headers.get('Content-Type')} {self.headers.get('X-Key')} {body.decode()}"
            )
            self.answer(200)
        elif parts.path == "/seen":
            self.answer(200, json.dumps(SEEN).encode())
        elif parts.path == "/one":  # saturates: one request at a time
            with ONE_AT_A_TIME:
                time.sleep(seconds)
            self.answer(200)
        elif parts.path == "/status":
            self.answer(int(told["code"]))
        elif parts.path == "/flaky":
            self.answer(503 if number % 4 == 0 else 200)
        elif parts.path == "/never":
            time.sleep(600)
        elif parts.path == "/cut":  # fewer bytes than were announced
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
            self.close_connection = True
        elif parts.path == "/drip":  # a byte now and then, for ever
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            for _ in range(6000):
                self.wfile.write(b"x")
                time.sleep(0.1)
        elif parts.path == "/slams":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif parts.path == "/closes":  # answers, and hangs up without having said so
            self.answer(200)
            self.close_connection = True
        elif parts.path == "/garbage":
            self.wfile.write(b"no HTTP at all\r\n\r\n")
            self.close_connection = True
        else:
            time.sleep(seconds)
            self.answer(200)

    def answer(self, status: int, body: bytes = b'{"outputs": [1]}') -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Tests read other things."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up are what some of the tests are about."""


@contextmanager
def running() -> Iterator[tuple[str, int]]:
    """Its address and its process id."""
    child = subprocess.Popen([sys.executable, str(Path(__file__))], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        yield f"http://127.0.0.1:{int(child.stdout.readline())}", child.pid
    finally:
        child.kill()
        child.wait()


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
