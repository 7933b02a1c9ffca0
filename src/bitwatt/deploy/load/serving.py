"""The serving process: loads an artefact afresh, and puts load on it from threads of its own. LoadGen's comes last:
it is not ours, and may end the process."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from bitwatt.deploy import documents
from bitwatt.deploy.load import programme
from bitwatt.deploy.load.bench import Bench
from bitwatt.deploy.load.local import Local
from bitwatt.deploy.load.settings import Settings
from bitwatt.deploy.measuring import batching, children
from bitwatt.deploy.measuring.worker import limit_torch
from bitwatt.deploy.records import Load, LoadPoint
from bitwatt.deploy.runtimes import load as ready
from bitwatt.errors import BitwattError


def serve(job: dict[str, Any], tell: children.Tell) -> None:
    """The task of the child. Hands back each point as it is found, then the whole without its points."""
    settings = documents.of_json(Settings, job["settings"])
    expected = len(settings.callers) + (len(settings.rates) or 2) + (10 if settings.slo else 0) + settings.overload
    target = loaded(job, tell, settings)
    done = 0

    def found(point: LoadPoint) -> None:
        nonlocal done
        done += 1
        tell.at(job["artefact"]["scenario"], "under load", (0.6 if job["mlperf"] else 1.0) * min(0.95, done / expected))
        tell.result({"point": documents.as_json(point)})

    whole = programme.run(Bench(target, settings, found), settings)
    tell.result({"load": documents.as_json(dataclasses.replace(whole, points=()))})
    _leave(whole)
    if job["mlperf"] and whole.capacity:
        from bitwatt.deploy.load import loadgen

        loadgen.measure(job, tell, settings, target.predict, whole)


def loaded(job: dict[str, Any], tell: children.Tell, settings: Settings) -> Local:
    artefact = children.unpacked(job["artefact"])
    if job["allowed"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, job["allowed"])  # several callers need more than the cores that one call is timed on
    tell.at(artefact.scenario, "while it was loaded")
    model = ready(artefact, job["threads"])
    limit_torch(job["threads"])
    target = Local(model, inputs(job), settings.rows, limit_s=settings.limit_s)
    tell.at(artefact.scenario, "in its first calls")
    if error := target.warm():
        raise BitwattError(f"it could not be asked: {error}")
    tell.at(artefact.scenario, "under load")
    return target


def inputs(job: dict[str, Any]) -> Any:
    """The rows; as arrays where the runtime would not bring torch along."""
    return batching.load(job["rows"], tensors="torch" in job["artefact"]["imports"])


def _leave(whole: Load) -> None:
    """Threads that are stuck inside a library would keep the interpreter from ending, or crash it as it ends."""
    if any("never came back" in point.note for point in whole.points):
        os._exit(0)
