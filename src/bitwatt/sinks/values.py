"""What every sink says of a run: one list of named numbers with their units. What is not known is not in it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import cast

from bitwatt import __version__
from bitwatt.config import Settings
from bitwatt.impact.energy import used
from bitwatt.pricing import totals
from bitwatt.readings import MODELLED, Metered, counted
from bitwatt.records import Run
from bitwatt.reports.model import View

#: Phases and devices that are told one by one, the greatest first: a phase's name may hold a number that goes on.
PARTS = 50
#: Letters of a name.
LETTERS = 200


#: What each name means and how it is obtained.
ABOUT = {
    "duration_s": "wall time of the run",
    "flops": "operations counted, by the cost model flops",
    "bops": "bit-operations counted, by the cost model bops",
    "macs": "multiply-accumulates counted, by the cost model macs",
    "phase_flops": "operations of a phase",
    "phase_bops": "bit-operations of a phase",
    "phase_duration_s": "time in a phase",
    "ops_missing": "calls that no rule covers: the counts are at least what they say",
    "bytes_moved": "bytes read and written by the counted ops",
    "processed": "samples, tokens and the like, as the program or its loaders told",
    "energy_j": "energy of all devices whose energy was measured; with show_modelled, of modelled ones too",
    "energy_modelled_j": "energy by a model (TDP and use), where it is not in energy_j",
    "device_energy_j": "energy of one device since the run began",
    "device_power_w": "power of one device when it was last read",
    "device_power_mean_w": "mean power of one device",
    "phase_energy_j": "energy of a phase: measured, or shared out of the measured by time",
    "j_per_tflop": "energy for a million million operations",
    "j_per_tbop": "energy for a million million bit-operations",
    "co2e_g": "emissions, where the intensity of the grid is set or asked for",
    "cost": "money, where prices are set",
    "mfu": "model FLOPs utilisation: the time that the work takes at the peak, by the time it took",
    "cpu_s": "CPU time of the process tree",
    "memory_peak_bytes": "most memory of the process tree",
    "device_memory_peak_bytes": "most memory that torch had allocated on its device",
}


@dataclass(frozen=True, slots=True)
class Value:
    """`unit` is as UCUM writes it; `total` says that it only grows while a run goes on; `about` tells parts of one name
    apart, and how it came; `of` is the process that tells it, where several will be told of together."""

    name: str
    amount: float
    unit: str
    total: bool = False
    about: Mapping[str, str] = field(default_factory=dict)
    of: str = ""

    @property
    def flat(self) -> str:
        """For systems that know names and no labels: phase_flops/forward; rank_0/phase_flops/forward."""
        parts = [self.about[key] for key in ("phase", "device", "what") if key in self.about]
        return plain("/".join([*filter(None, [self.of]), self.name, *parts]))


def values(run: Run, settings: Settings | None = None, *, live: bool = False) -> list[Value]:
    """All of a finished run; of one under way, what is cheap to tell."""
    found = [*_work(run), *_processed(run)]
    if run.meter is not None:
        found += _energy(run.meter, settings or Settings())
    if not live:
        found += _judged(run, settings)
    of = f"rank_{run.rank.rank}" if live and run.rank is not None and run.rank.world > 1 else ""
    return [replace(value, of=of) for value in found if math.isfinite(value.amount)]


def _work(run: Run) -> Iterator[Value]:
    yield Value("duration_s", run.seconds, "s", total=True)
    for model, unit in (("flops", "{FLOP}"), ("bops", "{BOP}")):
        priced = totals(run, model)
        if not priced.entries:
            continue  # nothing was counted, which is not 0
        yield Value(model, priced.total, unit, total=True)
        phases = cast("dict[str, int]", priced.by("phase"))
        for phase, amount in _greatest(phases):
            yield Value(f"phase_{model}", amount, unit, total=True, about={"phase": phase or "other"})
    if run.ledger:
        yield Value("ops_missing", totals(run, "flops").coverage.missing, "{call}", total=True)
    for phase, seconds in _greatest(run.phase_seconds):
        yield Value("phase_duration_s", seconds, "s", total=True, about={"phase": phase or "other"})


def _processed(run: Run) -> Iterator[Value]:
    if run.observed is not None:
        for what in run.observed.names[:PARTS]:
            yield Value("processed", run.observed.total(what), "{item}", total=True, about={"what": what})
        if run.observed.device_peak is not None:
            yield Value("device_memory_peak_bytes", run.observed.device_peak, "By")
    if run.requests is not None:
        yield Value("processed", run.requests.count, "{item}", total=True, about={"what": "requests"})


def _energy(metered: Metered, settings: Settings) -> Iterator[Value]:
    whole = used(metered, modelled=settings.show_modelled)
    if whole.energy_j is not None:
        yield Value("energy_j", whole.energy_j, "J", total=True, about={"how": whole.label})
    modelled = counted(part for part in metered.energy if part.how == MODELLED)
    if modelled and whole.how != MODELLED:
        amount = sum(part.energy_j or 0.0 for part in modelled)
        yield Value("energy_modelled_j", amount, "J", total=True, about={"how": MODELLED})
    for part in metered.energy[:PARTS]:
        about = {"device": part.device.id, "kind": part.device.kind, "how": part.how}
        if part.device.name:
            about["model"] = part.device.name
        if part.energy_j is not None:
            yield Value("device_energy_j", part.energy_j, "J", total=True, about=about)
        if part.mean_w is not None:
            yield Value("device_power_mean_w", part.mean_w, "W", about=about)
        if series := metered.series.get(part.device.id):
            yield Value("device_power_w", series[-1][1], "W", about=about)
    hows = {part.device.id: part.how for part in metered.energy}
    by_phase = {
        phase: sum(joules for device, joules in one.energy_j.items() if device in whole.devices)
        for phase, one in metered.phases.items()
        if set(one.energy_j) & set(whole.devices)
    }
    for phase, joules in _greatest(by_phase):
        one = metered.phases[phase]
        how = MODELLED if MODELLED in {hows.get(device) for device in one.energy_j} else one.how
        yield Value("phase_energy_j", joules, "J", total=True, about={"phase": phase or "other", "how": how})
    for name, quantity, unit in (
        ("cpu_s", "cpu_seconds", "s"),
        ("memory_peak_bytes", "memory_bytes_peak", "By"),
    ):
        if quantity in metered.usage:
            yield Value(name, metered.usage[quantity], unit, total=unit == "s")


def _judged(run: Run, settings: Settings | None) -> Iterator[Value]:
    """What takes a whole report, or asks the grid."""
    view = View(run, "flops", settings)
    if view.entries:
        if (macs := view.total.amounts.get("macs")) is not None:
            yield Value("macs", macs, "{MAC}", total=True)
        if view.total.bytes_moved is not None:
            yield Value("bytes_moved", view.total.bytes_moved, "By", total=True)
    energy = view.energy
    if energy is None:
        return
    how = {"how": energy.used.how} if energy.used.how else {}
    for name, ratio, unit in (
        ("j_per_tflop", energy.ratio.j_per_tflop, "J/T{FLOP}"),
        ("j_per_tbop", energy.ratio.j_per_tbop, "J/T{BOP}"),
    ):
        if ratio is not None:
            yield Value(name, ratio, unit, about=how)
    if energy.carbon.total_g is not None:
        yield Value("co2e_g", energy.carbon.total_g, "g", total=True, about=how)
    if energy.cost.total is not None:
        yield Value("cost", energy.cost.total, "1", total=True, about={"currency": energy.cost.currency})
    if energy.utilisation is not None and energy.utilisation.mfu is not None:
        yield Value("mfu", energy.utilisation.mfu, "1")


def _greatest(parts: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(parts.items(), key=lambda item: (-item[1], item[0]))[:PARTS]


def facts(run: Run) -> dict[str, str]:
    """What is known of a run beside numbers, as text by name: for tags and attributes."""
    about = run.about
    found = {"run": run.id, "name": run.name, "status": run.status, "started": run.started, "command": run.command}
    found |= {f"git.{name}": value for name, value in about.git.items()}
    found |= {"model_version": about.version, "dataset": about.dataset, "parent": about.parent}
    if run.rank is not None:
        found |= {"rank": str(run.rank.rank), "world": str(run.rank.world), "job": run.rank.job}
    if run.ledger:
        # as text, since the numbers of most systems are floats, which round from 2^53 on
        found |= {model: str(totals(run, model).total) for model in ("flops", "bops")}
        found["coverage"] = str(totals(run, "flops").coverage)
    found |= {f"machine.{name}": value for name, value in run.machine.facts.items()}
    return {name: value for name, value in found.items() if value}


def parameters(run: Run) -> dict[str, str]:
    about = run.about
    found = {name: str(value) for name, value in about.parameters.items() if value is not None}
    if about.batch_size is not None:
        found.setdefault("batch_size", str(about.batch_size))
    return found


def writer() -> str:
    return f"bitwatt {__version__}"


def plain(name: str) -> str:
    """Letters, digits and `_-./: ` alone, and no path that leads anywhere else: names are the user's, or anybody's."""
    steps = [re.sub(r"[^\w\-.: ]", "_", step, flags=re.ASCII).strip() for step in name.split("/")]
    return "/".join(step for step in steps if step.strip(". "))[:LETTERS].strip("/ ") or "unnamed"


def moment(run_started: str, seconds: float = 0.0) -> float:
    """Seconds since 1970 of a moment in a run."""
    try:
        began = datetime.fromisoformat(run_started)
    except ValueError:
        began = datetime.now(UTC)
    return (began if began.tzinfo else began.replace(tzinfo=UTC)).timestamp() + seconds
