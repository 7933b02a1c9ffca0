"""Power that follows from counters: no more than was drawn, whoever reads them and however late; and notes that are of
this run."""

from __future__ import annotations

from pathlib import Path

import pytest

import bitwatt
from bitwatt.metering import Meter
from bitwatt.metering.apportioning import Spans, apportion
from bitwatt.readings import Device, Energy, Metered
from bitwatt.sensors.modelled import Modelled
from bitwatt.sensors.rapl import Rapl
from bitwatt.sensors.tree import Sample
from bitwatt.testing import FakeClock, FakePowercap, FakeSensor, fake_powercap

PACKAGE = "intel-rapl:0"


class Socket:
    """One package of a fake tree, and meters that read it as several processes would."""

    def __init__(self, tmp_path: Path, watts: float = 50.0) -> None:
        self.clock, self.watts = FakeClock(), watts
        self.tree: FakePowercap = fake_powercap(tmp_path / "powercap", {PACKAGE: "package-0"})

    def meter(self, *, shared: bool = False) -> Meter:
        sensors = [Rapl(self.tree.root, self.tree.read, self.clock)]
        other = FakeSensor(self.clock, name="levels", levels={("gpu:GPU-1", "utilisation"): 1.0})
        return Meter([*sensors, other], clock=self.clock.monotonic, thread=False, shared=shared)

    def run(self, seconds: int, *meters: Meter) -> None:
        for _ in range(seconds):
            self.clock.advance(1)
            self.tree.draw(PACKAGE, self.watts)
            for meter in meters:
                meter.tick()


def cpu(metered: Metered) -> Energy:
    return next(part for part in metered.energy if part.device.id == "cpu:0")


def test_a_process_that_reads_its_counters_seldom_has_no_peak_of_many_seconds_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    socket = Socket(tmp_path)
    poller, follower = socket.meter(shared=True), socket.meter(shared=True)
    windows = [poller.window(), follower.window()]
    socket.run(35, poller, follower)
    for window in windows:
        window.end()
    for found in (window.metered({}) for window in windows):
        assert cpu(found).energy_j == pytest.approx(50 * 35)
        assert cpu(found).peak_w == pytest.approx(50)
        assert [watts for _, watts in found.series["cpu:0"]] == pytest.approx([50.0] * len(found.series["cpu:0"]))


def test_a_look_that_waited_for_its_turn_makes_no_peak(tmp_path):
    socket = Socket(tmp_path)
    meter = socket.meter()
    window = meter.window()
    socket.run(5, meter)
    read = socket.tree.read

    def late(path: Path) -> str:
        if path.name == "energy_uj":
            socket.clock.advance(0.7)  # after the clock was looked at: another process had the core
            socket.tree.draw(PACKAGE, 35)
        return read(path)

    meter.sensors[0]._sensor._read = late  # type: ignore[attr-defined]
    socket.run(1, meter)
    meter.sensors[0]._sensor._read = read  # type: ignore[attr-defined]
    socket.run(5, meter)
    window.end()
    assert cpu(window.metered({})).peak_w == pytest.approx(50, rel=0.05)


def test_what_was_wrong_between_two_runs_is_not_told_of_the_second(tmp_path):
    socket = Socket(tmp_path)
    meter = socket.meter()
    for pause in (0, 5000):  # it may have wrapped meanwhile, more often than anybody saw
        socket.clock.advance(pause)
        socket.tree.draw(PACKAGE, 50 * pause)
        window = meter.window()
        socket.run(10, meter)
        window.end()
        found = cpu(window.metered({}))
        assert (found.energy_j, found.note) == (pytest.approx(500), "")


def test_a_counter_that_cannot_be_read_when_a_run_begins_says_so(tmp_path):
    socket = Socket(tmp_path)
    meter = socket.meter()
    meter.window().end()
    socket.tree.deny(PACKAGE)
    socket.clock.advance(1)
    with bitwatt.measure("denied", meter=meter, keep=False) as session:
        socket.run(10, meter)
    found = cpu(session.run.meter)
    assert found.energy_j is None
    assert "may no longer be read; to open it: sudo sh -c" in found.note
    assert "did not move" not in found.note  # nobody could look


def test_a_clock_that_went_back_before_the_run_began_is_told(tmp_path):
    socket = Socket(tmp_path)
    meter = socket.meter()
    window = meter.window()
    socket.run(30, meter)
    socket.clock.advance(-100)
    socket.run(30, meter)
    window.end()
    found = cpu(window.metered({}))
    assert (found.energy_j, found.mean_w) == (pytest.approx(1500), None)
    assert found.note == "the clock went back: its mean power is not known, and some of its energy may be missing"


def test_phases_of_modelled_energy_are_modelled():
    model = Energy(Device("cpu", "cpu"), 100.0, "modelled", "TDP", 10.0)
    gpu = Energy(Device("gpu:1", "gpu"), 200.0, "measured", "NVML", 10.0)
    spans = Spans(10.0, host={"forward": 4.0})
    assert apportion([model], spans)[0]["forward"].how == "modelled"
    assert apportion([model, gpu], spans)[0]["forward"].how == "apportioned"  # each device says what it is


class Family:
    """A process, and a child that is found late; their CPU time is set by hand."""

    def __init__(self) -> None:
        self.cpu_s = 0.0

    def sample(self, pid: int, io: bool = True) -> Sample | None:
        return Sample(0, 0, self.cpu_s, 0.0, 0, ())

    def children(self, pids: object) -> set[int]:
        return set()


def test_the_peak_of_a_model_is_never_above_its_maximum_nor_below_the_mean():
    clock, work = FakeClock(), Family()
    sensor = Modelled(100.0, cores=2, system=work, clock=clock)
    meter = Meter([sensor], clock=clock.monotonic, thread=False)
    window = meter.window()
    for spent in (0.0, 0.0, 5.0):  # 3 s of them were used before
        clock.advance(1)
        work.cpu_s += spent
        meter.tick()
    window.end()
    (late,) = window.metered({}).energy
    assert late.energy_j == pytest.approx(250.0)  # nothing is lost
    assert late.peak_w == pytest.approx(100.0)
    window = meter.window()
    clock.advance(1)
    work.cpu_s += 0.2
    meter.tick()
    clock.advance(0.9)
    work.cpu_s += 1.8
    window.end()
    (quick,) = window.metered({}).energy
    assert quick.mean_w is not None
    assert quick.peak_w is not None
    assert quick.mean_w <= quick.peak_w <= 100.0
