"""What watching adds to a training step, beside other tools, in one process.

    python benchmarks/overhead.py [--device cpu|cuda] [--workloads mlp,resnet,...] [--pairs 15] [--cold 0] [--json FILE]

Blocks of steps with a tool and without it alternate in random order; a ratio is that of two neighbouring blocks, and
what is printed is the median of the ratios with a 95 % interval from resampling them. "off" against "off" is the
control: what the machine alone does. Steps are timed after the tool has been set up and has learned what it learns;
`--cold` also times so many steps from the opening of the session on, and with the opening and the closing of it.
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
from overhead_workloads import WORKLOADS, Step
from torch.utils._python_dispatch import TorchDispatchMode

import bitwatt

#: Steps under a tool before it is timed: bitwatt has looked again by then, and knows the program well.
LEARN = 300


class EmptyMode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def tools() -> dict[str, Callable[[], AbstractContextManager[Any]]]:
    from torch.utils.flop_counter import FlopCounterMode

    found: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "off (control)": contextlib.nullcontext,
        "bitwatt": lambda: bitwatt.measure("overhead", keep=False),
        "bitwatt, every step counted": lambda: bitwatt.measure("overhead", keep=False, exactness="always"),
        "empty dispatch mode": EmptyMode,
        "FlopCounterMode": lambda: FlopCounterMode(display=False),
        "torch.profiler": lambda: torch.profiler.profile(with_flops=True, record_shapes=True),
    }
    with contextlib.suppress(ImportError):
        from floppy_tracker import FloppyTracker  # type: ignore[import-not-found]

        found["floppy-tracker"] = FloppyTracker
    return found


def timed(step: Step, steps: int) -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps


def block(step: Step, tool: Callable[[], AbstractContextManager[Any]], learn: int, steps: int) -> float:
    with tool():
        for _ in range(learn):
            step()
        return timed(step, steps)


def whole(step: Step, tool: Callable[[], AbstractContextManager[Any]], _: int, steps: int) -> float:
    """With what it takes to set the tool up and to take it down."""
    began = time.perf_counter()
    with tool():
        timed(step, steps)
    return (time.perf_counter() - began) / steps


def ratios(
    step: Step, tool: Callable[..., Any], pairs: int, learn: int, steps: int, run: Callable[..., float] = block
) -> list[float]:
    found = []
    for _ in range(pairs):
        spent = {}
        for on in random.sample([True, False], 2):
            spent[on] = run(step, tool if on else contextlib.nullcontext, learn if on else min(learn, 2), steps)
        found.append(spent[True] / spent[False])
    return found


def interval(values: list[float], rounds: int = 2000) -> tuple[float, float]:
    """Of the median, by resampling."""
    medians = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds)]


def line(name: str, values: list[float]) -> dict[str, Any]:
    low, high = interval(values)
    median = statistics.median(values)
    print(f"  {name:28} {median:6.3f}  [{low:.3f}, {high:.3f}]", flush=True)
    return {"median": median, "low": low, "high": high, "ratios": values}


def agree(step: Step, steps: int) -> bool:
    """Whether the totals are those of counting every step."""
    found = []
    for exactness in ("always", "auto"):
        with bitwatt.measure("overhead", keep=False, exactness=exactness) as session:
            for _ in range(steps):
                step()
        found.append(bitwatt.totals(session.run).by("phase"))
    return found[0] == found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workloads", default="mlp,resnet,transformer,gpt2")
    parser.add_argument("--tools", default="", help="only these: their names as printed, separated by semicolons")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.5, help="length of a block")
    parser.add_argument("--cold", type=int, default=0)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = options.tools.split(";") if options.tools else list(tools())
    results: dict[str, Any] = {}
    for name in options.workloads.split(","):
        torch.manual_seed(0)
        step = WORKLOADS[name](options.device)
        seconds = block(step, contextlib.nullcontext, 5, 5)
        steps = max(3, round(options.seconds / seconds))
        print(f"{name}: {1e3 * seconds:.2f} ms a step, blocks of {steps}, totals equal: {agree(step, 40)}", flush=True)
        results[name] = {"seconds": seconds}
        for tool, make in tools().items():
            if tool in wanted:
                fast = tool.startswith(("off", "bitwatt")) and "every" not in tool
                pairs = options.pairs if fast else max(5, options.pairs // 3)
                learn = LEARN if fast else 2
                results[name][tool] = line(
                    tool, ratios(step, make, pairs, learn, steps if fast else max(3, steps // 4))
                )
        if options.cold:
            pairs, (off, on) = max(5, options.pairs // 2), (tools()[tool] for tool in ("off (control)", "bitwatt"))
            for what, tool, run in (
                (f"{options.cold} steps, control", off, block),
                (f"bitwatt, {options.cold} cold steps", on, block),
                ("  and opening and closing", on, whole),
            ):
                results[name][what.strip()] = line(what, ratios(step, tool, pairs, 0, options.cold, run))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
