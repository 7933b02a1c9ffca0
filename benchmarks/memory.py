"""What a session takes in memory: growth over many small steps, and over many distinct signatures.

    python benchmarks/memory.py                      # all of them, some minutes
    python benchmarks/memory.py steps --number 200000
    python benchmarks/memory.py signatures --number 100000

Each case runs in a process of its own and prints what the memory that belongs to it alone (USS) has grown by, beside
that of the same program without a session, and the growth over the second half, per million steps. The allocator is
told to give back what is free: else tensors of many sizes leave a gigabyte of holes, with a session or without. Its own
noise is some megabytes: for the growth to mean something, `--number` must be large.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import psutil
import torch
from torch import nn

import bitwatt

MB = 1e6
#: Of glibc's allocator: larger pieces are mapped by themselves, and what is free at the top goes back.
ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "100000", "MALLOC_TRIM_THRESHOLD_": "200000"}


def steps(number: int) -> Iterator[None]:
    """Training of two layers, every step the same."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(4, 8)
    for _ in range(number):
        model(x).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


def phases(number: int) -> Iterator[None]:
    """The same, every step in a phase of its own name."""
    for i, _ in enumerate(steps(number)):
        with bitwatt.phase(f"step {i}"):
            torch.ones(2).add(1)
        yield


def models(number: int) -> Iterator[None]:
    """A new model for every step."""
    x = torch.randn(4, 8)
    for _ in range(number):
        nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))(x).mean().backward()
        yield


def products(number: int) -> Iterator[None]:
    """A matrix product of another size each time, outside any module."""
    for i in range(number):
        torch.ones(1 + i % 1000, 4) @ torch.ones(4, 1 + i // 1000)
        yield


def signatures(number: int) -> Iterator[None]:
    """A transformer layer on batches of text, each of another (batch, length)."""
    torch.manual_seed(0)
    embed, layer = nn.Embedding(100, 8), nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    model = nn.Sequential(embed, layer, nn.Linear(8, 100))
    width = max(1, int(number**0.5) // 8)
    for i in range(number):
        batch, length = 1 + i % width, 1 + i // width
        tokens = torch.zeros((batch, 1), dtype=torch.long).expand(batch, length)
        model(tokens[:, : max(1, length)]).mean().backward()
        yield


CASES: dict[str, tuple[Callable[[int], Iterator[None]], int]] = {
    "steps": (steps, 200_000),
    "phases": (phases, 20_000),
    "models": (models, 5_000),
    "products": (products, 100_000),
    "signatures": (signatures, 2_000),
}


def measured(case: str, number: int, counted: bool, folder: Path) -> None:
    """Run one case and print: USS in the middle, at the end and after the session has closed, and seconds."""
    program = CASES[case][0]
    for _ in program(3):
        pass
    with bitwatt.measure("warm", keep=False):  # what is loaded once is no growth
        for _ in program(3):
            pass
    before, middle, began = _memory(), 0.0, time.perf_counter()
    with bitwatt.measure(case, store=folder) if counted else nullcontext() as session:
        for i, _ in enumerate(program(number)):
            if i == number // 2:
                middle = _memory()
        end = _memory()
    print(middle - before, end - before, _memory() - before, time.perf_counter() - began)
    if session is not None:
        run = session.run
        print(bitwatt.totals(run), len(run.ledger), "rows", session.path.stat().st_size, "bytes", *run.notes, sep=" | ")


def _memory() -> float:
    gc.collect()
    return float(psutil.Process().memory_full_info().uss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("case", nargs="?", choices=list(CASES))
    parser.add_argument("--number", type=int)
    parser.add_argument("--store", type=Path, default=Path(".bitwatt"))
    parser.add_argument("--child", choices=["counted", "plain"])
    args = parser.parse_args()
    if args.child:
        measured(args.case, args.number, args.child == "counted", args.store)
        return
    print("case            number     plain   session    closed  per million more    time")
    for case in [args.case] if args.case else list(CASES):
        number = args.number or CASES[case][1]
        lines = {}
        for child in ("plain", "counted"):
            command = [sys.executable, __file__, case, "--number", str(number), "--child", child]
            told = subprocess.run(
                [*command, "--store", str(args.store)],
                check=True, capture_output=True, text=True, env=os.environ | ALLOCATOR,
            )  # fmt: skip
            first, *more = told.stdout.splitlines()
            lines[child] = [*map(float, first.split())]
        (_, plain, _, off), (middle, end, closed, on) = lines["plain"], lines["counted"]
        growth = (end - middle) / (number / 2) * 1e6
        print(f"{case:12s} {number:9,} {plain / MB:6.1f} MB {end / MB:6.1f} MB {closed / MB:6.1f} MB "
              f"{growth / MB:14.1f} MB {on / off:6.1f}x")  # fmt: skip
        print("   ", *more)


if __name__ == "__main__":
    main()
