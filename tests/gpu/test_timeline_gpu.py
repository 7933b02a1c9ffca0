"""The GPU's time by phase: what its own clock says, read without waiting for it."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

import bitwatt

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


class Heavy(nn.Module):
    """A forward that keeps the device busy, so that the host runs ahead of it."""

    def __init__(self, width: int = 4096) -> None:
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(6)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)  # type: ignore[no-any-return]


def training(steps: int) -> tuple[Heavy, torch.optim.Optimizer, torch.Tensor, int]:
    torch.manual_seed(0)
    model = Heavy().cuda()
    return model, torch.optim.SGD(model.parameters(), lr=1e-3), torch.randn(4096, 4096, device="cuda"), steps


def step(model: Heavy, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> None:
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


def by_hand(model: Heavy, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> dict[str, float]:
    """Seconds of one step by phase, synchronising after each."""
    spent: dict[str, list[float]] = {"forward": [], "backward": [], "optimizer": []}

    def timed(phase: str, work: object) -> object:
        torch.cuda.synchronize()
        began = time.perf_counter()
        made = work()  # type: ignore[operator]
        torch.cuda.synchronize()
        spent[phase].append(time.perf_counter() - began)
        return made

    for _ in range(5):
        optimizer.zero_grad()
        out = timed("forward", lambda: model(x))
        loss = out.square().mean()  # type: ignore[attr-defined]
        timed("backward", loss.backward)
        timed("optimizer", optimizer.step)
    return {phase: sorted(times)[2] for phase, times in spent.items()}


def test_phases_take_on_the_device_what_they_take_by_hand() -> None:
    model, optimizer, x, steps = training(200)
    step(model, optimizer, x)
    expected = by_hand(model, optimizer, x)
    with bitwatt.measure(keep=False) as session:
        for _ in range(steps):
            step(model, optimizer, x)
        torch.cuda.synchronize()
    run = session.run
    assert run.replay.replayed > steps / 2
    found = {phase: run.device_seconds[phase] / steps for phase in expected}
    print({phase: f"{found[phase] * 1e3:.3f} ms, by hand {expected[phase] * 1e3:.3f} ms" for phase in expected})
    print("sum", sum(run.device_seconds.values()), "of", run.seconds, run.phase_seconds, run.device_seconds)
    for phase in ("forward", "backward"):
        assert found[phase] == pytest.approx(expected[phase], rel=0.10)
    assert sum(run.device_seconds.values()) == pytest.approx(run.seconds, rel=0.05)


def test_steps_do_not_wait_for_the_device_and_are_counted_where_waiting_is_an_error() -> None:
    model, optimizer, x, steps = training(150)
    step(model, optimizer, x)
    torch.cuda.synchronize()
    with bitwatt.measure(keep=False) as session:
        torch.cuda.set_sync_debug_mode("error")
        try:
            began = time.perf_counter()
            for _ in range(steps):
                step(model, optimizer, x)
            queued = time.perf_counter() - began
        finally:
            torch.cuda.set_sync_debug_mode("default")
        torch.cuda.synchronize()
        done = time.perf_counter() - began
    print(f"queued in {queued:.3f} s, done in {done:.3f} s")
    assert session.run.device_seconds["backward"] > session.run.phase_seconds["backward"]
    assert not any("could not be recorded" in note for note in session.run.notes)
    assert bitwatt.totals(session.run, "macs").by("phase")["forward"] == steps * 6 * 4096**3


def test_calls_of_a_model_are_timed_on_the_device() -> None:
    model, _, x, _ = training(0)
    model.eval()
    with torch.no_grad():
        model(x)
        with bitwatt.measure(keep=False) as session:
            for _ in range(100):
                model(x)
            torch.cuda.synchronize()
    assert session.run.device_seconds["inference"] == pytest.approx(session.run.seconds, rel=0.05)


def test_captured_graphs_and_their_replays_are_timed() -> None:
    model, _, x, _ = training(0)
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            model(x)
        torch.cuda.current_stream().wait_stream(side)
        with bitwatt.measure(keep=False) as session:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                model(x)
            for _ in range(60):
                graph.replay()
            torch.cuda.synchronize()
    assert sum(session.run.device_seconds.values()) > 0.8 * session.run.seconds
