"""Grams of CO2e: energy times PUE times the grid's intensity at that time, and a share of what making the device
emitted. SCI = ((E x I) + M) / R (Software Carbon Intensity 1.1, Green Software Foundation; ISO/IEC 21031:2024)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bitwatt.config import Settings
from bitwatt.grid.record import Grid, Intensity
from bitwatt.impact.energy import JOULES_PER_KWH, used
from bitwatt.readings import Energy, Metered

#: Energy that no intensity covers, up to this share, is priced at the mean of the rest: a second at the end of a run.
NEGLIGIBLE = 0.001


@dataclass(frozen=True, slots=True)
class Carbon:
    """`operational_g` and `embodied_g` are None where unknown; `because` says why, or what was left out."""

    energy_j: float | None
    operational_g: float | None
    embodied_g: float | None = None
    pue: float | None = None  # None: not applied
    intensity_g_per_kwh: float | None = None  # the mean over the run, weighed by energy
    intensities: tuple[Intensity, ...] = ()
    how: str = ""  # of the energy
    because: str = ""

    @property
    def total_g(self) -> float | None:
        """With the embodied share where there is one."""
        return None if self.operational_g is None else self.operational_g + (self.embodied_g or 0.0)

    def sci(self, units: float) -> float | None:
        """Grams for each of R functional units: requests, tokens, training runs."""
        return None if self.total_g is None or units <= 0 else self.total_g / units


def carbon(metered: Metered, settings: Settings, grid: Grid, started: datetime, *, devices: int = 1) -> Carbon:
    """Of a metered run that began at `started`. `devices` is how many the embodied share is paid for."""
    energy = used(metered, modelled=settings.show_modelled)
    made = embodied_g(settings, metered.seconds, devices)
    if energy.energy_j is None:
        words = ", ".join(f"{device}: {why}" for device, why in (energy.without or {}).items())
        return Carbon(None, None, made, settings.pue, because=f"no energy was measured{f' ({words})' if words else ''}")
    if not grid.intensities:
        return Carbon(energy.energy_j, None, made, settings.pue, how=energy.how, because=grid.because)
    grams = covered = 0.0
    for part in metered.energy:
        if part.device.id in energy.devices:
            found = emitted(part, metered, started, grid.intensities)
            grams, covered = grams + found[0], covered + found[1]
    if (covered <= 0 and energy.energy_j > 0) or covered < (1 - NEGLIGIBLE) * energy.energy_j:
        share = 100 * covered / energy.energy_j
        words = f"the intensity is known for {share:.0f} % of the energy only" + (f" ({grams:.3g} g)" if grams else "")
        because = "; ".join(word for word in (words, grid.because) if word)
        return Carbon(energy.energy_j, None, made, settings.pue, None, grid.intensities, energy.how, because)
    mean = grams / covered * JOULES_PER_KWH if covered else grid.intensities[0].value_g_per_kwh
    total = mean * energy.energy_j / JOULES_PER_KWH * (settings.pue or 1.0)
    known = energy.known_s
    partly = "" if known is None else f"at least: its energy is known for {known:.1f} of {metered.seconds:.1f} s"
    because = "; ".join(filter(None, (partly, grid.because)))
    return Carbon(energy.energy_j, total, made, settings.pue, mean, grid.intensities, energy.how, because)


def operational_g(energy_j: float, intensity_g_per_kwh: float, pue: float | None = None) -> float:
    """E x PUE x I for one intensity; without a PUE none is applied."""
    return energy_j / JOULES_PER_KWH * (pue or 1.0) * intensity_g_per_kwh


def embodied_g(settings: Settings, seconds: float, devices: int = 1) -> float | None:
    """M: what making the devices emitted, by the share of their life and of them that this work reserves."""
    if settings.embodied_kg is None or settings.embodied_lifetime_h is None:
        return None
    share = 1.0 if settings.embodied_share is None else settings.embodied_share
    return 1000 * settings.embodied_kg * devices * share * seconds / 3600 / settings.embodied_lifetime_h


def emitted(part: Energy, metered: Metered, started: datetime, intensities: Sequence[Intensity]) -> tuple[float, float]:
    """Grams of one device without PUE, and the joules they cover: Σ E_i x I_i over the times of the intensities. Its
    power over time says when the energy was drawn; without one it is spread evenly."""
    energy, length = part.energy_j or 0.0, metered.seconds
    if any(one.valid_from is None for one in intensities) or length <= 0:
        return energy / JOULES_PER_KWH * intensities[0].value_g_per_kwh, energy
    curve = _Curve(metered.series.get(part.device.id, ()), length)
    grams = covered = reached = 0.0
    for one in sorted(intensities, key=lambda one: one.valid_from or started):
        begin = max(_seconds(one.valid_from, started, 0.0), reached)  # where two overlap, the earlier one holds
        end = min(_seconds(one.valid_to, started, length), length)
        if end > begin:
            joules = energy * (curve.share(end) - curve.share(begin))
            grams += joules / JOULES_PER_KWH * one.value_g_per_kwh
            covered, reached = covered + joules, end
    return grams, covered


def drawn_until(part: Energy, metered: Metered, second: float) -> float:
    """Joules of one device up to a second of the run, by its power over time."""
    if metered.seconds <= 0:
        return 0.0
    return (part.energy_j or 0.0) * _Curve(metered.series.get(part.device.id, ()), metered.seconds).share(second)


def _seconds(time: datetime | None, started: datetime, otherwise: float) -> float:
    return otherwise if time is None else (time - started) / timedelta(seconds=1)


class _Curve:
    """Which share of a run's energy was drawn until a second: power samples joined by straight lines, held before the
    first and after the last; a straight line over the whole run where there are none."""

    def __init__(self, samples: Sequence[tuple[float, float]], length: float) -> None:
        inside = sorted((second, max(watts, 0.0)) for second, watts in samples if 0 <= second <= length)
        points = [(0.0, inside[0][1]), *inside, (length, inside[-1][1])] if inside else [(0.0, 1.0), (length, 1.0)]
        self._seconds, self._watts, self._joules = [points[0][0]], [points[0][1]], [0.0]
        for second, watts in points[1:]:
            step = (second - self._seconds[-1]) * (watts + self._watts[-1]) / 2
            self._seconds.append(second)
            self._watts.append(watts)
            self._joules.append(self._joules[-1] + step)

    def share(self, second: float) -> float:
        total, length = self._joules[-1], self._seconds[-1]
        if total <= 0:  # nothing was drawn at any sample: evenly
            return min(max(second / length, 0.0), 1.0)
        at = min(max(bisect_right(self._seconds, second) - 1, 0), len(self._seconds) - 2)
        width = self._seconds[at + 1] - self._seconds[at]
        into = min(max(second - self._seconds[at], 0.0), width)
        slope = (self._watts[at + 1] - self._watts[at]) / width if width else 0.0
        return (self._joules[at] + into * (self._watts[at] + slope * into / 2)) / total
