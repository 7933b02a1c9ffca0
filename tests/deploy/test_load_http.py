"""Load on an HTTP endpoint of the loopback: rates, saturation, and answers that are none."""

from __future__ import annotations

import http.client
import json
import math
import re
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import numpy as np
import pytest

from bitwatt.deploy import load
from bitwatt.deploy.load.connection import address
from bitwatt.deploy.load.endpoint import bodies, is_loopback
from bitwatt.errors import BitwattError
from deploy import load_server
from receivers import held_port


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, int]]:
    with load_server.running() as found:
        yield found


@pytest.fixture
def url(server: tuple[str, int]) -> str:
    return server[0]


def test_callers_rates_and_an_slo(server: tuple[str, int]) -> None:
    url, pid = server
    told: list[tuple[float, float, str]] = []
    found = load.http(
        f"{url}/one?seconds=0.005", rows=[[1, 2], [3, 4]], callers=(1, 4), slo="p90<150ms", seconds=1.0, connections=8,
        pid=pid, progress=lambda *now: told.append(now),
    )  # fmt: skip
    one, four = (point for point in found.points if point.kind == "closed")
    assert one.p50_ms is not None
    assert one.p50_ms >= 5
    assert one.failed == four.failed == 0
    assert four.p50_ms is not None
    assert four.p50_ms > 1.8 * one.p50_ms  # one at a time: four callers wait for each other
    assert found.capacity is not None
    assert found.capacity < 200  # 5 ms each
    assert found.highest_rate is None or found.highest_rate <= found.capacity
    over = [point for point in found.points if point.kind == "overload"]
    assert over[-1].saturated
    assert over[-1].p50_ms is None or over[-1].p50_ms > 2 * one.p50_ms
    if sys.platform == "linux":
        assert all(point.uss_mb is not None for point in found.points)
    assert all(done <= of for done, of, _ in told)


def test_rows_go_as_the_template_says(url: str) -> None:
    def sent(**how: object) -> set[str]:
        load.http(f"{url}/echo", seconds=0.05, callers=(1,), rates=(20.0,), overload=False, **how)
        line = http.client.HTTPConnection(urlsplit(url).netloc)
        line.request("GET", "/seen")
        return set(json.loads(line.getresponse().read()))

    rows = np.array([[1.5, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert 'POST application/json None {"inputs": [[1.5, 2.0]]}' in sent(rows=rows)
    assert 'POST application/json None {"inputs": [[5.0, 6.0], [1.5, 2.0]]}' in sent(rows=rows, batch=2)
    assert 'POST application/json None {"x": {"data": [[1.5, 2.0]]}}' in sent(
        rows=rows, body='{"x": {"data": "$rows"}}'
    )
    assert "PUT text/plain secret as it is" in sent(
        body=b"as it is", method="put", headers={"content-type": "text/plain", "X-Key": "secret"}
    )
    assert "GET None None " in sent()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/status?code=500", "HTTP 500"),
        ("/status?code=404", "HTTP 404"),
        ("/status?code=302", "HTTP 302"),
        ("/cut", "cut short"),
        ("/slams", "Disconnected|reset"),
        ("/garbage", "BadStatusLine"),
    ],
)
def test_what_is_no_answer_has_failed(url: str, path: str, why: str) -> None:
    found = load.http(url + path, seconds=1.0, callers=(2,), slo="p50<1s")
    (point,) = found.points
    assert point.failed == point.requests > 0
    assert (point.p50_ms, point.max_ms, point.achieved_rate) == (None, None, 0.0)
    assert re.search(why, point.note), point.note
    assert (found.capacity, found.highest_rate) == (None, None)
    assert "no request was answered" in found.note


@pytest.mark.parametrize("path", ["/never", "/drip"])
def test_an_answer_that_does_not_come_in_time_has_failed(url: str, path: str) -> None:
    began = time.monotonic()
    found = load.http(url + path, seconds=1.0, callers=(1,), timeout_s=0.4)
    assert time.monotonic() - began < 120
    assert found.points[0].failed == found.points[0].requests > 0
    assert "no answer within 0.4 s" in found.points[0].note


def test_nobody_there(url: str) -> None:
    with held_port() as port:
        found = load.http(f"http://127.0.0.1:{port}/", seconds=1.0, callers=(1,))
    assert found.points[0].failed == found.points[0].requests > 0
    assert "Refused" in found.note


def test_one_that_sometimes_refuses_holds_no_slo_of_its_p99(url: str) -> None:
    found = load.http(f"{url}/flaky", seconds=1.0, callers=(2,), slo="p99<10s", connections=4, overload=False)
    assert found.points[0].requests > found.points[0].failed > 0
    crowded = [point for point in found.points if point.requests > 40]
    assert crowded
    assert all(point.p99_ms is None and point.p50_ms is not None and not point.holds for point in crowded)
    assert found.highest_rate is None or "uncertain" in found.note


def test_a_connection_that_was_closed_while_idle_is_made_anew(url: str) -> None:
    found = load.http(f"{url}/closes", seconds=0.3, callers=(2,), rates=(50.0,), overload=False)
    assert all(point.failed == 0 for point in found.points)


def test_only_this_machine_is_pushed_past_saturation_unasked() -> None:
    assert is_loopback(address("http://localhost:8000/predict"))
    assert is_loopback(address("http://127.3.2.1/"))
    assert is_loopback(address("http://[::1]:80/"))
    assert not is_loopback(address("https://models.example.org/v1"))
    assert not is_loopback(address("http://10.0.0.5/"))
    assert not is_loopback(address("http://localhost.example.org/"))


def test_addresses_are_read() -> None:
    found = address("https://host.example:8443/v1/predict?version=2")
    assert (found.secure, found.host, found.port, found.path) == (True, "host.example", 8443, "/v1/predict?version=2")
    assert address("http://host").path == "/"
    assert address("http://host/modèle?x=ü&y=%20").path == "/mod%C3%A8le?x=%C3%BC&y=%20"


@pytest.mark.parametrize(
    "wrong",
    [
        "", "localhost:8000", "ftp://host/", "file:///etc/passwd", "http://", "http://host:99999/", "http://host:x/",
        "http://user:secret@host/", "http://host/a b", "http://host/\r\nX-Evil: 1", "http://[::1/", None,
    ],
)  # fmt: skip
def test_what_is_no_address_is_refused(wrong: str) -> None:
    with pytest.raises(BitwattError) as raised:
        load.http(wrong)
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rows": [[math.nan]]}, {"rows": []}, {"body": '{"x": "$rows"}'}, {"method": "GET /evil"}, {"slo": "p99<1"},
        {"headers": {"X-A": "b\r\nX-C: d"}}, {"headers": {"X-A": None}}, {"headers": {"X-A": "€"}},
        {"headers": {"bad name": "b"}}, {"timeout_s": 0}, {"connections": 0}, {"rates": (-1,)},
        {"rows": [[1], [2, 3]]}, {"rows": [[object()]]}, {"batch": 0},
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(BitwattError):
        load.http("http://127.0.0.1:9/", **wrong)


def test_bodies_of_other_forms_of_rows() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})
    assert b'{"inputs": [[1.0, 0.5], [2.0, 1.5]]}' in bodies(frame, None, 2)
    assert bodies(["one text", "another"], None, 1) == [b'{"inputs": ["one text"]}', b'{"inputs": ["another"]}']
