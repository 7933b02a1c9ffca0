"""Apple silicon, on samples in the shape of `powermetrics --format plist`, printed by a program of ours."""

from __future__ import annotations

import os
import plistlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bitwatt.readings import Reading
from bitwatt.sensors.apple import Apple
from bitwatt.testing import FakeClock, check_sensor

PRINTER = (
    "import pathlib, sys, time\nsys.stdout.buffer.write(pathlib.Path(sys.argv[1]).read_bytes())\nsys.stdout.flush()\n"
)


def sample(milliwatts: dict[str, float], seconds: float = 1.0) -> bytes:
    told: dict[str, Any] = {f"{part}_power": value for part, value in milliwatts.items()}
    return plistlib.dumps({"elapsed_ns": round(seconds * 1e9), "processor": told}) + b"\0"


def printing(tmp_path: Path, *samples: bytes, ends: bool = False) -> list[str]:
    """A program that prints these, and goes on or ends."""
    (tmp_path / "samples").write_bytes(b"".join(samples))
    after = "" if ends else "time.sleep(600)"
    return [sys.executable, "-c", PRINTER + after, str(tmp_path / "samples")]


def told(sensor: Apple, until: Callable[[Reading], bool]) -> dict[tuple[str, str], Reading]:
    """What it reads, once the program has spoken so that the energy of the processor is as wanted."""
    end = time.monotonic() + 120
    while True:
        readings = {(reading.device, reading.quantity): reading for reading in sensor.read()}
        if until(readings["cpu:0", "energy_j"]) or time.monotonic() > end:
            return readings
        time.sleep(0.05)


def reaches(joules: float) -> Callable[[Reading], bool]:
    return lambda reading: reading.value is not None and reading.value > joules - 0.5


def test_samples_are_added_up_by_part(tmp_path: Path) -> None:
    milliwatts = {"cpu": 5000.0, "gpu": 10_000.0, "ane": 0.0}
    sensor = Apple(printing(tmp_path, sample(milliwatts, 1.0), sample(milliwatts, 2.0)))
    assert [device.id for device in sensor.open()] == ["cpu:0", "gpu:apple", "npu:0"]
    readings = told(sensor, reaches(15))
    sensor.close()
    assert readings["cpu:0", "energy_j"].value == pytest.approx(15.0)  # 5 W x 3 s
    assert readings["gpu:apple", "energy_j"].value == pytest.approx(30.0)
    assert readings["npu:0", "energy_j"].value == 0.0  # switched off, which Apple's is
    assert readings["gpu:apple", "power_w"].value == pytest.approx(10.0)


def test_before_the_first_sample_there_is_no_energy_yet(tmp_path: Path) -> None:
    sensor = Apple(printing(tmp_path), FakeClock())
    sensor.open()
    first = sensor.read()
    sensor.close()
    assert {reading.value for reading in first} == {None}
    assert all("yet" in reading.note for reading in first)


def test_a_cut_sample_and_absurd_watts_are_not_counted(tmp_path: Path) -> None:
    good = sample({"cpu": 5000.0, "gpu": 0.0, "ane": 0.0})
    bad = [good[: len(good) // 2] + b"\0", sample({"cpu": 1e9}), sample({"cpu": -5})]
    sensor = Apple(printing(tmp_path, good, *bad, good))
    sensor.open()
    readings = told(sensor, reaches(10))
    sensor.close()
    assert readings["cpu:0", "energy_j"].value == pytest.approx(10.0)


def test_a_program_that_ends_is_none(tmp_path: Path) -> None:
    sensor = Apple(printing(tmp_path, sample({"cpu": 5000.0}), ends=True))
    sensor.open()
    readings = told(sensor, lambda reading: "ended" in reading.note)
    sensor.close()
    assert readings["cpu:0", "energy_j"].value is None


def test_silence_is_none(tmp_path: Path) -> None:
    clock = FakeClock()
    sensor = Apple(printing(tmp_path, sample({"cpu": 5000.0})), clock)
    sensor.open()
    assert told(sensor, reaches(5))["cpu:0", "energy_j"].value == 5.0
    clock.advance(60)
    reading = sensor.read()[0]
    sensor.close()
    assert reading.value is None
    assert "nothing for 60 s" in reading.note


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_closing_ends_what_was_started(tmp_path: Path) -> None:
    sensor = Apple(printing(tmp_path))
    sensor.open()
    process = Path(f"/proc/{sensor._stream.pid}/stat")  # type: ignore[union-attr]

    def lives() -> bool:
        try:
            return ") Z " not in process.read_text()  # nobody may look after orphans here
        except OSError:
            return False

    assert lives()
    sensor.close()
    end = time.monotonic() + 60
    while lives() and time.monotonic() < end:
        time.sleep(0.02)
    assert not lives()


def test_the_program_never_meets_what_is_started(tmp_path: Path) -> None:
    """It waits for its own children, all of them, and has a handler for their ends."""
    code = (
        "import os, signal, sys, time\n"
        "from bitwatt.sensors.apple import Apple\n"
        "sensor = Apple(sys.argv[1:])\n"
        "sensor.open()\n"
        "ended = []\n"
        "signal.signal(signal.SIGCHLD, lambda *_: ended.append(1))\n"
        "try: os.waitpid(-1, os.WNOHANG); sys.exit('there is a child')\n"
        "except ChildProcessError: pass\n"
        "child = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, '-c', ''])\n"
        "assert os.wait()[0] == child\n"
        "sensor.close()\n"
        "time.sleep(0.3)\n"
        "assert len(ended) == 1, ended\n"
    )
    subprocess.run([sys.executable, "-c", code, *printing(tmp_path)], check=True, timeout=120)


def test_a_forked_child_takes_nothing_from_its_parent(tmp_path: Path) -> None:
    sensor = Apple(printing(tmp_path, sample({"cpu": 5000.0})))
    sensor.open()
    child = os.fork()
    if child == 0:
        said = {reading.note for reading in sensor.read()}
        sensor.close()
        os._exit(0 if all("forked" in note for note in said) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert told(sensor, reaches(5))["cpu:0", "energy_j"].value == 5.0
    sensor.close()


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac has it")
def test_elsewhere_it_is_said() -> None:
    assert "macOS" in (Apple().why_absent() or "")


def test_the_contract_holds(tmp_path: Path) -> None:
    check_sensor(Apple(printing(tmp_path, sample({"cpu": 5000.0, "gpu": 1.0, "ane": 0.0}))))
