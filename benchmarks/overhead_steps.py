"""What watching adds to a step that is known, where a machine's own pace wanders: steps with and without, in turn.

    python benchmarks/overhead_steps.py [--device cpu|cuda] [--workload mlp] [--seconds 60] [--cold 500] [--json FILE]

A host that is shared runs faster and slower by a tenth from one tenth of a second to the next, and blocks of half a
second (overhead.py) tell little of two percent. Here one session is open all the time, and three copies of a program
take turns in random order, some steps each: one that is watched, and two that are not, the second of them the control.
Those two are out of bitwatt's sight: their modules are called by torch's own `__call__`, and backward and optimizers
find nothing hung on them. Told are the ratio of all time spent with and without, in which the looks, peeks and timed
laps are that come while it is measured, and the median of the ratios of rounds, in which they hardly are; intervals
come from resampling stretches of rounds. With `--cold` a session is opened again and again, and told is the ratio of
its first so many steps, by resampling sessions.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from overhead import LEARN, timed
from overhead_workloads import WORKLOADS, Step
from torch import nn
from torch.optim import optimizer as optimizers

import bitwatt
from bitwatt.backends.torch import watch as watching
from bitwatt.backends.torch.replay.checks import allocations

#: Rounds that are resampled together: what is slow for one is slow for its neighbours.
STRETCH = 4
_sequence = torch.autograd._get_sequence_nr
_call = nn.Module.__call__
_engine = torch.autograd._engine_run_backward


@functools.cache
def hidden(kind: type[nn.Module]) -> type[nn.Module]:
    return type(kind.__name__, (kind,), {"__call__": _call, "__module__": kind.__module__})


def hide(step: Step) -> None:
    """Have a program's modules called as torch calls them."""
    for cell in step.__closure__ or ():
        for module in cell.cell_contents.modules() if isinstance(cell.cell_contents, nn.Module) else ():
            module.__class__ = hidden(type(module))


class Unseen:
    """Steps that bitwatt does not see while a session is open."""

    def __init__(self) -> None:
        watch = watching.active
        assert watch is not None, "a session is open"
        self._learner = watch.states.here.learner
        self._watched = torch.autograd._engine_run_backward
        self._hooks = [optimizers._global_optimizer_pre_hooks, optimizers._global_optimizer_post_hooks]

    def run(self, step: Step, steps: int) -> float:
        learner, modes = self._learner, []
        while torch.utils._python_dispatch._get_current_dispatch_mode() is not None:
            modes.append(torch.utils._python_dispatch._pop_mode())
        hung = [dict(hooks) for hooks in self._hooks]
        for hooks in self._hooks:
            hooks.clear()
        torch.autograd._engine_run_backward = _engine
        began, blocks, clock = _sequence(), allocations(), time.perf_counter()
        spent = timed(step, steps)
        torch.autograd._engine_run_backward = self._watched
        for hooks, held in zip(self._hooks, hung, strict=True):
            hooks.update(held)
        while modes:
            torch.utils._python_dispatch._push_mode(modes.pop())
        assert learner is not None
        made = _sequence() - began
        learner.seq += made
        learner.pace.seq += made
        clock = time.perf_counter() - clock
        learner._time = learner._time and learner._time + clock
        learner._began += clock
        learner.pace.began += clock
        if blocks is not None and learner._off_at is not None:
            learner._off_at += (allocations() or 0) - blocks
        return spent


def copies(make: Callable[[], Step]) -> dict[str, Step]:
    steps = {name: make() for name in ("off", "control", "on")}
    hide(steps["off"])
    hide(steps["control"])
    for _ in range(20):
        for step in steps.values():
            step()
    return steps


def rounds(make: Callable[[], Step], seconds: float, turn: int, meter: bool) -> tuple[dict[str, list[float]], Any]:
    steps = copies(make)
    found: dict[str, list[float]] = {name: [] for name in steps}
    with bitwatt.measure("overhead", keep=False, meter=meter) as session:
        for _ in range(LEARN):
            steps["on"]()
        unseen = Unseen()
        gc.collect()
        gc.freeze()
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for name in random.sample(list(steps), len(steps)):
                found[name].append(timed(steps[name], turn) if name == "on" else unseen.run(steps[name], turn))
    return found, session.run.replay


def cold(
    make: Callable[[], Step], seconds: float, turn: int, meter: bool, first: int
) -> tuple[dict[str, list[float]], Any]:
    """The first so many steps of each session, and for each of them STRETCH entries, as others have rounds."""
    steps = copies(make)
    found: dict[str, list[float]] = {name: [] for name in steps}
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        gc.collect()
        spent = dict.fromkeys(steps, 0.0)
        with bitwatt.measure("overhead", keep=False, meter=meter) as session:
            unseen = Unseen()
            for _ in range(0, first, turn):
                for name in random.sample(list(steps), len(steps)):
                    spent[name] += timed(steps[name], turn) if name == "on" else unseen.run(steps[name], turn)
        for name, mean in spent.items():
            found[name] += [mean * turn / first] * STRETCH
    return found, session.run.replay


def told(name: str, ones: list[float], others: list[float]) -> dict[str, Any]:
    usual = statistics.median(one / other for one, other in zip(ones, others, strict=True))
    sums = [
        (sum(ones[i : i + STRETCH]), sum(others[i : i + STRETCH])) for i in range(0, len(ones) - STRETCH + 1, STRETCH)
    ]
    drawn = sorted(_ratio(random.choices(sums, k=len(sums))) for _ in range(2000))
    whole, low, high = _ratio(sums), drawn[50], drawn[1949]
    print(f"  {name:10} {whole:6.4f}  [{low:.4f}, {high:.4f}]   median of rounds {usual:6.4f}", flush=True)
    return {"ratio": whole, "low": low, "high": high, "median": usual}


def _ratio(sums: list[tuple[float, float]]) -> float:
    return sum(one for one, _ in sums) / sum(other for _, other in sums)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workload", default="mlp", choices=WORKLOADS)
    parser.add_argument("--tiny", action="store_true", help="with next to no arithmetic in it")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--turn", type=int, default=20, help="steps in a turn")
    parser.add_argument("--cold", type=int, default=0, help="the first so many steps of each of many sessions instead")
    parser.add_argument("--meter", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    how = (lambda: copy_of(options), options.seconds, options.turn, options.meter)
    found, replay = cold(*how, options.cold) if options.cold else rounds(*how)
    off = statistics.median(found["off"])
    print(f"{options.workload}: {1e3 * off:.3f} ms a step, {len(found['off'])} rounds; {replay}")
    results = {name: told(name, found[name], found["off"]) for name in ("control", "on")}
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"seconds": off, "rounds": len(found["off"]), **results}, file, indent=1)


def copy_of(options: Any) -> Step:
    torch.manual_seed(0)
    return WORKLOADS[options.workload](options.device, options.tiny)


if __name__ == "__main__":
    main()
