"""What exact counting adds to a training step, beside an empty dispatch mode and other tools, in one process.

    python benchmarks/overhead.py [--rounds 40] [--device cpu|cuda] [--workloads mlp,encoder,...] [--json FILE]

Each round times a step under every condition, in random order, on one model. Printed: the median over rounds of
step-time ratios against the plain step of the same round, an A/A control, and the factor this issue asks for: what
bitwatt adds divided by what an empty TorchDispatchMode adds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import bitwatt


class EmptyMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Encoder(nn.Module):
    def __init__(self, vocabulary: int = 2000, width: int = 256, layers: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.decoder(self.encoder(self.embedding(ids))).flatten(0, 1)


def conv_net() -> nn.Module:
    def block(i: int, o: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU())

    body = [block(3, 32), block(32, 64), nn.MaxPool2d(2), block(64, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(64, 10))


def workload(name: str, device: str) -> Callable[[], None]:
    torch.manual_seed(0)
    if name == "quantised":
        return quantised(device)
    if name == "mlp":
        model: nn.Module = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )
        x, y = torch.randn(64, 784), torch.randint(0, 10, (64,))
    elif name == "convnet":
        model, x, y = conv_net(), torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))
    else:
        model, x, y = Encoder(), torch.randint(0, 2000, (1, 128)), torch.randint(0, 2000, (128,))
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def quantised(device: str) -> Callable[[], None]:
    """Inference through 8-bit layers, whose precision is looked up at first sight and must cost nothing after it."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    model = nn.Sequential(*[nn.Linear(256, 256) for _ in range(12)]).to(device)
    quantize_(model, Int8WeightOnlyConfig())
    x = torch.randn(16, 256, device=device)

    def step() -> None:
        with torch.no_grad():
            model(x)
        if device == "cuda":
            torch.cuda.synchronize()

    return step


def conditions() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    from torch.utils.flop_counter import FlopCounterMode

    found: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "plain": contextlib.nullcontext,
        "plain again (A/A)": contextlib.nullcontext,
        "empty mode": EmptyMode,
        "bitwatt": lambda: bitwatt.measure("overhead", keep=False),
        "FlopCounterMode": lambda: FlopCounterMode(display=False),
        "torch.profiler": lambda: torch.profiler.profile(with_flops=True, record_shapes=True),
    }
    with contextlib.suppress(ImportError):
        from floppy_tracker import FloppyTracker  # type: ignore[import-not-found]

        found["floppy-tracker"] = FloppyTracker
    return found


def measure(step: Callable[[], None], rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in conditions()}
    for i in range(rounds + 2):
        order = list(conditions().items())
        random.shuffle(order)
        for name, make in order:
            with make():
                step()  # not timed: the first step under any tool also sets it up
                spent = min(timed(step) for _ in range(3))  # the machine is shared: the least disturbed of three
            if i >= 2:
                times[name].append(spent)
    return times


def timed(step: Callable[[], None]) -> float:
    began = time.perf_counter()
    step()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workloads", default="mlp,convnet,encoder,quantised")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for name in options.workloads.split(","):
        times = measure(workload(name, options.device), options.rounds)
        ratios = {
            tool: statistics.median(t / p for t, p in zip(spent, times["plain"], strict=True))
            for tool, spent in times.items()
        }
        added = {
            tool: statistics.median(t - p for t, p in zip(spent, times["plain"], strict=True))
            for tool, spent in times.items()
        }
        factor = added["bitwatt"] / added["empty mode"]
        results[name] = {"ratios": ratios, "bitwatt / empty mode": factor}
        print(f"\n{name} on {options.device}: plain step {1000 * statistics.median(times['plain']):.1f} ms")
        for tool, ratio in ratios.items():
            print(f"  {tool:20s} {ratio:6.2f} x   (+{1000 * added[tool]:.2f} ms)")
        print(f"  bitwatt adds {factor:.2f} times what an empty dispatch mode adds")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
