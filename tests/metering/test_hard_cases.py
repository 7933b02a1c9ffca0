"""What a reviewer tried to break: gaps, plug-ins without manners, machines without room, processes that come and go."""

from __future__ import annotations

import _thread
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from metered_machine import CPU, GPU, Machine, wait_for

import bitwatt
from bitwatt.impact.energy import used
from bitwatt.metering import Meter
from bitwatt.metering import meter as metering
from bitwatt.metering.apportioning import Spans, apportion
from bitwatt.metering.host import Host, folder
from bitwatt.ranks.energy import Reader, joined, waited
from bitwatt.readings import MODELLED, Device, Energy, Metered, Reading
from bitwatt.testing import FakeClock, FakeSensor


def metered(*parts: tuple[str, float | None, str]) -> Metered:
    found = [Energy(Device(id, id.partition(":")[0]), joules, how, "", 10.0, joules and joules / 10) for
             id, joules, how in parts]  # fmt: skip
    return Metered(10.0, tuple(found))


WHOLE, PARTS = ("host", 3000.0, "measured"), [(CPU, 500.0, "measured"), (GPU, 2000.0, "measured")]


@pytest.mark.parametrize(
    ("parts", "expected", "devices"),
    [
        ([WHOLE, *PARTS], 3000, ("host",)),  # it holds the others
        ([WHOLE, (CPU, 9000.0, MODELLED)], 3000, ("host",)),  # also what a model makes of them
        ([("host", 1000.0, "measured"), *PARTS], 2500, (CPU, GPU)),  # it missed some
        ([("host", None, "measured"), *PARTS], 2500, (CPU, GPU)),
        (PARTS, 2500, (CPU, GPU)),
    ],
)
def test_a_meter_of_the_whole_machine_is_not_added_to_its_parts(parts, expected, devices):
    run = metered(*parts)
    assert run.measured_j == expected
    for modelled in (False, True):
        assert (used(run, modelled=modelled).energy_j, used(run, modelled=modelled).devices) == (expected, devices)


def test_of_two_nodes_only_the_one_with_a_meter_of_its_own_is_told_by_it():
    ranks = [Reader(0, "a", 0.0, metered(WHOLE, *PARTS), 1.0), Reader(1, "b", 0.0, metered(*PARTS), 1.0)]
    assert joined(ranks).measured_j == 3000 + 2500
    assert waited(ranks).energy_j == pytest.approx(300 + 250)


def test_a_device_is_labelled_by_who_reads_its_energy_and_not_by_who_else_knows_it():
    clock = FakeClock()
    plug = FakeSensor(clock, {"host": 230.0}, name="wall")
    process = FakeSensor(clock, name="process", levels={("process", "cpu_seconds"): 0.0, ("host", "load"): 1.0})
    meter = Meter([process, plug], clock=clock.monotonic, thread=False)
    window = meter.window()
    clock.advance(10)
    window.end()
    (part,) = window.metered({}).energy
    assert (part.source, part.energy_j) == ("wall", 2300)


def test_after_a_gap_that_the_counter_filled_all_of_the_time_is_known():
    machine = Machine({CPU: 50.0})
    window = machine.meter.window()
    machine.run(10)
    machine.sensor.lose("away")
    machine.run(5)
    machine.sensor.lose(None)
    machine.run(10)
    window.end()
    (part,) = window.metered({}).energy
    assert (part.energy_j, part.seconds, part.mean_w) == pytest.approx((1250, 25, 50))


def test_what_was_drawn_before_a_run_is_not_its_own_though_the_counter_was_away_when_it_began():
    machine = Machine({CPU: 50.0})
    first = machine.meter.window()
    machine.run(10)
    first.end()
    machine.sensor.lose("away")
    machine.clock.advance(600)  # 30,000 J that nobody asked for
    window = machine.meter.window()
    machine.run(2)
    machine.sensor.lose(None)
    machine.run(10)
    window.end()
    (part,) = window.metered({}).energy
    assert part.seconds == pytest.approx(9)
    assert (part.energy_j, part.mean_w) == pytest.approx((450, 50))
    assert "known for 9.0 of 12.0 s" in part.note


def test_phases_that_read_more_than_the_run_are_no_more_than_it_and_none_is_negative():
    part = Energy(Device(CPU, "cpu"), 100.0, "measured", "", 10.0)
    spans = Spans(
        10.0, {"a": 3.0, "b": 3.0}, regions={"a": (3.0, {CPU: 90.0}), "b": (3.0, {CPU: 90.0}), "c": (1.0, {CPU: 9.0})}
    )
    phases, rest, _ = apportion([part], spans)
    shares = [phase.energy_j[CPU] for phase in phases.values()]
    assert min(*shares, rest[CPU]) >= 0
    assert math.fsum([*shares, rest[CPU]]) == 100.0
    assert shares[0] == pytest.approx(shares[1])


class Plugin:
    """Reads well at first."""

    name = "plugin"

    def __init__(self, then: Callable[[int], Any]) -> None:
        self._then, self._reads = then, 0

    def why_absent(self) -> str | None:
        return None

    def open(self) -> list[Device]:
        return [Device(CPU, "cpu")]

    def read(self) -> Any:
        self._reads += 1
        return [Reading(CPU, "energy_j", float(self._reads))] if self._reads < 3 else self._then(self._reads)

    def close(self) -> None:
        """Nothing is held."""


def _lazily(_: int) -> Iterator[Reading]:
    yield Reading(CPU, "energy_j", 9.0)
    raise OSError("in the middle")


def _fails(n: int) -> Any:
    raise OSError(f"timeout after {n} reads")


