"""The index answers as the files do, is brought up to date in steps, and may be lost at any time."""

import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bitwatt import store
from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.ranks.join import UNDER_WAY
from bitwatt.records import Machine, Rank
from bitwatt.store import columns, index, migrations
from bitwatt.store.changes import tag
from bitwatt.store.filters import condition
from bitwatt.store.index import Index


def day(number: int) -> str:
    return f"2026-01-{number:02}T12:00:00.000+00:00"


@pytest.fixture
def runs(kept):
    kept("a1", name="resnet-18", started=day(1), seconds=10.0, tags={"team": "vision"}, metrics={"accuracy": 0.9},
         parameters={"lr": 0.1, "optimizer": "adam", "ema": True},
         totals={"flops": 5 * 10**20, "bops": 10**30})  # fmt: skip
    kept("a2", name="resnet-50", started=day(2), seconds=200.0, tags=["good", "team=vision"],
         metrics={"accuracy": 0.95}, parameters={"lr": 0.01, "optimizer": "sgd"}, batch_size=32, version="2.0",
         dataset="imagenet")  # fmt: skip
    kept("b1", name="bert_100%", started=day(3), status="failed: ValueError: x", command="train.py --deep",
         machine=Machine({"gpu": "NVIDIA H200", "torch": "2.13.0"}), parent="sweep-1", parent_kind="sweep")  # fmt: skip
    kept("b2", name="Bertha", started=day(4), status=UNDER_WAY, rank=Rank(1, 2, "job-7"))
    return Index()


ALL = ["b2", "b1", "a2", "a1"]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ([], ALL), (["name~resnet"], ["a2", "a1"]), (["name~RES"], ["a2", "a1"]), (["name=Bertha"], ["b2"]),
        (["name!~e"], []), (["name!=Bertha"], ["b1", "a2", "a1"]), (["name~0%"], ["b1"]), (["name~t_1"], ["b1"]),
        (["seconds>100"], ["a2"]), (["time>=3 min"], ["a2"]), (["seconds=10"], ["a1"]),
        (["flops>1e18"], ["a1"]), (["flops>=500 EFLOP"], ["a1"]), (["bops<1e25"], ["b2", "b1", "a2"]),
        (["tag:team=vision"], ["a2", "a1"]), (["tag:good"], ["a2"]), (["tag=good"], ["a2"]),
        (["tag:team~VIS", "tag:team!=other"], ["a2", "a1"]), (["tag!=good"], ["b2", "b1", "a1"]),
        (["metric.accuracy>=0.95"], ["a2"]), (["metric.accuracy.count=1"], ["a2", "a1"]), (["metric.f1>0"], []),
        (["param.lr<0.05"], ["a2"]), (["param.optimizer=adam"], ["a1"]), (["param.optimizer>5"], []),
        (["param.ema=true"], ["a1"]), (["status=ok"], ["a2", "a1"]), (["status=failed"], ["b1"]),
        (["status=cut off"], ["b2"]), (["status!=ok"], ["b2", "b1"]), (["machine~h200"], ["b1"]),
        (["gpu=NVIDIA H200"], ["b1"]), (["machine.torch=2.13.0"], ALL), (["machine!~H200"], ["b2", "a2", "a1"]),
        (["since=2026-01-03"], ["b2", "b1"]), (["until=2026-01-02"], ["a2", "a1"]), (["started=2026-01-02"], ["a2"]),
        (["before=2026-01-02"], ["a1"]), (["started>2026-01-03T13:00"], ["b2"]), (["since=9999d"], ALL),
        (["batch_size=32", "version=2.0", "dataset~image"], ["a2"]), (["parent=sweep-1"], ["b1"]),
        (["job=job-7", "rank=1"], ["b2"]), (["command~--deep"], ["b1"]), (["resnet"], ["a2", "a1"]), (["good"], ["a2"]),
        (["b"], ["b2", "b1"]), (["id=a"], ["a2", "a1"]), (["name~resnet", "seconds<100"], ["a1"]),
        (["name='; DROP TABLE runs; --"], []), (["tag:x' OR 1=1 --=y"], []),
    ],
)  # fmt: skip
def test_filters_choose(runs, where, found):
    assert [header.id for header in runs.select(where)] == found
    assert runs.count(where) == len(found)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("nmae=x", "no field 'nmae' \\(did you mean name\\?\\); known are batch_size"),
        ("flops>many", "flops is a number, 'many' is none"), ("name>x", "name is text"), ("since=soon", "no time"),
        ("flops>1 kB", "flops is in FLOP, '1 kB' is in B"), ("macs>1 GFLOP", "macs is in MAC"),
        ("time>1 FLOP", "time is in s"), ("batch_size>3 s", "batch_size is in no unit"),
        ("param.lr>adam", "no number"), ("since>2026", "write since=2026"), ("machine>3", "machine is text"),
    ],
)  # fmt: skip
def test_a_filter_that_makes_no_sense_says_why(runs, where, message):
    with pytest.raises(UnknownNameError, match=message):
        runs.select([where])


