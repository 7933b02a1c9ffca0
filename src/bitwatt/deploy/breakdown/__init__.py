"""Where the time of a prediction goes: before the model's operators, in them, after them. Measured in a run of its own,
with what the looking costs beside it.

A runtime that has a method `breakdown(artefact, loaded, rows, batch)` answers for itself. Else what it loaded is looked
into: a `session` of ONNX Runtime, the torch module in `call` or `module`, an estimator in `model`, `steps` and `head`
of plain products. What shows none of these has a time and no parts.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bitwatt.deploy.measuring import batching
from bitwatt.deploy.records import Artefact, Breakdown, Case

if TYPE_CHECKING:
    from bitwatt.deploy.measuring.children import Tell

#: For each batch size.
SECONDS = 0.6
#: Different batches that are taken in turn: one that is repeated stays in the caches.
TURNS = 16


def of(
    artefact: Artefact,
    rows: Any,
    batch: int,
    *,
    threads: int = 1,
    seconds: float = SECONDS,
    apart: bool = True,
) -> Breakdown:
    """Of one batch of `rows` (a case's will do). `apart`: in a fresh process, which has as many threads as told."""
    return over(artefact, rows, (batch,), threads=threads, seconds=seconds, apart=apart)[batch]


def over(
    artefact: Artefact,
    rows: Any,
    batches: Sequence[int],
    *,
    threads: int = 1,
    seconds: float = SECONDS,
    apart: bool = True,
) -> dict[int, Breakdown]:
    """As `of`, for several sizes in one process: importing a library takes longer than looking into it."""
    inputs = rows.inputs if isinstance(rows, Case) else rows
    if not apart:
        return {one.batch: one for one in here(artefact, inputs, batches, threads, seconds)}
    from bitwatt.deploy import documents
    from bitwatt.deploy.measuring import children

    with tempfile.TemporaryDirectory() as scratch:
        kept = batching.save(inputs, Path(scratch) / "rows")
        job = {
            "task": "bitwatt.deploy.breakdown:task", "artefact": children.packed(artefact), "rows": str(kept),
            "batches": list(batches), "seconds": seconds,
        }  # fmt: skip
        ended = children.run(job, Path(scratch), threads=threads)
    found = {one.batch: one for one in (documents.of_json(Breakdown, result) for result in ended.results)}
    why = f"not broken down: {ended.failure or 'the process said nothing'}"
    return {batch: found.get(batch) or Breakdown(batch, (), note=why) for batch in batches}


def task(job: dict[str, Any], tell: Tell) -> None:
    """In the fresh process."""
    from bitwatt.deploy import documents
    from bitwatt.deploy.measuring import children

    artefact = children.unpacked(job["artefact"])
    inputs = batching.load(job["rows"], tensors="torch" in artefact.imports)
    tell.at(artefact.scenario, "while its parts were timed")
    for found in here(artefact, inputs, job["batches"], job["threads"], job["seconds"]):
        tell.result(documents.as_json(found))


def here(artefact: Artefact, inputs: Any, batches: Sequence[int], threads: int, seconds: float) -> Iterator[Breakdown]:
    """In this process, loaded once for all batch sizes."""
    from bitwatt.deploy import runtimes

    runtime = runtimes.runtime(artefact.runtime)
    loaded = runtime.load(artefact, threads)
    again = functools.cache(lambda: runtime.load(artefact, threads))
    own = getattr(runtime, "breakdown", None)
    for batch in batches:
        if own is not None:
            yield own(artefact, loaded, inputs, batch)
        else:
            yield split(artefact, loaded, again, cut(inputs, batch), batch, seconds)


def split(
    artefact: Artefact, loaded: Any, load: Callable[[], Any], batches: Iterator[Any], batch: int, seconds: float
) -> Breakdown:
    """By what was loaded; `load` gives a second copy, which is watched meanwhile."""
    from bitwatt.deploy.breakdown import estimators, modules, onnxruntime, products, timeline

    if hasattr(loaded, "session"):
        return onnxruntime.split(artefact, loaded, batches, batch, seconds)
    if hasattr(loaded, "call") or hasattr(loaded, "module"):
        return modules.split(loaded, load, batches, batch, seconds)
    if hasattr(loaded, "model") and hasattr(loaded, "method"):
        return estimators.split(loaded, load(), batches, batch, seconds)
    if hasattr(loaded, "head") and hasattr(loaded, "steps"):
        return products.split(loaded, load(), batches, batch, seconds)
    plain_ms = timeline.plainly(loaded.predict, batches, seconds)
    return Breakdown(
        batch, (), plain_ms=plain_ms, note=f"{artefact.runtime} does not tell what is inside it: it is not split"
    )


def cut(inputs: Any, batch: int) -> Iterator[Any]:
    """Batches in turn, round the rows as often as it takes."""
    return itertools.cycle(batching.batches(inputs, batch, TURNS))
