"""NVIDIA's GPUs, on a stand-in for the driver's library: counter, power, use, and what goes wrong."""

from __future__ import annotations

import os

import pytest

from bitwatt.readings import Reading
from bitwatt.sensors.nvml import Nvml
from bitwatt.testing import FakeClock, FakeGPU, FakeNVML, check_sensor


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(autouse=True)
def every_gpu_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("CUDA_DEVICE_ORDER", raising=False)


def opened(clock: FakeClock, *gpus: FakeGPU, visible: str | None = None) -> tuple[Nvml, FakeNVML]:
    driver = FakeNVML(clock, *gpus)
    sensor = Nvml(driver, visible=visible, clock=clock)
    assert sensor.why_absent() is None
    sensor.open()
    return sensor, driver


def values(readings: list[Reading]) -> dict[str, float | None]:
    return {reading.quantity: reading.value for reading in readings}


def energy(sensor: Nvml) -> Reading:
    return next(reading for reading in sensor.read() if reading.quantity == "energy_j")


def test_a_gpu_tells_energy_power_use_and_memory(clock: FakeClock) -> None:
    sensor, _ = opened(clock, FakeGPU(watts=250, utilisation=70, memory_bytes=3 << 30, clock_mhz=1980))
    first = values(sensor.read())
    assert first["energy_j"] == 0.0  # the driver's count of before is not ours
    clock.advance(4)
    later = values(sensor.read())
    assert later["energy_j"] == 1000.0  # 250 W x 4 s
    assert later["power_w"] == 250.0
    assert later["utilisation"] == 0.7
    assert later["memory_bytes"] == 3 << 30
    assert first["clock_hz"] == 1.98e9
    assert "clock_hz" not in later  # asked for each five seconds


def test_devices_are_known_by_uuid(clock: FakeClock) -> None:
    driver = FakeNVML(clock, FakeGPU("GPU-a"), FakeGPU("GPU-b"))
    assert [device.id for device in Nvml(driver, clock=clock).open()] == ["gpu:GPU-a", "gpu:GPU-b"]


@pytest.mark.parametrize(
    ("visible", "ids"),
    [
        ("1", ["GPU-bbbb"]),
        ("1,0", ["GPU-bbbb", "GPU-aaaa"]),
        ("GPU-bb", ["GPU-bbbb"]),
        ("0,7,1", ["GPU-aaaa"]),  # CUDA stops at what it does not know
        ("MIG-1", ["GPU-bbbb"]),
        ("MIG-GPU-bbbb/3/0", ["GPU-bbbb"]),
        ("0,0", ["GPU-aaaa"]),
    ],
)
def test_only_visible_gpus_are_read(clock: FakeClock, visible: str, ids: list[str]) -> None:
    driver = FakeNVML(clock, FakeGPU("GPU-aaaa"), FakeGPU("GPU-bbbb", instances=["MIG-1"]))
    sensor = Nvml(driver, visible=visible, clock=clock)
    assert [device.id for device in sensor.open()] == [f"gpu:{id}" for id in ids]


@pytest.mark.parametrize("visible", ["", "-1", "9", "GPU-x", "MIG-none"])
def test_no_visible_gpu_is_said(clock: FakeClock, visible: str) -> None:
    sensor = Nvml(FakeNVML(clock, FakeGPU("GPU-a")), visible=visible, clock=clock)
    assert "CUDA_VISIBLE_DEVICES" in (sensor.why_absent() or "")