@pytest.mark.parametrize(
    ("sort", "found"),
    [
        ("started", ["a1", "a2", "b1", "b2"]), ("-seconds", ["a2", "a1", "b2", "b1"]),
        ("name", ["b2", "b1", "a1", "a2"]),
        ("metric.accuracy", ["a1", "a2", "b2", "b1"]), ("-param.lr", ["a1", "a2", "b2", "b1"]),
        ("tag:team", ["a2", "a1", "b2", "b1"]), ("-flops", ["a1", "b2", "b1", "a2"]),
    ],
)  # fmt: skip
def test_runs_that_lack_what_is_sorted_by_come_last(runs, sort, found):
    assert [header.id for header in runs.select(sort=sort)] == found
    assert [header.id for header in runs.select(sort=sort, limit=2, offset=1)] == found[1:3]


def test_headers_from_the_index_are_those_of_the_files(runs):
    assert runs.select() == store.headers()[0]
    assert runs.select()[3].summary["totals"]["bops"] == 10**30  # exact, though SQLite has no such integers
    assert {"tag:team", "tag:good", "param.lr", "metric.accuracy", "flops"} <= set(runs.columns())


def test_it_follows_what_becomes_of_the_files(runs, kept):
    assert runs.count() == 4
    os.remove(".bitwatt/a1.run")
    kept("c1", name="new", started=day(9))
    tag("a2", ["best"])
    Path(".bitwatt/x.run").write_text("rubbish")
    assert runs.count() == 4  # until it is told to look
    runs.refresh()
    assert [header.id for header in runs.select()] == ["c1", "b2", "b1", "a2"]
    assert [header.id for header in runs.select(["tag:best"])] == ["a2"]
    assert [str(error) for error in runs.damaged] == [".bitwatt/x.run is not a bitwatt run file"]
    os.remove(".bitwatt/x.run")
    assert runs.refresh().damaged == []


def test_only_what_is_new_is_read(runs, kept, monkeypatch):
    runs.refresh()
    read = []
    heads = runs.place.heads
    monkeypatch.setattr(runs.place, "heads", lambda names: heads(read.append(n) or n for n in names))
    told = []
    runs.refresh(lambda done, total: told.append((done, total)))
    assert (read, told) == ([], [])
    kept("c1", started=day(9))
    runs.refresh(lambda done, total: told.append((done, total)))
    assert (read, told) == (["c1.run"], [(1, 1)])


def damage(path: Path, how: str) -> None:
    if how == "gone":
        path.unlink()
    elif how == "rubbish":
        path.write_bytes(b"not a database" * 500)
    elif how == "cut":
        path.write_bytes(path.read_bytes()[:5000])
    elif how == "scrambled":
        whole = bytearray(path.read_bytes())
        whole[4096:] = os.urandom(len(whole) - 4096)
        path.write_bytes(whole)
    else:
        with sqlite3.connect(path) as database:
            database.execute("DROP TABLE runs")


@pytest.mark.parametrize("how", ["gone", "rubbish", "cut", "scrambled", "a table is missing"])
def test_a_lost_or_damaged_index_is_made_anew(runs, how):
    runs.refresh().close()
    damage(runs.path, how)
    assert [header.id for header in Index().select()] == ALL
    assert [header.id for header in Index().select()] == ALL


def test_it_is_made_anew_when_it_was_made_by_another_version(runs, monkeypatch):
    runs.refresh().close()
    with sqlite3.connect(runs.path) as database:
        database.execute("UPDATE runs SET name = 'old'")
    assert Index().select()[0].name == "Bertha"  # names come from the text
    assert Index().count(["name=old"]) == 4
    monkeypatch.setattr(index, "VERSION", columns.VERSION + 1)
    assert Index().count(["name=old"]) == 0
    [(version,)] = sqlite3.connect(runs.path).execute("PRAGMA user_version")
    assert version == (columns.VERSION + 1) * 1000 + migrations.VERSION


