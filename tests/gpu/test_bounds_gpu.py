"""What holds phases up on a GPU: products, copies, small ops and a slow loader, each as it must be seen."""

from __future__ import annotations

import time

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")]

from torch.utils.data import DataLoader, Dataset  # noqa: E402

import bitwatt  # noqa: E402
from bitwatt.config import settings  # noqa: E402
from bitwatt.reports.bounds import Bounds  # noqa: E402
from bitwatt.reports.model import View  # noqa: E402


class Wide(torch.nn.Module):
    def __init__(self, width: int = 8192) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False) for _ in range(4)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


class Chain(torch.nn.Module):
    def __init__(self, length: int) -> None:
        super().__init__()
        self.length, self.scale = length, torch.nn.Parameter(torch.tensor(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.length):
            x = x * self.scale
        return x


class Slow(Dataset):
    def __len__(self) -> int:
        return 200

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.01)
        return torch.ones(64)


def found(model: torch.nn.Module, x: torch.Tensor, seconds: float = 3.0) -> Bounds:
    with torch.no_grad():
        model(x)
        torch.cuda.synchronize()
        with bitwatt.measure("bounds", keep=False) as session:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for _ in range(10):
                    model(x)
                torch.cuda.synchronize()
    print(bitwatt.report(session.run, settings=settings("/")))
    bounds = View(session.run, settings=settings("/")).bounds
    assert bounds is not None
    return bounds


def test_large_products_are_held_up_by_arithmetic() -> None:
    seen = found(Wide().cuda().bfloat16(), torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16))
    assert seen.phases["inference"].bound == "compute"
    assert 0.4 < seen.phases["inference"].evidence["of_peak"] < 1.05
    assert seen.run.bound == "compute"


def test_element_wise_chains_are_held_up_by_memory() -> None:
    seen = found(Chain(8).cuda(), torch.randn(1 << 28, device="cuda"))
    assert seen.phases["inference"].bound == "memory"
    assert 0.4 < seen.phases["inference"].evidence["of_bandwidth"] < 1.1


def test_small_ops_are_held_up_by_their_launching() -> None:
    seen = found(Chain(100).cuda(), torch.ones(64, device="cuda"))
    assert seen.phases["inference"].bound == "launch"
    assert seen.phases["inference"].evidence["seconds_per_op"] < 100e-6


def test_a_busy_device_is_not_held_up_by_launching() -> None:
    """Convolutions far from both roofs fill the queue, so that the host waits for the device in every call."""
    model = torch.nn.Sequential(*(torch.nn.Conv2d(64, 64, 3, padding=1) for _ in range(8))).cuda()
    seen = found(model, torch.randn(256, 64, 56, 56, device="cuda"))
    assert seen.gpu_idle is not None
    assert seen.gpu_idle < 0.25
    assert seen.phases["inference"].bound in ("compute", "memory")


def test_a_slow_loader_is_seen_as_input() -> None:
    model = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with bitwatt.measure("input", keep=False) as session:
        for batch in DataLoader(Slow(), batch_size=4):
            optimizer.zero_grad()
            model(batch.cuda()).square().mean().backward()
            optimizer.step()
    print(bitwatt.report(session.run, settings=settings("/")))
    seen = View(session.run, settings=settings("/")).bounds
    assert seen is not None
    assert seen.phases["preprocess"].bound == "input"
    assert seen.shares()["input"] > 0.5
    assert seen.run.bound == "input"
