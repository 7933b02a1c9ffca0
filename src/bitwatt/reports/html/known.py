"""How each number of a run came: counted, measured, apportioned, modelled or estimated; by what; and from where."""

from __future__ import annotations

from collections.abc import Iterator

from bitwatt.readings import APPORTIONED, MEASURED, MODELLED
from bitwatt.reports.energy import joules
from bitwatt.reports.html.layout import note, plain_table
from bitwatt.reports.model import View
from bitwatt.reports.replay import verdict
from bitwatt.reports.tables import heading
from bitwatt.units import format_bytes, format_count, format_duration

COUNTED, ESTIMATED, UNKNOWN = "counted", "estimated", "unknown"
#: (what, its value, how, by what)
Row = tuple[str, str, str, str]


def known(view: View) -> str:
    words = (
        "Counted: worked out exactly from the sizes of every call. Measured: read from an instrument. Apportioned: a "
        "measured total, shared out by time. Modelled: worked out from an assumption that is named. Estimated: it "
        "depends on data that nobody saw."
    )
    rows = [*_work(view), *_time(view), *_energy(view), _identity(view)]
    return note(words) + plain_table("How each number came", ("Number", "Value", "How", "By what"), rows, badges=2)


def _work(view: View) -> Iterator[Row]:
    coverage, least = view.coverage, "≥ " if view.missing else ""
    how = ESTIMATED if coverage.estimated else COUNTED
    for name, priced in view.priced.items():
        amount = view.total.amounts.get(name)
        if amount is not None:
            yield (
                heading(name),
                f"{least}{format_count(amount, priced.model.unit)}",
                how,
                f"{coverage}; {priced.model.source}",
            )
    if view.total.bytes_moved is not None:
        about = "every input read once and every output written once, for each call: no cache is assumed"
        yield "bytes moved", f"{least}{format_bytes(view.total.bytes_moved)}", MODELLED, about


def _time(view: View) -> Iterator[Row]:
    run = view.run
    if view.is_estimate:
        return
    yield "time", format_duration(_short(run.seconds)), MEASURED, "the host's monotonic clock"
    if run.phase_seconds:
        spent = format_duration(_short(sum(run.phase_seconds.values())))
        yield "time of phases", spent, MEASURED, "the host's clock, where phases begin and end"
    if run.device_seconds:
        spent = format_duration(_short(sum(run.device_seconds.values())))
        yield "GPU time", spent, MEASURED, "the GPU's own clock, by events where phases change"
    if run.replay is not None and run.replay.replayed:
        steps = f"{run.replay.counted:,} counted, {run.replay.replayed:,} known"
        yield "steps", steps, COUNTED, verdict(run) or "steps that were known"


def _energy(view: View) -> Iterator[Row]:
    energy = view.energy
    if energy is None:
        yield "energy", "—", UNKNOWN, "nothing was metered in this run"
        return
    if not energy.metered.energy:
        yield "energy", "—", UNKNOWN, "no counter can be read here: bitwatt doctor says why"
    for part in energy.metered.energy:
        how = part.how if part.energy_j is not None else UNKNOWN
        source = part.source if part.energy_j is not None else part.note or "not read"
        yield f"energy, {part.device.name or part.device.id}", joules(part.energy_j), how, source
    if energy.used.energy_j is None:
        return
    for how, about in (
        (MEASURED, "the same counters, read where the phase begins and ends"),
        (APPORTIONED, "the devices' energy, shared out by the time of phases"),
    ):
        found = [one for one in energy.metered.phases.values() if one.how == how]
        if found:
            phases = f"{len(found)} {'phase' if len(found) == 1 else 'phases'}"
            yield f"energy of phases, {how}", phases, how, about
    carbon = energy.carbon
    if carbon.total_g is not None:
        place = carbon.intensities[0].about if carbon.intensities else "no intensity"
        yield "CO2e", format_count(_short(carbon.total_g), "g"), carbon.how or MODELLED, f"energy × intensity: {place}"
    else:
        yield "CO2e", "—", UNKNOWN, carbon.because or "the place is not set"
    if energy.cost.total is not None:
        shown = f"{_short(energy.cost.total):g} {energy.cost.currency or ''}".strip()
        yield "cost", shown, energy.cost.how or MODELLED, "energy and hours at the prices that are set"
    if energy.utilisation is not None and energy.utilisation.mfu is not None:
        yield "MFU", f"{100 * energy.utilisation.mfu:.1f} %", MODELLED, f"counted FLOPs over time: {energy.utilisation}"


def _identity(view: View) -> Row:
    about = (
        "a digest of every size of matrix product by phase and precision, and how often it is computed: the same "
        "program on the same data has the same one on every device"
    )
    return "fingerprint", view.fingerprint.digest, COUNTED, about


def _short(amount: float) -> float:
    return float(f"{amount:.3g}")
