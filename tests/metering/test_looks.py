"""Counters that are dear to read are read at the ends of a window and now and then; levels every second."""

from __future__ import annotations

from pathlib import Path

import pytest
from metered_machine import burn, wait_for

from bitwatt.metering import Meter
from bitwatt.metering import meter as metering
from bitwatt.readings import Device, Reading


class Dear:
    """Its counter moves 100 J a second. `read` is dear, `look` is not."""

    name = "dear"

    def __init__(self, clock: list[float]) -> None:
        self.clock, self.reads, self.looks = clock, 0, 0

    def why_absent(self) -> str | None:
        return None

    def open(self) -> list[Device]:
        return [Device("gpu:1", "gpu", ceiling_w=1000.0, resolution_s=0.1)]

    def read(self) -> list[Reading]:
        self.reads += 1
        return [Reading("gpu:1", "energy_j", 100 * self.clock[0]), Reading("gpu:1", "power_w", 100.0)]

    def look(self) -> list[Reading]:
        self.looks += 1
        return [Reading("gpu:1", "power_w", 100.0)]

    def close(self) -> None:
        """Nothing to close."""


def test_energy_is_the_counters_and_the_series_is_the_levels() -> None:
    clock = [0.0]
    sensor = Dear(clock)
    meter = Meter([sensor], clock=lambda: clock[0], thread=False)
    window = meter.window(all_devices=True)
    opened = sensor.reads
    for _ in range(30):
        clock[0] += 1.0
        meter.tick()
    clock[0] += 0.5
    window.end()
    found = window.metered({})
    (gpu,) = [part for part in found.energy if part.device.id == "gpu:1"]
    assert gpu.energy_j == 100 * 30.5
    assert (gpu.how, gpu.note) == ("measured", "")
    assert gpu.seconds == 30.5
    assert sensor.reads - opened <= 4  # every ten seconds, and at the end
    assert sensor.looks >= 26
    assert len(found.series["gpu:1"]) >= 10


class Slow(Dear):
    """At work for five seconds and at rest for five, by turns. A look takes so long that it comes seldom."""

    def _busy(self) -> Reading:
        return Reading("gpu:1", "utilisation", float(self.clock[0] % 10 < 5))

    def read(self) -> list[Reading]:
        return [*super().read(), self._busy()]

    def look(self) -> list[Reading]:
        burn(1e-3)
        return [*super().look(), self._busy()]

    def glance(self) -> list[Reading]:
        return [self._busy()]


def test_a_gpu_that_is_dear_to_look_at_is_glanced_at_so_that_its_idle_time_is_true() -> None:
    clock = [0.0]
    sensor = Slow(clock)
    meter = Meter([sensor], clock=lambda: clock[0], thread=False)
    window = meter.window(all_devices=True)
    for _ in range(60):
        clock[0] += 1.0
        meter.tick()
    window.end()
    (gpu,) = [part for part in window.metered({}).energy if part.device.id == "gpu:1"]
    assert sensor.looks < 40
    assert gpu.idle_seconds == pytest.approx(30.0, abs=1.8)


class Dearest(Slow):
    """A look takes more than the thread may take in ten seconds."""

    def __init__(self, clock: list[float]) -> None:
        super().__init__(clock)
        self.told = ""  # what was asked of it: l for a look, g for a glance

    def read(self) -> list[Reading]:
        self.look()
        return super().read()

    def look(self) -> list[Reading]:
        self.told += "l"
        burn(0.02)
        return super().look()

    def glance(self) -> list[Reading]:
        self.told += "g"
        return super().glance()


def test_glances_go_on_while_the_threads_cpu_time_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "SHARES", {True: 1.0, False: 1.0})  # it is not the sensor's share that is spent
    sensor = Dearest([0.0])
    window = Meter([sensor], interval=0.2).window(all_devices=True)
    wait_for(lambda: "gggggg" in sensor.told)
    window.end()
    assert "gggggg" in sensor.told  # and no look among them: after what it took to begin, looks rest for ten seconds


def test_who_follows_the_poller_hears_its_glances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    clock = [0.0]
    poller, follower = (Meter([Dearest(clock)], clock=lambda: clock[0], thread=False, shared=True) for _ in range(2))
    windows = [poller.window(all_devices=True), follower.window(all_devices=True)]
    for _ in range(60):
        clock[0] += 1.0
        poller.tick()
        follower.tick()
    for window in windows:
        window.end()
    for window in windows:
        (gpu,) = [part for part in window.metered({}).energy if part.device.id == "gpu:1"]
        assert gpu.idle_seconds == pytest.approx(30.0, abs=1.8)
