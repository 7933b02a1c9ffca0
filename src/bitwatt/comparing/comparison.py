"""A comparison: everything that can be said of several runs side by side, as plain data that others draw."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from statistics import median
from typing import TYPE_CHECKING, Any

from bitwatt.comparing.audit import Audit, audit
from bitwatt.comparing.changes import AXES, Change, by_axis
from bitwatt.comparing.differing import Difference, differences
from bitwatt.comparing.noisy import Noisy, noisy, within
from bitwatt.comparing.pareto import Axis, Front, front
from bitwatt.comparing.quantities import WHOLE, Where, is_count, metric, name_of, unit_of, value
from bitwatt.comparing.rankings import Ranking, disagreement, rankings
from bitwatt.comparing.sides import Side
from bitwatt.comparing.worth import Quality, Worth, quality, worth
from bitwatt.config import Settings
from bitwatt.errors import BitwattError, UnknownNameError
from bitwatt.fingerprint import fingerprint
from bitwatt.pricing import find_model, totals
from bitwatt.readings import MODELLED
from bitwatt.reports.replay import verdict

if TYPE_CHECKING:
    from bitwatt.comparing.tables import Table

#: Counts that stand in the table of totals, with their titles.
TOTALS = {
    "flops": "FLOPs", "macs": "MACs", "bops": "BOPs", "bytes": "bytes moved", "parameters": "parameters",
    "weight_bytes": "weights", "missing": "calls without a rule",
}  # fmt: skip
MEASURES = {"seconds": "time", "energy": "energy", "peak_memory": "peak memory", "cost": "money"}


class Comparison:
    """Sides against the first of them. Counts are exact integers; what varies from run to run comes with its spread."""

    def __init__(
        self,
        sides: Sequence[Side],
        *,
        cost_model: str | None = None,
        metric: str | None = None,
        lower_is_better: bool | None = None,
        settings: Settings | None = None,
    ) -> None:
        if len(sides) < 2:
            raise BitwattError("a comparison needs two runs or more")
        self.sides, self.settings = tuple(sides), settings or Settings()
        self._model = None if cost_model is None else find_model(cost_model).name
        self._asked, self.metric = metric, metric or self.settings.worth_metric
        self.lower = self.settings.worth_lower_is_better if lower_is_better is None else lower_is_better
        self.front: Front | None = None
        self.audited: Audit | None = None

    @cached_property
    def model(self) -> str:
        """What phases, layers and ops are compared in: as asked, else the first of FLOPs, BOPs, bytes that differs."""
        if self._model is not None:
            return self._model
        models = ("flops", "bops", "bytes")
        return next((name for name in models if any(not c.is_equal for c in self.changes("scope", name))), "flops")

    @cached_property
    def totals(self) -> dict[str, Change]:
        found = {}
        for name, title in TOTALS.items():
            amounts = [value(side.run, name, WHOLE, self.settings).amount for side in self.sides]
            if any(amount is not None for amount in amounts):
                exact = tuple(None if amount is None else int(amount) for amount in amounts)
                found[name] = Change((title,) * len(self.sides), unit_of(name), exact)
        return found

    def changes(self, axis: str, model: str | None = None) -> list[Change]:
        """Counts by phase, scope, op or precision, of every side."""
        if axis not in AXES:
            raise UnknownNameError(f"runs cannot be compared by {axis!r}; choose from {', '.join(AXES)}")
        key = (axis, model or self.model)
        if key not in self._changes:
            self._changes[key] = by_axis(self.sides, *key)
        return self._changes[key]

    @cached_property
    def _changes(self) -> dict[tuple[str, str], list[Change]]:
        return {}

    @cached_property
    def is_equal(self) -> bool:
        """Whether every count of every phase, layer and op is the same under FLOPs, BOPs and bytes."""
        return all(change.is_equal for change in self.totals.values()) and all(
            change.is_equal for axis in AXES for model in ("flops", "bops", "bytes")
            for change in self.changes(axis, model)
        )  # fmt: skip

    @cached_property
    def measures(self) -> dict[str, Noisy]:
        """Time, energy, memory and money of whole runs, where some side knows them."""
        found = {name: noisy(self.sides, name, WHOLE, self.settings, title) for name, title in MEASURES.items()}
        return {name: one for name, one in found.items() if any(one.values)}

    def by_phase(self, name: str) -> list[Noisy]:
        """Seconds or energy of each phase that all sides have, as named."""
        of_runs = [
            side.run.phase_seconds if name == "seconds" else side.run.meter.phases if side.run.meter else {}
            for side in self.sides
        ]
        shared = [phase for phase in of_runs[0] if all(phase in known for known in of_runs)]
        found = [noisy(self.sides, name, _Phase(phase or "other"), self.settings, phase or "other") for phase in shared]
        return [one for one in found if any(one.values)]

    @cached_property
    def differences(self) -> list[Difference]:
        return differences(self.sides)

    @cached_property
    def doubts(self) -> list[str]:
        """What stands between these counts and the truth, side by side."""
        told = []
        for side in self.sides:
            run, coverage = side.run, totals(side.run).coverage
            if run.replay is not None and not run.replay.exact and (said := verdict(run)):
                told.append(f"{side.label}: {said}")
            if coverage.missing:
                told.append(f"{side.label}: sums are lower bounds, {coverage.missing:,} calls have no rule")
            if coverage.estimated:
                told.append(f"{side.label}: {coverage.estimated:,} calls are estimated")
            if run.status != "ok":
                told.append(f"{side.label}: {run.status}")
            told += _apart(side)
        return told

    @cached_property
    def within(self) -> list[str]:
        return within(self.sides)

    @cached_property
    def rankings(self) -> list[Ranking]:
        return rankings(self.sides, self.settings)

    @property
    def disagreement(self) -> str:
        return disagreement(self.rankings)

    @cached_property
    def quality(self) -> Quality | None:
        """None without a metric. One that a file names may be another project's: then no run has it."""
        if self.metric is None or (self._asked is None and not self._is_metric(self.metric)):
            return None
        return quality(self.sides, self.metric, lower=self.lower)

    def _is_metric(self, name: str) -> bool:
        return any(name.partition(":")[0] in run.about.metrics for side in self.sides for run in side.runs)

    @cached_property
    def worth(self) -> list[Worth]:
        return [] if self.quality is None else worth(self.sides, self.quality, self.settings)

    def pareto(self, *axes: str) -> Front:
        """The front over two or three axes: quantities, of which less is better, and metrics, of which more is, unless
        they are written `loss:lower`. A metric is one that the runs noted; `accuracy:max` is its greatest value."""
        made = [self._axis(word) for word in axes]
        values = {
            f"{side.label} {side.name}": {axis.name: self._median(side, axis) for axis in made} for side in self.sides
        }
        noisy = [self.measures[axis.name] for axis in made if axis.name in self.measures]
        notes = (
            ["times, joules and memory are medians; points nearer than their spread are not told apart"]
            if noisy
            else []
        )
        notes += [note for one in noisy for note in one.notes if MODELLED in note]
        self.front = front(made, values, notes)
        return self.front

    def _axis(self, word: str) -> Axis:
        name, direction = word.strip(), ""
        if name.endswith((":lower", ":higher")):
            name, _, direction = name.rpartition(":")
        if self._is_metric(name):
            lower = self.lower if name == self.metric else False
            return Axis(name, "", direction == "lower" if direction else lower)
        try:
            known = name_of(name)
        except UnknownNameError as error:
            raise UnknownNameError(f"{error}; and no run has a metric of that name") from None
        return Axis(known, unit_of(known), direction != "higher")

    def _median(self, side: Side, axis: Axis) -> float | None:
        if self._is_metric(axis.name):
            return _middle([metric(run, axis.name).amount for run in side.runs])
        found = self.measures.get(axis.name)
        if found is not None and len(set(found.hows) - {""}) > 1 and found.hows[self.sides.index(side)] == MODELLED:
            return None  # beside measured ones it has no place
        runs = side.runs[:1] if is_count(axis.name) else side.runs
        return _middle([value(run, axis.name, WHOLE, self.settings).amount for run in runs])

    def audit(self) -> Audit:
        """The first side as teacher, the second as student, by the metric of the comparison."""
        if self.metric is None:
            raise BitwattError("an audit needs the metric that tells quality: metric=, --metric or worth.metric")
        self.audited = audit(self.sides[0], self.sides[1], self.metric, self.settings, lower=self.lower)
        return self.audited

    def tables(self, by: str | None = None) -> list[Table]:
        from bitwatt.comparing.tables import tables

        return tables(self, by)

    def render(
        self, format: str = "text", *, by: str | None = None, width: int | None = None, color: bool = False
    ) -> str:
        from bitwatt.comparing.drawing import render

        return render(self, format, by=by, width=width, color=color)

    def json(self) -> dict[str, Any]:
        from bitwatt.comparing.document import document

        return document(self)

    def __repr__(self) -> str:
        return self.render().rstrip()

    def _repr_html_(self) -> str:
        from bitwatt.comparing.html import fragment

        return fragment(self)


class _Phase(Where):
    """One phase by its whole path: no pattern."""

    def has_phase(self, path: str) -> bool:
        return (path or "other") == self.phase


def _middle(amounts: Sequence[float | None]) -> float | None:
    known = [amount for amount in amounts if amount is not None]
    return float(median(known)) if known else None


def _apart(side: Side) -> list[str]:
    """Repetitions that are none."""
    if len(side.runs) < 2:
        return []
    amounts = {totals(run).total for run in side.runs}
    if len({fingerprint(run).digest for run in side.runs}) > 1:
        return [f"{side.label}: its runs are no repetitions of each other, their matrix work differs"]
    if len(amounts) > 1:
        return [
            f"{side.label}: its runs differ in FLOPs, {min(amounts):,} to {max(amounts):,}; the first one's are shown"
        ]
    return []
