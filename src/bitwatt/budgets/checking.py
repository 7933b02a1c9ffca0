"""Holds runs against a budget. Counts gate hard; time and energy only where repeated runs tell of their spread."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from bitwatt.budgets.limits import Limit, exactly, is_hard
from bitwatt.budgets.reading import Budget
from bitwatt.comparing.differing import HARDWARE
from bitwatt.comparing.quantities import Value, is_count, places, value
from bitwatt.comparing.spread import interval, ratio
from bitwatt.config import Settings
from bitwatt.errors import SettingsError
from bitwatt.pricing import totals
from bitwatt.readings import MODELLED
from bitwatt.records import Run

KEPT, EXCEEDED, UNDECIDED, UNGATED = "kept", "exceeded", "undecided", "not gated"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one limit. `amount` and `before` (the baseline's) are counts, or medians of `n` runs."""

    limit: Limit
    status: str
    amount: int | float | None = None
    at_most: Fraction | None = None
    before: int | float | None = None
    why: str = ""
    n: int = 1
    spread: tuple[float, float] | None = None

    @property
    def fails(self) -> bool:
        return self.status == EXCEEDED


@dataclass(frozen=True, slots=True)
class _Case:
    """One limit, the runs of both sides, and what they amount to; `before` is empty where no baseline is asked for."""

    limit: Limit
    runs: Sequence[Run]
    baseline: Sequence[Run]
    found: Sequence[Value]
    before: Sequence[Value]

    @property
    def values(self) -> tuple[Value, ...]:
        return (*self.found, *self.before)


def check(
    budget: Budget, runs: Sequence[Run], baseline: Sequence[Run] = (), settings: Settings | None = None
) -> list[Outcome]:
    """`runs` and `baseline` are each one run and its repetitions. A limit for a place that no run has is a mistake in
    the budget, not a limit that is kept."""
    if not baseline and (relative := [limit.name for limit in budget.limits if limit.is_relative]):
        raise SettingsError(
            f"{', '.join(relative)}: a limit against a baseline needs one: bitwatt baseline set RUN, "
            '--baseline RUN, or baseline = "name" in the budget'
        )
    _check_places(budget, [*runs, *baseline])
    return [_outcome(limit, budget, runs, baseline, settings or Settings()) for limit in budget.limits]


def _check_places(budget: Budget, runs: Sequence[Run]) -> None:
    phases, layers = places(runs)
    for limit in budget.limits:
        for kind, name, known, has in (
            ("phase", limit.where.phase, phases, limit.where.has_phase),
            ("layer", limit.where.layer, layers, limit.where.has_layer),
        ):
            if name and not any(has(one) for one in known):
                close = difflib.get_close_matches(name, known, 1, 0.5)
                meant = (
                    f"did you mean {close[0]!r}?"
                    if close
                    else f"there are {', '.join(known[:8])}"
                    if known
                    else "it has none"
                )
                raise SettingsError(f"{budget.source}: the run has no {kind} {name!r}; {meant}")


def _outcome(limit: Limit, budget: Budget, runs: Sequence[Run], baseline: Sequence[Run], settings: Settings) -> Outcome:
    found = [value(run, limit.quantity, limit.where, settings) for run in runs]
    before = [value(run, limit.quantity, limit.where, settings) for run in baseline] if limit.is_relative else []
    case = _Case(limit, runs, baseline, found, before)
    return _hard(case) if is_hard(limit.quantity) else _noisy(case, budget.repetitions)


def _hard(case: _Case) -> Outcome:
    """The largest of the runs; of a baseline's, too."""
    limit, known, reference = case.limit, _known(case.found), _known(case.before)
    if not known or (limit.is_relative and not reference):
        why = next(one.because for one in case.values if one.amount is None)
        if not is_count(limit.quantity):
            return Outcome(limit, UNGATED, why=f"not gated: {why}")
        return Outcome(limit, EXCEEDED, why=f"not known: {why}")
    amount = max(known)
    at_most = limit.at_most(max(reference, default=0))
    if limit.is_relative and any(one.is_least for one in case.before):
        why = "not gated: the baseline's is at least that: children of the process were looked at now and then"
        return Outcome(limit, UNGATED, amount, at_most, max(reference), why, len(known))
    status = KEPT if exactly(amount) <= at_most else EXCEEDED
    return Outcome(limit, status, amount, at_most, max(reference, default=None), "; ".join(_beware(case)), len(known))


def _beware(case: _Case) -> list[str]:
    told, quantity = [], case.limit.quantity
    if len({one.amount for one in case.found}) > 1:
        told.append(f"the largest of {len(case.found)} runs")
    if any(one.is_least for one in case.found):
        told.append("at least: children of the process were looked at now and then")
    if is_count(quantity) and quantity not in ("parameters", "weight_bytes", "missing", "calls"):
        missing = max(totals(run, quantity).coverage.missing for run in case.runs)
        if missing:
            told.append(f"at least: {missing:,} calls have no rule")
        if any(run.replay is not None and run.replay.interval for run in case.runs):
            told.append("what varies was sampled")
    return told


def _noisy(case: _Case, repetitions: int) -> Outcome:
    limit = case.limit
    known, reference = [float(one) for one in _known(case.found)], [float(one) for one in _known(case.before)]
    amount = median(known) if known else None
    old = median(reference) if reference else None
    at_most = limit.at_most(old or 0) if old is not None or not limit.is_relative else None
    if why := _ungated(case, repetitions):
        return Outcome(limit, UNGATED, amount, at_most, old, why, len(known))
    bar = float(at_most or 0)
    if not limit.is_relative:
        spread = interval(known)
    else:
        over = ratio(reference, known)
        spread = (
            None
            if over is None or over.low is None or over.high is None
            else (over.low * (old or 0), over.high * (old or 0))
        )
    if spread is None:
        return Outcome(limit, UNGATED, amount, at_most, old, "not gated: no interval could be found", len(known))
    status = EXCEEDED if spread[0] > bar else KEPT if spread[1] <= bar else UNDECIDED
    why = "the limit lies inside the interval" if status == UNDECIDED else ""
    return Outcome(limit, status, amount, at_most, old, why, len(known), spread)


def _ungated(case: _Case, repetitions: int) -> str:
    """Why a noisy number says nothing yet."""
    for one in case.values:
        if one.amount is None:
            return f"not gated: {one.because}"
    if any(one.how == MODELLED for one in case.values):
        return "not gated: modelled, not measured"
    if case.limit.is_relative:
        for name in HARDWARE:
            here, there = (side[0].machine.facts.get(name) for side in (case.runs, case.baseline))
            if name not in ("os", "kernel") and here != there:
                return f"not gated: the baseline is of another machine ({name} {there or '?'}, here {here or '?'})"
    for side, words in ((case.found, ""), (case.before if case.limit.is_relative else case.found, " of the baseline")):
        if len(side) < repetitions:
            many = "one run" if len(side) == 1 else f"{len(side)} runs"
            return f"not gated: {many}{words}, {repetitions} repetitions are needed"
    return ""


def _known(values: Sequence[Value]) -> list[int | float]:
    return [one.amount for one in values if one.amount is not None]
