"""Sensors vanish, clocks jump, threads starve, processes fork and die: a labelled number or null, and one run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from metered_machine import CPU, GPU, Machine, wait_for

import bitwatt
from bitwatt import store
from bitwatt.metering import Meter, the_meter
from bitwatt.metering.meter import PATIENCE
from bitwatt.readings import Device, Energy, Metered, Reading
from bitwatt.sensors.rapl import Rapl
from bitwatt.testing import FakeClock, fake_powercap


def part(metered: Metered, device: str) -> Energy:
    return next(one for one in metered.energy if one.device.id == device)


def test_a_sensor_that_vanishes_keeps_what_it_said_and_says_for_how_long():
    machine = Machine({CPU: 50.0})
    window = machine.meter.window()
    machine.run(10)
    machine.sensor.lose("unplugged")
    machine.run(30)
    window.end()
    lost = part(window.metered({}), CPU)
    assert lost.energy_j == pytest.approx(500)  # 50 W x 10 s; what came after nobody knows
    assert lost.seconds == pytest.approx(10)
    assert lost.mean_w == pytest.approx(50)
    assert "known for 10.0 of 40.0 s" in lost.note
    assert "unplugged" in lost.note


def test_a_sensor_that_comes_back_counts_what_its_counter_counted_meanwhile():
    machine = Machine({CPU: 50.0})
    window = machine.meter.window()
    machine.run(10)
    machine.sensor.lose("busy")
    machine.run(5)
    machine.sensor.lose(None)
    machine.run(10)
    window.end()
    assert part(window.metered({}), CPU).energy_j == pytest.approx(50 * 25)


def test_while_a_counter_is_away_its_power_stands_in_and_nothing_is_counted_twice():
    class Half:
        """Its counter is away from the 10th to the 15th second."""

        name = "half"

        def __init__(self, clock: FakeClock) -> None:
            self.clock, self.began = clock, clock.monotonic()

        def why_absent(self) -> None:
            return None

        def open(self) -> list[Device]:
            return [Device(CPU, "cpu", resolution_s=0.001)]

        def read(self) -> list[Reading]:
            at = self.clock.monotonic() - self.began
            joules = None if 10 < at <= 15 else 50 * at
            return [Reading(CPU, "energy_j", joules, note="" if joules else "away"), Reading(CPU, "power_w", 60.0)]

        def close(self) -> None: ...

    clock = FakeClock()
    meter = Meter([Half(clock)], clock=clock.monotonic, thread=False)
    window = meter.window()
    seen = []
    for _ in range(20):
        clock.advance(1)
        meter.tick()
        seen.append(part(window.metered({}), CPU).energy_j)
    window.end()
    assert seen[13] == pytest.approx(50 * 10 + 60 * 4)  # in between, by power
    assert part(window.metered({}), CPU).energy_j == pytest.approx(50 * 20)
    assert all(a <= b for a, b in pairwise(seen))


def test_a_sensor_that_raises_is_a_note(recwarn):
    machine = Machine({CPU: 50.0})
    with bitwatt.measure("raises", meter=machine.meter, keep=False) as session:
        machine.run(5)
        machine.sensor.fail(RuntimeError("firmware"))
        machine.run(5)
    assert part(session.run.meter, CPU).energy_j == pytest.approx(250)
    assert any("firmware" in note for note in session.run.meter.notes)


@pytest.mark.parametrize("jump", [-500.0, 3600.0])
def test_a_clock_that_jumps_gives_no_absurd_joule(jump):
    machine = Machine({CPU: 50.0})
    window = machine.meter.window()
    machine.run(10)
    machine.clock.advance(jump)
    machine.run(10)
    window.end()
    found = window.metered({"forward": 5.0})
    energy = part(found, CPU)
    assert energy.energy_j is None or 0 < energy.energy_j <= 50 * (20 + max(jump, 0))
    assert all(watts <= 50.001 for _, watts in found.series[CPU])
    assert (energy.idle_seconds or 0) <= 20 + 1e-6


def test_a_clock_that_goes_back_leaves_the_mean_power_unknown():
    machine = Machine({CPU: 50.0})
    window = machine.meter.window()
    machine.run(60)
    machine.clock.advance(-50)
    machine.run(10)
    window.end()
    energy = part(window.metered({}), CPU)
    assert energy.mean_w is None  # some 3 kJ in what seem to be 20 s
    assert "the clock went back" in energy.note


def test_a_mean_above_what_the_device_can_draw_is_left_out():
    class Late:
        """Its counter is half a second late: a short run is told what was drawn before it."""

        name = "late"

        def __init__(self) -> None:
            self.values = iter([0.0, 0.0, 200.0])

        def why_absent(self) -> None:
            return None

        def open(self) -> list[Device]:
            return [Device(CPU, "cpu", ceiling_w=400.0, resolution_s=0.001)]

        def read(self) -> list[Reading]:
            return [Reading(CPU, "energy_j", next(self.values, 200.0))]

        def close(self) -> None: ...

    clock = FakeClock()
    meter = Meter([Late()], clock=clock.monotonic, thread=False)
    window = meter.window()
    clock.advance(0.1)
    meter.read()
    window.end()
    energy = part(window.metered({}), CPU)
    assert (energy.energy_j, energy.mean_w) == (200.0, None)
    assert "more than it can draw" in energy.note


def test_a_starved_thread_costs_detail_and_no_energy():
    machine = Machine()
    window = machine.meter.window()
    machine.run(2)
    machine.clock.advance(120)  # nothing looked
    machine.run(2)
    window.end()
    found = window.metered({})
    assert part(found, GPU).energy_j == pytest.approx(200 * 124)
    assert part(found, GPU).idle_seconds == pytest.approx(0, abs=0.1)  # what nobody saw is not called idle


def test_steps_that_no_device_can_make_are_dropped():
    class Wild:
        name = "wild"

        def __init__(self) -> None:
            self.values = iter([0.0, 0.0, 100.0, 1e9, 1e9 + 100.0, 5.0, 105.0, float("nan"), 205.0])

        def why_absent(self) -> None:
            return None

        def open(self) -> list[Device]:
            return [Device(CPU, "cpu", ceiling_w=400.0, resolution_s=0.001)]

        def read(self) -> list[Reading]:
            return [Reading(CPU, "energy_j", next(self.values))]

        def close(self) -> None: ...

    clock = FakeClock()
    meter = Meter([Wild()], clock=clock.monotonic, thread=False)
    window = meter.window()
    for _ in range(6):
        clock.advance(1)
        meter.tick()
    clock.advance(1)
    window.end()
    assert part(window.metered({}), CPU).energy_j == pytest.approx(
        400
    )  # four steps of 100 J; not the leap, nor the fall


def test_a_powercap_tree_through_the_whole_stack(tmp_path):
    """The package wraps, the memory is denied in mid-run, and both are labelled."""
    clock = FakeClock()
    tree = fake_powercap(tmp_path)
    package, memory = "intel-rapl:0", "intel-rapl:0:0"
    tree.set(package, tree.range_uj / 1e6 - 100)
    meter = Meter([Rapl(tree.root, read=tree.read, clock=clock)], clock=clock.monotonic, thread=False)
    with bitwatt.measure("powercap", meter=meter, keep=False) as session:
        for second in range(10):
            clock.advance(1)
            tree.draw(package, 40.0)
            tree.draw(memory, 5.0)
            if second == 6:
                tree.deny(memory)
            meter.tick()
    cpu, dram = part(session.run.meter, "cpu:0"), part(session.run.meter, "dram:0")
    assert (cpu.energy_j, cpu.how, cpu.note) == (pytest.approx(400), "measured", "")
    assert dram.energy_j == pytest.approx(5 * 6)  # until it was denied
    assert dram.seconds == pytest.approx(6)
    assert "may no longer be read" in dram.note


def test_a_fork_in_mid_run_gives_one_run(tmp_path):
    with bitwatt.measure("parent", store=tmp_path) as session:
        child = os.fork()
        if not child:
            mine = the_meter()
            ok = mine.windows == [] and mine.sensors == [] and mine._stop is None
            session.close()
            with bitwatt.measure("child", store=tmp_path / "child") as own:
                time.sleep(0.05)
            os._exit(0 if ok and own.run.meter.usage["cpu_seconds"] >= 0 else 3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        time.sleep(0.05)
    assert [one.name for one in store.runs(tmp_path)] == ["parent"]
    assert [one.name for one in store.runs(tmp_path / "child")] == ["child"]


KILLED = """
import sys, time
import bitwatt
from bitwatt.metering import Meter
from bitwatt.sensors.counters import Clock
from bitwatt.testing import FakeSensor

