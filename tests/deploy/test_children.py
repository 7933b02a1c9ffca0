"""Fresh processes: what they are told and what comes back."""

from __future__ import annotations

import os
import sys
import time
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
    ended = children.run({"task": "test_children:sleep", "pid_file": str(file)}, tmp_path, timeout_s=1.5)
    assert ended.failure == "hung for 1.5 s and was stopped while sleeping"
    for _ in range(50):
        if not _runs(int(file.read_text())):
            break
        time.sleep(0.1)
    assert not _runs(int(file.read_text()))


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
