"""A real server with a store of made-up runs, and requests to it."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bitwatt import store
from bitwatt.dashboard import application
from bitwatt.dashboard.serving import server_of
from bitwatt.fingerprint import summary
from bitwatt.records import Run
from showcase import HOSTILE, hostile_run, job_runs, training_run

TOKEN = "a-token-that-nobody-guesses"


def keep(run: Run, folder: Path) -> Run:
    store.save(run, folder, summary=summary(run), sync=False)
    return run


def fill(folder: Path) -> None:
    """Versions of two models, a job of four ranks, and a run that failed."""
    for number in range(12):
        name, day = ("small-gpt", "tiny-gpt")[number % 2], f"2026-11-{number + 1:02}"
        run = training_run(4 + number, 512 if number % 2 else 768, 40, name, id=f"run-{number:03}",
                           started=f"{day}T10:00:00.000+00:00")  # fmt: skip
        accuracy = 0.7 + 0.02 * number - 0.001 * number**2
        told = {"last": accuracy, "min": 0.1, "max": accuracy, "count": 9.0}
        keep(replace(run, about=replace(run.about, version=f"1.{number}", metrics={"accuracy": told})), folder)
    for run in job_runs():
        keep(replace(run, started="2026-11-13T10:00:00.000+00:00"), folder)
    failed = training_run(
        2, id="failed-1", name="broken", started="2026-11-13T11:00:00.000+00:00", status="failed: OOM"
    )
    keep(failed, folder)


def fill_badly(folder: Path) -> None:
    """Runs that mean harm, and a file that is none."""
    evil = replace(hostile_run(), started="2026-11-14T10:00:00.000+00:00")
    keep(replace(evil, id="<img src=x onerror=alert(1)>"), folder)
    keep(replace(evil, id="javascript:alert(1)", name=HOSTILE[1], rank=None, status="under way"), folder)
    (folder / "foreign.run").write_bytes(b"<script>window.hacked = 1</script>\n")


@dataclass(frozen=True)
class Served:
    port: int
    folder: Any

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, method: str = "GET", body: str | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextmanager
def serving(folder: Any, app: Any = None, **options: Any) -> Iterator[Served]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = server_of(app or application(folder, **options))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield Served(listener.getsockname()[1], folder)
    finally:
        server.should_exit = True
        thread.join(120)
        listener.close()
        assert not thread.is_alive()