class Asked(Clock):
    now = time.monotonic()

    def ask(self):
        self.now = time.monotonic()
        return self.now

    def monotonic(self):  # the sensor reads when the meter says that it does, however long that takes
        return self.now

clock = Asked()
meter = Meter([FakeSensor(clock, {"cpu:0": 100.0})], interval=0.2, clock=clock.ask)
print(time.monotonic(), flush=True)
with bitwatt.measure("killed", store=sys.argv[1], meter=meter):
    time.sleep(600)
"""


def test_a_killed_process_leaves_what_it_had_metered(tmp_path: Path):
    def kept() -> float:
        return bitwatt.load(store=tmp_path).meter.seconds if store.runs(tmp_path) else 0.0

    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            began = float(process.stdout.readline())
            wait_for(lambda: kept() > 7)  # it was written more than once
        finally:
            process.kill()
    alive = time.monotonic() - began
    assert process.returncode == -signal.SIGKILL
    run = bitwatt.load(store=tmp_path)
    assert run.status == "under way"
    assert 7 < run.meter.seconds <= alive
    assert part(run.meter, CPU).energy_j == pytest.approx(100 * run.meter.seconds, rel=0.01)


def test_the_thread_does_not_keep_the_process_alive():
    code = "import bitwatt; m = bitwatt.measure('x', keep=False); m.__enter__(); print('end')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert (done.stdout, done.stderr) == ("end\n", "")


def test_signals_reach_the_main_thread():
    code = (
        "import bitwatt, os, signal, threading, time\n"
        "seen = []\n"
        "signal.signal(signal.SIGUSR1, lambda *_: seen.append(threading.current_thread() is threading.main_thread()))\n"
        "with bitwatt.measure('x', keep=False):\n"
        "    os.kill(os.getpid(), signal.SIGUSR1)\n"
        "    time.sleep(0.2)\n"
        "print(seen)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[True]\n"


def test_a_sensor_that_never_answers_holds_up_neither_the_program_nor_its_end(monkeypatch):
    monkeypatch.setattr("bitwatt.metering.meter.PATIENCE", 0.1)
    stuck, free, answered = threading.Event(), threading.Event(), threading.Event()
    machine = Machine()
    read = machine.sensor.read

    def hang():
        if threading.current_thread() is not threading.main_thread():
            stuck.set()
            free.wait(120)
            answered.set()
        return read()

    monkeypatch.setattr(machine.sensor, "read", hang)
    with bitwatt.measure("stuck", meter=machine.meter, keep=False) as session:
        machine.run(5)
        machine.clock.advance(1)
        thread = threading.Thread(target=machine.meter.tick)
        thread.start()
        assert stuck.wait(60)
        with bitwatt.phase("evaluate"):
            pass
    assert not answered.is_set()
    free.set()
    thread.join()
    assert session.run.meter is None
    assert any("has not answered" in note for note in session.run.notes)


def test_a_process_that_stood_still_while_it_waited_for_its_sensors_has_its_energy():
    machine = Machine()
    lock, waits = machine.meter.lock, []

    class StoodStill:
        """The first wait is over before whoever had the lock could do anything."""

        def acquire(self, timeout: float = -1) -> bool:
            waits.append(timeout)
            return len(waits) % 2 == 0 and lock.acquire(timeout=timeout)

        release, __enter__, __exit__ = lock.release, lock.__enter__, lock.__exit__

    machine.meter.lock = StoodStill()
    with bitwatt.measure("stood", meter=machine.meter, keep=False) as session:
        machine.run(10)
    assert part(session.run.meter, CPU).energy_j == pytest.approx(500)
    assert len(waits) >= 4
    assert sum(waits[:2]) == PATIENCE  # in all


def test_the_meter_can_be_left_off():
    with bitwatt.measure("off", meter=False, keep=False) as session:
        pass
    assert session.run.meter is None
