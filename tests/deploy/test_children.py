"""Fresh processes: what they are told and what comes back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bitwatt.deploy.measuring import children
from bitwatt.deploy.measuring.worker import limit_torch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def report(job: dict[str, Any], tell: children.Tell) -> None:
    tell.at("here", "while reporting", 0.5)
    threads = {name: os.environ.get(name) for name in children.THREADS}
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    tell.result({"asked": job["asked"], "threads": threads, "cores": cores, "pid": os.getpid()})


def die(job: dict[str, Any], tell: children.Tell) -> None:
    tell.result({"before": 1})
    tell.at("it", "while dying")
    raise RuntimeError("as told")


def sleep(job: dict[str, Any], tell: children.Tell) -> None:
    if os.fork() == 0:  # a worker of its own, which must not be left behind
        Path(job["pid_file"]).write_text(str(os.getpid()))
        time.sleep(600)
    tell.at("it", "while sleeping")
    time.sleep(600)


def test_a_child_is_pinned_has_its_threads_and_hands_back(tmp_path: Path) -> None:
    told: list[float] = []
    ended = children.run({"task": "test_children:report", "asked": 7}, tmp_path, threads=1, core=1, tick=told.append)
    (result,) = ended.results
    assert ended.failure == ""
    assert result["asked"] == 7
    assert set(result["threads"].values()) == {"1"}
    assert result["cores"] == children.cores(1, 1)
    assert result["pid"] != os.getpid()


def test_a_child_that_raises_is_quoted_and_what_it_found_is_kept(tmp_path: Path) -> None:
    ended = children.run({"task": "test_children:die"}, tmp_path)
    assert ended.results == [{"before": 1}]
    assert (ended.at, ended.doing) == ("it", "while dying")
    assert ended.failure == "the process ended with 1 while dying: RuntimeError: as told"


def test_a_child_that_hangs_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    ended = children.run({"task": "test_children:sleep", "pid_file": str(file)}, tmp_path, timeout_s=15)
    assert ended.failure == "hung for 15 s and was stopped while sleeping"
    until(lambda: not _runs(int(file.read_text())))


def leave(job: dict[str, Any], tell: children.Tell) -> None:
    """Ends, and leaves a worker behind."""
    pid = os.fork()
    if pid == 0:
        time.sleep(600)
    tell.result({"pid": os.getpid(), "left": pid})


def die_behind(job: dict[str, Any], tell: children.Tell) -> None:
    leave(job, tell)
    raise RuntimeError("as told")


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="it cannot be told without reaping it")
@pytest.mark.parametrize("task", ["leave", "die_behind"])
def test_a_number_is_the_childs_own_until_all_that_it_started_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str
) -> None:
    ended, killpg = [], os.killpg

    def kill(pid: int, number: int) -> None:
        # Not reaped: nobody else can have this number. It raises where it is not our child any more.
        ended.append((pid, os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None))
        killpg(pid, number)

    monkeypatch.setattr(os, "killpg", kill)
    found = children.run({"task": f"test_children:{task}"}, tmp_path)
    (result,) = found.results
    assert ended == [(result["pid"], True)]
    assert ("as told" in found.failure) is (task == "die_behind")
    until(lambda: not _runs(result["left"]))
    with pytest.raises(ChildProcessError):  # no zombie is left
        os.waitpid(result["pid"], os.WNOHANG)


def test_a_number_that_is_gone_is_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a child cannot be looked at without reaping it, or was reaped by others."""
    killed: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, number: killed.append(pid))
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert children.run({"task": "test_children:report", "asked": 1}, tmp_path).results
    finally:
        signal.signal(signal.SIGCHLD, before)
    monkeypatch.delattr(os, "waitid", raising=False)
    ended = children.run({"task": "test_children:die"}, tmp_path)
    assert ended.failure == "the process ended with 1 while dying: RuntimeError: as told"
    assert killed == []


def until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_cores_take_turns() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    assert {core for turn in range(len(allowed)) for core in children.cores(1, turn)} == set(allowed)
    assert len(children.cores(10_000)) == len(allowed)


def test_torch_heeds_the_threads_that_are_asked_for() -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    try:
        limit_torch(1)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def wait(job: dict[str, Any], tell: children.Tell) -> None:
    Path(job["pid_file"]).write_text(str(os.getpid()))
    time.sleep(600)


PARENT = """
import sys
from pathlib import Path
from bitwatt.deploy.measuring import children
sys.path.insert(0, sys.argv[1])
children.run({"task": "test_children:wait", "pid_file": sys.argv[2]}, Path(sys.argv[3]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel tells it")
def test_a_child_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    here = str(Path(__file__).parent)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, here, str(file), str(tmp_path / "work")])
    try:
        until(lambda: file.exists() and file.read_text())
        child = int(file.read_text())
        assert _runs(child)
    finally:
        parent.kill()
        parent.wait()
    until(lambda: not _runs(child))


def test_without_the_kernels_help_a_child_ends_with_its_input(tmp_path: Path) -> None:
    code = "import threading, time\nfrom bitwatt.deploy.measuring import worker\n"
    code += "threading.Thread(target=worker.ends_with_its_input, daemon=True).start()\ntime.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        child.wait(0.5)
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(120) == 1
