"""Runs are kept in folders and in object storage by the same code: servers on this machine that speak S3 (moto) and
Google's protocol (gcp-storage-emulator)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer

import bitwatt
from bitwatt import store
from bitwatt.cli import main
from bitwatt.errors import BitwattError, RunFileError, UnknownNameError
from bitwatt.store import baselines, places
from bitwatt.store.changes import remove, tag
from bitwatt.store.index import Index
from factories import make_run
from receivers import held_port


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    known = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in known.items():
            patch.setenv(name, value)
        import s3fs

        s3fs.S3FileSystem().mkdir("runs")
        yield "s3://runs"
    server.stop()


@pytest.fixture(scope="module")
def gs() -> Iterator[str]:
    pytest.importorskip("gcsfs")
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    with held_port() as port, pytest.MonkeyPatch.context() as patch:
        server = emulator.create_server("127.0.0.1", port, in_memory=True, default_bucket="runs")
        server.start()
        patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
        yield "gs://runs"
        server.stop()


@pytest.fixture(params=["folder", "memory", "s3", "gs"])
def url(request, tmp_path) -> str:
    if request.param in ("s3", "gs"):
        return f"{request.getfixturevalue(request.param)}/{tmp_path.name}"
    return {"folder": str(tmp_path / "here"), "memory": f"memory://{tmp_path.name}"}[request.param]


def test_everything_works_alike_everywhere(url, kept, capsys):
    assert store.headers(url) == ([], [])
    where = kept("a1", url, name="first", started="2026-01-01T00:00:00.000+00:00", metrics={"accuracy": 0.5})
    kept("a2", url, name="second", started="2026-01-02T00:00:00.000+00:00", tags="good", notes=("x" * 20_000,))
    assert str(where) == f"{url}/a1.run"
    assert store.load("first", url).about.series == {"accuracy": ((None, 0.5, 0.5),)}
    assert store.load(where).id == store.load(str(where)).id == "a1"
    assert [header.id for header in store.runs(url)] == ["a2", "a1"]  # a2's first line is longer than one look
    index = Index(url)
    assert [header.id for header in index.select(["tag:good"])] == ["a2"]
    tag("a1", "good", store=url)
    store.place(url).write("x.run", b"rubbish")
    store.place(url).write("notes.txt", b"not ours")
    assert [header.id for header in index.refresh().select(["tag:good"])] == ["a2", "a1"]
    assert [str(error) for error in index.damaged] == [f"{url}/x.run is not a bitwatt run file"]
    assert main(["ls", "metric.accuracy>0.4", "--store", url]) == 0
    assert "first" in capsys.readouterr().out
    baselines.put(store.load("a1", url), {}, store=url, of="us")
    assert [one.run for one in baselines.known(url)] == ["a1"]
    assert remove([where, where]) == [where]
    assert [header.id for header in index.refresh().select()] == ["a2"]
    with pytest.raises(RunFileError, match="cannot be read"):
        store.load(where)


def test_a_measured_run_goes_there(url, monkeypatch):
    monkeypatch.setenv("BITWATT_STORE", url)
    with bitwatt.measure("mine", meter=False) as session:
        bitwatt.metric("loss", 0.25)
    assert str(session.path) == f"{url}/{session.id}.run"
    assert not Path(".bitwatt").exists()
    assert bitwatt.load().about.metrics["loss"]["last"] == 0.25


SLOW = """
import time, bitwatt, os
from bitwatt import journal
journal.FIRST = 0.2
with bitwatt.measure("slow"):
    bitwatt.metric("loss", 0.5)
    print("begun", flush=True)
    time.sleep(600)
