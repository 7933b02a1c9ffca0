"""Power events through perf: the kernel is asked for real, with a clock that all machines have in place of energy."""

from __future__ import annotations

import platform
import time
from pathlib import Path

import pytest

from bitwatt.sensors.perf import SYSCALL, Perf, open_event

SOFTWARE, CPU_CLOCK = 1, 0  # the kernel's own clock of a CPU, in nanoseconds

pytestmark = pytest.mark.skipif(platform.machine() not in SYSCALL, reason="perf has power events on x86 alone")


def fake_sys(root: Path, *, cpus: str = "0", sockets: tuple[int, ...] = (0, 0), scale: str = "1e-9") -> Path:
    """A tree in which the power events are the software clock: each second is a joule."""
    power = root / "bus/event_source/devices/power"
    (power / "events").mkdir(parents=True)
    (power / "type").write_text(f"{SOFTWARE}\n")
    (power / "cpumask").write_text(f"{cpus}\n")
    (power / "events/energy-pkg").write_text(f"event=0x{CPU_CLOCK:02x}\n")
    (power / "events/energy-pkg.scale").write_text(f"{scale}\n")
    for cpu, socket in enumerate(sockets):
        topology = root / f"devices/system/cpu/cpu{cpu}/topology"
        topology.mkdir(parents=True)
        (topology / "physical_package_id").write_text(f"{socket}\n")
        (topology / "die_id").write_text(f"{cpu}\n")
    return root


def allowed() -> bool:
    import os

    try:
        os.close(open_event(SOFTWARE, CPU_CLOCK, 0))
    except OSError:
        return False
    return True


needs_perf = pytest.mark.skipif(
    platform.machine() in SYSCALL and not allowed(), reason="the kernel does not let this user open events of a CPU"
)


@needs_perf
def test_a_count_of_the_kernel_becomes_joules_by_the_scale_it_tells(tmp_path: Path) -> None:
    sensor = Perf(fake_sys(tmp_path))
    assert sensor.why_absent() is None
    began = time.monotonic()
    assert [device.id for device in sensor.open()] == ["cpu:0"]
    sensor.read()
    time.sleep(0.3)
    (reading,) = sensor.read()
    spent = time.monotonic() - began
    sensor.close()
    assert reading.value is not None
    assert 0.25 < reading.value <= spent + 0.05  # one joule a second


@needs_perf
def test_one_counter_for_each_socket_and_dies_of_one_socket_apart(tmp_path: Path) -> None:
    two = Perf(fake_sys(tmp_path / "two", cpus="0,1", sockets=(0, 1)))
    assert [device.id for device in two.open()] == ["cpu:0", "cpu:1"]
    two.close()
    dies = Perf(fake_sys(tmp_path / "dies", cpus="0-1", sockets=(0, 0)))
    assert [device.id for device in dies.open()] == ["cpu:0.0", "cpu:0.1"]
    dies.close()


@needs_perf
def test_a_leap_of_the_count_is_no_energy(tmp_path: Path) -> None:
    sensor = Perf(fake_sys(tmp_path, scale="1"))  # a nanosecond a joule: a gigawatt
    sensor.open()
    sensor.read()
    time.sleep(0.01)
    (reading,) = sensor.read()
    sensor.close()
    assert reading.value == 0.0
    assert "leapt" in reading.note


def test_absence_is_told_in_words(tmp_path: Path) -> None:
    assert "does not exist" in (Perf(tmp_path).why_absent() or "")


def test_an_event_that_the_kernel_does_not_know_is_told(tmp_path: Path) -> None:
    root = fake_sys(tmp_path)
    (root / "bus/event_source/devices/power/type").write_text("4000000\n")
    assert Perf(root).why_absent()


def test_permission_denied_says_the_setting_and_what_it_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("bitwatt.sensors.perf.open_event", denied)  # root is never denied
    said = Perf(fake_sys(tmp_path)).why_absent() or ""
    assert "perf_event_paranoid" in said
    assert "every user" in said
