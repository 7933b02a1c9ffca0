"""Which blocks came before the times were steady: marked and kept, never cut off unseen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from bitwatt.deploy.amounts import amount
from bitwatt.deploy.records import Call

#: A block is cold when it is slower than the second half of its process by this share, and by so many deviations.
SHARE, DEVIATIONS = 0.10, 3.0


def cold_blocks(medians: Sequence[float]) -> int:
    """How many blocks at the beginning are slower than the second half; half of them or more: it never got steady."""
    half = len(medians) // 2
    late = medians[half:]
    middle = median(late)
    deviation = 1.4826 * median(abs(one - middle) for one in late)
    limit = middle + max(SHARE * middle, DEVIATIONS * deviation)
    return next((index for index in range(half) if medians[index] <= limit), half)


def marked(calls: Sequence[Call]) -> tuple[list[Call], list[str]]:
    """The calls with `warm` as found, and what to say about those that never got steady: they are all kept as warm,
    since there is no steady half to judge by."""
    series: dict[tuple[str, int, int, int], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for call in calls:
        series[call.scenario, call.batch, call.threads, call.process][call.block].append(call.wall_ns)
    first: dict[tuple[str, int, int, int], int] = {}
    never: dict[tuple[str, int, int], int] = defaultdict(int)
    for key, blocks in series.items():
        order = sorted(blocks)
        cold = cold_blocks([median(blocks[block]) for block in order])
        if cold >= max(len(order) // 2, 1):
            never[key[:3]] += 1
            cold = 0
        first[key] = order[cold]
    found = [
        call
        if (call.block >= first[call.scenario, call.batch, call.threads, call.process]) == call.warm
        else replace(call, warm=not call.warm)
        for call in calls
    ]
    processes = Counter(key[:3] for key in series)
    notes = [
        f"{name} at batch size {batch} with {amount(threads, 'thread')} was never steady: it was still getting faster "
        f"after half of the blocks, in {count} of {amount(processes[name, batch, threads], 'process', 'processes')}"
        for (name, batch, threads), count in never.items()
        if 2 * count > processes[name, batch, threads]  # in some it is chance: a neighbour went away
    ]
    return found, notes