def test_without_a_cache_it_works_in_memory(runs, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [header.id for header in Index().select(["name~resnet"])] == ["a2", "a1"]


def test_indexes_that_nobody_asked_for_are_removed(runs, cache):
    cache.mkdir(parents=True)
    old = cache / "index-0123456789abcdef.sqlite"
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    runs.refresh()
    assert list(cache.glob("*.sqlite")) == [runs.path]


def test_processes_refresh_at_once(runs, kept):
    for number in range(300):
        kept(f"n{number}", started=day(5))
    code = "from bitwatt.store.index import Index; print(Index().count())"
    found = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [child.communicate() for child in found] == [("304\n", "")] * 4


def test_a_large_store_is_found_in_through_the_index(runs, kept, monkeypatch):
    monkeypatch.setattr(store, "LARGE", 2)
    assert store.load().id == "b2"
    assert store.load("resnet-18").id == "a1"
    assert store.load("a2").id == "a2"
    kept("a10", name="resnet-18", started=day(8))
    assert store.load("resnet-18").id == "a10"  # the newest of that name
    with pytest.raises(UnknownNameError, match="'b' begins the ids of 2 runs: b2, b1"):
        store.load("b")
    with pytest.raises(UnknownNameError, match="the newest are a10, b2"):
        store.load("nobody")
    assert [header.id for header in store.runs()] == ["a10", *ALL]
    for large in (2, 500):  # by the index, and by the files
        monkeypatch.setattr(store, "LARGE", large)
        assert [header.id for header in store.ranked()] == ["b2"]
        assert [header.id for header in store.ranked(since=day(4))] == ["b2"]
        assert store.ranked(since="2026-01-04T12:00:00.001+00:00") == []


def test_units_of_energy_are_joules_or_watt_hours():
    assert condition("energy>1 kWh").bound == (3.6e6,)
    assert condition("energy_j>1 kJ").bound == (1e3,)


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (["x"] * 1_100, "1,100 filters"), (["x" * 60_000], "60,000 letters"), (["name~" + "%" * 19_000], None),
        (["name~" + "字" * 19_000], "too long"), (["a\0b"], "NUL"), ([" " * 19_000], None),
    ],
)  # fmt: skip
def test_what_is_too_much_to_ask_costs_no_index(runs, where, said):
    runs.refresh()
    before = runs.path.stat().st_ino
    if said is None:
        runs.select(where)
    else:
        with pytest.raises(UnknownNameError, match=said):
            runs.select(where)
    assert runs.path.stat().st_ino == before


def test_a_question_that_sqlite_refuses_costs_no_index(runs):
    runs.refresh()
    before = runs.path.stat().st_ino
    with pytest.raises(BitwattError, match="too much to ask at once"):
        runs._ask("SELECT " + " + ".join("1" * 2_000))
    assert (runs.path.stat().st_ino, runs.count()) == (before, 4)


@pytest.mark.parametrize(
    "spoil", ["UPDATE texts SET header = '{bad'", "UPDATE texts SET header = '[]'", "DELETE FROM machines",
              "UPDATE machines SET facts = '{bad' || id", "DROP TABLE tags",
              "ALTER TABLE runs RENAME COLUMN job TO other"]
)  # fmt: skip
def test_a_spoiled_index_is_made_anew(runs, spoil):
    runs.refresh().close()
    database = sqlite3.connect(runs.path)
    database.execute(spoil)
    database.commit()
    database.close()
    with Index() as found:
        assert [header.id for header in found.select(["tag!=nothing", "job!=nothing"])] == ALL
    with Index() as again:
        assert [header.id for header in again.select()] == ALL


def test_runs_that_were_cut_off_are_found(runs, kept):
    kept("now", status=UNDER_WAY, started=datetime.now(UTC).isoformat(timespec="milliseconds"))
    assert [header.id for header in runs.select(["status=cut off"])] == ["b2"]
    assert [header.id for header in runs.select(["status=under way"])] == ["now"]
    assert [header.id for header in runs.select(["status!=cut off"])] == ["now", "b1", "a2", "a1"]


def test_numbers_beyond_sqlite_are_clamped(runs):
    assert runs.select(offset=10**30) == []
    assert [header.id for header in runs.select(limit=10**30)] == ALL


def test_what_is_empty_is_found_as_such(runs):
    assert [header.id for header in runs.select(["version="])] == ["b2", "b1", "a1"]
    assert [header.id for header in runs.select(["version!="])] == ["a2"]


def test_a_job_is_found_by_its_id_through_the_index(runs, monkeypatch):
    assert [header.id for header in runs.select(["job-7"])] == ["b2"]
    for large in (2, 500):
        monkeypatch.setattr(store, "LARGE", large)
        assert store.load("job-7").id == "b2"
