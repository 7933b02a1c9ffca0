"""Joules of a run, and joules for each TFLOP and TBOP by phase. Modelled energy counts only where it is asked for, and
is marked then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from bitwatt.pricing import Totals
from bitwatt.readings import APPORTIONED, IN_PART, MEASURED, MODELLED, Energy, Metered, counted

JOULES_PER_KWH = 3_600_000.0
TERA = 1e12
_DOUBT = (MEASURED, APPORTIONED, MODELLED)
#: A device that was not read for more than this share of a run, and a second, drew more than is known.
PARTIAL, PARTIAL_S = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Used:
    """Energy of some devices. `how` is the weakest of its parts; `without` are devices that are not in it, and why."""

    energy_j: float | None
    how: str = ""
    devices: tuple[str, ...] = ()
    without: Mapping[str, str] | None = None
    baseline_j: float | None = None  # what the same devices draw doing nothing, all along; None where one is unknown
    known_s: float | None = None  # how long the device was read that was so the least; None: all were, all along

    @property
    def label(self) -> str:
        """`how`, for where the number stands alone: `in part` where it is the least that was drawn."""
        return self.how if self.known_s is None else f"{self.how} {IN_PART}"

    @property
    def active_j(self) -> float | None:
        """Without what the devices would have drawn doing nothing."""
        if self.energy_j is None or self.baseline_j is None:
            return None
        return max(self.energy_j - self.baseline_j, 0.0)


def used(metered: Metered, *, modelled: bool = False) -> Used:
    """All devices whose energy was measured; with `modelled`, also those whose energy comes from a model."""
    parts, without = [], {}
    for part in metered.energy:
        if part.energy_j is None:
            without[part.device.id] = part.note or "unknown"
        elif part.how == MODELLED and not modelled:
            without[part.device.id] = "modelled"
        else:
            parts.append(part)
    known, parts = parts, counted(parts)
    for part in known:
        if part not in parts:
            is_part = part.device.kind != "host"
            without[part.device.id] = "in the machine's own" if is_part else "less than its parts"
    if not parts:
        return Used(None, without=without)
    idle = [_idle(part) for part in parts]
    baselines = [joules for joules in idle if joules is not None]
    return Used(
        sum(part.energy_j or 0.0 for part in parts),
        weakest(part.how for part in parts),
        tuple(part.device.id for part in parts),
        without,
        sum(baselines) if len(baselines) == len(idle) else None,
        _known_s(metered.seconds, parts),
    )


def _known_s(seconds: float, parts: Iterable[Energy]) -> float | None:
    least = min((part.seconds for part in parts if part.seconds > 0), default=seconds)
    return least if seconds - least > max(PARTIAL_S, PARTIAL * seconds) else None


def _idle(part: Energy) -> float | None:
    """What it would have drawn doing nothing all along: the baseline for as long as it was metered."""
    return None if part.idle_w is None else min(part.idle_w * part.seconds, part.energy_j or 0.0)


def weakest(hows: Iterable[str]) -> str:
    """How a sum came, from how its parts came."""
    return max(hows, key=lambda how: _DOUBT.index(how) if how in _DOUBT else len(_DOUBT), default="")


@dataclass(frozen=True, slots=True)
class Ratio:
    """Energy against work. The ratios are None where either is unknown or there is no work."""

    energy_j: float | None
    flops: int
    bops: int
    how: str = ""
    missing: int = 0  # calls that no rule covers: the work is at least this, the ratios at most
    is_least: bool = False  # the energy is that of a part of the time: the ratios are at least this

    @property
    def j_per_tflop(self) -> float | None:
        return _per(self.energy_j, self.flops)

    @property
    def j_per_tbop(self) -> float | None:
        return _per(self.energy_j, self.bops)

    @property
    def sign(self) -> str:
        """What stands before the ratios: they may be bounds, or nothing of the kind."""
        if self.is_least:
            return "≶ " if self.missing else "≥ "
        return "≤ " if self.missing else ""


def _per(energy_j: float | None, work: int) -> float | None:
    return None if energy_j is None or work <= 0 else energy_j / (work / TERA)


def ratio(metered: Metered, flops: Totals, bops: Totals, *, modelled: bool = False) -> Ratio:
    """Of the whole run."""
    energy = used(metered, modelled=modelled)
    missing, is_least = flops.coverage.missing, energy.known_s is not None
    return Ratio(energy.energy_j, flops.total, bops.total, energy.how, missing, is_least)


def ratio_by_phase(metered: Metered, flops: Totals, bops: Totals, *, modelled: bool = False) -> dict[str, Ratio]:
    """By phase; a phase that was not metered has no energy, and one that was but did no counted work has no ratio."""
    energies = used(metered, modelled=modelled)
    devices, is_least = set(energies.devices), energies.known_s is not None
    hows = {part.device.id: part.how for part in metered.energy}
    work = cast("dict[str, int]", flops.by("phase"))
    bits = cast("dict[str, int]", bops.by("phase"))
    missing: dict[str, int] = {}
    for entry in flops.entries:
        if flops.model.status(entry) == "missing":
            missing[entry.row.phase] = missing.get(entry.row.phase, 0) + entry.calls
    found = {}
    for phase in dict.fromkeys((*work, *metered.phases)):
        share = metered.phases.get(phase)
        joules = {name: value for name, value in share.energy_j.items() if name in devices} if share else {}
        how = weakest([share.how, *(hows[name] for name in joules)]) if share and joules else ""
        energy = sum(joules.values()) if joules else None
        found[phase] = Ratio(energy, work.get(phase, 0), bits.get(phase, 0), how, missing.get(phase, 0), is_least)
    return found


def transfer(metered: Metered, j_per_byte: float | None) -> float | None:
    """Energy of the network for what the whole machine sent and received (systems do not tell it of a process), by the
    user's coefficient: always modelled, and never part of the measured sum."""
    names = ("host.network_sent_bytes", "host.network_received_bytes")
    moved = [metered.usage[name] for name in names if name in metered.usage]
    return None if j_per_byte is None or not moved else j_per_byte * sum(moved)
