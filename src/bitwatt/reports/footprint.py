"""Carbon, SCI and money of what was metered, in words and for programs: of a run, and of a job of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from bitwatt import grid
from bitwatt.config import Settings
from bitwatt.impact.carbon import Carbon, carbon
from bitwatt.impact.energy import JOULES_PER_KWH, used
from bitwatt.impact.money import ACCELERATORS, Cost, cost
from bitwatt.inherited import inherited
from bitwatt.readings import MODELLED, Metered
from bitwatt.records import Run
from bitwatt.units import format_count


@dataclass(frozen=True)
class Footprint:
    """`started` is when it began, as the run says."""

    metered: Metered
    given: Settings
    started: str

    @cached_property
    def settings(self) -> Settings:
        return inherited(self.given, self.metered.settings)

    @cached_property
    def carbon(self) -> Carbon:
        began = _moment(self.started)
        known = grid.Grid()
        if used(self.metered, modelled=self.settings.show_modelled).energy_j is not None:  # else nobody need be asked
            known = grid.ask(self.settings, began, began + timedelta(seconds=self.metered.seconds), self.metered.grid)
        return carbon(self.metered, self.settings, known, began, devices=max(self._accelerators, 1))

    @property
    def _accelerators(self) -> int:
        return sum(part.device.kind in ACCELERATORS for part in self.metered.energy)

    @cached_property
    def cost(self) -> Cost:
        return cost(self.metered, self.settings)

    def carbon_told(self) -> str:
        found = self.carbon
        if found.total_g is None:
            place = self.settings.grid_provider or self.settings.country or self.settings.region
            unset = not found.intensities and not place
            return "CO2e: location unknown" if unset else f"CO2e unknown: {found.because}"
        about = [f"{found.intensity_g_per_kwh or 0.0:.4g} g/kWh, {found.intensities[0].about}"]
        about.append(f"PUE {found.pue:g}" if found.pue else "PUE not applied")
        if found.embodied_g is not None:
            about.append(f"{grams(found.embodied_g)} of it embodied")
        elif self.settings.embodied_kg is not None:
            about.append("embodied share unknown: embodied.lifetime_h is not set")
        if found.because:  # what was asked first, and had no answer
            about.append(found.because)
        mark = "modelled " if found.how == MODELLED else ""
        return f"{mark}{grams(found.total_g)} CO2e ({'; '.join(about)})"

    def cost_told(self) -> str:
        lacks_power = self.settings.price_per_kwh is not None and self.cost.energy is None
        if self.cost.total is None:
            return "cost unknown: no energy was measured" if lacks_power else "no price set"
        mark = "modelled " if self.cost.how == MODELLED else ""
        lacking = " (without electricity: no energy was measured)" if lacks_power else ""
        return f"{mark}{money(self.cost.total, self.cost.currency)}{lacking}"

    def sci_told(self, units: Mapping[str, int]) -> str:
        """((E x I) + M) / R with each term; empty where E, I or R is not known."""
        found, terms = self.carbon, self._terms
        if terms is None or not units:
            return ""
        pue = f" x PUE {found.pue:g}" if found.pue else ""
        made = "M not set" if found.embodied_g is None else f"{grams(found.embodied_g)} embodied"
        (name, count), *others = units.items()
        energy = format_count(_short(1000 * terms["energy_kwh"]), "Wh")
        mark = "modelled " if found.how == MODELLED else ""
        told = f"{mark}{grams(found.sci(count) or 0.0)} a {one(name)} = "
        told += f"(({energy}{pue} x {terms['intensity_g_per_kwh']:.4g} g/kWh) + {made}) / {count:,} {name}"
        return "; ".join([told, *(f"{mark}{grams(found.sci(n) or 0.0)} a {one(other)}" for other, n in others)])

    @property
    def _terms(self) -> dict[str, float] | None:
        found = self.carbon
        if found.energy_j is None or found.operational_g is None or found.intensity_g_per_kwh is None:
            return None
        return {"energy_kwh": found.energy_j / JOULES_PER_KWH, "intensity_g_per_kwh": found.intensity_g_per_kwh}

    def document(self, units: Mapping[str, int]) -> dict[str, Any]:
        """`carbon`, `cost` and `sci`, null where they are not known."""
        found, terms = self.carbon, self._terms
        return {
            "carbon": {
                "total_g": found.total_g,
                "operational_g": found.operational_g,
                "embodied_g": found.embodied_g,
                "how": found.how or None,
                "pue": found.pue,
                "intensity_g_per_kwh": found.intensity_g_per_kwh,
                "intensities": [part.to_dict() for part in found.intensities],
                "because": found.because or None,
            },
            "cost": {**asdict(self.cost), "total": self.cost.total},
            "sci": None if terms is None or not units else {
                "formula": "((E x PUE x I) + M) / R",
                **terms,
                "pue": found.pue,
                "embodied_g": found.embodied_g,
                "how": found.how or None,
                "units": {name: {"count": count, "g_each": found.sci(count)} for name, count in units.items()},
            },
        }  # fmt: skip


def units(run: Run) -> dict[str, int]:
    """R of SCI: requests where they were counted, else what the program says that it processed, else what its loaders
    handed out."""
    if run.requests is not None and run.requests.count:
        return {"requests": run.requests.count}
    known = {name: run.observed.total(name) for name in run.observed.names} if run.observed is not None else {}
    own = {name: count for name, count in known.items() if count and name != "samples loaded"}
    return own or {name: count for name, count in known.items() if count}


def one(name: str) -> str:
    """requests -> request, samples loaded -> sample loaded."""
    first, space, rest = name.partition(" ")
    return f"{first.removesuffix('s')}{space}{rest}"


def grams(amount: float) -> str:
    return format_count(_short(amount), "g")


def money(amount: float, currency: str | None) -> str:
    """To the hundredth, or three digits of less than one: never 1.2e+04."""
    number = f"{amount:,.2f}" if amount >= 1 or not amount else f"{Decimal(f'{amount:.3g}'):f}"
    return f"{number} {currency or ''}".rstrip()


def _short(amount: float) -> float:
    """Three digits: more would be read as if they were known."""
    return float(f"{amount:.3g}")


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
