"""On a GPU: memory by phase as the allocator tells, and phases as NVTX ranges."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import bitwatt

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def train(steps: int = 3) -> None:
    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(steps):
        x = torch.randn(8192, 1024, device="cuda")
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test_memory_by_phase_is_between_what_must_be_there_and_the_peak() -> None:
    train(1)  # libraries take their workspaces
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with bitwatt.measure("memory", keep=False) as session:
        train()
    observed = session.run.observed
    assert observed is not None
    peak = torch.cuda.max_memory_allocated()
    assert observed.device_peak == peak
    # Weights of 8 layers, and the outputs of the 8 of them, which backward needs: 4 bytes each.
    weights, outputs = 4 * 8 * (1024 * 1024 + 1024), 4 * 8 * 8192 * 1024
    assert weights + outputs <= observed.device_memory["forward"] <= peak
    assert max(observed.device_memory.values()) == peak
    assert observed.device_memory["optimizer"] >= 3 * weights  # Adam holds two numbers for each
    assert torch.cuda.max_memory_allocated() == peak  # it is the program's, and was not reset


def test_phases_are_nvtx_ranges_and_each_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    push, pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    start, end = torch.cuda.nvtx.range_start, torch.cuda.nvtx.range_end

    def pushed(name: str) -> Any:
        seen.append(name)
        return push(name)

    def popped() -> Any:
        seen.append("pop")
        return pop()

    def started(name: str) -> Any:
        seen.append(f"start {name}")
        return start(name)

    def ended(number: Any) -> Any:
        seen.append("end")
        return end(number)

    for name, spy in {"push": pushed, "pop": popped, "start": started, "end": ended}.items():
        monkeypatch.setattr(torch.cuda.nvtx, f"range_{name}", spy)
    with bitwatt.measure("ranges", keep=False, nvtx=True, exactness="always"), bitwatt.phase("mine"):
        train(2)
    assert seen[0] == "start mine"
    assert seen[-1] == "end"
    ranges = [name for name in seen if name not in ("pop", "end", "start mine")]
    assert seen.count("pop") == len(ranges)
    assert ranges[:3] == ["forward", "backward", "optimizer"]
    assert ranges.count("backward") == 2
