"""Starts the serving process and collects what came of it."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bitwatt.deploy import documents
from bitwatt.deploy.load import loadgen, programme
from bitwatt.deploy.load.settings import Settings, checked
from bitwatt.deploy.measuring import children
from bitwatt.deploy.records import Artefact, Load, LoadPoint, Plan
from bitwatt.errors import BitwattError

#: What is told while it goes on: how much is done, of how much, and of what.
Progress = Callable[[float, float, str], None]


def put(
    artefact: Artefact,
    plan: Plan,
    rows_file: Path | str,
    *,
    rates: Sequence[float] = (),
    callers: Sequence[int] = (),
    slo: str = "",
    seconds: float | None = None,
    batch: int = 1,
    threads: int | None = None,
    workers: int | None = None,
    timeout_s: float = 30.0,
    overload: bool = True,
    mlperf: bool | None = None,
    progress: Progress | None = None,
) -> Load:
    """Load on an artefact in a fresh process. What is not said comes from the plan. `rows_file` holds the rows,
    pickled; a request has `batch` of them, and one that takes longer than `timeout_s` hangs. MLPerf's LoadGen follows
    where it is installed, unless `mlperf` is off.

    Raises where it is asked for something senseless. A model that dies or hangs under load is a finding: what was
    measured before comes back, with a note."""
    settings = checked(
        seconds=plan.load_seconds if seconds is None else seconds,
        rates=rates or plan.rates,
        callers=callers or plan.callers,
        slo=slo or plan.slo,
        rows=batch,
        seed=plan.seed,
        workers=workers,
        limit_s=timeout_s,
        overload=overload,
    )
    if not Path(rows_file).is_file():
        raise BitwattError(f"there is no file of rows {str(rows_file)!r} to ask for")
    job = {
        "artefact": children.packed(artefact),
        "rows": str(Path(rows_file).resolve()),
        "settings": documents.as_json(settings),
        "allowed": sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [],
    }
    threads = plan.threads[0] if threads is None else threads

    asked = plan.mlperf if mlperf is None else mlperf
    absent = loadgen.why_absent() if asked else "MLPerf's LoadGen was not asked for (a quick study leaves it out)"

    def tick(done: float) -> None:
        if progress is not None:
            progress(done, 1.0, artefact.scenario)

    with tempfile.TemporaryDirectory(prefix="bitwatt-load-") as folder:
        ended = children.run(
            {**job, "task": "bitwatt.deploy.load.serving:serve", "mlperf": not absent}, Path(folder), threads=threads,
            timeout_s=max(children.HANGS_S, 8 * settings.seconds + 4 * settings.limit_s), tick=tick,
        )  # fmt: skip
    return _collected(ended, settings, absent)


def _points(ended: children.Ended) -> tuple[LoadPoint, ...]:
    return tuple(documents.of_json(LoadPoint, one["point"]) for one in ended.results if "point" in one)


def _collected(ended: children.Ended, settings: Settings, absent: str) -> Load:
    """What LoadGen found follows our own; where the process died in it, that is LoadGen's failure alone."""
    wholes = [documents.of_json(Load, one["load"]) for one in ended.results if "load" in one]
    whole = wholes[-1] if wholes else Load(slo=settings.slo, source=programme.SOURCE)
    notes = [str(one["note"]) for one in ended.results if "note" in one]
    failure = f"LoadGen: {ended.failure}" if ended.failure and wholes else ended.failure
    source = f"{whole.source}, {loadgen.source()}" if wholes and whole.capacity and not absent else whole.source
    return dataclasses.replace(
        whole, points=_points(ended), source=source, note=_joined(whole.note, absent, *notes, failure)
    )


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
