"""The dashboard over a real connection: what it answers, and what it refuses."""

from __future__ import annotations

import gzip
import json
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html import unescape
from types import SimpleNamespace
from urllib.parse import quote, urlencode

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

from served import TOKEN, fill, fill_badly, keep, serving

from bitwatt import store
from bitwatt.about import About
from bitwatt.cli import main
from bitwatt.dashboard import application
from bitwatt.dashboard.asking import quoted, words
from bitwatt.dashboard.catalog import Catalog, Shelf
from bitwatt.dashboard.guard import host_of, is_loopback
from bitwatt.dashboard.live import Live
from bitwatt.dashboard.versions import best, less_is_better, thinned, versions
from bitwatt.errors import BitwattError
from bitwatt.fingerprint import summary
from bitwatt.ledger import Row
from bitwatt.store.runfile import Header
from bitwatt.units import format_count
from factories import make_run, mm_op
from showcase import training_run

PAGES = ("/", "/runs/run-004", "/compare?run=run-004&run=run-006", "/trends", "/ranks", "/ranks/job-1?name=spread",
         "/live", "/runs/nothing", "/nothing")  # fmt: skip
EVIL = ("<img src=x onerror=alert(1)>", "javascript:alert(1)")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    fill(folder)
    with serving(folder) as found:
        yield found


@pytest.fixture(scope="module")
def locked(served):
    with serving(served.folder, token=TOKEN, loopback=False) as found:
        yield found


def names(html: str) -> list[str]:
    return re.findall(r'<th scope="row" role="rowheader"><a href="[^"]*">([^<]*)</a>', html)


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_binds_the_browser(served, path):
    answer = served.ask(path)
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "server" not in answer.headers
    assert not re.search(r"<script(?![^>]* src=)|<style| style=|<[^>]+ on\w+=", answer.text)
    assert answer.status == (404 if "nothing" in path else 200)


def test_runs_are_filtered_and_sorted(served):
    assert names(served.ask("/?q=name~tiny&sort=flops").text) == ["tiny-gpt"] * 6
    told = served.ask(f"/?{urlencode({'q': 'metric.accuracy > 0.79 status=ok', 'sort': '-metric.accuracy'})}").text
    ids = re.findall(r"<small>(run-\d+)</small>", told)
    assert ids == ["run-010", "run-011", "run-009", "run-008", "run-007"]
    assert 'aria-sort="descending"' in told


@pytest.mark.parametrize(("query", "said"), [
    ("flopps>3", "did you mean flops?"), ("flops>many", "flops is a number"), ("name>3", "name is text"),
    ('"open', "left open"), ("since=never", "is no time"),
])  # fmt: skip
def test_a_wrong_filter_is_told_of_and_stays_in_its_box(served, query, said):
    answer = served.ask(f"/?{urlencode({'q': query})}")
    assert answer.status == 400
    assert 'role="alert"' in answer.text
    assert said in answer.text.replace("&#x27;", "'")
    assert f'value="{query.replace("&", "&amp;").replace(">", "&gt;").replace(chr(34), "&quot;")}"' in answer.text


def test_a_wrong_order_or_column_is_told_of(served):
    assert "no field" in served.ask("/?sort=-nothing").text
    assert served.ask("/?sort=-nothing").status == 400
    assert served.ask("/?column=nothing").status == 400


def test_columns_are_chosen(served):
    told = served.ask(f"/?{urlencode([('column', 'param.lr'), ('column', 'tag:team'), ('column', 'version')])}").text
    heads = re.findall(r'<a class=sort href="[^"]*">([^<]*)</a>', told)
    assert heads == ["name", "lr", "team", "version"]
    assert "0.0006" in told
    assert told.count(" checked>") == 3


