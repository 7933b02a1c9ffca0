"""Energy of a window: totals by counters, phases that add up, and never a number that nobody measured."""

from __future__ import annotations

import math
import threading
from itertools import pairwise

import pytest
from metered_machine import CPU, GPU, Machine

import bitwatt
from bitwatt.metering import Meter
from bitwatt.metering.apportioning import Spans, apportion
from bitwatt.readings import Device, Energy, Metered
from bitwatt.testing import FakeClock, FakeSensor


def part(metered: Metered, device: str) -> Energy:
    return next(one for one in metered.energy if one.device.id == device)


def check_adds_up(metered: Metered) -> None:
    for one in metered.energy:
        if one.energy_j is not None:
            shares = [phase.energy_j.get(one.device.id, 0.0) for phase in metered.phases.values()]
            assert math.fsum([*shares, metered.remainder_j[one.device.id]]) == one.energy_j
            assert min([*shares, metered.remainder_j[one.device.id]]) >= 0


def test_a_window_has_what_the_counters_counted_in_it():
    machine = Machine()
    machine.meter.window()  # another one, older
    machine.run(5)
    window = machine.meter.window()
    machine.run(10)
    window.end()
    machine.run(3)
    metered = window.metered({})
    assert metered.seconds == 10
    assert part(metered, CPU).energy_j == pytest.approx(500)  # 50 W x 10 s
    assert part(metered, GPU).energy_j == pytest.approx(2000)
    assert part(metered, GPU).mean_w == pytest.approx(200)
    assert metered.usage["cpu_seconds"] == pytest.approx(10)
    assert metered.measured_j == pytest.approx(2500)


