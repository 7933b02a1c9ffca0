"""AMD's GPUs, on answers in the shapes of amdsmi 7.0: dictionaries, "N/A", numbers of ones, any exception."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bitwatt.readings import Reading
from bitwatt.sensors.amd import Amd
from bitwatt.testing import FakeClock, check_sensor

UNIT_UJ = 15.259  # what MI200s say one count is worth


class Smi:
    """One MI300 whose accumulator and power are set by hand."""

    def __init__(self) -> None:
        self.counts: int | None = 1000
        self.power: Any = 400
        self.handles = ["gpu0"]

    def amdsmi_init(self) -> None:
        print("a line that nobody asked for")

    def amdsmi_shut_down(self) -> None: ...

    def amdsmi_get_processor_handles(self) -> list[str]:
        return self.handles

    def amdsmi_get_gpu_device_uuid(self, handle: str) -> str:
        return "a1ff74a1-0000-1000-80ab-cd1234567890"

    def amdsmi_get_gpu_asic_info(self, handle: str) -> dict[str, Any]:
        return {"market_name": "AMD Instinct MI300X"}

    def amdsmi_get_energy_count(self, handle: str) -> dict[str, Any]:
        if self.counts is None:
            raise RuntimeError("AMDSMI_STATUS_NOT_SUPPORTED")
        return {"energy_accumulator": self.counts, "counter_resolution": UNIT_UJ, "timestamp": 1}

    def amdsmi_get_power_info(self, handle: str) -> dict[str, Any]:
        return {"current_socket_power": self.power, "average_socket_power": "N/A", "power_limit": 750}

    def amdsmi_get_gpu_activity(self, handle: str) -> dict[str, Any]:
        return {"gfx_activity": 80, "umc_activity": 20, "mm_activity": "N/A"}

    def amdsmi_get_gpu_vram_usage(self, handle: str) -> dict[str, Any]:
        return {"vram_total": 196592, "vram_used": 1024}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def told(sensor: Amd) -> dict[str, Reading]:
    return {reading.quantity: reading for reading in sensor.read()}


def test_the_accumulator_is_worth_what_the_library_says(clock: FakeClock) -> None:
    smi = Smi()
    sensor = Amd(smi, clock)
    assert [device.id for device in sensor.open()] == ["gpu:a1ff74a1-0000-1000-80ab-cd1234567890"]
    sensor.read()
    smi.counts = 1000 + 10_000_000
    clock.advance(1)
    readings = told(sensor)
    assert readings["energy_j"].value == pytest.approx(152.59)  # 10^7 x 15.259 uJ
    assert readings["power_w"].value == 400
    assert readings["utilisation"].value == 0.8
    assert readings["memory_bytes"].value == 2**30


def test_nothing_is_printed(clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    check_sensor(Amd(Smi(), clock), clock=clock)
    assert capsys.readouterr().out == ""


def test_power_is_added_up_where_there_is_no_accumulator(clock: FakeClock) -> None:
    smi = Smi()
    smi.counts = None
    sensor = Amd(smi, clock)
    sensor.open()
    assert "added up" in told(sensor)["energy_j"].note
    clock.advance(2)
    assert told(sensor)["energy_j"].value == 800.0


def test_a_frozen_accumulator_gives_way_to_power(clock: FakeClock) -> None:
    sensor = Amd(Smi(), clock)
    sensor.open()
    sensor.read()
    clock.advance(5)
    assert "frozen" in told(sensor)["energy_j"].note
    clock.advance(1)
    assert told(sensor)["energy_j"].value == pytest.approx(400.0)


@pytest.mark.parametrize("power", ["N/A", 0xFFFF, 0, -3])
def test_power_that_is_none_is_none(clock: FakeClock, power: Any) -> None:
    smi = Smi()
    smi.power = power
    sensor = Amd(smi, clock)
    sensor.open()
    reading = told(sensor)["power_w"]
    assert reading.value is None
    assert reading.note


@pytest.mark.parametrize("error", [KeyError("libamd_smi.so"), OSError("no library"), SystemExit(1)])
def test_a_library_that_does_not_start_is_said(error: BaseException) -> None:
    def fail() -> None:
        raise error

    assert "does not start" in (Amd(SimpleNamespace(amdsmi_init=fail)).why_absent() or "")


def test_no_gpu_is_said() -> None:
    smi = Smi()
    smi.handles = []
    assert Amd(smi).why_absent() == "amdsmi finds no GPU"