def test_pages_follow_each_other(tmp_path):
    for number in range(120):
        run = make_run(
            [],
            id=f"r{number:03}",
            name=f"n{number:03}",
            started=f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000+00:00",
        )
        store.save(run, tmp_path, sync=False)
    with serving(tmp_path) as found:
        seen, to = [], "/?sort=name"
        for _ in range(5):
            html = found.ask(to).text
            seen += names(html)
            following = re.search(r'<a class=button href="([^"]*)">Next', html)
            if following is None:
                break
            to = following[1].replace("&amp;", "&")
        assert seen == [f"n{number:03}" for number in range(120)]
        assert "101 to 120 of 120" in html
        assert "There are no more" in found.ask("/?start=500").text
        assert found.ask("/?start=-1").status == found.ask("/?start=x").status == 200


def test_ranks_of_a_job_stand_in_one_line(served):
    html = served.ask("/?q=name=spread").text
    assert names(html) == ["spread"]
    assert html.count("4 ranks") == 1
    assert "sums of all ranks" in html
    flops = [run["totals"]["flops"] for run in served.ask("/api/runs?where=name=spread").json["runs"]]
    assert format_count(sum(flops), "FLOP") in html
    assert "1 to 4 of 4" in html
    assert "rank 3 held up" in served.ask("/ranks/job-1?name=spread").text
    assert "median" in served.ask("/ranks/job-1?name=spread").text
    assert served.ask("/ranks/job-1?name=other").status == 404


def test_an_empty_store_says_how_to_begin(tmp_path):
    with serving(tmp_path / "none") as found:
        for path in ("/", "/trends", "/ranks", "/live"):
            answer = found.ask(path)
            assert answer.status == 200
            assert "bitwatt" in answer.text
        assert "bitwatt run script.py" in found.ask("/").text
        assert found.ask("/api/runs").json == {"total": 0, "runs": []}
        keep(make_run([], id="first", name="first"), tmp_path / "none")
        deadline = time.monotonic() + 60
        while not names(html := found.ask("/").text):
            assert time.monotonic() < deadline
        assert names(html) == ["first"]


@pytest.mark.parametrize("path", [
    "/runs/../../../../etc/passwd", "/runs/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/runs//etc/passwd", "/runs/run-004.run",
    "/runs/run-00", "/runs/", "/static/../app.py", "/static/%2e%2e/app.py", "/api/runs/..%2Frun-004", "/runs/%00",
])  # fmt: skip
def test_no_word_becomes_a_path(served, path):
    answer = served.ask(path)
    assert answer.status == 404
    assert "root:" not in answer.text


def test_a_run_outside_the_store_is_not_read(served, tmp_path):
    run = make_run([], id="outside", name="outside")
    path = store.save(run, tmp_path)
    for word in (str(path), f"../{path.name}", path.as_uri()):
        assert served.ask(f"/runs/{quote(word, safe='')}").status == 404
        assert served.ask(f"/compare?{urlencode([('run', word), ('run', 'run-004')])}").status == 400
        assert served.ask(f"/api/compare?{urlencode([('run', word), ('run', 'run-004')])}").status == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_only_tells(served, method):
    before = sorted((path.name, path.stat().st_mtime_ns) for path in served.folder.iterdir())
    for path in ("/", "/runs/run-004", "/api/runs/run-004", "/login"):
        assert served.ask(path, method).status == 405
    assert sorted((path.name, path.stat().st_mtime_ns) for path in served.folder.iterdir()) == before


@pytest.mark.parametrize(("host", "status"), [
    ("localhost", 200), ("127.0.0.1:80", 200), ("127.0.0.2", 200), ("[::1]:9", 200), ("LOCALHOST.", 200), ("", 421),
    ("evil.example", 421),
    ("127.0.0.1.evil.example", 421), ("localhost@evil.example", 421), ("evil.example:8765", 421), ("[", 421),
])  # fmt: skip
def test_another_hosts_name_is_refused_on_loopback(served, host, status):
    assert served.ask("/api/runs", Host=host).status == status


