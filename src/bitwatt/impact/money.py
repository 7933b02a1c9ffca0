"""What a run cost in money: electricity by the kWh, devices by the hour."""

from __future__ import annotations

from dataclasses import dataclass

from bitwatt.config import Settings
from bitwatt.impact.energy import JOULES_PER_KWH, used
from bitwatt.readings import Metered

ACCELERATORS = frozenset(["gpu", "accelerator"])


@dataclass(frozen=True, slots=True)
class Cost:
    """None where the price, or the energy, is not known."""

    energy: float | None
    devices: float | None
    currency: str = ""
    device_hours: float = 0.0
    how: str = ""  # of the energy
    because: str = ""

    @property
    def total(self) -> float | None:
        """The parts that are known: who pays by the hour pays for electricity in it, or sets no price for it."""
        known = [part for part in (self.energy, self.devices) if part is not None]
        return sum(known) if known else None


def device_hours(metered: Metered) -> float:
    """Hours times accelerators; times the host, where there are none."""
    count = sum(part.device.kind in ACCELERATORS for part in metered.energy)
    return max(count, 1) * metered.seconds / 3600


def cost(metered: Metered, settings: Settings) -> Cost:
    hours, energy = device_hours(metered), used(metered, modelled=settings.show_modelled)
    power = rent = None
    reasons = []
    if settings.price_per_kwh is None:
        reasons.append("price_per_kwh is not set")
    elif energy.energy_j is None:
        reasons.append("no energy was measured")
    else:
        power = energy.energy_j / JOULES_PER_KWH * (settings.pue or 1.0) * settings.price_per_kwh
    if settings.price_per_device_hour is None:
        reasons.append("price_per_device_hour is not set")
    else:
        rent = hours * settings.price_per_device_hour
    return Cost(
        power, rent, settings.currency or "", hours, energy.how if power is not None else "", "; ".join(reasons)
    )
