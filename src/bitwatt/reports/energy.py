"""What a run cost here, for every format: joules by device and phase, idle, carbon, money, and how each is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bitwatt.config import Settings
from bitwatt.impact.carbon import Carbon
from bitwatt.impact.energy import Ratio, Used, ratio, ratio_by_phase, transfer, used
from bitwatt.impact.money import Cost
from bitwatt.impact.utilisation import Utilisation, utilisation
from bitwatt.impact.verdict import Point, Verdict, alone
from bitwatt.readings import MEASURED, MODELLED, Energy, Metered
from bitwatt.reports.bandwidth import Bandwidth, achieved
from bitwatt.reports.footprint import Footprint, units
from bitwatt.reports.power import sparkline
from bitwatt.reports.trouble import troubles
from bitwatt.reports.waits import Wait, begun, waits
from bitwatt.reports.waits import told as waited
from bitwatt.units import format_bytes, format_count, format_duration, format_percent

if TYPE_CHECKING:
    from bitwatt.reports.model import View

#: Devices that have a line of their own.
_LISTED = 4
#: Less of the energy than this in no phase is rounding.
_ROUNDING = 1e-6
#: Remarks that are shown.
_NOTES = 4
#: Work of the processor beside a GPU is told of from this share.
_BESIDE = 0.01


class EnergyView:
    """A metered run, joined with what was counted and what the user has set."""

    def __init__(self, view: View, metered: Metered, settings: Settings) -> None:
        self._view, self.metered, self.settings = view, metered, settings

    @property
    def modelled(self) -> bool:
        """Whether modelled energy may stand in sums and ratios, marked."""
        return self.settings.show_modelled

    @cached_property
    def used(self) -> Used:
        return used(self.metered, modelled=self.modelled)

    @cached_property
    def ratio(self) -> Ratio:
        priced = self._view.priced
        return ratio(self.metered, priced["flops"], priced["bops"], modelled=self.modelled)

    @cached_property
    def phases(self) -> dict[str, Ratio]:
        priced = self._view.priced
        return ratio_by_phase(self.metered, priced["flops"], priced["bops"], modelled=self.modelled)

    def phase(self, name: str) -> Ratio | None:
        """Of a phase by the name that reports give it."""
        found = self.phases.get(name) or (self.phases.get("") if name == "other" else None)
        return self.ratio if name == "total" else found

    @cached_property
    def footprint(self) -> Footprint:
        return Footprint(self.metered, self.settings, self._view.run.started)

    @property
    def carbon(self) -> Carbon:
        return self.footprint.carbon

    @property
    def cost(self) -> Cost:
        return self.footprint.cost

    @cached_property
    def utilisation(self) -> Utilisation | None:
        """Of the GPUs the run used, if they are all of one kind; else of the processor. None without any work."""
        devices = self._view.devices
        if not self._view.entries or not devices.main:
            return None
        work = devices.work(self._view.entries, gpu=devices.has_gpu)
        return utilisation(work, devices.main_chip, self.metered.seconds, devices=devices.count, name=devices.main)

    @cached_property
    def beside_flops(self) -> int:
        """Work of the processor in a run that used GPUs: it has no part in their utilisation."""
        devices = self._view.devices
        return sum(part.flops for part in devices.work(self._view.entries, gpu=False)) if devices.has_gpu else 0

    @cached_property
    def verdict(self) -> Verdict | None:
        """Of the run by itself, on the device that utilisation speaks of: None where its energy, its peaks or its TDP
        are not known."""
        found, chip = self.utilisation, self._view.devices.main_chip
        known = used(replace(self.metered, energy=tuple(self._view.devices.accelerators)), modelled=self.modelled)
        if found is None or found.ideal_s is None or chip is None or chip.tdp_w is None or known.without:
            return None
        if known.energy_j is None:
            return None
        run = Point(self.ratio.flops, self.ratio.bops, known.energy_j)
        return alone(run, chip.tdp_w * found.ideal_s * found.devices)

    @cached_property
    def gpu_hours(self) -> float | None:
        """Hours times the GPUs of the run; None where the machine has some of which nothing is known."""
        devices = self._view.devices
        if not devices.has_gpu:
            return None if "gpu" in self._view.run.machine.facts else 0.0
        return devices.count * self.metered.seconds / 3600

    @property
    def cpu_hours(self) -> float | None:
        """Of CPU time: an hour of two busy cores is two."""
        seconds = self.metered.usage.get("cpu_seconds")
        return None if seconds is None else seconds / 3600

    @cached_property
    def bandwidth(self) -> Bandwidth | None:
        return achieved(self._view)

    @cached_property
    def transfer_j(self) -> float | None:
        """Modelled, by the user's coefficient, and in no sum."""
        return transfer(self.metered, self.settings.transfer_j_per_byte)

    @cached_property
    def remainder_j(self) -> float | None:
        known = [joules for device, joules in self.metered.remainder_j.items() if device in self.used.devices]
        return sum(known) if known and self.metered.phases else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks of the meter: the first few, since sensors may have many."""
        return self.metered.notes[:_NOTES]

    @property
    def headline(self) -> str:
        """How much energy, how known, and what it is for the work done."""
        metered = self.metered
        if self.used.energy_j is None:
            seconds = metered.usage.get("cpu_seconds")
            spent = "" if seconds is None else f"; {format_duration(_short(seconds))} of CPU time"
            return f"unknown: {self._why_unknown()}{spent}"
        told = [f"{joules(self.used.energy_j)} {self.used.how}"]
        if self.used.known_s is not None:
            told[0] = f"≥ {told[0]}, known for {self.used.known_s:.1f} of {metered.seconds:.1f} s"
        if mean := self._mean():
            told.append(f"{watts(mean)} mean")
        for amount, unit in ((self.ratio.j_per_tflop, "J/TFLOP"), (self.ratio.j_per_tbop, "J/TBOP")):
            if amount is not None:
                told.append(f"{self._mark}{self.ratio.sign}{format_count(_short(amount), unit)}")
        return " · ".join(told)

    def _mean(self) -> float | None:
        """Of what was read, in the time that it was."""
        if self.used.energy_j is None or not self.metered.seconds:
            return None
        if self.used.known_s is None:
            return self.used.energy_j / self.metered.seconds
        return sum(part.mean_w or 0.0 for part in self.metered.energy if part.device.id in self.used.devices)

    @property
    def _mark(self) -> str:
        return "modelled " if self.used.how == MODELLED else ""

    def _why_unknown(self) -> str:
        modelled = [part for part in self.metered.energy if part.how == MODELLED and part.energy_j is not None]
        if modelled:
            amount = sum(part.energy_j or 0.0 for part in modelled)
            return f"nothing was measured; modelled, {joules(amount)} (in sums with --show-modelled)"
        lost = [f"{part.device.id}: {part.note}" for part in self.metered.energy if part.note]
        return lost[0] if lost else "no counter can be read here (bitwatt doctor says why)"

    def devices(self) -> list[tuple[str, str]]:
        """(device, what is known of it)."""
        parts = sorted(self.metered.energy, key=lambda part: -(part.energy_j or 0.0))
        shown = [(_called(part), _told(part)) for part in parts[:_LISTED]]
        return [*shown, (f"… {len(parts) - _LISTED} more", "")] if len(parts) > _LISTED else shown

    def facts(self) -> list[tuple[str, str]]:
        """(what, in words): everything beside the devices, calm enough for a terminal."""
        found: list[tuple[str, str]] = []
        if picture := self._picture():
            found.append(("power", picture))
        if self.used.energy_j is not None:
            how = "~ by time" if any(p.how != MEASURED for p in self.metered.phases.values()) else ""
            if (self.remainder_j or 0.0) > _ROUNDING * self.used.energy_j:
                found.append(("in no phase", " · ".join(filter(None, (joules(self.remainder_j), how)))))
            found.append(("carbon, cost", f"{self.footprint.carbon_told()} · {self.footprint.cost_told()}"))
            if sci := self.footprint.sci_told(units(self._view.run)):
                found.append(("SCI", sci))
        elif self.cost.total is not None:  # by the hour
            found.append(("cost", self.footprint.cost_told()))
        if self.transfer_j is not None:
            found.append(("network", f"{joules(self.transfer_j)} of the whole machine, modelled, in no sum"))
        if self.utilisation is not None and (self.utilisation.mfu is not None or self._view.devices.has_gpu):
            found.append(("MFU", f"{self.utilisation}{self._beside()}"))
        if self.bandwidth is not None:
            found.append(("memory bandwidth", str(self.bandwidth)))
        if self.verdict is not None:
            found.append(("verdict", str(self.verdict)))
        if use := self._use():
            found.append(("used", use))
        if waits := self._waits():
            found.append(("waited", waits))
        if start := begun(self.waits, self.metered.seconds):
            found.append(("start", start))
        if told := self._settings():
            found.append(("settings", told))
        for trouble in troubles(self.metered)[:2]:
            found.append(("beware", trouble))
        share = self.metered.overhead_s / self.metered.seconds if self.metered.seconds else 0.0
        found.append(
            (
                "meter",
                f"{format_duration(_short(self.metered.overhead_s))} of CPU time, {format_percent(share)} of a core"
                + (f"; looked every {every:.2g} s" if (every := self.metered.interval_s) else ""),
            )
        )
        return found

    def _settings(self) -> str:
        """Each place once, with what it says."""
        places: dict[str, list[str]] = {}
        for name, told in self.settings.told().items():
            value, _, place = told.removesuffix(")").rpartition(" (")
            kind = "flags" if place.startswith("--") else "arguments" if place.endswith("=") else place
            places.setdefault(kind, []).append(f"{name} {value}")
        return "; ".join(f"{', '.join(values)} ({place})" for place, values in places.items())

    def _picture(self) -> str:
        """Of the device that drew most."""
        parts = [part for part in self.metered.energy if part.device.id in self.metered.series]
        if not parts:
            return ""
        most = max(parts, key=lambda part: part.energy_j or 0.0)
        drawn = sparkline(self.metered.series[most.device.id])
        return f"{drawn} {_called(most)}, 0 to {watts(most.peak_w)}" if drawn and most.peak_w else ""

    def _beside(self) -> str:
        whole = self.ratio.flops
        if not whole or self.beside_flops < _BESIDE * whole:
            return ""
        return f"; without {format_count(_short(self.beside_flops), 'FLOP')} in phases taken as the processor's"

    def _use(self) -> str:
        use = self.metered.usage
        told = []
        if "cpu_seconds" in use and self.used.energy_j is not None:
            told.append(f"{format_duration(_short(use['cpu_seconds']))} CPU")
        for hours, kind in ((self.gpu_hours, "GPU"), (self.cpu_hours, "CPU")):
            if hours:
                told.append(f"{Decimal(f'{hours:.3g}'):f} {kind}-hours")
        memory = use.get("memory_bytes_peak", use.get("memory_bytes"))
        if memory:
            told.append(f"{'≥ ' if self.metered.has_children else ''}{format_bytes(int(memory))} memory")
        for kind, quantity in (("read", "disk_read_bytes"), ("written", "disk_written_bytes")):
            if use.get(quantity, 0) >= 1e6:
                told.append(f"{format_bytes(int(use[quantity]))} {kind}")
        if use.get("idle_seconds") is not None and self.metered.seconds:
            told.append(f"idle {format_percent(min(use['idle_seconds'] / self.metered.seconds, 1.0))} of the time")
        return ", ".join(told)

    @cached_property
    def waits(self) -> dict[str, Wait]:
        return waits(self._view.run, self.metered, self.used.devices)

    def _waits(self) -> str:
        known = {key: joules(one.energy_j) for key, one in self.waits.items() if one.energy_j is not None}
        return waited(self.waits, self.metered.seconds, known)

    def document(self) -> dict[str, Any]:
        """For programs: all of it, null where it is not known."""
        metered = asdict(self.metered)
        found = self.utilisation
        return {
            **metered,
            "settings": self.settings.told(),  # those used here
            "settings_at_run": dict(self.metered.settings),
            "measured_j": self.metered.measured_j,
            "energy_j": self.used.energy_j,
            "how": self.used.how or None,
            "known_s": self.metered.seconds if self.used.known_s is None else self.used.known_s,
            "is_least": self.used.known_s is not None,
            "without": dict(self.used.without or {}),
            "j_per_tflop": self.ratio.j_per_tflop,
            "j_per_tbop": self.ratio.j_per_tbop,
            "by_phase": {name: _ratio_json(one) for name, one in self.phases.items()},
            **self.footprint.document(units(self._view.run)),
            "mfu": None if found is None else {
                "mfu": found.mfu, "ideal_s": found.ideal_s, "device": found.device, "devices": found.devices,
                "of": str(found), "left_out_flops": self.beside_flops,
            },
            "verdict": None if self.verdict is None else asdict(self.verdict),
            "waited": {key: asdict(one) for key, one in self.waits.items()},
            "gpu_hours": self.gpu_hours,
            "cpu_hours": self.cpu_hours,
            "memory_bandwidth": None if self.bandwidth is None else asdict(self.bandwidth),
            "transfer_j": self.transfer_j,
            "troubles": troubles(self.metered),
        }  # fmt: skip


def _ratio_json(one: Ratio) -> dict[str, Any]:
    return {
        "energy_j": one.energy_j,
        "how": one.how or None,
        "j_per_tflop": one.j_per_tflop,
        "j_per_tbop": one.j_per_tbop,
        "missing_calls": one.missing,
    }


def _called(part: Energy) -> str:
    name = part.device.name or part.device.id
    return name if len(name) <= 40 else part.device.id


def _told(part: Energy) -> str:
    if part.energy_j is None:
        return f"unknown: {part.note or 'not read'}"
    told = [joules(part.energy_j)]
    if part.mean_w is not None:
        told.append(f"{watts(part.mean_w)} mean" + (f", {watts(part.peak_w)} peak" if part.peak_w is not None else ""))
    told.append(f"{part.how} ({part.source.removeprefix(f'{part.how}: ')})")
    if part.idle_seconds is not None and part.seconds:
        baseline = f", {joules(part.idle_j)} at {watts(part.idle_w)}" if part.idle_j is not None and part.idle_w else ""
        told.append(f"idle {format_percent(min(part.idle_seconds / part.seconds, 1.0))}{baseline}")
    if part.note:
        told.append(part.note)
    return " · ".join(told)


def joules(amount: float | None) -> str:
    return "—" if amount is None else format_count(_short(amount), "J")


def watts(amount: float | None) -> str:
    return "—" if amount is None else format_count(_short(amount), "W")


def _short(amount: float) -> float:
    """Three digits: more would be read as if they were known."""
    return float(f"{amount:.3g}")


def names(metered: Metered) -> Mapping[str, str]:
    """Device -> what to call it."""
    return {part.device.id: _called(part) for part in metered.energy}
