"""CPU energy from watts that the user gives: a model, called one."""

from __future__ import annotations

import pytest

from bitwatt.readings import MODELLED, Reading
from bitwatt.sensors.modelled import Modelled
from bitwatt.sensors.tree import Sample
from bitwatt.testing import FakeClock, check_sensor


class Work:
    """One process, whose CPU time is set by hand."""

    cpu_s = 0.0

    def sample(self, pid: int, io: bool = True) -> Sample | None:
        return Sample(0, 0, self.cpu_s, 0.0, 0, ())

    def children(self, pids: object) -> set[int]:
        return set()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def energy(sensor: Modelled) -> float:
    (reading,) = sensor.read()
    assert (reading.device, reading.quantity, reading.how) == ("cpu", "energy_j", MODELLED)
    assert reading.value is not None
    return reading.value


def test_a_tdp_times_the_share_of_the_cores(clock: FakeClock) -> None:
    work = Work()
    sensor = Modelled(80.0, cores=4, system=work, clock=clock)
    sensor.open()
    clock.advance(10)
    work.cpu_s = 5.0
    assert energy(sensor) == 100.0  # 80 W x 5 s / 4 cores
    assert sensor.source == "modelled: 80 W (TDP) x CPU seconds of the process tree / 4 cores"


def test_sleep_costs_nothing_under_a_tdp(clock: FakeClock) -> None:
    sensor = Modelled(80.0, cores=4, system=Work(), clock=clock)
    sensor.open()
    clock.advance(20)
    assert energy(sensor) == 0.0


def test_a_curve_is_straight_between_its_points_and_charges_idle(clock: FakeClock) -> None:
    work = Work()
    sensor = Modelled(cores=2, curve=[(0.0, 10.0), (0.5, 40.0), (1.0, 50.0)], system=work, clock=clock)
    sensor.open()
    clock.advance(10)
    assert energy(sensor) == 100.0  # idle: 10 W x 10 s
    clock.advance(10)
    work.cpu_s += 5.0  # a quarter of two cores: half way from 10 to 40 W
    assert energy(sensor) == 350.0
    clock.advance(10)
    work.cpu_s += 20.0
    assert energy(sensor) == 850.0
    assert "50 W at 100%" in sensor.source


def test_ticks_that_do_not_fit_into_a_short_step_are_not_lost(clock: FakeClock) -> None:
    work = Work()
    sensor = Modelled(100.0, cores=1, system=work, clock=clock)
    sensor.open()
    work.cpu_s = 0.01
    clock.advance(0.001)
    assert energy(sensor) == pytest.approx(0.1)  # a whole core for a millisecond
    clock.advance(1)
    assert energy(sensor) == pytest.approx(1.0)  # 100 W x 0.01 s


@pytest.mark.parametrize("idle_w", [0.0, 20.0])
def test_what_a_child_used_before_it_was_found_is_not_lost(clock: FakeClock, idle_w: float) -> None:
    work = Work()
    sensor = Modelled(cores=2, curve=[(0.0, idle_w), (1.0, 100.0)], system=work, clock=clock)
    sensor.open()
    clock.advance(0.8)
    assert energy(sensor) == pytest.approx(idle_w * 0.8)  # nobody is seen at work
    work.cpu_s = 0.7
    clock.advance(0.2)  # two cores have 0.4 s for it: 0.3 s were before
    assert energy(sensor) == pytest.approx(idle_w * 1.0 + (100 - idle_w) * 0.7 / 2)


def test_no_watts_no_joules(clock: FakeClock) -> None:
    said = Modelled().why_absent() or ""
    assert "none are guessed" in said
    assert "CPU seconds" in said


@pytest.mark.parametrize("curve", [[(0.0, 10.0), (100.0, 50.0)], [(0.0, -1.0), (1.0, 5.0)]])
def test_a_curve_that_is_none_is_refused(curve: list[tuple[float, float]]) -> None:
    assert "not one of watts by utilisation" in (Modelled(curve=curve).why_absent() or "")


def test_a_clock_that_jumps_back_counts_nothing(clock: FakeClock) -> None:
    work = Work()
    sensor = Modelled(100.0, cores=1, system=work, clock=clock)
    sensor.open()
    clock.advance(-5)
    (reading,) = sensor.read()
    assert reading == Reading("cpu", "energy_j", 0.0, MODELLED, "the clock went back: this step is not counted")


def test_the_contract_holds(clock: FakeClock) -> None:
    assert len(check_sensor(Modelled(65.0, system=Work(), clock=clock), clock=clock)) == 3
