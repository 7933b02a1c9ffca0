"""What a fresh process times: all scenarios in turn, block by block, in an order drawn anew for each block.

A block is a call that is not counted (the caches are still those of the scenario before) and then calls for a few
milliseconds, on rows that change from call to call. Neighbours and clock speeds that come and go meet all scenarios.
A call that computes for several blocks' time is a block by itself: filling caches takes too little of it to matter.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter_ns, process_time_ns
from typing import Any

from bitwatt.deploy import runtimes
from bitwatt.deploy.measuring import batching, children
from bitwatt.deploy.measuring.worker import limit_torch

#: Calls of a block: enough for a median, but where they take so many blocks' time; and no more than these.
LEAST_CALLS, MOST_CALLS, LONG = 3, 48, 5
#: Blocks that are timed however long they take.
LEAST_BLOCKS = 5
#: Different batches that are taken in turn.
FEEDS = 64
#: Laps without a call, for what the clocks take.
TARES = 101

Predict = Callable[[Any], Any]


def time_blocks(job: dict[str, Any], tell: children.Tell) -> None:
    """The task. A result for each scenario that failed, and one for each batch size with all its calls."""
    rows = batching.load(job["rows"])
    chance = random.Random(job["seed"])
    predicts: dict[str, Predict] = {}
    names = list(job["artefacts"])
    for name in chance.sample(names, len(names)):  # who comes first in memory is chance, too
        tell.at(name, "while it was loaded")
        try:
            predicts[name] = runtimes.load(children.unpacked(job["artefacts"][name]), job["threads"]).predict
        except Exception as error:
            tell.result({"scenario": name, "batch": None, "failure": told(error)})
        limit_torch(job["threads"])
    gc.collect()
    gc.freeze()  # what libraries and models hold is not looked through again between blocks
    tare = clocks_ns()
    for done, batch in enumerate(chance.sample(job["batches"], len(job["batches"]))):
        apart = {name for name, other in job["skip"] if other == batch}
        chosen = {name: predict for name, predict in predicts.items() if name not in apart}
        feeds = batching.batches(rows, batch, FEEDS)
        _cell(job, tell, chosen, feeds, batch, chance, done / len(job["batches"]), tare)


def told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _cell(
    job: dict[str, Any],
    tell: children.Tell,
    predicts: dict[str, Predict],
    feeds: Sequence[Any],
    batch: int,
    chance: random.Random,
    done: float,
    tare: int,
) -> None:
    began, found = time.monotonic(), []
    for block in range(job["blocks"]):
        start = chance.randrange(len(feeds))  # the same rows for all in a block
        for position, name in enumerate(chance.sample(list(predicts), len(predicts))):
            tell.at(name, f"at batch size {batch}", done + block / job["blocks"] / len(job["batches"]))
            try:
                walls, cpus = laps(predicts[name], feeds, start, job["block_ms"], tare)
            except Exception as error:
                del predicts[name]
                tell.result({"scenario": name, "batch": batch, "failure": told(error)})
                continue
            found.append([block, position, name, walls, cpus])
        if block + 1 >= LEAST_BLOCKS and time.monotonic() - began > job["cell_s"]:
            break
    tell.result({"batch": batch, "blocks": found})


def clocks_ns() -> int:
    """CPU time that reading the clocks takes of a lap, beyond what it takes of its wall time: one of them is a call of
    the system, which costs a third of what a small product does."""
    spent = []
    for _ in range(TARES):
        cpu, wall = process_time_ns(), perf_counter_ns()
        wall, cpu = perf_counter_ns() - wall, process_time_ns() - cpu
        spent.append(cpu - wall)
    return max(int(median(spent)), 0)


def laps(
    predict: Predict, feeds: Sequence[Any], start: int, block_ms: float, tare: int = 0
) -> tuple[list[int], list[int]]:
    """Wall and CPU time of each call of a block, in ns; of the latter, `tare` is the clocks'."""
    walls: list[int] = []
    cpus: list[int] = []
    enough, count = block_ms * 1e6, len(feeds)
    spent = computed = 0
    gc.disable()
    try:
        for at in range(start, start + MOST_CALLS + 1):
            rows = feeds[at % count]
            cpu, wall = process_time_ns(), perf_counter_ns()
            predict(rows)
            wall, cpu = perf_counter_ns() - wall, max(process_time_ns() - cpu - tare, 0)
            if at == start and cpu < LONG * enough:
                continue
            walls.append(wall)
            cpus.append(cpu)
            spent, computed = spent + wall, computed + cpu
            # By what it computed: a call that had to wait for a neighbour says little by itself.
            long = computed >= LONG * enough or spent >= 10 * LONG * enough
            if spent >= enough and (long or len(walls) >= LEAST_CALLS):
                break
    finally:
        gc.enable()
    return walls, cpus
