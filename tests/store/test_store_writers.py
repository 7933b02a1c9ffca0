"""Many processes write at once and lose nothing; a full disk is a clear error and leaves what was there."""

import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from bitwatt import store
from bitwatt.errors import BitwattError
from bitwatt.store import changes
from bitwatt.store.index import Index

WRITER = """
import os, sys
from bitwatt import store
from bitwatt.ledger import Ledger
from bitwatt.records import Machine, Run
number, runs = int(sys.argv[1]), int(sys.argv[2])
while not os.path.exists("go"):  # all at the same moment
    pass
for i in range(runs):
    for again in range(3):  # as the journal does
        run = Run(f"{number}-{i}", f"w{number}", f"2026-01-01T00:00:00.{again:03}+00:00", again, Ledger(), Machine())
        store.save(run, sync=False)
"""


def test_32_processes_that_write_at_once_lose_nothing():
    children = [subprocess.Popen([sys.executable, "-c", WRITER, str(n), "5"]) for n in range(32)]
    time.sleep(1)
    Path("go").touch()
    index, seen = Index(), 0
    while any(child.poll() is None for child in children):
        seen = max(seen, index.refresh().count())
        assert index.damaged == []  # a file is there completely or not at all
        time.sleep(0.05)
    assert [child.returncode for child in children] == [0] * 32
    kept = index.refresh().select()
    assert sorted(header.id for header in kept) == sorted(f"{n}-{i}" for n in range(32) for i in range(5))
    assert {header.seconds for header in kept} == {2.0}
    assert {path.suffix for path in Path(".bitwatt").iterdir()} == {".run"}  # nothing is left over


FULL = """
import os, sys, warnings, tempfile
import bitwatt
from bitwatt import store
from bitwatt.errors import RunFileError
from bitwatt.ledger import Ledger
from bitwatt.records import Machine, Run

def run(id, notes=()):
    return Run(id, "x", "2026-01-01T00:00:00.000+00:00", 1.0, Ledger(), Machine(), notes=notes)

store.save(run("before"), "small")
try:
    while True:
        with open("small/ballast", "ab") as file:
            file.write(b"x" * 4096)
except OSError:
    pass
try:
    store.save(run("big", tuple(map(str, range(5000)))), "small")
    raise SystemExit("it fitted")
except RunFileError as error:
    print(error)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    with bitwatt.measure("mine", store="small", meter=False) as session:
        bitwatt.parameter(**{f"p{i}": "y" * 400 for i in range(200)})
print([str(one.message) for one in told if "bitwatt" in str(one.message)][-1])
assert store.load("before", "small").name == "x"
assert sorted(os.listdir("small")) == ["ballast", "before.run"]
assert store.load(session.path).name == "mine"
"""


def is_allowed_to_mount() -> bool:
    command = ["unshare", "-rm", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
    return bool(shutil.which("unshare")) and subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(not is_allowed_to_mount(), reason="a small file system cannot be mounted here")
def test_on_a_full_disk_the_run_is_kept_elsewhere_and_nothing_is_harmed(tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "full.py").write_text(FULL)
    script = f"mount -t tmpfs -o size=64k none small && exec {sys.executable} full.py"
    environment = {**os.environ, "TMPDIR": str(tmp_path / "elsewhere")}
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "the run could not be kept in small: [Errno 28] No space left on device"
    assert "No space left on device. It is in " in second
    [spare] = (tmp_path / "elsewhere").glob("bitwatt-*/*.run")
    assert str(spare) in second
    assert store.load(spare).name == "mine"


def test_where_no_file_can_be_written_the_program_goes_on_and_is_told():
    """RLIMIT_FSIZE: every write beyond 0 bytes fails, also in the temporary folder."""
    code = """
        import resource, bitwatt, warnings
        with bitwatt.measure("before", meter=False): pass
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        with bitwatt.measure("mine", meter=False) as session: pass
        assert session.path is None
        print("went on", session.run.name)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout == "went on mine\n"
    assert "could not be kept in" in done.stderr
    assert "File too large; nor elsewhere" in done.stderr
    assert [header.name for header in store.runs()] == ["before"]
    assert len(list(Path(".bitwatt").iterdir())) == 1


def test_bitwatt_run_tells_where_the_run_went(tmp_path):
    (tmp_path / "script.py").write_text("print('hello')")
    (tmp_path / "taken").write_text("a file, no folder")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "bitwatt", "run", "--no-meter", "--store", "taken", "script.py"],
        capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    assert done.stdout == "hello\n"
    [spare] = tmp_path.glob("bitwatt-*/*.run")
    assert f"show it again with: bitwatt report {spare}" in done.stderr
    assert "could not be kept in" in done.stderr


def test_16_processes_that_tag_one_run_lose_no_tag(kept):
    kept("big")
    code = "import sys; from bitwatt.store.changes import tag; tag('big', [sys.argv[1]])"
    children = [subprocess.Popen([sys.executable, "-c", code, f"t{n}"]) for n in range(16)]
    assert [child.wait() for child in children] == [0] * 16
    assert set(store.load("big").about.tags) == {f"t{n}" for n in range(16)}


def test_tags_that_another_host_wrote_over_are_written_again(kept, monkeypatch):
    where, pauses = kept("r"), []
    before = where.read_bytes()

    def overwritten(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) < 3:
            where.write_bytes(before)

    monkeypatch.setattr(changes.time, "sleep", overwritten)
    assert changes.tag("r", ["mine"]).about.tags == {"mine": ""}
    assert len(pauses) == 3
    assert store.load("r").about.tags == {"mine": ""}
    monkeypatch.setattr(changes.time, "sleep", lambda _: where.write_bytes(before))
    with pytest.raises(BitwattError, match=r"others write to .* all the time"):
        changes.tag("r", ["mine"])