@pytest.mark.parametrize(
    "then",
    [
        lambda _: None,
        lambda _: [Reading(CPU, "energy_j", "many")],  # type: ignore[arg-type]
        lambda _: [Reading("cpu:7", "energy_j", 1.0)],
        _lazily,
        _fails,
    ],
    ids=["nothing", "text", "a device that was not opened", "raises late", "raises"],
)
@pytest.mark.filterwarnings("ignore:bitwatt")
def test_a_plugin_without_manners_costs_its_own_readings_alone(then, capfd):
    meter = Meter([Plugin(then)], interval=0.01)
    with bitwatt.measure("x", keep=False, meter=meter) as session:
        for _ in range(3):
            with bitwatt.phase("a"):
                time.sleep(0.15)
    found = session.run.meter
    assert [part.energy_j for part in found.energy] in ([None], [1.0])  # what was read while all was well
    assert "reading failed" in found.energy[0].note
    assert found.usage["cpu_seconds"] >= 0
    assert len(found.notes) <= 20  # though each message differs
    assert "Traceback" not in capfd.readouterr().err


def test_a_process_that_sees_another_gpu_than_the_poller_looks_at_it_itself(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    clock, windows, meters = FakeClock(), [], []
    for id in ("gpu:GPU-0", "gpu:GPU-1"):
        sensor = FakeSensor(clock, {id: 100.0}, levels={(id, "utilisation"): 0.5})
        meters.append(Meter([sensor], clock=clock.monotonic, thread=False, shared=True))
        windows.append(meters[-1].window())
    for _ in range(10):
        clock.advance(1)
        for meter in meters:
            meter.tick()
    for window, id in zip(windows, ("gpu:GPU-0", "gpu:GPU-1"), strict=True):
        window.end()
        found = window.metered({})
        assert found.energy[0].idle_seconds == pytest.approx(5, abs=0.6)
        assert len(found.series[id]) >= 9


def test_when_the_poller_stops_without_dying_others_look_for_themselves(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    clock = FakeClock()
    sensors = [FakeSensor(clock, {GPU: 100.0}, levels={(GPU, "utilisation"): 1.0}) for _ in range(2)]
    poller, follower = (Meter([one], clock=clock.monotonic, thread=False, shared=True) for one in sensors)
    held, window = poller.window(), follower.window()
    for second in range(60):
        clock.advance(1)
        if second < 3:
            poller.tick()  # then it is stopped, as by Ctrl-Z
        sensors[1].levels[GPU, "utilisation"] = 1.0 if second < 3 else 0.0
        follower.tick()
    window.end()
    held.end()
    assert window.metered({}).energy[0].idle_seconds >= 60 - 3 - 25  # not a minute of the last thing that was heard


def test_where_nothing_can_be_written_it_is_metered_all_the_same(monkeypatch):
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    assert folder() is None
    with bitwatt.measure("x", keep=False, meter=Meter()) as session:
        sum(range(1000))
    assert "cpu_seconds" in session.run.meter.usage


def test_a_full_disk_costs_no_descriptors(tmp_path):
    host = Host(tmp_path)
    assert host.try_hold()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        for second in range(20):
            host.tell(second, {(GPU, "power_w"): 1.0})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert len(os.listdir("/proc/self/fd")) <= before
    host.tell(21, {(GPU, "power_w"): 1.0})
    assert next(tmp_path.glob("ticks-*")).stat().st_size > 0
    host.release()


def test_where_no_thread_can_be_started_the_ends_are_read(monkeypatch, tmp_path):
    def refuse(*_: Any) -> int:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    with bitwatt.measure("x", store=tmp_path, meter=Meter()) as session:
        sum(range(1000))
    assert session.path is not None
    assert "cpu_seconds" in session.run.meter.usage
    assert any("only the ends were read" in note for note in session.run.meter.notes)


def test_a_sensor_that_hangs_keeps_no_session_from_opening_or_closing(monkeypatch):
    monkeypatch.setattr(metering, "PATIENCE", 0.1)
    hangs, free, answered = threading.Event(), threading.Event(), threading.Event()

    def hang(_: int) -> list[Reading]:
        hangs.set()
        free.wait(120)
        answered.set()
        return []

    meter, threads = Meter([Plugin(hang)], interval=0.02), _thread._count()
    with bitwatt.measure("outer", keep=False, meter=meter) as outer:
        assert hangs.wait(60)  # the thread is in the sensor
        with bitwatt.measure("inner", keep=False, meter=meter) as inner, bitwatt.phase("a"):
            pass
    assert not answered.is_set()
    free.set()
    assert meter.windows == []
    wait_for(lambda: _thread._count() <= threads)
    assert _thread._count() <= threads  # nor does the meter's go on for nobody
    for session in (outer, inner):
        assert any("has not answered" in note for note in session.run.notes)


BURN = "import time\nwhile time.process_time() < 1: pass\nprint(time.process_time(), flush=True)\ntime.sleep(600)"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_a_child_that_outlives_a_short_run_is_in_it_and_one_from_before_is_not():
    children = []

    def child() -> float:
        children.append(subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE))
        return float(children[-1].stdout.readline())  # what it has burnt: a second, and a little more

    meter = Meter()
    with bitwatt.measure("warm", keep=False, meter=meter):
        pass
    try:
        own = time.process_time()
        with bitwatt.measure("with", keep=False, meter=meter) as session:
            burnt = child()
        own = time.process_time() - own
        assert burnt - 0.1 <= session.run.meter.usage["cpu_seconds"] <= burnt + own + 0.1
        child()
        own = time.process_time()
        with bitwatt.measure("after", keep=False, meter=meter) as session:
            time.sleep(0.1)
        own = time.process_time() - own
        assert session.run.meter.usage["cpu_seconds"] <= own + 0.1
    finally:
        for one in children:
            one.kill()
            one.communicate()
