"""What the meter costs: it says so, and what is dear is done seldom."""

from __future__ import annotations

import time

import pytest
from metered_machine import burn, wait_for

from bitwatt.metering import Meter
from bitwatt.metering import meter as metering
from bitwatt.metering.pulses import CALM, PULSES, Pulses
from bitwatt.readings import Device, Reading
from bitwatt.testing import FakeClock, FakeSensor


class Dear:
    """Takes so much CPU time for a look, and more for its counter."""

    name = "dear"

    def __init__(self, seconds: float, counter: float = 0.0) -> None:
        self._seconds, self._counter = seconds, counter
        self.looks = self.reads = self.glances = 0
        self.once = 0.0  # what the next one takes besides

    def why_absent(self) -> str | None:
        return None

    def open(self) -> list[Device]:
        return [Device("gpu:1", "gpu", ceiling_w=1000.0, resolution_s=0.1)]

    def read(self) -> list[Reading]:
        self.reads += 1
        return [Reading("gpu:1", "energy_j", 100 * time.monotonic()), *self._power(self._seconds + self._counter)]

    def look(self) -> list[Reading]:
        self.looks += 1
        return self._power(self._seconds)

    def _power(self, seconds: float) -> list[Reading]:
        burn(seconds + self.once)
        self.once = 0.0
        return [Reading("gpu:1", "power_w", 100.0)]

    def close(self) -> None:
        """Nothing to close."""


def test_the_thread_takes_no_more_than_its_share_and_tells_how_often_it_looked(monkeypatch):
    monkeypatch.setattr(metering, "WHOLE", 0.02)
    monkeypatch.setattr(metering, "BURST", 0.01)
    monkeypatch.setattr(metering, "SHARES", {True: 1.0, False: 1.0})  # each may, all together may not
    sensor = Dear(0.004)
    meter = Meter([sensor], interval=0.02, shared=False)
    window = meter.window()
    opened = sensor.reads
    wait_for(lambda: sensor.looks >= 12)
    window.end()
    found = window.metered({})
    looks = sensor.looks + sensor.reads - opened - 1  # the last one is that of the end
    assert looks >= 12
    assert 0.004 * looks < 0.01 + 0.02 * found.seconds + 2 * 0.004  # at once, its share, and a look too many
    assert found.overhead_s / 0.004 == pytest.approx(looks + 1, abs=1)  # one may be under way when it ends
    assert found.seconds / found.interval_s == pytest.approx(looks, abs=1)


def test_once_in_which_the_machine_stood_still_is_no_reason_to_look_seldom():
    class Glanced(Dear):
        def look(self) -> list[Reading]:
            self._power(0.01)
            return super().look()

        def glance(self) -> list[Reading]:
            self.glances += 1
            return self._power(self._seconds)

    clock = FakeClock()
    looked, glanced = Dear(1e-5), Glanced(1e-5)
    for sensor in (looked, glanced):
        meter = Meter([sensor], clock=clock.monotonic, thread=False, shared=False)
        window = meter.window(all_devices=True)
        for second in range(100):
            if second == 53:
                sensor.once = 0.5  # a collection of garbage, or a host that had other things to do
            clock.advance(1)
            meter.tick()
        window.end()
    assert looked.looks >= 85  # and its counter is read now and then
    assert glanced.glances >= 80


def test_the_thread_owes_no_more_than_one_rest(monkeypatch):
    monkeypatch.setattr(metering, "SHARES", {True: 1.0, False: 1.0})
    monkeypatch.setattr(metering, "SELDOMEST", 2.0)
    sensor = Dear(1e-6)
    window = Meter([sensor], interval=0.02, shared=False).window()
    sensor.once = 0.5  # a thousand seconds of its share
    wait_for(lambda: sensor.looks >= 45)
    window.end()
    assert sensor.looks >= 45  # else one in two seconds


def test_a_dear_sensor_is_looked_at_seldom_and_the_run_says_so():
    clock = FakeClock()
    dear = Dear(0.003)
    cheap = FakeSensor(clock, {"cpu:0": 10.0})
    meter = Meter([dear, cheap], clock=clock.monotonic, thread=False, shared=False)
    window = meter.window(all_devices=True)
    before = dear.looks + dear.reads, cheap.reads
    for _ in range(60):
        clock.advance(1)
        meter.tick()
    window.end()
    assert 5 <= dear.looks + dear.reads - before[0] <= 20
    assert cheap.reads - before[1] >= 55
    (note,) = [note for note in window.metered({}).notes if "looked at every" in note]
    assert note.startswith("dear is looked at every ")


def test_a_counter_that_is_dear_is_read_seldomer_than_others():
    clock = FakeClock()
    dear = Dear(0.0, counter=0.004)
    meter = Meter([dear], clock=clock.monotonic, thread=False, shared=False)
    window = meter.window(all_devices=True)
    before = dear.reads
    for _ in range(120):
        clock.advance(1)
        meter.tick()
    assert 2 <= dear.reads - before <= 6  # every ten seconds at first, then so that 4 ms are a ten-thousandth
    assert dear.looks > 60
    window.end()


def test_what_a_killed_process_leaves_says_until_when_its_energy_is_known():
    clock = FakeClock()
    sensor = FakeSensor(clock, {"gpu:1": 100.0})
    sensor.look = lambda: [Reading("gpu:1", "power_w", 100.0)]  # type: ignore[attr-defined]
    meter = Meter([sensor], clock=clock.monotonic, thread=False, shared=False)
    window = meter.window(all_devices=True)
    for _ in range(18):
        clock.advance(1)
        meter.tick()
    (part,) = window.metered({}).energy  # the window is open
    assert part.seconds < 18
    assert part.mean_w == pytest.approx(100.0)
    assert "of 18.0 s" in part.note
    window.end()
    assert window.metered({}).energy[0].seconds == 18


def test_pulses_are_taken_where_they_tell_something():
    calm, bursts = Pulses(), Pulses()
    taken = {"calm": 0, "bursts": 0}
    for name, pulses, rate in (("calm", calm, 1.0), ("bursts", bursts, 4.0)):
        now = spent = 0.0
        parts = PULSES
        for _ in range(10 * CALM):
            for _ in range(parts):
                now += 1 / parts
                spent += rate * min(1 / parts, 0.25) if now % 1 <= 0.25 or parts == 1 else 0.0
                pulses.beat(now, spent)
            parts = pulses.after_look()
            taken[name] += parts
    assert taken["bursts"] == PULSES * 10 * CALM
    assert taken["calm"] < 2.5 * 10 * CALM
