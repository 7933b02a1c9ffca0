"""NVML on a real driver: the counter against one read by hand, power against the counter, and what reading costs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from bitwatt.readings import Reading
from bitwatt.sensors.counters import Power
from bitwatt.sensors.nvml import Nvml
from bitwatt.testing import check_sensor

pynvml = pytest.importorskip("pynvml")
torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def work(seconds: float, each: Callable[[], object] = lambda: None) -> None:
    """Keep the first GPU busy for so long."""
    a = torch.randn(4096, 4096, device="cuda")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for _ in range(20):
            a @ a
        torch.cuda.synchronize()
        each()


def told(readings: list[Reading], device: str) -> dict[str, float | None]:
    return {reading.quantity: reading.value for reading in readings if reading.device == device}


def first_gpu() -> str:
    return f"gpu:GPU-{torch.cuda.get_device_properties(0).uuid}"


def test_the_contract_holds_on_the_driver() -> None:
    (*_, last) = check_sensor(Nvml())
    assert {"energy_j", "power_w", "utilisation", "memory_bytes"} <= {reading.quantity for reading in last}


def test_energy_is_that_of_the_counter_read_by_hand() -> None:
    sensor, device = Nvml(), first_gpu()
    assert device in [one.id for one in sensor.open()]
    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(device.removeprefix("gpu:"))
    torch.cuda.synchronize()
    began, ours = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle), told(sensor.read(), device)["energy_j"]
    work(5.0)
    ended, total = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle), told(sensor.read(), device)["energy_j"]
    sensor.close()
    pynvml.nvmlShutdown()
    assert ours is not None
    assert total is not None
    assert total - ours == pytest.approx((ended - began) / 1e3, rel=0.02)
    assert total - ours > 5.0 * 20  # no GPU at work draws less than 20 W


def test_power_added_up_is_near_to_the_counter() -> None:
    sensor, device = Nvml(), first_gpu()
    sensor.open()
    work(2.0)  # power follows with a delay
    power = Power(ceiling_w=3000.0)
    seen: list[tuple[float, float]] = []

    def look() -> None:
        now = told(sensor.read(), device)
        added, _ = power.sample(now["power_w"])
        assert added is not None
        assert now["energy_j"] is not None
        seen.append((added, now["energy_j"]))

    work(8.0, look)
    sensor.close()
    assert seen[-1][0] - seen[0][0] == pytest.approx(seen[-1][1] - seen[0][1], rel=0.15)


def test_a_busy_gpu_is_busy() -> None:
    sensor, device = Nvml(), first_gpu()
    sensor.open()
    busy: list[float] = []
    work(3.0, lambda: busy.append(told(sensor.read(), device)["utilisation"] or 0.0))
    sensor.close()
    assert max(busy) > 0.8


def test_bytes_on_pcie_are_counted_where_the_driver_counts_them() -> None:
    sensor, device = Nvml(), first_gpu()
    sensor.open()
    before = told(sensor.read(), device)
    if "pcie_received_bytes" not in before:
        pytest.skip("this driver counts them in 32 bits, or not at all")
    host = torch.ones(1 << 28, dtype=torch.float32).pin_memory()  # 1 GiB
    host.to("cuda")
    torch.cuda.synchronize()
    time.sleep(5.5)
    after = told(sensor.read(), device)
    sensor.close()
    assert after["pcie_received_bytes"] is not None
    assert before["pcie_received_bytes"] is not None
    grown = after["pcie_received_bytes"] - before["pcie_received_bytes"]
    assert 2**30 <= grown < 1.5 * 2**30


def test_a_forked_child_reads_on() -> None:
    """In a process of its own: a fork of one that uses CUDA is another matter."""
    code = (
        "import os, time\n"
        "from bitwatt.sensors.nvml import Nvml\n"
        "sensor = Nvml(); sensor.open(); sensor.read(); time.sleep(1)\n"
        "child = os.fork()\n"
        "value = sensor.read()[0].value\n"
        "good = value is not None and value > 5\n"
        "if child == 0: os._exit(0 if good else 1)\n"
        "assert good and os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_reading_does_not_start_cuda() -> None:
    code = (
        "from bitwatt.sensors.nvml import Nvml\n"
        "sensor = Nvml(); sensor.open(); sensor.read(); sensor.ends(); sensor.close()\n"
        "import torch; assert not torch.cuda.is_initialized()\n"
        "maps = open('/proc/self/maps').read(); assert 'libnvidia-ml' in maps\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_the_gpus_of_cuda_visible_devices_are_read() -> None:
    uuid = first_gpu().removeprefix("gpu:")
    for visible in ("0", uuid, uuid[:12]):
        sensor = Nvml(visible=visible)
        assert [device.id for device in sensor.open()] == [f"gpu:{uuid}"] or visible == "0"
        sensor.close()
    assert "leaves no GPU" in (Nvml(visible="").why_absent() or "")


def test_a_look_costs_little_and_leaves_the_counter_alone(record_property: Callable[[str, object], None]) -> None:
    """Energy is read at the ends and every ten seconds or more: its counter takes milliseconds. A look each second does
    not; what it asks for slowly (clocks, processes) is in the mean."""
    sensor = Nvml()
    count = len(sensor.open())
    sensor.read()
    costs: dict[str, list[float]] = {"look": [], "read": []}
    for name, times in (("look", 20), ("read", 3)):
        for _ in range(times):
            time.sleep(1.0)
            spent = time.thread_time()
            readings = getattr(sensor, name)()
            costs[name].append((time.thread_time() - spent) / count)
            assert ("energy_j" in {one.quantity for one in readings}) == (name == "read")
    sensor.close()
    for name, found in costs.items():
        mean = sum(found) / len(found)
        record_property(f"cpu_ms_of_a_{name}", mean * 1e3)
        print(f"a {name} takes {mean * 1e3:.3f} ms of CPU for each GPU, at most {max(found) * 1e3:.3f} ms")
    assert sum(costs["look"]) / len(costs["look"]) < 0.001
    assert max(costs["read"]) < 0.05
