"""A rank that is killed leaves what it had counted, and so do the others."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from launching import environment, torchrun

import bitwatt
from bitwatt import endings
from bitwatt.reports.ranks import render

HERE = Path(__file__).parent


def test_a_rank_killed_in_mid_run_is_lost_and_the_others_are_not(tmp_path):
    torchrun(HERE / "killed_program.py", tmp_path, 51, "kill", ranks=3, check=False)
    job = bitwatt.join(store=tmp_path)
    assert [part.number for part in job.parts] == [0, 1, 2]
    assert [part.number for part in job.lost] == [1]
    killed = job.parts[1]
    assert killed.kept.seconds > 0  # up to the last write
    assert "rank 1 was lost after " in render(job)
    # All three did the same until then: the others a little more, since they were heard to the end.
    for part in (job.parts[0], job.parts[2]):
        assert part.kept.status.startswith(("failed: ", "ended by SIGTERM"))
        assert part.total[0] >= killed.total[0] > 0
        assert part.arrivals.count >= killed.arrivals.count > 50
    # A step of one linear layer, 4 x 32 by 32 x 32, is a product forward and one for the gradient of the weights.
    steps = bitwatt.totals(bitwatt.load(killed.kept.path), "macs").total / (2 * 4 * 32 * 32)
    # The program goes on while the two are read for the file.
    assert steps == pytest.approx(killed.arrivals.count, abs=2, rel=0.1)


def test_a_rank_killed_before_it_begins_is_missed(tmp_path):
    torchrun(HERE / "killed_program.py", tmp_path, 0, "kill", ranks=3, check=False)
    job = bitwatt.join(store=tmp_path)
    assert (job.world, job.absent, job.lost) == (3, [1], [])
    assert [part.number for part in job.parts] == [0, 2]
    told = render(job)
    assert "2 of 3 ranks on 1 node" in told
    assert "rank 1 left no file" in told
    # The others had computed a forward and met nobody in backward.
    for part in job.parts:
        assert bitwatt.totals(bitwatt.load(part.kept.path), "macs").total >= 4 * 32 * 32


def test_where_one_rank_raises_and_the_others_wait_for_ever_all_work_is_kept(tmp_path):
    done = torchrun(HERE / "killed_program.py", tmp_path, 30, "fail", ranks=3, check=False)
    assert done.returncode != 0
    job = bitwatt.join(store=tmp_path)
    ends = [part.kept.status for part in job.parts]
    assert ends == ["ended by SIGTERM", "failed: RuntimeError: out of luck", "ended by SIGTERM"]
    told = render(job)
    assert "rank 0 ended by SIGTERM" in told
    assert "rank 1 failed: RuntimeError: out of luck" in told
    assert job.lost == job.absent == []
    # All three did the same number of steps, and nothing of them is lost.
    works = [bitwatt.totals(bitwatt.load(part.kept.path), "macs").total for part in job.parts]
    assert works[0] == works[1] == works[2] >= 30 * 2 * 4 * 32 * 32


def waiting_in_c(folder: Path) -> str:
    """A rank of two that waits outside of Python, where no handler of Python's can run."""
    return (
        "import ctypes, torch, bitwatt\n"
        f"with bitwatt.measure('waits', store={str(folder)!r}):\n"
        "    torch.ones(2, 3) @ torch.ones(3, 4)\n"
        "    print('ready', flush=True)\n"
        "    ctypes.CDLL(None).sleep(600)\n"
    )


def test_a_rank_that_is_ended_by_its_launcher_keeps_its_run_even_while_it_waits_in_c(tmp_path):
    rank = environment(RANK="1", WORLD_SIZE="2", MASTER_ADDR="nowhere")
    process = subprocess.Popen(
        [sys.executable, "-c", waiting_in_c(tmp_path)], env=rank, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        process.terminate()
        assert process.wait(timeout=120) == -signal.SIGTERM  # long before it has slept
    finally:
        process.kill()
    run = bitwatt.load(store=tmp_path)
    assert (run.status, run.rank.rank, bitwatt.totals(run).total) == ("ended by SIGTERM", 1, 48)


def test_the_signal_is_left_as_it_was_found(tmp_path, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with bitwatt.measure("quiet", store=tmp_path):
        assert isinstance(signal.getsignal(signal.SIGTERM).__self__, endings.Ending)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.set_wakeup_fd(-1) == -1


def test_a_program_that_minds_the_signal_is_left_alone(tmp_path, monkeypatch):
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    own = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        before = signal.getsignal(signal.SIGTERM)
        with bitwatt.measure("quiet", store=tmp_path):
            assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGTERM, own)


def test_a_forked_child_ends_alone(tmp_path, monkeypatch):
    """It minds the signal itself, which must not reach the parent through what they share."""
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "nowhere"}.items():
        monkeypatch.setenv(name, value)
    ready, told = os.pipe()
    with bitwatt.measure("parent", store=tmp_path) as session:
        child = os.fork()
        if not child:
            default = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            signal.signal(signal.SIGTERM, lambda *_: os._exit(3 if default else 4))
            os.write(told, b"!")
            while True:
                time.sleep(0.1)
        assert os.read(ready, 1) == b"!"
        os.kill(child, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        time.sleep(0.3)
    os.close(ready), os.close(told)
    assert session.run.status == "ok"
