"""Sensors together: found by file and entry point, one voice for each number, and never an exception."""

from __future__ import annotations

import threading
import warnings
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bitwatt.plugins import Plugins
from bitwatt.readings import MODELLED
from bitwatt.sensors import SENSORS, Opened, Sensor, available, survey
from bitwatt.sensors.rapl import Rapl
from bitwatt.testing import FakeClock, FakeSensor, check_sensor, fake_powercap


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def among(monkeypatch: pytest.MonkeyPatch, *sensors: Sensor, orders: tuple[int, ...] = ()) -> None:
    """Have these sensors and no others."""

    made = {}
    for index, sensor in enumerate(sensors):

        def make(sensor: Sensor = sensor) -> Sensor:
            return sensor

        make.order = orders[index] if orders else 0  # type: ignore[attr-defined]
        made[sensor.name] = make
    these: Plugins[Sensor] = Plugins("bitwatt.sensors", "SENSOR")
    these._known = made
    monkeypatch.setattr("bitwatt.sensors.SENSORS", these)


def test_files_are_found_by_name_and_helpers_are_not_sensors() -> None:
    names = list(SENSORS)
    assert {"rapl", "perf", "nvml", "amd", "apple", "dcgm", "process", "modelled"} <= set(names)
    assert not {"counters", "tree", "stream", "visible"} & set(names)
    assert names.index("rapl") < names.index("perf") < names.index("modelled") == len(names) - 1
    assert names.index("nvml") < names.index("dcgm")


def test_a_plug_in_is_found_and_a_broken_one_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("wall", "bitwatt.testing:FakeSensor", "bitwatt.sensors"),
        EntryPoint("broken", "no_such_package:Nothing", "bitwatt.sensors"),
    ]
    monkeypatch.setattr("bitwatt.plugins.entry_points", lambda group: points)
    with pytest.warns(UserWarning, match="no_such_package"):
        found = list(Plugins("bitwatt.sensors", "SENSOR"))
    assert "wall" in found
    assert "broken" not in found


def test_each_is_surveyed_with_a_reason() -> None:
    for name, why in survey().items():
        assert why is None or len(why) > 10, name