def test_the_environment_chooses_where_nothing_else_does(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    driver = FakeNVML(clock, FakeGPU("GPU-a"), FakeGPU("GPU-b"))
    assert [device.id for device in Nvml(driver, clock=clock).open()] == ["gpu:GPU-b"]


def test_numbers_of_unlike_gpus_are_doubted(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus = FakeGPU("GPU-a", "small"), FakeGPU("GPU-b", "large")
    sensor, _ = opened(clock, *gpus, visible="0")
    assert "CUDA_DEVICE_ORDER" in energy(sensor).note
    monkeypatch.setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
    sensor, _ = opened(clock, *gpus, visible="0")
    assert energy(sensor).note == ""


def test_the_energy_of_a_mig_instance_is_its_gpus_and_said_to_be(clock: FakeClock) -> None:
    sensor, _ = opened(clock, FakeGPU("GPU-a", instances=["MIG-1", "MIG-2"]), visible="MIG-2")
    note = energy(sensor).note
    assert "MIG-2" in note
    assert "all of it" in note


def test_without_a_counter_power_is_added_up_and_said(clock: FakeClock) -> None:
    gpu = FakeGPU(watts=100, unsupported={"energy_j"})
    sensor, _ = opened(clock, gpu)
    assert "no energy counter" in energy(sensor).note
    gpu.watts = 300
    clock.advance(1)
    assert energy(sensor) == Reading(f"gpu:{gpu.uuid}", "energy_j", 200.0)  # (100 + 300) / 2


def test_the_older_call_for_power_is_used_where_the_newer_is_not_known(clock: FakeClock) -> None:
    sensor, _ = opened(clock, FakeGPU(watts=123, unsupported={"instant"}))
    assert values(sensor.read())["power_w"] == 123.0


def test_a_gpu_that_tells_neither_energy_nor_power_is_none(clock: FakeClock) -> None:
    sensor, _ = opened(clock, FakeGPU(unsupported={"energy_j", "power_w", "instant"}))
    clock.advance(1)
    reading = energy(sensor)
    assert reading.value is None
    assert reading.note


def test_zero_watts_are_not_believed(clock: FakeClock) -> None:
    gpu = FakeGPU(watts=100, unsupported={"energy_j"})
    sensor, _ = opened(clock, gpu)
    energy(sensor)
    gpu.watts = 0
    clock.advance(1)
    readings = {reading.quantity: reading for reading in sensor.read()}
    assert readings["power_w"].value is None
    assert readings["energy_j"].value is None
    assert "0 W" in readings["energy_j"].note


def test_one_missing_quantity_costs_that_one_alone(clock: FakeClock) -> None:
    sensor, _ = opened(clock, FakeGPU(unsupported={"utilisation", "throttled", "pcie"}))
    told = values(sensor.read())
    assert not {"utilisation", "throttled", "pcie_sent_bytes"} & set(told)
    assert told["memory_bytes"] == 1 << 30


def test_a_frozen_counter_gives_way_to_power_and_comes_back(clock: FakeClock) -> None:
    gpu = FakeGPU(watts=100)
    sensor, _ = opened(clock, gpu)
    energy(sensor)
    gpu.frozen = True
    clock.advance(5)
    assert "frozen" in energy(sensor).note
    clock.advance(5)
    assert energy(sensor).value == pytest.approx(500.0)  # 100 W x 5 s since it was found out
    gpu.frozen, gpu.energy_mj = False, gpu.energy_mj + 1_000_000
    assert energy(sensor).value == pytest.approx(1000.0)  # the counter knew of all ten seconds


def test_a_reset_of_the_counter_is_a_gap(clock: FakeClock) -> None:
    gpu = FakeGPU(watts=100)
    sensor, _ = opened(clock, gpu)
    energy(sensor)
    clock.advance(1)
    assert energy(sensor).value == 100.0
    gpu.energy_mj = 0.0
    clock.advance(1)
    reading = energy(sensor)
    assert reading.value == 100.0
    assert "reset" in reading.note
    clock.advance(1)
    assert energy(sensor).value == 200.0


def test_a_lost_gpu_is_none_everywhere_and_comes_back_with_the_gap(clock: FakeClock) -> None:
    gpu = FakeGPU(watts=100)
    sensor, _ = opened(clock, gpu)
    energy(sensor)
    gpu.lost = True
    clock.advance(1)
    readings = sensor.read()
    assert {reading.value for reading in readings} == {None}
    assert all("lost" in reading.note for reading in readings)
    gpu.lost = False
    clock.advance(9)
    assert energy(sensor).value == 1000.0


def test_permission_taken_away_in_the_middle_is_none(clock: FakeClock) -> None:
    gpu = FakeGPU(watts=100)
    sensor, _ = opened(clock, gpu)
    energy(sensor)
    gpu.fault = 4
    clock.advance(1)
    reading = energy(sensor)
    assert reading.value is None
    assert "permission" in reading.note
    gpu.fault = None
    clock.advance(1)
    assert energy(sensor).value == 200.0


def test_a_driver_that_is_unloaded_and_loaded_is_met_again(clock: FakeClock) -> None:
    sensor, driver = opened(clock, FakeGPU(watts=100))
    energy(sensor)
    clock.advance(1)
    assert energy(sensor).value == 100.0
    driver.unload()
    clock.advance(6)
    assert energy(sensor).value is None
    driver.load()
    clock.advance(6)
    sensor.read()  # finds out, and connects
    clock.advance(1)
    clock.advance(1)
    reading = energy(sensor)
    assert reading.value is not None
    assert 100.0 <= reading.value <= 400.0


def test_the_last_of_several_gpus_is_read_though_the_first_is_lost(clock: FakeClock) -> None:
    first, second = FakeGPU("GPU-a"), FakeGPU("GPU-b", watts=50)
    sensor, _ = opened(clock, first, second)
    sensor.read()
    first.lost = True
    clock.advance(2)
    told = {reading.device: reading.value for reading in sensor.read() if reading.quantity == "energy_j"}
    assert told == {"gpu:GPU-a": None, "gpu:GPU-b": 100.0}


def test_a_forked_child_connects_anew_and_the_parent_goes_on(clock: FakeClock) -> None:
    sensor, driver = opened(clock, FakeGPU(watts=100))
    energy(sensor)
    inits = driver.inits
    clock.advance(1)
    child = os.fork()
    if child == 0:
        told = energy(sensor).value == 100.0 and driver.inits == inits + 1
        os._exit(0 if told else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert energy(sensor).value == 100.0
    assert driver.inits == inits


def test_throttling_is_told_with_its_reason(clock: FakeClock) -> None:
    gpu = FakeGPU(throttle_bits=0x1)  # idle is no throttling
    sensor, _ = opened(clock, gpu)
    assert values(sensor.read())["throttled"] == 0.0
    gpu.throttle_bits = 0x4 | 0x40
    clock.advance(10)
    reading = next(reading for reading in sensor.read() if reading.quantity == "throttled")
    assert reading.value == 1.0
    assert reading.note == "power cap, hardware thermal slowdown"


def test_other_processes_on_the_gpu_are_counted_and_this_tree_is_not(clock: FakeClock) -> None:
    sensor, _ = opened(clock, FakeGPU(processes=[os.getpid(), 1, 2**22 + 1]))
    reading = next(reading for reading in sensor.read() if reading.quantity == "other_processes")
    assert reading.value == 2.0
    assert "container" in reading.note  # no system has a process of that number


def test_bytes_on_links_run_from_open(clock: FakeClock) -> None:
    gpu = FakeGPU(pcie=(10**12, 10**12), nvlink_kib=(1000, 2000))
    sensor, _ = opened(clock, gpu)
    sensor.read()
    gpu.pcie, gpu.nvlink_kib = (10**12 + 5, 10**12 + 7), (1003, 2000)
    clock.advance(5)
    told = values(sensor.read())
    assert (told["pcie_sent_bytes"], told["pcie_received_bytes"]) == (5, 7)
    assert (told["nvlink_sent_bytes"], told["nvlink_received_bytes"]) == (3072, 0)


def test_counters_of_32_bits_are_no_totals_so_the_rate_is_read(clock: FakeClock) -> None:
    sensor, _ = opened(clock, FakeGPU(pcie_type=1, pcie_rate_kb=(3, 4)))
    told = values(sensor.read())
    assert told.items() >= values(sensor.ends()).items()
    assert "pcie_sent_bytes" not in told
    assert (told["pcie_sent_bytes_per_s"], told["pcie_received_bytes_per_s"]) == (3000.0, 4000.0)


def test_a_driver_that_does_not_answer_is_said(clock: FakeClock) -> None:
    driver = FakeNVML(clock)
    driver.unload()
    assert "does not answer" in (Nvml(driver, clock=clock).why_absent() or "")


def test_looking_leaves_no_connection_behind(clock: FakeClock) -> None:
    driver = FakeNVML(clock)
    Nvml(driver, clock=clock).why_absent()
    with pytest.raises(driver.NVMLError):
        driver.nvmlShutdown()


def test_the_stand_in_speaks_as_the_real_library_does() -> None:
    pynvml = pytest.importorskip("pynvml")
    fake = FakeNVML(FakeClock())
    for name in [name for name in dir(fake) if name.startswith(("nvml", "NVML"))]:
        assert hasattr(pynvml, name), name
        if isinstance(getattr(fake, name), int):
            assert getattr(fake, name) == getattr(pynvml, name), name
    for name in ("NVML_ERROR_NOT_SUPPORTED", "NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_UNINITIALIZED", "NVML_SUCCESS"):
        assert getattr(fake, name) == getattr(pynvml, name)


def test_the_contract_holds(clock: FakeClock) -> None:
    sensor = Nvml(FakeNVML(clock, FakeGPU(nvlink_kib=(0, 0)), FakeGPU("GPU-b")), clock=clock)
    assert len(check_sensor(sensor, clock=clock, reads=8)) == 8


def test_a_look_asks_for_what_moves_and_leaves_the_rest_for_later(clock: FakeClock) -> None:
    gpu = FakeGPU(watts=250, pcie=(10**12, 10**12))
    sensor, _ = opened(clock, gpu)
    first = values(sensor.read())
    assert {"energy_j", "memory_bytes", "clock_hz", "throttled", "other_processes"} <= set(first)
    clock.advance(1)
    look = values(sensor.look())
    assert (
        {"power_w", "utilisation"} <= set(look) <= {"power_w", "utilisation", "pcie_sent_bytes", "pcie_received_bytes"}
    )
    clock.advance(30)
    assert {"memory_bytes", "clock_hz", "throttled"} <= set(values(sensor.look()))
    gpu.pcie = (10**12 + 5, 10**12)
    clock.advance(1)
    assert values(sensor.read())["pcie_sent_bytes"] == 5  # at the ends they are not left for later