def test_without_the_token_nothing_is_told(locked):
    for path in PAGES:
        answer = locked.ask(path)
        assert (answer.status, answer.headers["location"], answer.body) == (303, "/login", b"")
    for path in ("/api/runs", "/api/live", "/api/openapi.json"):
        answer = locked.ask(path)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    for wrong in ("Bearer ", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \xff"):
        assert locked.ask("/api/runs", Authorization=wrong).status == 401
    assert locked.ask("/", Cookie=f"bitwatt={TOKEN}").status == 303
    assert locked.ask(f"/?token={TOKEN}").status == 303


def test_the_token_opens_it_by_header_and_by_form(locked):
    assert locked.ask("/api/runs", Authorization=f"Bearer {TOKEN}", Host="machine.example").status == 200
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    wrong = locked.ask("/login", "POST", urlencode({"token": "wrong"}), **form)
    assert wrong.status == 401
    assert "set-cookie" not in wrong.headers
    assert locked.ask("/login", "POST", "token=" + "x" * 10_000, **form).status == 413
    right = locked.ask("/login", "POST", urlencode({"token": TOKEN}), **form)
    assert (right.status, right.headers["location"]) == (303, "/")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    page = locked.ask("/", Cookie=cookie.partition(";")[0])
    assert page.status == 200
    assert TOKEN not in page.text
    assert TOKEN not in locked.ask("/login").text


def test_behind_a_proxy_every_address_begins_with_its_path(served):
    """Some proxies leave the prefix in the path, some take it away."""
    with serving(served.folder, prefix="bitwatt/") as found:
        for path in PAGES:
            left, taken = found.ask(f"/bitwatt{path}"), found.ask(path)
            assert left.status == taken.status == served.ask(path).status
            assert left.text == taken.text
            ours = re.findall(r'(?:href|src|action|data-stream)="(/[^"]*)"', left.text)
            assert len(ours) > 5
            assert [one for one in ours if not one.startswith("/bitwatt/")] == []
            assert found.ask(unescape(ours[0])).status == 200
            plain = left.text.replace('="/bitwatt/', '="/')
            assert plain == served.ask(path).text
        assert found.ask("/bitwatt").status == 200
        assert found.ask("/bitwattage").status == 404
        assert found.ask("/bitwatt/api/nothing").json == {"error": "There is no such page."}


def test_behind_a_proxy_the_token_is_asked_for_and_kept_there(served):
    with serving(served.folder, prefix="/team/bitwatt", token=TOKEN) as found:
        asked = found.ask("/team/bitwatt/runs/run-004", Host="runs.example.org")  # as proxies pass it on
        assert (asked.status, asked.headers["location"]) == (303, "/team/bitwatt/login")
        assert 'action="/team/bitwatt/login"' in found.ask("/team/bitwatt/login").text
        entered = found.ask("/team/bitwatt/login", "POST", urlencode({"token": TOKEN}), Host="runs.example.org")
        assert entered.headers["location"] == "/team/bitwatt/"
        assert "Path=/team/bitwatt;" in entered.headers["set-cookie"]
        cookie = entered.headers["set-cookie"].split(";")[0]
        assert found.ask("/team/bitwatt/", Cookie=cookie, Host="runs.example.org").status == 200
        assert found.ask("/team/bitwatt/api/runs", Host="runs.example.org").status == 401


def test_it_hangs_in_another_application(served):
    from fastapi import FastAPI

    outer, inner = FastAPI(), application(served.folder)
    outer.mount("/costs", inner)
    outer.state.stream = inner.state.stream  # which our server closes
    with serving(served.folder, app=outer) as found:
        answer = found.ask("/costs/runs/run-004")
        assert answer.status == 200
        assert 'href="/costs/trends"' in answer.text
        assert found.ask("/costs/api/runs?limit=1").json["total"] > 10


@pytest.mark.parametrize("prefix", ["/a b", '/"><script>', "/../x?y"])
def test_a_prefix_that_is_no_path_is_refused(tmp_path, capsys, prefix):
    assert main(["serve", "--store", str(tmp_path), "--prefix", prefix]) == 2
    assert "a path of letters" in capsys.readouterr().err


def test_files_are_kept_by_the_browser_for_good(served):
    html = served.ask("/").text
    files = re.findall(r'(?:href|src)="(/static/[^"]+)"', html)
    assert len(files) == 4
    for path in files:
        answer = served.ask(path)
        assert answer.status == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert served.ask(path, If_None_Match=answer.headers["etag"]).status == 304
    assert {path for path in files if path.endswith(".js")} == set(
        re.findall(r'"(/static/[^"]+js)"', served.ask("/trends").text)
    )
    assert served.ask("/static/nothing.js").status == 404


def test_pages_are_packed_for_who_can_unpack(served):
    plain, packed = served.ask("/"), served.ask("/", Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert len(gzip.decompress(packed.body)) == len(plain.body)


def test_programs_get_json(served):
    found = served.ask(
        f"/api/runs?{urlencode({'q': 'name~gpt', 'where': 'metric.accuracy>=0.79', 'sort': '-flops', 'limit': 2})}"
    ).json
    assert found["total"] == 5
    assert [run["id"] for run in found["runs"]] == ["run-010", "run-008"]
    one = served.ask("/api/runs/run-010").json
    assert one["format"] == "bitwatt.report"
    assert one["totals"]["flops"] == found["runs"][0]["totals"]["flops"]
    both = served.ask("/api/compare?run=run-008&run=run-010").json
    assert both["format"] == "bitwatt.comparison"
    assert both["totals"]["flops"]["amounts"]["B"] == one["totals"]["flops"]
    assert served.ask("/api/ranks/job-1?name=spread").json["format"] == "bitwatt.ranks"
    for path, status in (
        ("/api/runs?q=flopps>1", 400),
        ("/api/runs/no", 404),
        ("/api/compare?run=run-008", 400),
        ("/api/no", 404),
    ):
        answer = served.ask(path)
        assert answer.status == status
        assert set(answer.json) == {"error"}
    assert "/api/compare" in served.ask("/api/openapi.json").json["paths"]
    assert len(served.ask("/api/runs?limit=-3").json["runs"]) == 0


def test_names_that_mean_harm_stay_text(tmp_path):
    fill_badly(tmp_path)
    with serving(tmp_path) as found:
        paths = ["/", "/trends", "/ranks", "/live", *(f"/runs/{quote(id, safe='')}" for id in EVIL)]
        evil = EVIL[0]
        asked = [("q", evil), ("sort", evil), ("column", evil), ("start", evil)]
        paths += [f"/?{urlencode([one])}" for one in asked] + [f"/runs/{quote(evil + 'x', safe='')}"]
        paths += [
            f"/compare?{urlencode([('run', id) for id in EVIL])}",
            f"/trends?{urlencode({'metric': evil, 'q': evil})}",
        ]
        for path in paths:
            answer = found.ask(path)
            assert answer.status in (200, 400, 404), path
            # outside of quotes there is no tag and no handler that we did not write
            assert not re.search(
                r"<script(?![^>]* src=\"/static)|<img|<iframe|<style|<svg[^>]*onload|href=\"?javascript", answer.text
            ), path
        html = found.ask("/").text
        assert "foreign.run is not a bitwatt run file" in html


def test_no_page_is_large_whatever_a_run_holds(tmp_path):
    fat = About(tags={f"t{i}": "v" * 400 for i in range(300)}, parameters={f"p{i}": "v" * 400 for i in range(300)},
                metrics={f"m{i}": {"last": 1.0, "min": 1.0, "max": 1.0, "count": 2.0} for i in range(300)})  # fmt: skip
    for number in range(60):
        keep(training_run(2, id=f"fat-{number}", name="fat", about=fat), tmp_path)
    keep(training_run(2, id="long", name="x" * 300_000, command="y" * 300_000), tmp_path)
    keep(training_run(600, steps=4, id="deep", name="deep"), tmp_path)
    for number in range(100):
        (tmp_path / f"bad-{number}.run").write_text("no\n")
    with serving(tmp_path) as found:
        for path in ("/", "/?column=tags&column=command&sort=name", "/runs/deep", "/runs/long", "/runs/fat-3",
                     "/compare?run=long&run=deep", "/trends?each=run&metric=m3", "/live"):  # fmt: skip
            answer = found.ask(path)
            assert answer.status == 200
            assert len(answer.body) < 2_000_000, path


def test_a_damaged_run_is_told_of(tmp_path):
    keep(make_run([], id="whole", name="whole"), tmp_path)
    path = tmp_path / "whole.run"
    path.write_bytes(path.read_bytes()[:-5])
    with serving(tmp_path) as found:
        assert found.ask("/").status == 200
        answer = found.ask("/runs/whole")
        assert answer.status == 400
        assert "is damaged" in answer.text


def test_a_comparison_of_too_few_or_many_says_so(served):
    assert "two runs or more" in served.ask("/compare").text
    assert "two runs or more" in served.ask("/compare?run=run-001&run=run-001").text
    assert "at most" in served.ask("/compare?" + "&".join(f"run=x{i}" for i in range(13))).text


def test_the_index_is_read_again_only_now_and_then(tmp_path, monkeypatch):
    keep(make_run([], id="a", name="a"), tmp_path)
    clock = SimpleNamespace(wall=1000.0, cpu=10.0, takes=(0.0, 0.0))
    fake = SimpleNamespace(monotonic=lambda: clock.wall, thread_time=lambda: clock.cpu)
    monkeypatch.setattr("bitwatt.dashboard.catalog.time", fake)
    catalog = Catalog(tmp_path)
    looks = []

    def refresh() -> None:
        looks.append(clock.wall)
        clock.wall, clock.cpu = clock.wall + clock.takes[0], clock.cpu + clock.takes[1]

    monkeypatch.setattr(catalog.index, "refresh", refresh)
    for _ in range(5):
        catalog.look()
    assert (looks, catalog.pause) == ([1000.0], 1.0)
    for takes, pause in (((0.5, 0.5), 10.0), ((3.0, 0.0), 3.0)):  # one that computes, and one that stands still
        clock.wall, clock.takes = clock.wall + catalog.pause, takes
        catalog.look()
        assert catalog.pause == pytest.approx(pause)
    assert len(looks) == 3
    catalog.close()


def test_events_tell_of_runs_as_they_grow(tmp_path):
    began = time.time()

    def write(calls: int, status: str = "under way", **fields) -> None:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S.000+00:00", time.gmtime(began))
        run = make_run([Row("forward", "a", mm_op(8, 8, 8), calls)], id="going", name="going", started=moment,
                       seconds=time.time() - began + calls, status=status)  # fmt: skip
        store.save(run, tmp_path, sync=False, **fields)

    write(1000)
    silent = make_run([], id="dead", name="dead", started="2020-01-01T00:00:00.000+00:00", status="under way")
    store.save(silent, tmp_path)
    live = Live(Catalog(tmp_path))
    [told] = live.look()
    assert (told["name"], told["state"], told["flops"]) == ("going", "under way", "1.02 MFLOP")
    assert live.silent == 1
    for calls, status, shown in ((2000, "under way", "2.05 MFLOP"), (3000, "ok", "3.07 MFLOP")):
        write(calls, status)
        live.catalog._next = 0
        [told] = live.look()
        assert (told["state"], told["flops"]) == (status, shown)
    assert len(told["points"].split()) == 3
    (tmp_path / "going.run").unlink()
    live.catalog._next = 0
    assert live.look() == []
    live.catalog.close()


def test_one_task_serves_all_listeners(tmp_path):
    import http.client

    with serving(tmp_path) as found:
        lines = []
        connections = [http.client.HTTPConnection("127.0.0.1", found.port, timeout=120) for _ in range(5)]
        for connection in connections:
            connection.request("GET", "/api/live", headers={"Accept-Encoding": "gzip"})
            answer = connection.getresponse()
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert answer.headers.get("content-encoding") is None
            while not (line := answer.readline()).startswith(b"data: "):
                pass
            lines.append(json.loads(line[6:]))
        assert lines == [[]] * 5
        assert found.ask("/").status == 200
        for connection in connections:
            connection.close()


def test_many_pages_are_drawn_at_once(served):
    with ThreadPoolExecutor(8) as pool:
        paths = [f"/runs/run-{number:03}" for number in range(8)] + [
            "/trends?each=run",
            "/compare?run=run-001&run=run-003",
        ]
        answers = list(pool.map(served.ask, paths))
    assert [answer.status for answer in answers] == [200] * 10
    assert all("<svg" in answer.text for answer in answers)


def test_object_storage_is_a_store_too():
    pytest.importorskip("fsspec")
    run = make_run([Row("forward", "a", mm_op(8, 8, 8), 3)], id="far", name="far away")
    store.save(run, "memory://dashboard", summary=summary(run))
    with serving("memory://dashboard") as found:
        assert names(found.ask("/").text) == ["far away"]
        assert "far away" in found.ask("/runs/far").text
        assert found.ask("/api/runs/far").json["totals"]["flops"] == 3 * 2 * 8**3
        assert found.ask("/live").status == 200


def test_filters_as_people_type_them():
    assert words("flops > 1e12 name~res") == ["flops>1e12", "name~res"]
    assert words("flops >1e12 energy> '1 kJ'") == ["flops>1e12", "energy>1 kJ"]
    assert words('"status=under way" word') == ["status=under way", "word"]
    assert words("") == []
    for text in ("name=a b", "plain", "it's", 'a"b', "back\\slash"):
        assert words(quoted(text)) == [text]
    with pytest.raises(BitwattError, match="left open"):
        words("'")


def test_versions_are_medians_and_fronts_are_marked(tmp_path):
    def header(id: str, version: str, quality: float, bops: int, status: str = "ok") -> Header:
        about = About(version=version, metrics={"acc": {"last": quality}})
        return Header(
            tmp_path / id,
            id,
            "net",
            f"2026-01-{id}",
            1.0,
            status=status,
            summary={"totals": {"bops": bops}},
            about=about,
        )

    rows = [("1", 0.8, 10), ("1", 0.9, 30), ("1", 0.85, 20), ("2", 0.84, 40), ("3", 0.95, 50), ("3", 0.1, 1, "failed"),
            ("4", float("nan"), 1)]  # fmt: skip
    headers = [header(f"{i + 1:02}", *row) for i, row in enumerate(rows)]
    found = versions(headers, "acc", ["bops", "energy_j"], each_run=False)
    assert [(one.version, one.quality, dict(one.costs), len(one.ids)) for one in found] == [
        ("1", 0.85, {"bops": 20.0}, 3), ("2", 0.84, {"bops": 40.0}, 1), ("3", 0.95, {"bops": 50.0}, 1),
    ]  # fmt: skip
    assert best(found, "bops", lower=False) == {"01", "05"}
    assert best(found, "bops", lower=True) == {"01", "04"}
    assert best(found, "energy_j", lower=False) == set()
    assert len(versions(headers, "acc", ["bops"], each_run=True)) == 5
    many = [replace(found[0], ids=(str(i),)) for i in range(1000)]
    kept = thinned(many, {"7", "999"}, 100)
    assert {"7", "999"} <= {one.key for one in kept}
    assert len(kept) <= 102
    assert [less_is_better(name) for name in ("val_loss", "accuracy", "WER", "glossiness", "test/mae")] == [
        True,
        False,
        True,
        False,
        True,
    ]


def test_pages_that_were_drawn_are_kept_up_to_a_size():
    shelf, made = Shelf(100), []

    def make(text: str):
        return lambda: made.append(text) or text

    for text in ("a" * 40, "b" * 40, "a" * 40, "c" * 40, "a" * 40, "b" * 40, "x" * 200, "x" * 200):
        assert shelf.get(text, make(text)) == text
    assert [text[0] for text in made] == ["a", "b", "c", "b", "x", "x"]


def test_which_hosts_are_this_machine():
    assert [is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "::1", "localhost")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", "localhost.evil.example")] == [False] * 4
    assert host_of("LocalHost:80") == "localhost"


def test_the_command_serves_until_it_is_interrupted(tmp_path):
    keep(make_run([], id="one", name="one"), tmp_path)
    for options, asks in (["--port", "0"], False), (["--port", "0", "--host", "0.0.0.0"], True):
        command = [sys.executable, "-m", "bitwatt", "serve", "--store", str(tmp_path), *options]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            first = process.stderr.readline()
            port = int(re.search(r"http://[\d.]+:(\d+)/", first)[1])
            token = re.search(r"token: (\S+)", process.stderr.readline())[1] if asks else ""
            from served import Served

            found, deadline = Served(port, tmp_path), time.monotonic() + 60
            while True:
                try:
                    answer = found.ask("/api/runs", **({"Authorization": f"Bearer {token}"} if asks else {}))
                    break
                except ConnectionError:
                    assert time.monotonic() < deadline
                    time.sleep(0.1)
            assert answer.json["total"] == 1
            assert not asks or found.ask("/api/runs").status == 401
            with socket.create_connection(("127.0.0.1", port)) as listening:  # who watches does not hold it up
                secret = f"Authorization: Bearer {token}\r\n" if asks else ""
                listening.sendall(f"GET /api/live HTTP/1.1\r\nHost: localhost\r\n{secret}\r\n".encode())
                assert b"200 OK" in listening.recv(1000)
                process.send_signal(signal.SIGINT)
                assert process.wait(120) == 0
            assert "Traceback" not in process.stderr.read()
        finally:
            process.kill()
            process.stderr.close()


def test_mistakes_are_one_sentence(tmp_path, capsys, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port), "--store", str(tmp_path)]) == 2
    assert "nothing can listen on 127.0.0.1" in capsys.readouterr().err
    assert main(["serve", "--token", "short"]) == 2
    assert "can be guessed" in capsys.readouterr().err
    import importlib.util

    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "fastapi" else real(name, *rest)
    )
    assert main(["serve"]) == 2
    assert (
        capsys.readouterr().err
        == "bitwatt: the dashboard needs FastAPI and uvicorn: pip install 'bitwatt[dashboard]'\n"
    )


