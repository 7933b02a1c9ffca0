"""A GPU's driver, with its faults, from the sensor to the report."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import bitwatt
from bitwatt.metering import Meter, idle
from bitwatt.readings import Energy
from bitwatt.sensors.nvml import Nvml
from bitwatt.testing import FakeClock, FakeGPU, FakeNVML


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


class Stack:
    def __init__(self, **fields) -> None:
        self.clock, self.gpu = FakeClock(), FakeGPU(name="NVIDIA H200", utilisation=100, **fields)
        self.driver = FakeNVML(self.clock, self.gpu)
        self.meter = Meter([Nvml(self.driver, visible="0", clock=self.clock)], clock=self.clock.monotonic, thread=False)

    def run(self, seconds: int, watts: float, busy: int = 100) -> None:
        if "energy_j" not in self.gpu.unsupported:
            self.counter_j()  # the fake books what was drawn at the watts until now
        self.gpu.watts, self.gpu.utilisation = watts, busy
        for _ in range(seconds):
            self.clock.advance(1)
            self.meter.tick()

    def counter_j(self) -> float:
        self.driver.nvmlInit()
        try:
            return self.driver.nvmlDeviceGetTotalEnergyConsumption(self.driver.nvmlDeviceGetHandleByIndex(0)) / 1e3
        finally:
            self.driver.nvmlShutdown()


def only(run) -> Energy:
    (part,) = [part for part in run.meter.energy if part.device.kind == "gpu"]
    return part


def test_a_run_that_sleeps_half_the_time_beside_the_counter_read_by_hand():
    stack = Stack()
    device = f"gpu:{stack.gpu.uuid}"
    idle.keep({device: 75.0})
    before = stack.counter_j()
    with bitwatt.measure("half", meter=stack.meter, keep=False) as session:
        for _ in range(3):
            with bitwatt.phase("work"):
                stack.run(10, 600.0)
            with bitwatt.phase("sleep"):
                stack.run(10, 80.0, busy=0)
    by_hand, gpu = stack.counter_j() - before, only(session.run)
    assert gpu.energy_j == pytest.approx(by_hand, rel=0.001)
    assert gpu.idle_seconds / session.run.meter.seconds == pytest.approx(0.5, abs=0.03)
    assert gpu.idle_j == pytest.approx(75 * 30, rel=0.05)
    phases = session.run.meter.phases
    assert phases["work"].energy_j[device] == pytest.approx(18_000, rel=0.01)
    assert phases["sleep"].energy_j[device] == pytest.approx(2_400, rel=0.01)
    shares = [phase.energy_j.get(device, 0.0) for phase in phases.values()]
    assert math.fsum([*shares, session.run.meter.remainder_j[device]]) == gpu.energy_j


@pytest.mark.parametrize("fault", ["frozen", "lost", "zero", "driver"])
def test_faults_in_mid_run_give_a_labelled_number(fault):
    stack = Stack()
    with bitwatt.measure(fault, meter=stack.meter, keep=False) as session:
        stack.run(20, 300.0)
        if fault == "frozen":
            stack.gpu.frozen = True
        elif fault == "lost":
            stack.gpu.lost = True
        elif fault == "driver":
            stack.driver.unload()
        for _ in range(20):
            if fault == "zero":
                stack.gpu.watts = 0.0
            stack.clock.advance(1)
            stack.meter.tick()
    gpu = only(session.run)
    assert gpu.how == "measured"
    assert gpu.energy_j is not None
    assert 0.95 * 6000 <= gpu.energy_j <= 12_000.001  # 300 W x 20 s are known; of the rest no more than was drawn
    assert gpu.note
    assert bitwatt.report(session.run)


def test_a_gpu_without_a_counter_is_integrated():
    stack = Stack(unsupported={"energy_j"})
    with bitwatt.measure("power", meter=stack.meter, keep=False) as session:
        stack.run(20, 300.0)
    gpu = only(session.run)
    assert gpu.energy_j == pytest.approx(6000, rel=0.06)
    assert any("no energy counter" in note for note in session.run.meter.notes)


def test_throttling_and_neighbours_are_in_the_report():
    stack = Stack(throttle_bits=0x4, processes=(1,))
    with bitwatt.measure("held", meter=stack.meter, keep=False) as session:
        stack.run(12, 700.0)
    text = bitwatt.report(session.run)
    assert "was held back 100.0 % of the time (power cap)" in text
    assert "1 other process was on" in text
