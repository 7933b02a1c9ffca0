"""Requests: counted from any thread or task, through real servers, and kept with the run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

import bitwatt
from bitwatt.served import WIDER, Requests, bucket
from bitwatt.serving import RequestMeter
from bitwatt.serving.counter import RequestCounter


def meter() -> RequestMeter:
    return RequestMeter("test", keep=False, meter=False)


def closed(served: RequestMeter) -> Requests:
    run = served.close()
    assert run is not None
    assert run.requests is not None
    return run.requests


# -- the record


def test_percentiles_are_good_to_a_hundredth() -> None:
    seconds = [0.001 * n for n in range(1, 1001)]
    latencies: dict[int, int] = {}
    for one in seconds:
        latencies[bucket(one)] = latencies.get(bucket(one), 0) + 1
    requests = Requests(1000, latencies=latencies, slowest_s=1.0)
    for share in (0.5, 0.9, 0.95, 0.99):
        assert requests.percentile(share) == pytest.approx(share, rel=WIDER - 1)
    assert requests.percentile(1.0) == pytest.approx(1.0, rel=0.01)


def test_without_a_request_there_is_no_percentile() -> None:
    assert Requests().percentile(0.5) is None


def test_what_two_processes_served_adds_up() -> None:
    one = Requests(2, 1, 0.5, 0.6, 0.4, {1: 2}, cancelled=1, under_way=2)
    other = Requests(3, 0, 0.2, 0.3, 0.1, {1: 1, 2: 2}, under_way=1)
    assert one + other == Requests(5, 1, 0.7, pytest.approx(0.9), 0.4, {1: 3, 2: 2}, 1, 3)


# -- ways in


def test_calls_of_a_function_are_requests_and_those_that_raise_failed() -> None:
    served = meter()

    @served
    def predict(x: int) -> int:
        """Keeps its name."""
        time.sleep(0.01)
        return 1 // x

    assert predict(1) == 1
    with pytest.raises(ZeroDivisionError):
        predict(0)
    found = closed(served)
    assert (found.count, found.failed, predict.__doc__) == (2, 1, "Keeps its name.")
    assert found.percentile(0.5) >= 0.0098  # half a bucket less than 10 ms


def test_a_stream_lasts_until_its_last_piece_is_taken() -> None:
    served = meter()

    @served
    def stream() -> Iterator[int]:
        yield 1
        yield 2

    pieces = stream()
    next(pieces)
    time.sleep(0.02)
    assert list(pieces) == [2]
    given_up = stream()
    next(given_up)
    given_up.close()  # the client went away: it got what it wanted
    found = closed(served)
    assert (found.count, found.failed) == (2, 0)
    assert found.slowest_s >= 0.02


def test_tasks_and_asynchronous_streams() -> None:
    served = meter()

    all_are_there = asyncio.Barrier(10)

    @served
    async def answer(seconds: float) -> float:
        await all_are_there.wait()
        await asyncio.sleep(seconds)
        return seconds

    @served
    async def stream() -> Any:
        for n in range(3):
            yield n

    async def main() -> list[Any]:
        answers = await asyncio.gather(*[answer(0.05) for _ in range(10)])
        return [*answers, [n async for n in stream()]]

    assert asyncio.run(main()) == [0.05] * 10 + [[0, 1, 2]]
    found = closed(served)
    assert found.count == 11
    assert found.sum_s >= 10 * 0.05
    assert found.busy_s <= found.sum_s - 9 * 0.049  # ten at a time, for so long at least


def test_an_asynchronous_stream_is_the_function_s_own() -> None:
    served, seen = meter(), list[Any]()

    @served
    async def stream() -> Any:
        try:
            seen.append((yield 1))
            try:
                yield 2
            except ValueError as error:
                yield str(error)
            yield 4
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    async def main() -> None:
        pieces = stream()
        assert await anext(pieces) == 1
        assert await pieces.asend("hello") == 2
        assert await pieces.athrow(ValueError("caught")) == "caught"
        await pieces.aclose()
        assert seen == ["hello", "closed"]  # at once, not when the collector comes by
        pieces = stream()
        await anext(pieces)
        with pytest.raises(KeyError):
            await pieces.athrow(KeyError("mine"))

    asyncio.run(main())
    found = closed(served)
    assert (found.count, found.failed) == (2, 1)


def test_requests_under_way_belong_to_the_run_that_closes() -> None:
    served = meter()
    with served.request():
        pass
    late = served.request()
    with late:
        time.sleep(0.02)
        run = served.close()
        assert run is not None
        assert run.requests is not None
        assert (run.requests.count, run.requests.under_way) == (1, 1)
        assert run.requests.busy_s >= 0.02
        assert any("1 requests were under way" in note for note in run.notes)
    with served.request():  # the next run knows nothing of it
        pass
    found = closed(served)
    assert (found.count, found.under_way) == (1, 0)


def test_a_client_that_leaves_is_counted_apart_and_is_no_failure() -> None:
    served = meter()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/broken":
            raise ValueError("no such page")
        await asyncio.sleep(60)

    app = served.asgi(slow)

    async def main() -> None:
        tasks = [asyncio.create_task(_request(app, "/")) for _ in range(3)]
        await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, _request(app, "/broken"), return_exceptions=True)

    asyncio.run(main())
    found = closed(served)
    assert (found.count, found.failed, found.cancelled, found.under_way) == (4, 1, 3, 0)


async def _request(app: Any, path: str) -> None:
    await app({"type": "http", "path": path}, None, None)


def test_threads_lose_nothing() -> None:
    served = meter()

    def work() -> None:
        for _ in range(200):
            with served.request():
                pass

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert closed(served).count == 1600


def test_no_second_is_busy_twice_though_a_thread_waited_for_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    now, counter = [0.0], RequestCounter()
    monkeypatch.setattr("bitwatt.serving.counter.time.perf_counter", lambda: now[0])

    class Contended:
        """Whoever comes first has to wait while another request begins and ends."""

        waited = False

        def __enter__(self) -> None:
            if not self.waited:
                self.waited, now[0] = True, 1.0
                other = counter.begin()
                now[0] = 2.0
                counter.end(other)
                now[0] = 3.0

        def __exit__(self, *_: object) -> None:
            """Nobody else is here."""

    counter._lock = Contended()  # type: ignore[assignment]
    late = counter.begin()
    now[0] = 4.0
    counter.end(late)
    assert counter.told().busy_s == 2.0  # from 1 to 2, and from 3 to 4


def test_what_comes_after_close_is_a_new_run() -> None:
    served = meter()
    with served.request():
        pass
    first = served.close()
    with served.request():
        pass
    second = served.close()
    assert first is not None
    assert second is not None
    assert first.id != second.id
    assert served.close() is None


# -- servers


@contextmanager
def wsgi_server(app: Any) -> Iterator[str]:
    class Quiet(WSGIRequestHandler):
        def log_message(self, *args: Any) -> None:
            """Tests print nothing."""

    with make_server("127.0.0.1", 0, app, handler_class=Quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
    status = {"/missing": "404 Not Found", "/broken": "500 Internal Server Error"}.get(environ["PATH_INFO"], "200 OK")
    start_response(status, [("Content-Type", "text/plain")])
    yield b"one "
    time.sleep(0.02)
    yield b"two"


def test_wsgi() -> None:
    served = meter()
    with wsgi_server(served.wsgi(application)) as url:
        for _ in range(2):
            assert urllib.request.urlopen(url).read() == b"one two"
        for path in ("/missing", "/broken"):
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(url + path)
    found = closed(served)
    assert (found.count, found.failed) == (4, 1)  # what the client got wrong was served
    assert found.percentile(0.5) >= 0.0198  # until the last piece


def test_wsgi_keeps_the_length_that_a_server_tells() -> None:
    def whole(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"hello"]

    served = meter()
    with wsgi_server(served.wsgi(whole)) as url, urllib.request.urlopen(url) as answer:
        assert (answer.headers["Content-Length"], answer.read()) == ("5", b"hello")
    with wsgi_server(served.wsgi(application)) as url, urllib.request.urlopen(url) as answer:
        assert answer.headers["Content-Length"] is None
    assert closed(served).count == 2


def test_asgi(tmp_path: Path) -> None:
    """Under uvicorn, with a thread pool that counts torch, and the run kept when the server is told to stop."""
    program = tmp_path / "serve.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import sys, threading, time, urllib.request
            import torch, uvicorn
            from starlette.applications import Starlette
            from starlette.responses import PlainTextResponse
            from starlette.routing import Route
            import bitwatt

            model = torch.nn.Linear(8, 4)

            def predict(request):  # starlette runs it in its pool of threads
                model(torch.ones(2, 8))
                return PlainTextResponse("ok")

            def broken(request):
                raise ValueError("no")

            served = bitwatt.meter_requests("server", store={str(tmp_path / "store")!r})
            app = served.asgi(Starlette(routes=[Route("/", predict), Route("/broken", broken)]))
            server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical"))

            def ask():
                while not server.started:
                    time.sleep(0.01)
                port = server.servers[0].sockets[0].getsockname()[1]
                for path in ["/"] * 20 + ["/broken"]:
                    try:
                        urllib.request.urlopen(f"http://127.0.0.1:{{port}}{{path}}").read()
                    except Exception:
                        assert path == "/broken"
                server.should_exit = True

            threading.Thread(target=ask).start()
            server.run()
            """
        )
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (header,) = bitwatt.runs(tmp_path / "store")
    run = bitwatt.load(header.path)
    assert (run.name, run.requests.count, run.requests.failed) == ("server", 21, 1)
    assert bitwatt.totals(run, "macs").total == 20 * 2 * 8 * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_workers_that_a_server_forks_have_runs_of_their_own(tmp_path: Path) -> None:
    program = textwrap.dedent(
        f"""
        import os, bitwatt
        served = bitwatt.meter_requests("forked", store={str(tmp_path)!r})
        with served.request():
            pass
        children = []
        for n in (2, 3):
            pid = os.fork()
            if not pid:
                for _ in range(n):
                    with served.request():
                        pass
                served.close()
                os._exit(0)
            children.append(pid)
        for pid in children:
            os.waitpid(pid, 0)
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    counts = sorted(bitwatt.load(header.path).requests.count for header in bitwatt.runs(tmp_path))
    assert counts == [1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_a_forked_worker_serves_belongs_to_its_own_run() -> None:
    program = textwrap.dedent(
        """
        import os, bitwatt
        served = bitwatt.meter_requests("forked", keep=False)
        with served.request():
            pass
        pid = os.fork()
        if not pid:
            for _ in range(2):
                with served.request():
                    bitwatt.count(samples=1)
            run = served.close()
            os._exit(0 if run.observed.total("samples") == 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_is_forked_while_another_thread_is_at_the_locks_does_not_wait_for_it() -> None:
    program = textwrap.dedent(
        """
        import os, threading, bitwatt
        served = bitwatt.meter_requests("forked", keep=False)
        held, done = threading.Event(), threading.Event()
        def hold():
            with served._lock, served._counter._lock:
                held.set()
                done.wait()
        threading.Thread(target=hold).start()
        held.wait()
        pid = os.fork()
        if not pid:
            with served.request():
                pass
            os._exit(0 if served.close().requests.count == 1 else 1)
        status = os.waitpid(pid, 0)[1]
        done.set()
        assert os.waitstatus_to_exitcode(status) == 0
        """
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
