"""Idle time and energy: from what devices say they did, and a baseline that was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from metered_machine import CPU, GPU, Machine

from bitwatt.metering import idle


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def measured(machine: Machine, seconds: float) -> dict[str, float]:
    found = idle.measure(machine.meter, seconds, sleep=lambda s: machine.run(s, cpu=0.0, gpu=75.0, busy=0.0))
    return {device: watts for device, (watts, _) in found.items()}


def test_a_baseline_is_kept_for_the_machine_with_its_date():
    machine = Machine({CPU: 20.0, GPU: 75.0})
    path = idle.keep(measured(machine, 60))
    assert idle.baseline() == pytest.approx({CPU: 20.0, GPU: 75.0})
    assert idle.measured_on().startswith("20")
    idle.keep({GPU: 80.0})  # another time, with the processor's counter closed
    assert idle.baseline() == pytest.approx({CPU: 20.0, GPU: 80.0})
    assert json.loads(path.read_text())["format"] == "bitwatt.idle"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": "other"}', '{"format": "bitwatt.idle", "watts": {"a": "b"}}']
)
def test_a_baseline_that_cannot_be_read_is_none(text):
    idle.place().parent.mkdir(parents=True)
    idle.place().write_text(text)
    assert idle.baseline() == {}


def test_a_run_that_sleeps_half_the_time_is_idle_half_the_time():
    idle.keep({CPU: 20.0, GPU: 75.0})
    machine = Machine()
    window = machine.meter.window()
    for _ in range(6):
        machine.run(5, cpu=1.0, gpu=600.0, busy=1.0)
        machine.run(5, cpu=0.0, gpu=80.0, busy=0.0)
    window.end()
    metered = window.metered({})
    for part in metered.energy:
        assert part.idle_seconds / metered.seconds == pytest.approx(0.5, abs=0.03)
        assert part.idle_j == pytest.approx(part.idle_w * part.idle_seconds)
        assert part.idle_j == pytest.approx({CPU: 20.0, GPU: 75.0}[part.device.id] * 30, rel=0.05)
    gpu = next(part for part in metered.energy if part.device.id == GPU)
    assert gpu.energy_j == pytest.approx(600 * 30 + 80 * 30)  # gross, always
    assert "80 W in its idle intervals" in gpu.note
    assert metered.usage["idle_seconds"] == pytest.approx(30, abs=1)


def test_a_gpu_that_is_busy_a_part_of_each_second_is_idle_for_the_rest():
    machine = Machine()
    window = machine.meter.window()
    machine.run(20, busy=0.25)
    window.end()
    gpu = next(part for part in window.metered({}).energy if part.device.id == GPU)
    assert gpu.idle_seconds == pytest.approx(15)
    assert (gpu.idle_w, gpu.idle_j) == (None, None)  # nobody measured a baseline, and none is guessed


def test_several_threads_at_work_are_not_idle():
    machine = Machine()
    window = machine.meter.window()
    machine.run(10, cpu=7.5)
    machine.run(10, cpu=0.0)
    window.end()
    cpu = next(part for part in window.metered({}).energy if part.device.id == CPU)
    assert cpu.idle_seconds == pytest.approx(10, abs=0.1)


def test_the_first_time_a_device_is_at_work_is_told():
    machine = Machine()
    window = machine.meter.window()
    machine.run(7, busy=0.0)
    machine.run(7, busy=0.9)
    window.end()
    assert window.metered({}).usage["first_busy_seconds"] == pytest.approx(8, abs=1)


def wants(machine: Machine, seconds: int, *, cpu: float, wanted: float) -> None:
    key = ("process", "wanted_seconds")
    for _ in range(seconds):
        machine.process.levels[key] = machine.process.levels.get(key, 0.0) + wanted
        machine.run(1, cpu=cpu)


def test_waiting_for_a_processor_is_not_idle_and_told_apart():
    machine = Machine()
    machine.process.levels["process", "wanted_seconds"] = 0.0
    window = machine.meter.window()
    wants(machine, 10, cpu=0.2, wanted=0.5)  # it sleeps for half of each second, and had 0.2 s of the other
    window.end()
    usage = window.metered({}).usage
    assert usage["idle_seconds"] == pytest.approx(5)
    assert usage["cpu_wait_seconds"] == pytest.approx(3)
    assert "wanted_seconds" not in usage


def test_a_wait_that_is_told_when_it_is_over_belongs_to_the_time_before():
    machine = Machine()
    machine.process.levels["process", "wanted_seconds"] = 0.0
    window = machine.meter.window()
    wants(machine, 1, cpu=0.2, wanted=0.2)  # it waits since, and nobody tells
    wants(machine, 1, cpu=0.4, wanted=1.8)
    wants(machine, 1, cpu=0.0, wanted=0.0)
    window.end()
    usage = window.metered({}).usage
    assert usage["idle_seconds"] == pytest.approx(1)
    assert usage["cpu_wait_seconds"] == pytest.approx(1.4)


def test_threads_that_share_processors_and_then_sleep_are_idle_while_they_sleep():
    """Each waits for half of its time, but another one runs meanwhile."""
    machine = Machine()
    machine.process.levels["process", "wanted_seconds"] = 0.0
    window = machine.meter.window()
    wants(machine, 10, cpu=2.0, wanted=1.0)
    wants(machine, 10, cpu=0.0, wanted=0.0)
    window.end()
    assert window.metered({}).usage["idle_seconds"] == pytest.approx(10)


def test_idle_energy_is_no_more_than_what_is_known_of_the_device():
    idle.keep({CPU: 60.0, GPU: 250.0})
    machine = Machine()
    window = machine.meter.window()
    machine.run(20, cpu=0.0, busy=0.0)
    machine.sensor.lose("permission denied")
    machine.run(20, cpu=0.0)
    window.end()
    for part in window.metered({}).energy:
        assert part.energy_j == pytest.approx({CPU: 50.0, GPU: 200.0}[part.device.id] * 20)
        assert part.idle_seconds == pytest.approx(20, abs=1.5)  # of the 40 s, those in which its counter was read
        assert part.idle_j == pytest.approx(part.energy_j)  # the baseline is above what it drew


def test_doctor_keeps_no_baseline_of_a_busy_device(monkeypatch, capsys):
    from bitwatt.cli import main

    found = {CPU: (20.0, None), GPU: (400.0, 0.93), "gpu:GPU-2": (75.0, 0.01)}
    monkeypatch.setattr(idle, "measure", lambda *_: found)
    assert main(["doctor", "--idle", "1"]) == 1
    out = capsys.readouterr().out
    assert "400.0 W (93% busy: not kept" in out
    assert idle.baseline() == {CPU: 20.0, "gpu:GPU-2": 75.0}


def test_how_busy_a_device_was_is_told_with_its_baseline():
    machine = Machine()
    found = idle.measure(machine.meter, 20, sleep=lambda s: machine.run(s, busy=0.5))
    assert found[GPU] == (pytest.approx(200.0), pytest.approx(0.5))
    assert found[CPU][1] is None
