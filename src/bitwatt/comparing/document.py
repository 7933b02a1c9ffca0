"""A comparison as JSON for programs: exact integers, every value of every run, null where a number is not known."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bitwatt.comparing.changes import AXES, Change
from bitwatt.comparing.noisy import Noisy
from bitwatt.comparing.pareto import Front
from bitwatt.comparing.spread import CONFIDENCE
from bitwatt.comparing.words import alerts, headlines, remarks

if TYPE_CHECKING:
    from bitwatt.comparing.comparison import Comparison

FORMAT, VERSION = "bitwatt.comparison", 1


def document(comparison: Comparison) -> dict[str, Any]:
    labels = [side.label for side in comparison.sides]
    found: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "sides": [
            {"label": side.label, "name": side.name, "runs": [run.id for run in side.runs], "started": side.run.started}
            for side in comparison.sides
        ],
        "equal": comparison.is_equal,
        "cost_model": comparison.model,
        "told": headlines(comparison),
        "flags": alerts(comparison),
        "notes": remarks(comparison),
        "totals": {name: _change(change, labels) for name, change in comparison.totals.items()},
        **{AXES[axis].lower(): [_change(change, labels) for change in comparison.changes(axis)] for axis in AXES},
        "measured": {name: _noisy(one, labels) for name, one in comparison.measures.items()},
        "seconds_by_phase": {one.name: _noisy(one, labels) for one in comparison.by_phase("seconds")},
        "energy_by_phase": {one.name: _noisy(one, labels) for one in comparison.by_phase("energy")},
        "differences": [
            {"kind": one.kind, "name": one.name, **dict(zip(labels, one.values, strict=True))}
            for one in comparison.differences
        ],
        "rankings": [{"by": one.by, "order": [list(tied) for tied in one.order]} for one in comparison.rankings],
        "rankings_differ": bool(comparison.disagreement),
        "worth": [asdict(one) for one in comparison.worth],
        "pareto": None if comparison.front is None else pareto(comparison.front),
        "audit": None if comparison.audited is None else asdict(comparison.audited),
    }
    return _finite(found)  # type: ignore[no-any-return]


def pareto(front: Front) -> dict[str, Any]:
    return {
        "axes": [asdict(axis) for axis in front.axes],
        "points": [
            {"name": p.name, "values": dict(p.values), "on_front": p.on_front, "beaten_by": list(p.beaten_by)}
            for p in front.points
        ],
        "left_out": dict(front.left_out),
        "notes": list(front.notes),
    }


def _change(change: Change, labels: list[str]) -> dict[str, Any]:
    return {
        "name": change.name,
        "names": dict(zip(labels, change.names, strict=True)),
        "unit": change.unit,
        "amounts": dict(zip(labels, change.amounts, strict=True)),
        "differences": {label: change.difference(i) for i, label in enumerate(labels) if i},
        "ratios": {label: change.ratio(i) for i, label in enumerate(labels) if i},
        "equal": change.is_equal,
    }


def _noisy(one: Noisy, labels: list[str]) -> dict[str, Any]:
    return {
        "unit": one.unit,
        "values": dict(zip(labels, map(list, one.values), strict=True)),
        "how": dict(zip(labels, (how or None for how in one.hows), strict=True)),
        "medians": dict(zip(labels, one.medians, strict=True)),
        "ratios": {
            label: None
            if (ratio := one.ratios[i]) is None
            else {
                "ratio": ratio.value,
                "low": ratio.low,
                "high": ratio.high,
                "n": list(ratio.n),
                "confidence": CONFIDENCE,
            }
            for i, label in enumerate(labels)
            if i
        },
        "notes": list(one.notes),
    }


def _finite(value: Any) -> Any:
    """JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