def test_nested_and_concurrent_windows_do_not_disturb_each_other():
    machine = Machine()
    outer = machine.meter.window()
    machine.run(4)
    windows = []

    def inner() -> None:
        windows.append(machine.meter.window())

    threads = [threading.Thread(target=inner) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    machine.run(6)
    for window in [*windows, outer]:
        window.end()
    assert {round(part(window.metered({}), GPU).energy_j) for window in windows} == {1200}  # 200 W x 6 s
    assert part(outer.metered({}), GPU).energy_j == pytest.approx(2000)
    assert machine.meter.windows == []


def test_a_long_phase_is_measured_and_short_ones_share_the_rest():
    machine = Machine()
    with bitwatt.measure("phases", meter=machine.meter, keep=False) as session:
        machine.run(10)
        with bitwatt.phase("evaluate"):
            machine.run(20, gpu=400.0)
        machine.run(10, gpu=200.0)
    metered = session.run.meter
    evaluate = metered.phases["evaluate"]
    assert (evaluate.how, evaluate.seconds) == ("measured", 20)
    assert evaluate.energy_j == pytest.approx({CPU: 1000, GPU: 8000})  # 50 W and 400 W x 20 s
    # Where torch is imported too, the little time that this test really took is a phase called other.
    other = metered.phases["other"].energy_j if "other" in metered.phases else {}
    assert metered.remainder_j[GPU] + other.get(GPU, 0.0) == pytest.approx(4000)
    check_adds_up(metered)


def test_a_phase_with_one_short_entry_is_not_measured():
    machine = Machine()
    with bitwatt.measure("phases", meter=machine.meter, keep=False) as session:
        for seconds in (5, 0.001, 5):
            with bitwatt.phase("step"):
                machine.run(seconds)
    assert "measured" not in {phase.how for phase in session.run.meter.phases.values()}


def test_phases_beside_each_other_cannot_both_have_the_energy():
    machine = Machine()
    with bitwatt.measure("phases", meter=machine.meter, keep=False) as session:
        regions = machine.meter.windows[0].regions
        one, two = regions.enter(("one",)), regions.enter(("two",))
        machine.run(10)
        regions.leave(two)
        regions.leave(one)
    assert "measured" not in {phase.how for phase in session.run.meter.phases.values()}


def test_nested_phases_share_the_measured_energy_of_the_outer_one():
    # 100 s at 10 W; `fit` was measured: 40 s and 700 J, of which fit/a, measured too, had 300 J in 10 s.
    device = Energy(Device("cpu:0", "cpu"), 1000.0, "measured", "", 100.0)
    regions = {"fit": (40.0, {"cpu:0": 700.0}), "fit/a": (10.0, {"cpu:0": 300.0})}
    spans = Spans(100.0, {"fit/a": 10.0, "fit/b": 15.0, "load": 30.0}, {}, regions)
    phases, rest, _ = apportion([device], spans)
    assert phases["fit/a"].how == "measured"
    # 400 J are left in 30 s of fit, 15 s of them in fit/b; 300 J in 60 s of the run, 30 s of them in load.
    found = {name: phase.energy_j["cpu:0"] for name, phase in phases.items()}
    assert found == pytest.approx({"fit/a": 300, "fit/b": 200, "fit": 200, "load": 150})
    assert {name: phase.how for name, phase in phases.items() if name != "fit/a"} == dict.fromkeys(
        ("fit/b", "fit", "load"), "apportioned"
    )
    assert rest == {"cpu:0": pytest.approx(150)}


def test_a_gpu_is_shared_by_its_own_time_and_its_baseline():
    # 10 s: 3 s of kernels in forward, 5 s in backward. 2000 J, of which 75 W x 10 s would have been drawn anyway: the
    # 1250 J above it go 3 to 5, and the baseline goes with time.
    gpu = Energy(Device("gpu:1", "gpu"), 2000.0, "measured", "", 10.0, idle_w=75.0)
    phases, rest, notes = apportion(
        [gpu], Spans(10.0, {"forward": 1.0, "other": 9.0}, {"forward": 3.0, "backward": 5.0})
    )
    assert phases["forward"].energy_j["gpu:1"] == pytest.approx(75 * 3 + 1250 * 3 / 8)
    assert phases["backward"].energy_j["gpu:1"] == pytest.approx(75 * 5 + 1250 * 5 / 8)
    assert rest["gpu:1"] == pytest.approx(75 * 2)
    assert notes == []
    _, _, notes = apportion([gpu], Spans(10.0, {"forward": 1.0}))
    assert "host time" in notes[0]


@pytest.mark.parametrize(
    "seconds", [{"a": 0.1, "b": 0.2, "c": 0.7}, {"a": 1 / 3, "b": 2 / 3}, {"a": 4.0, "b": 3.0}, {}]
)
@pytest.mark.parametrize("total", [0.1, 1 / 3, 1e6 / 7, 12345.678])
def test_phases_and_remainder_add_up_exactly(seconds, total):
    device = Energy(Device("cpu:0", "cpu"), total, "measured", "", 1.0)
    phases, rest, _ = apportion([device], Spans(1.0, seconds))
    shares = [phase.energy_j["cpu:0"] for phase in phases.values()]
    assert math.fsum([*shares, rest["cpu:0"]]) == total
    assert min([*shares, rest["cpu:0"]]) >= 0


def test_without_a_counter_there_are_cpu_seconds_and_no_joules():
    with bitwatt.measure("none", meter=Meter([]), keep=False) as session:
        sum(range(1_000_000))
    metered = session.run.meter
    assert metered.energy == ()
    assert metered.measured_j is None
    assert "cpu_seconds" in metered.usage
    assert metered.phases == {}


def test_a_counter_that_does_not_move_is_null_and_never_zero():
    machine = Machine({CPU: 0.0, GPU: 100.0})
    window = machine.meter.window()
    machine.run(10)
    window.end()
    frozen = part(window.metered({"forward": 5.0}), CPU)
    assert (frozen.energy_j, frozen.mean_w, frozen.note) == (None, None, "the counter did not move")


def test_a_window_too_short_for_the_counter_says_so():
    clock = FakeClock()
    meter = Meter([FakeSensor(clock, {GPU: 100.0}, resolution_s=0.1)], clock=clock.monotonic, thread=False)
    window = meter.window(all_devices=True)
    clock.advance(0.3)
    window.end()
    assert "3 steps" in part(window.metered({}), GPU).note


def test_modelled_energy_is_labelled_and_no_part_of_the_measured_sum():
    clock = FakeClock()
    sensor = FakeSensor(clock, {CPU: 30.0}, how="modelled")
    meter = Meter([sensor], clock=clock.monotonic, thread=False)
    window = meter.window()
    clock.advance(10)
    window.end()
    metered = window.metered({})
    assert (part(metered, CPU).how, part(metered, CPU).energy_j) == ("modelled", pytest.approx(300))
    assert metered.measured_j is None


def test_power_over_time_stays_small_however_long_the_run():
    machine = Machine()
    window = machine.meter.window()
    machine.run(1500, gpu=100.0)
    machine.run(1500, gpu=300.0)
    window.end()
    metered = window.metered({})
    points = metered.series[GPU]
    assert 100 <= len(points) <= 240
    assert [points[0][1], points[-1][1]] == pytest.approx([100, 300])
    assert all(a[0] < b[0] for a, b in pairwise(points))
    assert part(metered, GPU).peak_w == 300


def test_a_gpu_that_idles_beside_the_program_is_left_out_and_told_of():
    machine = Machine({CPU: 50.0, GPU: 100.0, "gpu:GPU-2": 70.0})
    machine.sensor.levels["gpu:GPU-2", "utilisation"] = 0.0
    window = machine.meter.window()
    machine.run(10)
    window.end()
    metered = window.metered({})
    assert {one.device.id for one in metered.energy} == {CPU, GPU}
    assert "gpu:GPU-2 was not used and is left out: 700 J" in metered.notes


def test_what_dcgm_tells_of_a_gpu_has_a_mean():
    machine = Machine()
    window = machine.meter.window()
    for active in (0.9, 0.1, 0.1, 0.1):
        machine.sensor.levels |= {(GPU, "dram_active"): active, (GPU, "tensor_active"): active / 2}
        machine.run(1)
    window.end()
    usage = window.metered({}).usage
    assert usage[f"{GPU}.dram_active_mean"] == pytest.approx(0.3)
    assert usage[f"{GPU}.tensor_active_mean"] == pytest.approx(0.15)
    assert usage[f"{GPU}.dram_active_peak"] == pytest.approx(0.9)
