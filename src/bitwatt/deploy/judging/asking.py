"""What every scenario answers: to all rows, to unusual ones, and to a few one by one. Asked in a fresh process, so that
a runtime that crashes is a row of the report and not its end."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bitwatt.deploy.given import rows as rows_of
from bitwatt.deploy.measuring import batching, children, together
from bitwatt.deploy.records import Artefact, Case, Scenario

#: Rows predicted at once where all of them are: what fits in memory for any model.
CHUNK = 4096
#: Rows that are also predicted one by one.
ALONE = 16


@dataclass
class Answers:
    outputs: Any = None
    failure: str = ""  # why it has none
    edges: dict[str, Any] = field(default_factory=dict)  # by what is special about a row; the name of what it raises
    together: Any = None  # to the first rows, in one call
    alone: Any = None  # and in one call each
    crashed: str = ""  # on unusual rows


def asked(
    case: Case,
    scenarios: Sequence[Scenario],
    folder: Path | None = None,
    progress: together.Progress | None = None,
    timeout_s: float = children.HANGS_S,
) -> dict[str, Answers]:
    """Of those that were built, by name."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="bitwatt-answers-") as scratch:
            return asked(case, scenarios, Path(scratch), progress, timeout_s)
    artefacts = {one.name: one.artefact for one in scenarios if one.artefact is not None}
    rows = batching.save(case.inputs, folder / "asked.pickle")
    results, failures = together.ask(
        "bitwatt.deploy.judging.asking:answer", artefacts, folder, rows=str(rows), answers=str(folder),
        progress=progress, timeout_s=timeout_s,
    )  # fmt: skip
    found: dict[str, Answers] = {}
    for name in artefacts:
        one = found[name] = Answers()
        for result in results[name]:
            with Path(result["file"]).open("rb") as file:  # of our own child, in our own folder
                vars(one).update(pickle.load(file))
        if name in failures:
            if one.outputs is None:
                one.failure = failures[name]
            else:
                one.crashed = failures[name]
    return found


def answer(artefact: Artefact, job: dict[str, Any], tell: Any) -> None:
    """In the child."""
    import numpy as np

    from bitwatt.deploy import runtimes
    from bitwatt.deploy.judging import edges

    inputs = batching.load(job["rows"])
    loaded = runtimes.load(artefact, job["threads"])
    place = Path(job["answers"])

    def keep(part: str, **held: Any) -> None:
        path = place / f"{artefact.scenario}.{part}.pickle"
        path.write_bytes(pickle.dumps(held, protocol=pickle.HIGHEST_PROTOCOL))
        tell.result({"file": str(path)})

    tell.at("on the rows given")
    keep("rows", outputs=outcome(loaded, inputs))
    answers = {}
    for edge, given in edges.rows(inputs):
        tell.at(f"on {edge}")
        answers[edge] = _answered(loaded, given)
    tell.at("row by row")
    few = rows_of.take(inputs, slice(0, ALONE))
    each = [loaded.predict(rows_of.take(few, slice(at, at + 1))) for at in range(rows_of.count(few))]
    keep("edges", edges=answers, together=np.asarray(loaded.predict(few)), alone=np.concatenate(each))


def outcome(loaded: Any, rows: Any) -> Any:
    """What it says of all rows."""
    import numpy as np

    total = rows_of.count(rows)
    parts = [loaded.predict(rows_of.take(rows, slice(at, min(at + CHUNK, total)))) for at in range(0, total, CHUNK)]
    return np.concatenate([np.asarray(part) for part in parts])


def _answered(loaded: Any, given: Any) -> Any:
    """What it says, or the name of what it raises."""
    import numpy as np

    try:
        with np.errstate(all="ignore"):
            return np.asarray(loaded.predict(given))
    except Exception as error:  # refusing is an answer here, whatever it is called
        return type(error).__name__
