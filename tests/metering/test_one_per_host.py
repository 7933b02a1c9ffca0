"""However many processes measure, one polls; the others read what it wrote, and the next takes over when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from metered_machine import CPU, GPU

from bitwatt.metering import Meter
from bitwatt.metering.host import ROTATE, Host, folder
from bitwatt.testing import FakeClock, FakeSensor

LEVELS = {(GPU, "power_w"): 120.0, (GPU, "utilisation"): 0.5}


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def pair(clock: FakeClock) -> tuple[Meter, FakeSensor, Meter, FakeSensor]:
    """Two meters as two processes would have them: a lock belongs to what opened its file."""
    sensors = [FakeSensor(clock, {GPU: 100.0}, levels={(GPU, "utilisation"): 1.0}) for _ in range(2)]
    meters = [Meter([sensor], clock=clock.monotonic, thread=False, shared=True) for sensor in sensors]
    return meters[0], sensors[0], meters[1], sensors[1]


def test_one_polls_and_the_other_reads_what_it_wrote():
    clock = FakeClock()
    poller, _, follower, quiet = pair(clock)
    windows = [poller.window(), follower.window()]
    reads = quiet.reads
    quiet.watts[GPU] = 100.0
    for _ in range(8):
        clock.advance(1)
        poller.tick()
        follower.tick()
    assert quiet.reads - reads <= 1  # its counters, for wraps, and no levels
    for window in windows:
        window.end()
    one, two = (window.metered({}) for window in windows)
    assert two.energy[0].energy_j == pytest.approx(800)  # by its own counter
    assert two.series[GPU] == one.series[GPU]
    assert two.usage[f"{GPU}.utilisation_mean"] == pytest.approx(1.0)


def test_when_the_poller_ends_the_other_takes_over_at_its_next_look():
    clock = FakeClock()
    poller, _, follower, sensor = pair(clock)
    first, second = poller.window(), follower.window()
    clock.advance(1)
    poller.tick()
    follower.tick()
    first.end()
    before = sensor.reads
    for _ in range(5):
        clock.advance(1)
        follower.tick()
    assert sensor.reads - before >= 4
    second.end()
    assert [at for at, _ in second.metered({}).series[GPU]] == pytest.approx([1, 2, 3, 4, 5, 6])


HOLD = """
import sys, time
from bitwatt.metering.host import Host, folder
host = Host(folder())
print(host.try_hold(), flush=True)
host.tell(1.0, {("gpu:1", "power_w"): 5.0})
time.sleep(600)
"""


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    host = Host(folder())
    with subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
            assert not host.try_hold()
        finally:
            process.kill()
    assert host.try_hold()
    host.release()


def test_a_forked_child_neither_holds_the_lock_nor_frees_it():
    clock = FakeClock()
    poller, *_ = pair(clock)
    window = poller.window()
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, b"here")
        time.sleep(600)
        os._exit(0)
    try:
        assert os.read(reader, 4) == b"here"
        other = Host(folder())
        assert not other.try_hold()  # closing it in the child has not freed it
        window.end()
        assert other.try_hold()  # and the child, which lives, has not kept it
        other.release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_ticks_survive_rotation_rubbish_and_files_of_before(tmp_path):
    writer, reader = Host(folder()), Host(folder())
    assert writer.try_hold()
    place = next((tmp_path / "bitwatt").glob("*.lock")).parent
    ticks = place / f"ticks-{next(place.glob('*.lock')).stem.removeprefix('meter-')}.jsonl"
    ticks.write_bytes(b'{"t": 3.0, "r": [["old", "power_w", 1]]}\n{"t": 4.0, "r": [[1,2\n\x00\xff nonsense\n{"t":')
    seen = []
    for second in range(10, 6000):
        writer.tell(float(second), LEVELS)
        if second % 7 == 0:
            seen += reader.hear(5.0)
    seen += reader.hear(5.0)
    assert [at for at, _ in seen] == [float(second) for second in range(10, 6000)]
    assert seen[-1][1] == LEVELS
    assert sum(file.stat().st_size for file in place.iterdir()) < 3 * ROTATE
    writer.release()


def test_without_a_folder_every_process_polls_for_itself(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(blocked))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(blocked))
    assert folder() is None
    assert Host(folder()).try_hold()
    assert Host(folder()).polls


def test_a_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "bitwatt").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "nowhere"))
    assert folder() is None


def test_no_counter_belongs_to_the_poller_alone():
    """A window of a follower that is shorter than a tick still has its energy."""
    clock = FakeClock()
    poller, _, follower, _ = pair(clock)
    held = poller.window()
    window = follower.window(all_devices=True)
    clock.advance(0.5)
    window.end()
    held.end()
    assert window.metered({}).energy[0].energy_j == pytest.approx(50)
    assert CPU not in window.metered({}).series