@pytest.mark.parametrize("path", ["/", "/live", "/api/runs", "/api/live", "/nothing"])
def test_head_is_get_without_a_body(served, path):
    answer = served.ask(path, "HEAD")
    assert answer.body == b""
    assert answer.status == (404 if path == "/nothing" else 200)
    assert "content-security-policy" in answer.headers


def test_what_is_too_much_to_ask_is_refused(served):
    many = urlencode([("q", "x " * 1_100)])
    for query in (many, "q=%00", "where=%00", "where=since%3D0001-01-01T00:00:00%2B14:00", "q=" + "x" * 30_000):
        assert served.ask(f"/api/runs?{query}").status == 400, query[:40]
    assert json.loads(served.ask(f"/api/runs?offset={10**25}").body)["runs"] == []


def test_a_run_under_way_with_odd_sums_is_shown(tmp_path):
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000+00:00", time.gmtime())
    run = make_run([], id="odd", name="odd", started=now, seconds=0.0, status="under way")
    store.save(run, tmp_path, summary={"totals": {"x": 1}})
    live = Live(Catalog(tmp_path))
    assert [told["name"] for told in live.look()] == ["odd"]
    live.catalog.close()


def test_the_link_of_a_model_without_a_version_leads_to_its_runs(tmp_path):
    name = "long " * 30 + "name"
    told = {"accuracy": {"last": 0.5, "min": 0.5, "max": 0.5, "count": 1.0}}
    for number in range(2):
        run = make_run([], id=f"r{number}", name=name, started=f"2026-01-0{number + 1}T00:00:00.000+00:00")
        keep(replace(run, about=About(metrics=told)), tmp_path)
    keep(make_run([], id="other", name="other", started="2026-01-03T00:00:00.000+00:00"), tmp_path)
    with serving(tmp_path) as found:
        page = found.ask("/trends?metric=accuracy").body.decode()
        [to] = re.findall(r'rowheader"><a href="([^"]*)"', page)
        shown = found.ask(unescape(to)).body.decode()
    assert len(names(shown)) == 2


def test_a_port_that_is_none_is_refused(tmp_path, capsys):
    assert main(["serve", "--store", str(tmp_path), "--port", "99999"]) == 2
    assert capsys.readouterr().err == "bitwatt: 99999 is no port: 0 to 65535, 0 for any\n"
