"""Times, joules and memory of several runs: medians, ratios with an interval, and what may not be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bitwatt.comparing.quantities import Value, Where, value
from bitwatt.comparing.sides import Side
from bitwatt.comparing.spread import LEAST, Ratio, interval, ratio
from bitwatt.config import Settings
from bitwatt.readings import APPORTIONED, MODELLED
from bitwatt.records import Run

#: A phase that was entered this often in a run tells how its entries vary.
ENTRIES = 5


@dataclass(frozen=True, slots=True)
class Noisy:
    """One quantity on every side, each value of each run. `ratios` are against the first side."""

    name: str
    unit: str
    values: tuple[tuple[float, ...], ...]
    hows: tuple[str, ...]
    ratios: tuple[Ratio | None, ...]
    notes: tuple[str, ...] = ()

    @property
    def medians(self) -> tuple[float | None, ...]:
        return tuple(median(known) if known else None for known in self.values)

    @property
    def intervals(self) -> tuple[tuple[float, float] | None, ...]:
        return tuple(interval(known) for known in self.values)

    def spread(self, side: int) -> str:
        """What is known of the spread of this side's ratio, in words."""
        found = self.ratios[side]
        if found is None:
            return ""
        if found.is_known:
            return f"{found.low:.3g} to {found.high:.3g} (95 %, n {found.n[0]} and {found.n[1]})"
        if found.n == (1, 1):
            return "one run each: no spread known"
        return f"n {found.n[0]} and {found.n[1]}: too few for an interval"


def noisy(sides: Sequence[Side], name: str, where: Where, settings: Settings, title: str = "") -> Noisy:
    found = [[value(run, name, where, settings) for run in side.runs] for side in sides]
    known = [[one for one in values if one.amount is not None] for values in found]
    hows = tuple(_how(values) for values in known)
    values = tuple(tuple(float(one.amount or 0) for one in kept) for kept in known)
    notes = _notes(title or name, sides, found, known, hows)
    alike = [_alike(hows[0], how) for how in hows]
    ratios = tuple(ratio(values[0], kept) if i and alike[i] else None for i, kept in enumerate(values))
    units = [one.unit for kept in known for one in kept]
    return Noisy(title or name, units[0] if units else "", values, hows, ratios, notes)


def _how(values: Sequence[Value]) -> str:
    hows = {one.how for one in values}
    return "" if not hows else hows.pop() if len(hows) == 1 else MODELLED if MODELLED in hows else APPORTIONED


def _alike(here: str, there: str) -> bool:
    """A model's joules over an instrument's say nothing."""
    return bool(here and there) and (here == MODELLED) == (there == MODELLED)


def _notes(
    name: str, sides: Sequence[Side], found: list[list[Value]], known: list[list[Value]], hows: tuple[str, ...]
) -> tuple[str, ...]:
    notes = []
    if any(known) and not all(known):
        for side, values, kept in zip(sides, found, known, strict=True):
            if not kept:
                notes.append(f"{name} of {side.label} is not known: {values[0].because}")
    if MODELLED in hows and set(hows) - {MODELLED, ""}:
        labels = [side.label for side, how in zip(sides, hows, strict=True) if how == MODELLED]
        notes.append(f"{name} of {', '.join(labels)} is modelled and that of others measured: no ratio is taken")
    elif MODELLED in hows:
        notes.append(f"{name} is modelled, not measured")
    about = [", ".join(sorted({one.about for one in kept if one.about})) for kept in known]
    if len({told for told in about if told}) > 1:
        told = "; ".join(f"{side.label} {text}" for side, text in zip(sides, about, strict=True) if text)
        notes.append(f"{name} covers different things: {told}")
    for side, values, kept in zip(sides, found, known, strict=True):
        if kept and len(kept) < len(values):
            notes.append(f"{name} of {side.label} is known of {len(kept)} of {len(values)} runs")
    return tuple(notes)


def within(sides: Sequence[Side]) -> list[str]:
    """What single runs tell of their own spread: entries of a phase, power over time. It is not the spread from run to
    run, and is named as what it is."""
    first, told = sides[0].run, []
    if any(len(side.runs) >= LEAST for side in sides):
        return []
    for side in sides[1:]:
        here, there = _entries(first), _entries(side.run)
        for phase in (phase for phase in here if phase in there):
            found = ratio(here[phase], there[phase])
            if found is not None and found.is_known:
                told.append(
                    f"within the runs, one entry of phase {phase}: {side.label} / {sides[0].label} "
                    f"{found.value:.3g}× (95 % interval {found.low:.3g} to {found.high:.3g}; {found.n[0]} and "
                    f"{found.n[1]} entries). What differs from run to run is not in it"
                )
                break
    for side in sides:
        told += _power(side)
    return told


def _entries(run: Run) -> dict[str, list[float]]:
    """Phase -> seconds of each entry, where there were several; the one that took longest in all first."""
    found: dict[str, list[float]] = {}
    for span in run.observed.spans if run.observed is not None else ():
        found.setdefault(span.phase, []).append(span.seconds)
    often = {phase: seconds for phase, seconds in found.items() if len(seconds) >= ENTRIES}
    return dict(sorted(often.items(), key=lambda item: -sum(item[1])))


def _power(side: Side) -> list[str]:
    meter = side.run.meter
    series = meter.series if meter is not None and len(side.runs) == 1 else {}
    told = []
    for device, points in series.items():
        watts = sorted(point for _, point in points)
        if len(watts) >= 2 * ENTRIES:
            low, high = watts[len(watts) // 10], watts[-1 - len(watts) // 10]
            told.append(
                f"within run {side.label}, {device} drew {low:.3g} to {high:.3g} W "
                f"(10th to 90th percentile of {len(watts)} readings)"
            )
    return told
