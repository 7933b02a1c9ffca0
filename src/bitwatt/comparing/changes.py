"""Counts of several runs, phase by phase, layer by layer, op by op: exact, with what was renamed, added or removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

from bitwatt.comparing.matching import matched
from bitwatt.comparing.sides import Side
from bitwatt.pricing import totals
from bitwatt.reports.model import NO_LAYER, PHASES
from bitwatt.reports.scopes import folded

AXES = {"phase": "Phases", "scope": "Layers", "op": "Ops", "precision": "Precisions"}


@dataclass(frozen=True, slots=True)
class Change:
    """One amount on every side; None where a side has no such thing. `names` are what each side calls it."""

    names: tuple[str | None, ...]
    unit: str
    amounts: tuple[int | None, ...]
    places: int = 1  # that were folded into it

    @property
    def name(self) -> str:
        """What the first side calls it, and what it became."""
        known = list(dict.fromkeys(name for name in self.names if name is not None))
        return " → ".join(known)

    @property
    def is_equal(self) -> bool:
        """To the last operation, on all sides."""
        return len(set(self.amounts)) == 1

    @property
    def is_renamed(self) -> bool:
        return len({name for name in self.names if name is not None}) > 1

    def difference(self, side: int) -> int | None:
        """Against the first side. What is not there counts as nothing: a layer that is new has added all it does."""
        here, there = self.amounts[0], self.amounts[side]
        return None if here is None and there is None else (there or 0) - (here or 0)

    def ratio(self, side: int) -> float | None:
        here, there = self.amounts[0], self.amounts[side]
        return there / here if here and there is not None else None

    @property
    def largest(self) -> int:
        return max((abs(self.difference(i) or 0) for i in range(1, len(self.amounts))), default=0)


def by_axis(sides: Sequence[Side], axis: str, model: str) -> list[Change]:
    """Every phase, layer, op or precision that some side has. Layers are matched with those of the first side."""
    priced = [totals(side.run, model) for side in sides]
    sums = [cast("dict[str, int]", one.by(axis)) for one in priced]
    if axis == "phase":
        sums = [{name or "other": n for name, n in one.items()} for one in sums]
    rows: dict[str, list[str | None]] = {name: [name, *[None] * (len(sides) - 1)] for name in sums[0]}
    for i, found in enumerate(sums[1:], 1):
        pairs = _pairs(sides[0], sides[i], sums[0], found) if axis == "scope" else {n: n for n in sums[0] if n in found}
        for old, new in pairs.items():
            rows[old][i] = new
        taken = set(pairs.values())
        for name in found:
            if name not in taken:
                rows.setdefault(f"\0{name}", [None] * len(sides))[i] = name
    changes = [
        Change(
            tuple(names),
            priced[0].model.unit,
            tuple(None if name is None else sums[i][name] for i, name in enumerate(names)),
        )
        for names in rows.values()
    ]
    return sorted(changes, key=_place) if axis == "phase" else changes


def _pairs(first: Side, other: Side, before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    return matched(before, after, first.run.layers, other.run.layers)


def _place(change: Change) -> list[tuple[int, str]]:
    path = change.name.split("/")
    return [(PHASES.index(step), "") if step in PHASES else (len(PHASES), step) for step in path]


def shortened(changes: Sequence[Change], limit: int) -> list[Change]:
    """Those that differ, the largest difference first; layers of a list as one (`layers.*`) where they are many."""
    differing = sorted((change for change in changes if not change.is_equal), key=lambda change: -change.largest)
    if len(differing) <= limit:
        return [_named(change) for change in differing]
    by_name = {_key(change): change for change in differing}
    groups = folded({name: change.largest for name, change in by_name.items()}, limit)
    made = [_together(g.name, [by_name[".".join(member)] for member in g.members]) for g in groups]
    made.sort(key=lambda change: -change.largest)
    rest = made[limit:]
    return [*made[:limit], *([_together(f"… {len(rest)} more", rest)] if rest else [])]


def _key(change: Change) -> str:
    return next((name for name in change.names if name is not None), "")


def _named(change: Change) -> Change:
    if "" not in change.names:
        return change
    names = tuple(NO_LAYER if name == "" else name for name in change.names)
    return Change(names, change.unit, change.amounts, change.places)


def _together(name: str, changes: Sequence[Change]) -> Change:
    if len(changes) == 1:
        return _named(changes[0])
    amounts = tuple(
        None if all(change.amounts[i] is None for change in changes) else sum(c.amounts[i] or 0 for c in changes)
        for i in range(len(changes[0].amounts))
    )
    name = name or NO_LAYER
    return Change((name,) * len(amounts), changes[0].unit, amounts, sum(change.places for change in changes))