def test_only_those_that_can_be_read_are_opened(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    here, gone = FakeSensor(clock, {"cpu:0": 10}, name="here"), FakeSensor(clock, name="gone", absent="it is not here")
    among(monkeypatch, here, gone)
    assert [sensor.name for sensor in available()] == ["here"]
    assert (here.opened, gone.opened) == (1, 0)


def test_of_two_that_know_the_same_the_first_alone_speaks(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    first = FakeSensor(clock, {"gpu:a": 100}, name="nvml-like")
    second = FakeSensor(clock, {"gpu:a": 90}, name="dcgm-like", levels={("gpu:a", "tensor_active"): 0.5})
    among(monkeypatch, second, first, orders=(1, 0))
    opened = available()
    assert [sensor.name for sensor in opened] == ["nvml-like", "dcgm-like"]
    assert [reading.quantity for reading in opened[1].read()] == ["tensor_active"]


def test_one_that_has_nothing_of_its_own_to_say_is_closed(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    first, second = FakeSensor(clock, {"cpu:0": 100}, name="a"), FakeSensor(clock, {"cpu:0": 100}, name="b")
    among(monkeypatch, first, second)
    assert [sensor.name for sensor in available()] == ["a"]
    assert second.closed == 1


def test_nothing_is_modelled_that_is_measured(monkeypatch: pytest.MonkeyPatch, clock: FakeClock) -> None:
    measured = FakeSensor(clock, {"cpu:0": 100}, name="rapl-like")
    model = FakeSensor(clock, {"cpu": 60}, name="model", how=MODELLED)
    among(monkeypatch, measured, model)
    assert [sensor.name for sensor in available()] == ["rapl-like"]
    among(monkeypatch, FakeSensor(clock, {"gpu:a": 100}, name="gpus"), model)
    assert [sensor.name for sensor in available()] == ["gpus", "model"]


def test_a_sensor_that_raises_is_one_warning_and_none_with_a_note(clock: FakeClock) -> None:
    inner = FakeSensor(clock, {"cpu:0": 100})
    sensor = Opened(inner)
    clock.advance(1)
    assert sensor.read()[0].value == 100.0
    inner.fail(RuntimeError("out of order"))
    with pytest.warns(UserWarning, match="out of order") as caught:
        readings = [sensor.read() for _ in range(5)]
    assert len(caught) == 1
    assert {reading.value for taken in readings for reading in taken} == {None}
    assert all("out of order" in reading.note for taken in readings for reading in taken)
    assert sensor.notes == ["fake: reading failed: RuntimeError: out of order"]
    inner.fail(None)
    clock.advance(1)
    assert sensor.read()[0].value == 200.0


def test_one_that_cannot_be_opened_or_made_costs_itself_alone(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    class Stuck(FakeSensor):
        def open(self):  # type: ignore[no-untyped-def]
            raise OSError("stuck")

    class Worse(FakeSensor):
        def why_absent(self) -> str | None:
            raise KeyError("lib.so")

    good = FakeSensor(clock, {"cpu:0": 1}, name="good")
    among(monkeypatch, Stuck(clock, name="stuck"), Worse(clock, name="worse"), good)
    with pytest.warns(UserWarning, match="bitwatt: the sensor"):
        assert [sensor.name for sensor in available()] == ["good"]
    with pytest.warns(UserWarning, match=r"lib\.so"):
        assert "KeyError" in (survey()["worse"] or "")


def test_a_closed_sensor_is_silent_and_closed_once(clock: FakeClock) -> None:
    inner = FakeSensor(clock, {"cpu:0": 1})
    sensor = Opened(inner)
    sensor.close()
    sensor.close()
    assert sensor.read() == sensor.ends() == []
    assert inner.closed == 1


def test_what_is_said_when_opening_is_kept(clock: FakeClock) -> None:
    inner = FakeSensor(clock, {"cpu:0": 1})
    inner.lose("the door is shut")
    assert Opened(inner).notes == ["the door is shut"]


def test_many_threads_read_one_sensor_and_count_each_joule_once(tmp_path: Path) -> None:
    tree, drawing = fake_powercap(tmp_path), threading.Lock()
    sensor = Opened(Rapl(tree.root, tree.read))
    seen = []

    def work() -> None:
        for _ in range(50):
            with drawing:
                tree.draw("intel-rapl:0", 0.1)
            seen.extend(sensor.read())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sensor.read()[0].value == pytest.approx(20.0)  # 4 x 50 x 0.1 J
    assert {reading.note for reading in seen if reading.device == "cpu:0" and "reset" in reading.note} == set()


def test_the_check_finds_what_is_wrong(clock: FakeClock) -> None:
    class Backwards(FakeSensor):
        def read(self):  # type: ignore[no-untyped-def]
            self.levels["cpu:0", "energy_j"] = 10.0 - self.reads
            return super().read()

    class Mute(FakeSensor):
        def why_absent(self) -> str | None:
            return "no"

    with pytest.raises(AssertionError, match="steps back"):
        check_sensor(Backwards(clock, levels={("cpu:0", "energy_j"): 10.0}), clock=clock)
    with pytest.raises(AssertionError, match="negative"):
        check_sensor(FakeSensor(clock, {"cpu:0": -5.0}), clock=clock)
    with pytest.raises(AssertionError, match="say why"):
        check_sensor(Mute(clock))
    with pytest.raises(AssertionError, match="0 to 1"):
        check_sensor(FakeSensor(clock, levels={("gpu:a", "utilisation"): 70.0}), clock=clock)


def test_all_that_this_machine_has_can_be_read_at_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened = available({"modelled": {"tdp_w": 65.0}})
        for sensor in opened:
            sensor.read()
            sensor.ends()
            sensor.close()
    assert "process" in [sensor.name for sensor in opened]
