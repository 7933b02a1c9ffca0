"""Shares the measured energy of a run out to its phases, so that phases and remainder add up to it.

Phases that were measured keep what was measured. What is left is shared by time: a GPU's by the time its kernels of a
phase took, where that is known, else by the host's, and a processor's by the host's. Time in no phase is the remainder.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bitwatt.readings import APPORTIONED, MEASURED, MODELLED, Energy, PhaseEnergy

ROOT = ""


@dataclass(frozen=True, slots=True)
class Spans:
    """Seconds of the run, of each phase without those inside it, and of phases that were measured with them."""

    seconds: float
    host: Mapping[str, float] = field(default_factory=dict)
    device: Mapping[str, float] = field(default_factory=dict)
    regions: Mapping[str, tuple[float, Mapping[str, float]]] = field(default_factory=dict)


def apportion(parts: Iterable[Energy], spans: Spans) -> tuple[dict[str, PhaseEnergy], dict[str, float], list[str]]:
    """Energy by phase and device, the remainder by device, and remarks on the method."""
    known = [(part, part.energy_j) for part in parts if part.energy_j is not None]
    joules: dict[str, dict[str, float]] = {name: {} for name in (*spans.host, *spans.regions)}
    rest: dict[str, float] = {}
    for part, total in known:
        on_device = part.device.kind == "gpu" and bool(spans.device)
        weights = spans.device if on_device else spans.host
        shares, remainder = _one(part, total, spans, weights, part.idle_w if on_device else None)
        for name, share in shares.items():
            joules.setdefault(name, {})[part.device.id] = share
        rest[part.device.id] = remainder
    models = {part.device.id: part.how == MODELLED for part, _ in known}
    phases = {}
    for name, energy in joules.items():
        alone = name in spans.regions and not any(_inside(other, name) for other in joules)
        seconds = spans.host.get(name, 0.0)
        if alone or not seconds:
            seconds = spans.regions.get(name, (seconds, {}))[0]
        how = MEASURED if alone else APPORTIONED
        if energy and all(models.get(device) for device in energy):
            how = MODELLED
        phases[name] = PhaseEnergy(energy, how, seconds, spans.device.get(name))
    notes = []
    shared = any(phase.how == APPORTIONED for phase in phases.values())
    if any(part.device.kind == "gpu" for part, _ in known) and not spans.device and shared:
        notes.append("GPU energy is shared out by host time: the device's own times are not known")
    return (phases if known else {}), rest, notes


def _one(
    part: Energy, total: float, spans: Spans, weights: Mapping[str, float], idle_w: float | None
) -> tuple[dict[str, float], float]:
    """One device: joules by phase, and what is left."""
    device = part.device.id
    regions = {name: (seconds, found[device]) for name, (seconds, found) in spans.regions.items() if device in found}
    owner = {name: _owner(name, regions) for name in {*weights, *regions}}
    shares: dict[str, float] = {}
    for region in (*regions, ROOT):
        seconds, energy = regions.get(region, (spans.seconds, total))
        inside = [regions[name] for name in regions if name != region and owner[name] == region]
        seconds = max(seconds - math.fsum(one[0] for one in inside), 0.0)
        energy = max(energy - math.fsum(one[1] for one in inside), 0.0)
        leaves = {name: weights[name] for name in weights if owner[name] == region and name not in regions}
        given = _by_time(leaves, seconds, energy, idle_w)
        shares |= given
        if region != ROOT:
            shares[region] = max(energy - math.fsum(given.values()), 0.0)
    if (whole := math.fsum(shares.values())) > total:  # a phase was read across a gap that is not the run's
        shares = {name: share * (total / whole) for name, share in shares.items()}
    while (excess := math.fsum([*shares.values(), -total])) > 0:  # by rounding: they are to add up exactly
        largest = max(shares, key=lambda name: shares[name])
        shares[largest] -= max(excess, math.ulp(shares[largest]))
    return shares, 0.0 - excess


def _by_time(leaves: Mapping[str, float], seconds: float, energy: float, idle_w: float | None) -> dict[str, float]:
    """In proportion to time. With a baseline: that for as long as a phase lasts, and what is above it by work alone."""
    busy = math.fsum(leaves.values())
    whole = max(seconds, busy)  # threads that work at once have more time than the clock
    if busy <= 0 or whole <= 0:
        return dict.fromkeys(leaves, 0.0)
    floor = min((idle_w or 0.0) * whole, energy) if idle_w is not None else energy
    return {name: floor * span / whole + (energy - floor) * span / busy for name, span in leaves.items()}


def _owner(name: str, regions: Iterable[str]) -> str:
    """The innermost measured phase around this one."""
    return max((region for region in regions if _inside(name, region)), key=len, default=ROOT)


def _inside(name: str, region: str) -> bool:
    return name.startswith(f"{region}/")
