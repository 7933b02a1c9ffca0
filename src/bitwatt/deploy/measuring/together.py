"""Something asked of every scenario, one after another in one fresh process: its library is imported once for all, and
one that dies there costs itself alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bitwatt.deploy.measuring import children
from bitwatt.deploy.records import Artefact

#: done, of, and of which scenario.
Progress = Callable[[float, float, str], None]


def ask(
    what: str,
    artefacts: Mapping[str, Artefact],
    folder: Path,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    timeout_s: float = children.HANGS_S,
    **job: Any,
) -> tuple[dict[str, list[dict[str, Any]]], dict[str, str]]:
    """`what` names a function ("package.module:function") of an artefact, the job and `tell`, which hands back what it
    finds. By scenario: all that was handed back, and of those that failed or died, why."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in artefacts}
    failures: dict[str, str] = {}
    left = list(artefacts)
    while left:
        packed = {name: children.packed(artefacts[name]) for name in left}
        tick = _tick(progress, len(artefacts) - len(left), len(left), len(artefacts))
        ended = children.run(
            {"task": "bitwatt.deploy.measuring.together:each", "what": what, "artefacts": packed, **job}, folder,
            threads=threads, timeout_s=timeout_s, tick=tick,
        )  # fmt: skip
        done = []
        for result in ended.results:
            name = result.pop("scenario")
            if result.get("done"):
                done.append(name)
                if result["failure"]:
                    failures[name] = result["failure"]
            else:
                found[name].append(result)
        if not ended.failure:
            break
        lost = ended.at if ended.at in left and ended.at not in done else ""
        failures |= {name: ended.failure for name in left if name == lost or (not lost and name not in done)}
        left = [name for name in left if name not in done and name not in failures]
    return found, failures


def each(job: dict[str, Any], tell: children.Tell) -> None:
    """The task of the child."""
    function: Any = children.task(job["what"])
    for at, (name, packed) in enumerate(job["artefacts"].items()):
        tell.at(name, "while it was loaded", at / len(job["artefacts"]))
        failure = ""
        try:
            function(children.unpacked(packed), job, _Named(tell, name, at / len(job["artefacts"])))
        except Exception as error:  # of the runtime: a row of the report
            lines = str(error).strip().splitlines() or [""]
            failure = f"{type(error).__name__}: {lines[0]}".rstrip(": ")
        tell.result({"scenario": name, "done": True, "failure": failure})


class _Named:
    """`Tell` for one scenario."""

    def __init__(self, tell: children.Tell, name: str, done: float) -> None:
        self._tell, self._name, self._done = tell, name, done

    def at(self, doing: str) -> None:
        self._tell.at(self._name, doing, self._done)

    def result(self, found: Mapping[str, Any]) -> None:
        self._tell.result({"scenario": self._name, **found})


def _tick(progress: Progress | None, before: int, left: int, of: int) -> Callable[[float], None]:
    def tell(share: float) -> None:
        if progress is not None:
            progress(before + share * left, of, "")

    return tell
