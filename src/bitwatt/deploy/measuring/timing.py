"""Times of all scenarios, from several fresh processes: the process is what repeats, since memory layout, core and
neighbours stay the same for as long as one lives, and move ratios more than calls within it do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bitwatt.deploy.amounts import amount
from bitwatt.deploy.measuring import children
from bitwatt.deploy.records import CONTROL, Artefact, Call, Plan

#: done, of, and what is being done.
Progress = Callable[[float, float, str], None]


@dataclass
class Timed:
    """The calls, and what could not be timed: a scenario that died or hung anywhere, or could not be loaded, has failed
    and has no calls; one that raised at some batch size lacks that."""

    calls: list[Call] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def timed(
    artefacts: Mapping[str, Artefact],
    rows: Path,
    plan: Plan,
    folder: Path,
    *,
    baseline: str = "",
    progress: Progress | None = None,
    timeout_s: float = children.HANGS_S,
    found: Timed | None = None,
) -> Timed:
    """`baseline` is timed twice, as itself and as the A/A control, which is loaded a second time: else it would not
    meet the chance of where in memory a model comes to lie. `found` is filled as it goes on: where this is interrupted
    it holds what the processes before had timed."""
    from bitwatt.deploy.statistics import steady

    found, skip = Timed() if found is None else found, set[tuple[str, int, int]]()
    total = plan.processes * len(plan.threads)
    try:
        for turn in range(total):
            process, at = divmod(turn, len(plan.threads))
            tick = _tick(progress, turn, total)
            _process(found, skip, artefacts, baseline, rows, plan, folder, process, plan.threads[at], tick, timeout_s)
    finally:
        found.calls = [call for call in found.calls if call.scenario.removesuffix(CONTROL) not in found.failures]
        found.calls, notes = steady.marked(found.calls)
        found.notes += notes
    return found


def _process(
    found: Timed,
    skip: set[tuple[str, int, int]],
    artefacts: Mapping[str, Artefact],
    baseline: str,
    rows: Path,
    plan: Plan,
    folder: Path,
    process: int,
    threads: int,
    tick: Callable[[float], None],
    timeout_s: float,
) -> None:
    """One process; again without the scenario that it died of."""
    while True:
        packed = {name: children.packed(one) for name, one in artefacts.items() if name not in found.failures}
        if baseline in packed:
            packed[baseline + CONTROL] = packed[baseline]
        if not packed:
            return
        job = {
            "task": "bitwatt.deploy.measuring.blocks:time_blocks", "artefacts": packed, "rows": str(rows),
            "batches": list(plan.batches), "blocks": plan.blocks, "block_ms": plan.block_ms, "cell_s": plan.cell_s,
            "skip": [(name, batch) for name, batch, other in sorted(skip) if other == threads],
            "seed": f"{plan.seed}:{process}:{threads}",
        }  # fmt: skip
        ended = children.run(job, folder, threads=threads, core=process, timeout_s=timeout_s, tick=tick)
        if not ended.failure:
            break
        if not ended.at:
            note = f"a process with {amount(threads, 'thread')} was lost before it began: {ended.failure}"
            found.notes += [] if note in found.notes else [note]
            return
        found.failures[ended.at.removesuffix(CONTROL)] = ended.failure
    for result in ended.results:
        if "failure" in result:
            _failed(found, skip, result, threads)
        else:
            found.calls += _calls(result, process, threads)


def _failed(found: Timed, skip: set[tuple[str, int, int]], result: Mapping[str, Any], threads: int) -> None:
    name = result["scenario"].removesuffix(CONTROL)
    if result["batch"] is None:
        found.failures.setdefault(name, f"it could not be loaded: {result['failure']}")
        return
    key = (name, result["batch"], threads)
    if key not in skip:
        skip.update([key, (name + CONTROL, *key[1:])])
        found.notes.append(f"{name} fails at batch size {key[1]} with {amount(threads, 'thread')}: {result['failure']}")


def _calls(result: Mapping[str, Any], process: int, threads: int) -> list[Call]:
    return [
        Call(process, block, position, name, result["batch"], threads, index, wall, cpu)
        for block, position, name, walls, cpus in result["blocks"]
        for index, (wall, cpu) in enumerate(zip(walls, cpus, strict=True))
    ]


def _tick(progress: Progress | None, turn: int, total: int) -> Callable[[float], None]:
    def tell(share: float) -> None:
        if progress is not None:
            progress(turn + share, total, f"timing, process {turn + 1} of {total}")

    tell(0.0)
    return tell
