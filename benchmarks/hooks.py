"""What bitwatt's hooks take of a training step on the CPU, once the step is known.

    python benchmarks/hooks.py [--workloads mlp,resnet,...] [--rounds 12]

The difference of two long times says little on a noisy machine. So the same programs are run with next to no arithmetic
in them (as many layers, parameters and calls, a few numbers in each): blocks with and without bitwatt alternate, and
the hooks' time is the difference of the quickest twentieth of the steps. It is set beside the step as it is.
Inside torch's own work the hooks find cold caches, as they do in life; timed alone they take a third of that.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import time

import torch
from overhead import LEARN
from overhead_workloads import WORKLOADS, Step

import bitwatt


def times(step: Step, steps: int) -> list[float]:
    found = []
    for _ in range(steps):
        began = time.perf_counter()
        step()
        found.append(time.perf_counter() - began)
    return found


def floors(step: Step, rounds: int, steps: int = 100) -> tuple[float, float, float]:
    """With bitwatt, without it, and without it again: the control."""
    found: dict[str, list[float]] = {"on": [], "off": [], "again": []}
    for _ in range(rounds):
        for name in random.sample(list(found), 3):
            with bitwatt.measure("hooks", keep=False) if name == "on" else contextlib.nullcontext():
                times(step, LEARN if name == "on" else 5)
                found[name] += times(step, steps)
    on, off, again = (statistics.quantiles(values, n=20)[0] for values in found.values())
    return on, off, again


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="mlp,resnet,transformer,gpt2")
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.workloads.split(","):
        torch.manual_seed(0)
        on, off, again = floors(WORKLOADS[name]("cpu", tiny=True), options.rounds)
        step = WORKLOADS[name]("cpu")
        times(step, 2)
        whole = min(times(step, 5))
        print(
            f"{name:12} hooks {1e6 * (on - off):6.1f} us (control {1e6 * (again - off):+5.1f} us) of a step of "
            f"{1e3 * whole:8.2f} ms: {(on - off) / whole:.2%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
