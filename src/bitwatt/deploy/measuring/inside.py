"""What is inside each scenario: what a prediction computes, and where its time goes. Each is asked in one fresh process
for all of them. Counts need no quiet machine and are there first, so that a study that is cut short has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bitwatt.deploy import documents
from bitwatt.deploy.measuring import batching, children, counts, together
from bitwatt.deploy.records import Artefact, Breakdown, Counts, Plan


def counted(
    artefacts: Mapping[str, Artefact],
    rows: Path,
    plan: Plan,
    folder: Path,
    *,
    framework: str = "sklearn",
    native: str = "",
    progress: together.Progress | None = None,
) -> tuple[dict[str, dict[int, Counts]], dict[str, str]]:
    """By scenario and batch size; and of those that died, why."""
    packed = children.packed(artefacts[native]) if native in artefacts else None
    results, failures = together.ask(
        "bitwatt.deploy.measuring.inside:count", artefacts, folder, threads=plan.threads[0], rows=str(rows),
        batches=list(plan.batches), framework=framework, native=packed, progress=progress,
    )  # fmt: skip
    found: dict[str, dict[int, Counts]] = {}
    for name in artefacts:
        lost = Counts(source=f"not counted: {failures.get(name) or 'the process said nothing'}")
        read = [documents.of_json(Counts, one) for result in results[name] for one in result["counts"]]
        found[name] = dict(zip(plan.batches, read or [lost] * len(plan.batches), strict=True))
    return found, failures


def count(artefact: Artefact, job: dict[str, Any], tell: Any) -> None:
    """In the child."""
    inputs = batching.load(job["rows"], tensors="torch" in artefact.imports)
    tell.at("while its operations were counted")
    native = None if job["native"] is None else children.unpacked(job["native"])
    tell.result({"counts": counts.each(artefact, inputs, job["batches"], job["framework"], native)})


def taken_apart(
    artefacts: Mapping[str, Artefact],
    rows: Path,
    plan: Plan,
    folder: Path,
    *,
    progress: together.Progress | None = None,
) -> tuple[dict[str, dict[int, Breakdown]], dict[str, str]]:
    """By scenario and batch size; and of those that died, why."""
    results, failures = together.ask(
        "bitwatt.deploy.measuring.inside:take_apart", artefacts, folder, threads=plan.threads[0], rows=str(rows),
        batches=list(plan.batches), seconds=plan.part_s, progress=progress,
    )  # fmt: skip
    split: dict[str, dict[int, Breakdown]] = {}
    for name in artefacts:
        parts = [documents.of_json(Breakdown, one["breakdown"]) for one in results[name]]
        known = {one.batch: one for one in parts}
        why = f"not broken down: {failures.get(name) or 'the process said nothing'}"
        split[name] = {batch: known.get(batch) or Breakdown(batch, (), note=why) for batch in plan.batches}
    return split, failures


def take_apart(artefact: Artefact, job: dict[str, Any], tell: Any) -> None:
    """In the child."""
    from bitwatt.deploy import breakdown

    inputs = batching.load(job["rows"], tensors="torch" in artefact.imports)
    tell.at("while its parts were timed")
    for found in breakdown.here(artefact, inputs, job["batches"], job["threads"], job["seconds"]):
        tell.result({"breakdown": documents.as_json(found)})
        tell.at(f"while its parts were timed, after batch {found.batch}")