"""


def test_a_run_that_is_killed_has_left_what_it_had(s3, tmp_path):
    """Nothing but its own journal wrote to the bucket."""
    url = f"{s3}/{tmp_path.name}"
    child = subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, env={**os.environ, "BITWATT_STORE": url}
    )
    assert child.stdout is not None
    try:
        child.stdout.readline()
        deadline = time.monotonic() + 120
        while not store.place(url).files():
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        child.kill()
        child.wait()
    [header] = store.runs(url)
    assert (header.name, header.status) == ("slow", "under way")
    assert store.load(None, url).about.metrics["loss"]["count"] == 1


def test_a_bucket_that_is_not_there_costs_no_run(s3):
    told = pytest.warns(UserWarning, match=r"could not be kept in s3://nowhere/at/all.*It is in .*\.run for now")
    with told, bitwatt.measure("homeless", store="s3://nowhere/at/all", meter=False) as session:
        pass
    assert bitwatt.load(session.path).name == "homeless"
    Path(session.path).unlink()


def test_where_runs_go_is_said_by_flag_variable_or_settings(tmp_path, monkeypatch):
    assert store.root() == Path(".bitwatt")
    (tmp_path / "pyproject.toml").write_text('[tool.bitwatt]\nstore = "kept/runs"\n')
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert store.root() == tmp_path / "kept/runs"  # beside the file that says so
    (tmp_path / "pyproject.toml").write_text('[tool.bitwatt]\nstore = "s3://bucket/runs/"\n')
    assert store.root() == "s3://bucket/runs"
    monkeypatch.setenv("BITWATT_STORE", "gs://other")
    assert store.root() == "gs://other"
    assert store.root("here") == Path("here")
    assert store.root(Path("s3://bucket/x")) == "s3://bucket/x"  # as pathlib leaves it
    assert store.root("file:///tmp/a%20b") == Path("/tmp/a b")


def test_a_place_that_cannot_be_opened_says_what_to_install(monkeypatch):
    with pytest.raises(BitwattError, match=r"abfs://bucket cannot be opened.*pip install 'adlfs'"):
        store.place("abfs://bucket")
    with pytest.raises(BitwattError, match="Protocol not known: nothing"):
        store.place("nothing://bucket")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(BitwattError, match=r"s3://x needs fsspec; pip install 'bitwatt\[remote\]'"):
        store.place("s3://x")
    monkeypatch.setenv("BITWATT_STORE", "s3://x")
    told = pytest.warns(UserWarning, match=r"it is kept in \.bitwatt: s3://x needs fsspec")
    with told, bitwatt.measure("mine", meter=False) as session:
        pass
    assert session.path == Path(".bitwatt").absolute() / f"{session.id}.run"
    with pytest.raises(BitwattError, match="needs fsspec"):  # asked for by name: before anything runs
        bitwatt.measure("mine", store="s3://x").__enter__()


def test_a_folder_needs_no_fsspec():
    code = (
        "import sys, bitwatt\nfrom bitwatt import store\nfrom bitwatt.store.index import Index\n"
        "with bitwatt.measure('x', meter=False): pass\n"
        "assert Index().count() == 1 and store.load().name == 'x'\n"
        "assert not {'fsspec', 's3fs', 'duckdb', 'pyarrow'} & set(sys.modules), 'too much'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_url_is_a_folder(tmp_path):
    assert isinstance(places.place(f"file://{tmp_path}"), places.Folder)
    assert store.save(make_run(id="x"), f"file://{tmp_path}") == tmp_path / "x.run"


def test_one_bad_entry_hides_no_other(tmp_path):
    store.save(make_run(id="good"), tmp_path)
    (tmp_path / "loop.run").symlink_to("loop.run")
    (tmp_path / "folder.run").mkdir()
    os.mkfifo(tmp_path / "pipe.run")
    found, damaged = store.headers(tmp_path)
    with Index(tmp_path) as index:
        assert [one.id for one in index.select()] == [one.id for one in found] == ["good"]
        assert sorted(map(str, index.damaged)) == sorted(map(str, damaged))
    told = "\n".join(map(str, damaged))
    assert all(f"{name}.run cannot be read" in told for name in ("folder", "loop", "pipe"))
    with pytest.raises(RunFileError, match=r"loop\.run cannot be read"):  # it is there
        store.load("loop", tmp_path)
    with pytest.raises(UnknownNameError, match="has the id or name"):
        store.load("x" * 300, tmp_path)
