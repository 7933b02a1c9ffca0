"""Memory and cold start, each from fresh processes that hold one scenario and nothing else.

A process imports the scenario's library, loads the rows, loads the model, is asked for the first time, and then some
times more at each batch size, the smallest first: what a small batch needs, the larger ones after it need as well. The
first answer is one of the smallest batch.
"""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bitwatt.deploy import runtimes
from bitwatt.deploy.amounts import amount
from bitwatt.deploy.measuring import batching, children, memory
from bitwatt.deploy.measuring.timing import Progress
from bitwatt.deploy.measuring.worker import limit_torch
from bitwatt.deploy.records import Artefact, Footprint, Plan

#: Calls at each batch size before its memory is read, but no more than for so long.
CALLS, SECONDS = 10, 1.0
FEEDS = 8
TIMES = ("import_ms", "load_ms", "first_ms")


def footprints(
    artefacts: Mapping[str, Artefact],
    rows: Path,
    plan: Plan,
    folder: Path,
    *,
    progress: Progress | None = None,
    timeout_s: float = children.HANGS_S,
) -> tuple[dict[str, dict[int, Footprint]], dict[str, str]]:
    """By scenario and batch size; and of those that failed, why: they lack the batch sizes from there on."""
    chance = random.Random(plan.seed)
    turns = [name for _ in range(plan.fresh) for name in chance.sample(list(artefacts), len(artefacts))]
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in artefacts}
    failures: dict[str, str] = {}
    for turn, name in enumerate(turns):
        if progress is not None:
            progress(turn, len(turns), f"memory and cold start of {name}")
        if name in failures:
            continue
        job = {
            "task": "bitwatt.deploy.measuring.footprint:weigh", "artefact": children.packed(artefacts[name]),
            "rows": str(rows), "batches": sorted(plan.batches),
        }  # fmt: skip
        ended = children.run(job, folder, core=turn, timeout_s=timeout_s)
        said = [one["failure"] for one in ended.results if "failure" in one]
        if ended.failure or said:
            failures[name] = ended.failure or said[0]
        found[name] += [one for one in ended.results if "failure" not in one]
    known: dict[str, dict[int, Footprint]] = {name: {} for name in artefacts}
    for name, each in found.items():
        for batch in sorted({one["batch"] for one in each}):
            known[name][batch] = _joined([one for one in each if one["batch"] == batch])
    return known, failures


def weigh(job: dict[str, Any], tell: children.Tell) -> None:
    """The task: one scenario, in the process it is measured in."""
    artefact = children.unpacked(job["artefact"])
    try:
        _weigh(job, tell, artefact)
    except Exception as error:
        tell.result({"failure": f"{type(error).__name__}: {error}"})


def _weigh(job: dict[str, Any], tell: children.Tell, artefact: Artefact) -> None:
    tell.at(artefact.scenario, "while its library was imported")
    runtime = runtimes.runtime(artefact.runtime)
    if artefact.options.get("homes"):  # modules of the user's own are among what is imported
        from bitwatt.deploy.making import saving

        saving.reach(artefact.options)
    bare = memory.read()
    began = time.perf_counter()
    for name in artefact.imports:
        importlib.import_module(name)
    limit_torch(job["threads"])
    import_ms = _ms(began)
    library = memory.read()
    tell.at(artefact.scenario, "while rows were loaded")
    rows = batching.load(job["rows"], tensors=any(name.partition(".")[0] == "torch" for name in artefact.imports))
    feeds = {size: batching.batches(rows, size, FEEDS) for size in job["batches"]}
    fed = memory.read()
    tell.at(artefact.scenario, "while it was loaded")
    began = time.perf_counter()
    predict = runtime.load(artefact, job["threads"]).predict
    load_ms = _ms(began)
    first_ms = None
    for size, batches in feeds.items():
        tell.at(artefact.scenario, f"at batch size {size}")
        began = time.perf_counter()
        predict(batches[0])
        first_ms = _ms(began) if first_ms is None else first_ms
        for turn in range(1, CALLS):
            if _ms(began) > 1000 * SECONDS:
                break
            predict(batches[turn % len(batches)])
        now = memory.read()
        tell.result({
            "batch": size, "processes": 1, "first_batch": job["batches"][0], "source": now.source,
            "peak_uss_mb": _mb(now.peak_uss), "uss_mb": _mb(now.uss), "pss_mb": _mb(now.pss), "rss_mb": _mb(now.rss),
            "library_mb": _mb(_more(library.uss, bare.uss)), "model_mb": _mb(_more(now.uss, fed.uss)),
            "base_mb": _mb(bare.uss), "import_ms": import_ms, "load_ms": load_ms, "first_ms": first_ms,
            "cold_ms": import_ms + load_ms + first_ms,
        })  # fmt: skip


def _joined(parts: Sequence[Mapping[str, Any]]) -> Footprint:
    """Medians over the processes, and from the least to the most of each."""
    values: dict[str, float | None] = {}
    spread: dict[str, tuple[float, float]] = {}
    for name in parts[0]:
        if name.endswith(("_mb", "_ms")):
            known = [part[name] for part in parts if part[name] is not None]
            values[name] = median(known) if known else None
            if known:
                spread[name] = min(known), max(known)
    del values["cold_ms"]  # the sum of medians; its spread is of whole processes
    first, count = parts[0]["first_batch"], len(parts)
    source = f"{amount(count, 'fresh process', 'fresh processes')}: {parts[0]['source']}"
    source += f"; the first answer is of {amount(first, 'row')}"
    return Footprint(processes=len(parts), spread=spread, source=source, **values)


def _mb(value: int | None) -> float | None:
    return None if value is None else value / 1e6


def _more(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before


def _ms(began: float) -> float:
    return 1000 * (time.perf_counter() - began)
