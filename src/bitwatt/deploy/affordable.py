"""Whether a plan can be carried out on this machine: what is absurd is told before anything is measured."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import Any

from bitwatt.deploy.amounts import amount
from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.records import Case, Plan
from bitwatt.errors import BitwattError
from bitwatt.units import format_count, format_duration

#: Different batches of one size that lie in memory at once, at least; see `measuring.batching`.
_COPIES = 8
#: Settings (batch sizes times numbers of threads), threads for each core, hours for one batch size.
MOST_SETTINGS, MOST_THREADS, MOST_HOURS = 64, 8, 12
#: Calls of a batch size in a process, over all scenarios, however long they take; and rows that tell how long.
_CALLS, _TRIED = 40, 256


def checked(case: Case, plan: Plan) -> tuple[str, ...]:
    """What should be known of the plan; raises where it cannot be carried out."""
    settings = len(plan.batches) * len(plan.threads)
    if settings > MOST_SETTINGS:
        raise BitwattError(
            f"{amount(len(plan.batches), 'batch size')} with {amount(len(plan.threads), 'number')} of threads are "
            f"{settings} settings; up to {MOST_SETTINGS} are timed in one study"
        )
    return (*_threads(plan.threads), *_batches(case, plan))


def _threads(asked: tuple[int, ...]) -> tuple[str, ...]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    most = max(asked)
    if most > MOST_THREADS * cores:
        raise BitwattError(
            f"--threads {most}: there {'is' if cores == 1 else 'are'} {amount(cores, 'core')} here to run them on"
        )
    return (f"{most} threads share {amount(cores, 'core')}",) if most > cores else ()


def _batches(case: Case, plan: Plan) -> tuple[str, ...]:
    rows, largest = rows_of.count(case.inputs), max(plan.batches)
    needed, free = largest * row_bytes(case.inputs) * _COPIES, available()
    if free is not None and needed > free / 2:
        raise BitwattError(
            f"--batch {largest}: {_COPIES} different batches of so many rows, which are asked in turn, would take "
            f"{_size(needed)}, and {_size(free)} are free here"
        )
    seconds = _CALLS * plan.processes * largest * row_seconds(case)
    if seconds > 3600 * MOST_HOURS:
        raise BitwattError(
            f"--batch {largest}: at the speed of the first {min(_TRIED, rows)} rows, timing so large batches would "
            f"take {format_duration(float(round(seconds)))}"
        )
    return (f"batches of more than the {rows:,} rows given hold rows several times",) if largest > rows else ()


def row_bytes(inputs: Any) -> float:
    """Of one row, as it is given."""
    if isinstance(inputs, tuple):
        return sum(map(row_bytes, inputs))
    few = rows_of.take(inputs, slice(0, 64))
    count = max(rows_of.count(few), 1)
    if rows_of.is_frame(few):
        return float(few.memory_usage(index=False, deep=True).sum()) / count
    if rows_of.is_texts(few):
        return sum(len(text) for text in few) / count + 50
    if rows_of.is_sparse(few):
        return float(few.tocsr().data.nbytes + few.tocsr().indices.nbytes) / count + 8
    return float(few.nbytes) / count


def row_seconds(case: Case) -> float:
    """Of the model itself, at its quickest: what is done once is done by then."""
    from bitwatt.deploy.given import estimators, modules

    few = rows_of.take(case.inputs, slice(0, _TRIED))
    took = math.inf
    for _ in range(3):
        began = time.perf_counter()
        if case.framework == "torch":
            modules.answer(case.model, few)
        else:
            estimators.answer(case.model, case.method, few)
        took = min(took, time.perf_counter() - began)
    return took / max(rows_of.count(few), 1)


def available(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """Bytes of memory that can be had without swapping; None where the system does not tell."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError, IndexError):
        return None


def _size(amount: float) -> str:
    return format_count(float(f"{amount:.3g}"), "B")
