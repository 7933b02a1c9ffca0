"""What a comparison says in sentences: what changed, what to beware of, and what stands behind the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bitwatt.comparing.changes import Change
from bitwatt.comparing.spread import LEAST
from bitwatt.comparing.tables import MANY, change_of
from bitwatt.records import Replay
from bitwatt.units import format_count

if TYPE_CHECKING:
    from bitwatt.comparing.comparison import Comparison

#: Counts that a first line speaks of.
_FIRST = ("flops", "bops", "bytes", "parameters")
#: So many sides have a line of their own; of more, ranges are told.
_TOLD = 4


def headlines(comparison: Comparison) -> list[str]:
    """Whether counts are equal, and what changed; then times and joules with what is known of their spread."""
    told = [_equal(comparison)] if comparison.is_equal else _changed(comparison)
    for name in ("seconds", "energy"):
        one = comparison.measures.get(name)
        if one is not None and len(comparison.sides) == 2 and (ratio := one.ratios[1]) is not None:
            how = " (modelled)" if "modelled" in one.hows else ""
            told.append(f"{one.name}{how} {ratio.value:.3g}×: {one.spread(1)}")
    if comparison.disagreement:
        told.append(comparison.disagreement)
    if comparison.audited is not None:
        audit = comparison.audited
        told.append(f"distillation audit {audit.verdict}: {'; '.join(audit.reasons)}")
    return told


def _equal(comparison: Comparison) -> str:
    where = "in every phase, layer and op"
    if all(_exact(side.run.replay) for side in comparison.sides) and not comparison.doubts:
        return f"FLOPs, BOPs, MACs and bytes are equal to the last operation, {where}"
    return f"FLOPs, BOPs, MACs and bytes are equal as counted, {where}; see the notes"


def _exact(replay: Replay | None) -> bool:
    return replay is None or replay.exact


def _changed(comparison: Comparison) -> list[str]:
    told = []
    if len(comparison.sides) > _TOLD:
        ranges = [_range(comparison.totals[name]) for name in _FIRST if name in comparison.totals]
        return [f"{len(comparison.sides)} runs: {', '.join(ranges)}"]
    for i, side in enumerate(comparison.sides[1:], 1):
        parts = []
        for name in _FIRST:
            change = comparison.totals.get(name)
            if change is None or change.amounts[0] is None or change.amounts[i] is None:
                continue
            parts.append(f"{change.name} {change_of(change, i)}")
        told.append(f"{side.label} against {comparison.sides[0].label}: {', '.join(parts)}")
    return told


def _range(change: Change) -> str:
    known = [amount for amount in change.amounts if amount is not None]
    if len(set(known)) == 1:
        return f"{change.name} equal"
    return f"{change.name} {format_count(min(known))} to {format_count(max(known))}"


def alerts(comparison: Comparison) -> list[str]:
    """What the user's rule says of a gain."""
    told = [f"{one.label}: {flag}" for one in comparison.worth for flag in one.flags]
    return told if len(told) <= MANY else [*told[:MANY], f"… and {len(told) - MANY} more"]


def remarks(comparison: Comparison) -> list[str]:
    """Doubts, what covers what, spread within runs, renamed layers, rankings."""
    told = [*comparison.doubts]
    if len(comparison.sides) > MANY:
        told.append(f"phases, layers and ops of more than {MANY} runs: with --by, or as json")
    for one in comparison.measures.values():
        told += one.notes
    many = [len(side.runs) for side in comparison.sides]
    if len(many) > 2 and max(many) > 1:
        told.append(
            f"runs on each side: {', '.join(map(str, many))}. In brackets: 95 % intervals of the ratio of medians; "
            f"none with fewer than {LEAST} runs"
        )
    if comparison.measures and max(many) == 1:
        told.append(
            "one run each: no spread known. Repeat the runs, and compare with --repeat, before a ratio of times or "
            "joules is believed"
        )
    told += comparison.within
    renamed = [change.name for change in comparison.changes("scope") if change.is_renamed]
    if renamed:
        told.append(f"{len(renamed)} layers matched by shape and order, such as {renamed[0]}")
    if comparison.quality is not None:
        told += comparison.quality.notes
        told += [f"{one.label}: {one.verdict}" for one in comparison.worth[:MANY]]
    if len(comparison.sides) > 2 and not comparison.disagreement:
        told.append("rankings agree: " + "; ".join(f"by {one.by} {one}" for one in comparison.rankings))
    return told
