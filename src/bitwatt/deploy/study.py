"""All that is to be found out about the ways to deploy a case, in one go: `measure`.

Counts are cheap and come first, so that a study that is cut short has them; then what needs a quiet machine, in
processes of its own: a model that dies there is not asked again in this one. Load, which makes the machine loud, comes
last. Each part costs its own cells where it fails.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bitwatt.deploy.measuring import batching, surroundings
from bitwatt.deploy.measuring.parts import Parts
from bitwatt.deploy.measuring.timing import Progress, Timed
from bitwatt.deploy.records import CONTROL, Artefact, Call, Case, Checked, Joules, Plan, Scenario, Study

SoFar = Callable[[Study, list[Call]], None]


def measure(
    case: Case,
    scenarios: Sequence[Scenario] | None = None,
    plan: Plan | None = None,
    folder: Path | str | None = None,
    progress: Progress | None = None,
    so_far: SoFar | None = None,
) -> tuple[Study, list[Call]]:
    """Without `scenarios` they are built in `folder`, which is a temporary one unless told. `progress` gets how much is
    done, of how much, in what should be about seconds, and what is being done; `so_far` what was found until then,
    after every process that timed, every scenario whose energy was read, and every part from timing on."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="bitwatt-deploy-") as scratch:
            return measure(case, scenarios, plan, scratch, progress, so_far)
    from bitwatt.deploy.given import loading
    from bitwatt.deploy.making import building
    from bitwatt.deploy.measuring import versions

    plan, place, began = plan or Plan(), Path(folder), surroundings.look()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    parts = Parts(_seconds(plan, 6 if scenarios is None else len(scenarios), case.framework), progress)
    if scenarios is None:
        parts.begin("building")
        scenarios = building.build_all(case, place / "built", plan.scenarios, parts.tell)
    found = Measuring(case, scenarios, plan, place / "work", parts)
    parts.guess(_seconds(plan, len(found.sound), case.framework, "torch-compile" in found.artefacts))

    def study() -> Study:
        around, said = surroundings.between(began, found.timed)
        machine: dict[str, str] = {}
        with parts.apart("describing the machine"):
            machine = versions.machine()
        return Study(
            case=loading.described(case), machine=machine, versions=versions.of(found.rows), plan=plan,
            scenarios=tuple(found.rows), started=started, seconds=time.monotonic() - began.at_s, surroundings=around,
            data=tuple(found.data), notes=(*case.notes, *said, *parts.notes), calls=len(found.calls),
        )  # fmt: skip

    if so_far is not None:
        found.keep = lambda: so_far(study(), found.calls)
    try:
        found.measure()
    except KeyboardInterrupt as stop:
        if not found.calls:
            raise
        parts.notes.append(f"interrupted during {parts.name}: what comes after it was not measured")
        raise InterruptedStudy(study(), found.calls, parts.name, stop) from stop
    whole = study()
    parts.tell(1.0, 1.0, "done")
    return whole, found.calls


class InterruptedStudy(KeyboardInterrupt):
    """Ended by its user, with what was measured until then."""

    def __init__(self, study: Study, calls: list[Call], during: str, stop: KeyboardInterrupt) -> None:
        super().__init__(f"interrupted during {during}")
        self.study, self.calls, self.during, self.stop = study, calls, during, stop


