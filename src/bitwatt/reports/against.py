"""A run beside another of the same task, or the median of several, on the three axes, with the rule."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bitwatt.impact.money import ACCELERATORS
from bitwatt.impact.verdict import Point, middle, place
from bitwatt.pricing import totals
from bitwatt.reports.blocks import Block
from bitwatt.reports.energy import joules
from bitwatt.reports.points import Placed, placed
from bitwatt.units import format_count

if TYPE_CHECKING:
    from bitwatt.records import Run
    from bitwatt.reports.model import View


def block(view: View) -> Block | None:
    if not view.against:
        return None
    own, others = _placed(view, view.run), [_placed(view, run) for run in view.against]
    kinds, remark = _compared([one for one in (own, *others) if one.kinds])
    here, there = own.of(kinds), [one.of(kinds) for one in others]
    reference = there[0].point if len(there) == 1 else middle(one.point for one in there)
    assert reference is not None
    found = place(here.point, reference)
    facts = [("this run", _told(here.point, [here])), (reference.name, _told(reference, there)), ("rule", found.rule)]
    if remark:
        facts.insert(2, ("energy", remark))
    document: dict[str, Any] = {
        "words": found.words,
        "rule": found.rule,
        "ratios": dict(found.ratios),
        "run": asdict(here.point),
        "reference": asdict(reference),
        "runs": [run.id for run in view.against],
        "energy_of": sorted(kinds),
    }
    return Block("against", "Against", f"{reference.name}: {found.words}", tuple(facts), document)


def _compared(runs: list[Placed]) -> tuple[set[str], str]:
    """Kinds of devices whose energy is held against each other: those that all runs on such machines measured; where
    some used accelerators and others none, all that did the work."""
    every = {kind for one in runs for kind in one.kinds}
    if len({bool(ACCELERATORS & set(one.kinds)) for one in runs}) > 1:
        return every, "some with accelerators, others without: all that was measured of each"
    common = set.intersection(*(set(one.kinds) for one in runs)) if runs else set()
    if common == every:
        return common, ""
    both, rest = (", ".join(sorted(kinds)) for kinds in (common, every - common))
    return common, f"of {both or 'nothing'}, which was measured in all; without {rest}"


def _placed(view: View, run: Run) -> Placed:
    own = run is view.run
    flops, bops = (view.priced[model] if own else totals(run, model) for model in ("flops", "bops"))
    name = f"{run.name} ({run.id})" if run.name else run.id
    return placed(
        run.meter, view.settings, run.started, flops=flops.total, bops=bops.total, name=name,
        missing=flops.coverage.missing, facts=run.machine.facts,
    )  # fmt: skip


def _told(point: Point, runs: list[Placed]) -> str:
    least = "≥ " if any(one.missing for one in runs) else ""
    work = [f"{least}{format_count(n, unit)}" for n, unit in ((point.flops, "FLOP"), (point.bops, "BOP"))]
    mark = "modelled " if any(one.is_modelled for one in runs) else ""
    return " · ".join([*work, "energy unknown" if point.energy_j is None else f"{mark}{joules(point.energy_j)}"])
