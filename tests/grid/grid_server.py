"""A local HTTP server that answers as a test tells it: each path a status, headers and a body, or a delay."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Answer:
    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: bool = False  # a byte now and then, for a minute: no single read times out


@dataclass
class Request:
    path: str
    query: dict[str, str]
    headers: dict[str, str]


Answers = Callable[[Request], Answer]


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, answers: Answers) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers, self.requests, self.over = answers, list[Request](), threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        request = Request(parts.path, query, {key.lower(): value for key, value in self.headers.items()})
        self.server.requests.append(request)
        answer = self.server.answers(request)
        self.server.over.wait(answer.delay)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        body = b"" if answer.body is None else body
        self.send_response(answer.status)
        for key, value in answer.headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body) if not answer.drip else 1_000_000))
        self.end_headers()
        end = time.monotonic() + 60
        while answer.drip and time.monotonic() < end and not self.server.over.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        """Silence."""


@contextmanager
def serving(answers: Answers | Answer) -> Iterator[Server]:
    server = Server(answers if callable(answers) else lambda _: answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
        time.sleep(0)