class Measuring:
    """The rows as they fill, part by part."""

    def __init__(self, case: Case, rows: Sequence[Scenario], plan: Plan, work: Path, parts: Parts) -> None:
        self.case, self.rows, self.plan, self.work, self.parts = case, list(rows), plan, work, parts
        self.times = Timed()
        self.calls: list[Call] = []
        self.data: list[Checked] = []
        self.uncounted: dict[str, str] = {}  # and why
        self.timed = surroundings.look()  # when timing ended: what comes later makes the machine busy itself
        self.keep: Callable[[], None] = lambda: None
        work.mkdir(parents=True, exist_ok=True)
        self.file = batching.save(case.inputs, work / "rows.pickle")

    def measure(self) -> None:
        todo: dict[str, Callable[[], None]] = {
            "counting": self._counts, "timing": self._timing, "memory and cold start": self._footprint,
            "energy": self._joules, "quality": self._quality, "where the time goes": self._inside,
        }  # fmt: skip
        if self.plan.loaded:
            todo["load"] = self._load
        for name, part in todo.items():
            self.parts.begin(name)
            with self.parts.apart(name):
                part()
            if name != "counting":  # alone, counts compare nothing
                self.keep()

    @property
    def sound(self) -> list[Scenario]:
        """Those that can be asked in this process, too."""
        return [row for row in self.rows if row.artefact is not None and not row.failure]

    @property
    def artefacts(self) -> dict[str, Artefact]:
        return {row.name: row.artefact for row in self.sound if row.artefact is not None}

    @property
    def baseline(self) -> str:
        """What is timed twice: the native one, or the first there is."""
        names = [row.name for row in sorted(self.rows, key=lambda row: row.baseline != "native")]
        return next((name for name in names if name in self.artefacts), "")

    def _quality(self) -> None:
        from bitwatt.deploy.judging import asking, drifting, edges, quality

        self.data = drifting.checks(self.case)
        asked = self.sound
        answers = asking.asked(self.case, asked, self.work, self.parts.tell)
        judged = {row.name: row for row in quality.judged(self.case, asked, answers)}
        self.rows = [judged.get(row.name, row) for row in self.rows]
        # One that was timed on some rows may fail on others.
        failed = {row.name for row in self.rows if row.failure}
        self.calls = [call for call in self.calls if call.scenario.removesuffix(CONTROL) not in failed]
        self._fill("edges", edges.checked(self.case, self.sound, answers))

    def _timing(self) -> None:
        from bitwatt.deploy.measuring import timing
        from bitwatt.deploy.statistics import steady

        found, known = self.times, 0

        def tell(done: float, of: float, what: str) -> None:
            nonlocal known
            self.parts.tell(done, of, what)
            if len(found.calls) > known:  # a process has ended
                known = len(found.calls)
                self.calls = steady.marked(found.calls)[0]
                self.keep()

        try:
            timing.timed(
                self.artefacts, self.file, self.plan, self.work, baseline=self.baseline, progress=tell, found=found
            )
        finally:
            self.calls, self.timed = found.calls, surroundings.look()
            self.parts.notes += found.notes
        # What dies, hangs or cannot be loaded cannot be deployed.
        self.rows = [replace(row, failure=found.failures.get(row.name, row.failure)) for row in self.rows]

    def _footprint(self) -> None:
        from bitwatt.deploy.measuring import footprint

        found, failures = footprint.footprints(
            self.artefacts, self.file, self.plan, self.work, progress=self.parts.tell
        )
        self._fill("footprint", found)
        self.parts.notes += [f"memory and cold start of {name} are not known: {why}" for name, why in failures.items()]

    def _joules(self) -> None:
        from bitwatt.deploy.measuring import joules

        found: dict[str, dict[str, Joules]] = {}

        def tell(done: float, of: float, what: str) -> None:
            self.parts.tell(done, of, what)
            self._fill("joules", found)
            self.keep()

        try:
            self.parts.notes += joules.joules(
                self.artefacts, self.calls, self.file, self.plan, self.work, found, progress=tell
            )
        finally:
            self._fill("joules", found)

    def _counts(self) -> None:
        from bitwatt.deploy.measuring import inside

        found, self.uncounted = inside.counted(
            self.artefacts, self.file, self.plan, self.work, framework=self.case.framework, native=self.baseline,
            progress=self.parts.tell,
        )  # fmt: skip
        self._fill("counts", found)

    def _inside(self) -> None:
        from bitwatt.deploy.measuring import inside

        split, failures = inside.taken_apart(self.artefacts, self.file, self.plan, self.work, progress=self.parts.tell)
        self._fill("breakdown", split)
        lost = {name: why for name, why in self.uncounted.items() if name in split} | failures
        self.parts.notes += [f"{name} could not be looked into: {why}" for name, why in lost.items()]

    def _load(self) -> None:
        from bitwatt.deploy import load

        self._each("load", lambda one, tell: load.put(one, self.plan, self.file, progress=tell))

    def _each(self, field: str, find: Callable[[Artefact, Progress], Any]) -> None:
        """A field of each scenario; one that fails costs no other."""
        artefacts = self.artefacts
        for done, (name, artefact) in enumerate(artefacts.items()):

            def tell(part: float, of: float, _: str, done: int = done, name: str = name) -> None:
                self.parts.tell(done + min(part / of, 1.0) if of else done, len(artefacts), f"{field} of {name}")

            tell(0.0, 1.0, "")
            with self.parts.apart(f"{field} of {name}"):
                self._fill(field, {name: find(artefact, tell)})

    def _fill(self, field: str, found: Mapping[str, Any]) -> None:
        self.rows = [replace(row, **{field: found[row.name]}) if row.name in found else row for row in self.rows]


def _seconds(plan: Plan, scenarios: int, framework: str, compiles: bool = False) -> dict[str, float]:
    """Guesses, for the bar: most of a short study goes into importing libraries."""
    batches = len(plan.batches)
    cell = min(plan.cell_s, plan.blocks * (scenarios + 1) * plan.block_ms * 1.5e-3)
    start, compiling = (2.5, 6.0 if compiles else 0.0) if framework == "torch" else (1.8, 0.0)
    process = start + compiling
    return {
        "building": (5.0 if framework == "torch" else 1.0) * scenarios,
        "counting": process + 0.5 * scenarios,
        "timing": plan.processes * len(plan.threads) * (process + batches * cell),
        "memory and cold start": plan.fresh * (compiling + scenarios * (0.7 * start + 0.1 * batches)),
        "energy": 0.2,
        "quality": process + 0.2 * scenarios,
        "where the time goes": process + scenarios * (0.5 + 1.2 * plan.part_s * batches),
        "load": scenarios * (start + ((25 if plan.slo else 10) + 5 * plan.mlperf) * plan.load_seconds) + compiling
        if plan.loaded
        else 0.0,
    }
