"""Runs as points on the three axes: FLOPs, BOPs and joules, of the devices that were metered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bitwatt.config import Settings
from bitwatt.impact.energy import used
from bitwatt.impact.money import ACCELERATORS
from bitwatt.impact.verdict import Point
from bitwatt.readings import MODELLED, Metered
from bitwatt.reports.footprint import Footprint


@dataclass(frozen=True, slots=True)
class Placed:
    """A run's point, with the energy of each kind of device in it: sums of different kinds do not compare."""

    point: Point
    kinds: Mapping[str, float] = field(default_factory=dict)  # gpu, cpu, dram, host -> joules
    is_modelled: bool = False
    missing: int = 0  # calls without a rule: the work is at least this
    because: str = ""  # why its grams are unknown, where its joules are known

    def of(self, kinds: Iterable[str]) -> Placed:
        """The same, of these kinds of devices alone."""
        known = [self.kinds[kind] for kind in kinds if kind in self.kinds]
        return replace(self, point=replace(self.point, energy_j=sum(known) if known else None))


def placed(
    metered: Metered | None, settings: Settings, started: str, *, flops: int, bops: int, name: str, missing: int = 0,
    facts: Mapping[str, str] | None = None, nodes: int = 1, with_carbon: bool = True,
) -> Placed:  # fmt: skip
    if metered is None:
        return Placed(Point(flops, bops, None, name=name), missing=missing)
    energy = used(metered, modelled=settings.show_modelled)
    kinds: dict[str, float] = {}
    for part in metered.energy:
        if part.device.id in energy.devices:
            kinds[part.device.kind] = kinds.get(part.device.kind, 0.0) + (part.energy_j or 0.0)
    carbon = Footprint(metered, settings, started).carbon if kinds and with_carbon else None
    grams, because = (carbon.total_g, carbon.because) if carbon is not None else (None, "")
    joules = energy.energy_j
    if energy.known_s is not None:  # of a part of the time they compare with nothing
        joules, grams, because = None, None, ""
    point = Point(flops, bops, joules, grams, name, _machine(metered, facts or {}, nodes))
    return Placed(point, kinds, energy.how == MODELLED, missing, because if grams is None else "")


def _machine(metered: Metered, facts: Mapping[str, str], nodes: int) -> str:
    """By the devices that did the work."""
    names = [part.device.name or part.device.id for part in metered.energy if part.device.kind in ACCELERATORS]
    counts = {name: names.count(name) for name in names}
    called = " + ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items())
    if not called:
        cores = facts.get("cores", "").partition(" ")[0]
        called = facts.get("cpu", "unknown processor") + (f", {cores} threads" if cores else "")
    return f"{called} on {nodes} nodes" if nodes > 1 else called
