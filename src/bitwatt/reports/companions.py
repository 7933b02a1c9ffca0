"""What other meters in the same program said, beside ours: neither is corrected by the other."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from bitwatt.observed import Figure
from bitwatt.reports.blocks import Block
from bitwatt.reports.energy import joules
from bitwatt.units import format_duration

if TYPE_CHECKING:
    from bitwatt.reports.model import View

_LISTED = 4


def block(view: View) -> Block | None:
    observed = view.run.observed
    if observed is None or not observed.others:
        return None
    energy = view.energy
    ours = energy.used.energy_j if energy is not None else None
    here = f"{joules(ours)} {energy.used.how}" if energy is not None and ours is not None else "unknown"
    facts = [(f"{one.meter} says", _told(one)) for one in observed.others[:_LISTED]]
    if len(observed.others) > _LISTED:
        facts.append(("and", f"{len(observed.others) - _LISTED} more"))
    document = {"bitwatt_j": ours, "others": [asdict(one) for one in observed.others]}
    whole = f"bitwatt {here}, over {_time(view.run.seconds)}"
    return Block("other_meters", "Other meters", whole, tuple(facts), document)


def _told(one: Figure) -> str:
    parts = ", ".join(f"{name} {joules(j)}" for name, j in one.parts_j.items()) if len(one.parts_j) > 1 else ""
    amount = "nothing" if one.energy_j is None else joules(one.energy_j)
    return f"{amount}{f' ({parts})' if parts else ''} · {one.how} · over {_time(one.seconds)}"


def _time(seconds: float) -> str:
    return format_duration(float(f"{seconds:.3g}"))
