"""What bitwatt's hooks add to each part of a training step that is known, on the CPU.

    python benchmarks/hook_parts.py [--optimizer adam|sgd|fused] [--layers 3] [--rounds 12] [--fpcount DIR]

A step of next to no arithmetic is taken apart: `zero_grad`, the call, the loss, `backward`, `step`. Blocks with and
without bitwatt alternate, and what is told is the difference of the quickest twentieth, in microseconds; the control is
without against without. With the fpcount instrument (valgrind) it is instructions instead, which neighbours do not
change: of each part the median of one block, and the mean, in which are the laps that look at more.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
import torch.nn.functional as F
from overhead import LEARN
from torch import nn

import bitwatt

PARTS = ("zero_grad", "call", "loss", "backward", "step")
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": lambda p: torch.optim.Adam(p),
    "sgd": lambda p: torch.optim.SGD(p, 0.1),
    "fused": lambda p: torch.optim.Adam(p, fused=True),
}
Step = Callable[[Callable[[], int]], list[int]]


def program(optimizer: str, layers: int) -> Step:
    """A step that asks a clock before and after each of its parts."""
    torch.manual_seed(0)
    inner = [part for _ in range(layers - 1) for part in (nn.Linear(8, 8), nn.ReLU())]
    model = nn.Sequential(*inner, nn.Linear(8, 10))
    x, y, steps = torch.randn(4, 8), torch.randint(0, 10, (4,)), OPTIMIZERS[optimizer](model.parameters())

    def step(now: Callable[[], int]) -> list[int]:
        at = [now()]
        steps.zero_grad()
        at.append(now())
        out = model(x)
        at.append(now())
        loss = F.cross_entropy(out, y)
        at.append(now())
        loss.backward()
        at.append(now())
        steps.step()
        at.append(now())
        return at

    return step


def block(step: Step, on: bool, steps: int, now: Callable[[], int]) -> list[list[int]]:
    """What each part took in each step."""
    with bitwatt.measure("hooks", keep=False, meter=False) if on else contextlib.nullcontext():
        for _ in range(LEARN if on else 5):
            step(now)
        gc.collect()
        gc.disable()
        marks = [step(now) for _ in range(steps)]
        gc.enable()
    return [[b - a for a, b in itertools.pairwise(at)] for at in marks]


def timed(step: Step, rounds: int, steps: int) -> None:
    found: dict[str, list[list[int]]] = {"on": [], "off": [], "again": []}
    for _ in range(rounds):
        for name in random.sample(list(found), 3):
            found[name] += block(step, name == "on", steps, time.perf_counter_ns)
    quickest = {
        name: [statistics.quantiles(part, n=20)[0] / 1e3 for part in (*zip(*rows, strict=True), [*map(sum, rows)])]
        for name, rows in found.items()
    }
    for at, part in enumerate((*PARTS, "whole step")):
        on, off, again = (values[at] for values in quickest.values())
        print(f"  {part:10} {off:7.1f} us, with bitwatt {on - off:+6.2f} us (control {again - off:+5.2f})", flush=True)


def counted(step: Step, steps: int) -> None:
    import fpcount  # the instrument puts it on the path

    at = 2 * len(fpcount.KINDS)
    rows = {on: block(step, on, steps, lambda: int(fpcount._read()[at])) for on in (False, True)}
    plain, ours = ([*zip(*rows[on], strict=True), [*map(sum, rows[on])]] for on in (False, True))
    for part, off, on in zip((*PARTS, "whole step"), plain, ours, strict=True):
        usual, mean = (
            f((one - other) / 1e3 for one, other in zip(sorted(on), sorted(off), strict=True))
            for f in (statistics.median, statistics.fmean)
        )
        print(
            f"  {part:10} {statistics.median(off) / 1e3:8.1f} K instructions, "
            f"with bitwatt {usual:+6.2f} K, mean {mean:+6.2f} K"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--optimizer", default="adam", choices=OPTIMIZERS)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--fpcount", type=Path, help="the instrument's folder")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.fpcount is not None and not options.child:
        built = os.environ.get("FPCOUNT_OUT") or tempfile.mkdtemp(prefix="fpcount-")
        command = [str(options.fpcount / "fpcount"), sys.executable, __file__, *sys.argv[1:], "--child"]
        subprocess.run(command, env=os.environ | {"FPCOUNT_OUT": built}, check=True)
        return
    print(f"{options.layers} layers, {options.optimizer}", flush=True)
    step = program(options.optimizer, options.layers)
    if options.child:
        counted(step, 48)
    else:
        timed(step, options.rounds, 100)


if __name__ == "__main__":
    main()
