"""The meter on a GPU, beside its counter read by hand. Takes about four minutes."""

from __future__ import annotations

import math
import time

import pytest

torch = pytest.importorskip("torch")
pynvml = pytest.importorskip("pynvml")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]

import bitwatt  # noqa: E402
from bitwatt.metering import Meter, idle  # noqa: E402
from bitwatt.metering.meter import the_meter  # noqa: E402


def counter_j() -> float:
    torch.cuda.synchronize()
    handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(0).uuid}")
    return pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3


@pytest.fixture(autouse=True)
def _driver(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    pynvml.nvmlInit()
    torch.ones(1, device="cuda")
    yield
    pynvml.nvmlShutdown()


def train(seconds: float) -> int:
    model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 4096)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data, steps, end = torch.randn(4096, 4096, device="cuda"), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(20):
            optimizer.zero_grad()
            model(data).square().mean().backward()
            optimizer.step()
        torch.cuda.synchronize()
        steps += 20
    return steps


def gpu_of(run):
    (part,) = [part for part in run.meter.energy if part.device.kind == "gpu"]
    return part


def test_energy_of_a_training_run_is_that_of_the_counter_and_its_phases_add_up():
    train(3)  # warm
    before, reader = counter_j(), the_meter().reader
    with bitwatt.measure("train", keep=False) as session:
        train(45)
        with bitwatt.phase("evaluate"):
            train(15)
    by_hand = counter_j() - before
    run, gpu = session.run, gpu_of(session.run)
    assert gpu.how == "measured"
    assert gpu.energy_j == pytest.approx(by_hand, rel=0.02)
    shares = [phase.energy_j.get(gpu.device.id, 0.0) for phase in run.meter.phases.values()]
    assert math.fsum([*shares, run.meter.remainder_j[gpu.device.id]]) == gpu.energy_j
    evaluate = sum(
        phase.energy_j.get(gpu.device.id, 0.0)
        for name, phase in run.meter.phases.items()
        if name.startswith("evaluate")
    )
    assert evaluate == pytest.approx(gpu.energy_j / 4, rel=0.05)  # a quarter of the time, at the same work
    told = f"the meter took {run.meter.overhead_s:.3f} s of CPU time and looked every {run.meter.interval_s:.2f} s"
    print(f"{gpu.energy_j:.1f} J, by hand {by_hand:.1f} J; {told}; {run.meter.notes}")
    thread = the_meter().reader - reader
    print(f"of these its thread {thread:.3f} s")
    assert thread / run.meter.seconds < 0.001  # the rest are the ends: counters, and the memory of the process
    assert run.meter.overhead_s / run.meter.seconds < 0.003
    assert run.meter.interval_s < 2.5


def test_a_run_that_sleeps_half_the_time_is_idle_half_the_time():
    time.sleep(20)  # clocks go down only after a while
    watts = {device: power for device, (power, _) in idle.measure(Meter(), 20).items()}
    idle.keep(watts)
    train(2)
    with bitwatt.measure("half", keep=False) as session:
        for _ in range(6):
            train(5)
            time.sleep(5)
    gpu = gpu_of(session.run)
    assert gpu.idle_seconds / session.run.meter.seconds == pytest.approx(0.5, abs=0.03)
    assert gpu.idle_j == pytest.approx(watts[gpu.device.id] * gpu.idle_seconds, rel=0.05)
    told = f"idle {gpu.idle_seconds:.1f} of {session.run.meter.seconds:.1f} s at {gpu.idle_w:.1f} W"
    print(f"{told}: {gpu.idle_j:.0f} J; {gpu.note}")


def test_the_switches_of_float32_are_in_the_run():
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("highest")
        with bitwatt.measure("switched", keep=False) as session:
            torch.set_float32_matmul_precision("high")
            train(0.1)
    finally:
        torch.set_float32_matmul_precision(before)
    if torch.cuda.get_device_capability()[0] < 8:
        assert "float32 on cuda" not in session.run.machine.facts
        return
    first, _, then = session.run.machine.facts["float32 on cuda"].partition("; then ")
    assert first.startswith("matmul fp32, ")
    assert then.startswith("matmul tf32, ")


def test_a_fork_while_the_meter_runs_leaves_the_counter_to_the_parent():
    import os

    with bitwatt.measure("forks", keep=False) as session:
        train(2)
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitpid(child, 0)
        train(2)
    assert gpu_of(session.run).energy_j > 0
