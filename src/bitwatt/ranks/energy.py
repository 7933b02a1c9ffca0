"""What the machines of a job drew: every rank on a node reads the same counters, so each device counts once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bitwatt.ranks.join import Joined
from bitwatt.readings import APPORTIONED, MODELLED, Energy, Metered, PhaseEnergy, counted, metered_of

#: Use of a process that is a part of the run's time.
_TIMES = ("idle_seconds", "first_busy_seconds", "first_batch_seconds")
#: Ranks whose windows end so many seconds apart have ended together.
TOGETHER = 1.0


@dataclass(frozen=True, slots=True)
class Reader:
    """One rank's readings, and when it took them."""

    rank: int
    machine: str
    began: float  # seconds by the machine's own clock
    metered: Metered
    waited: float = 0.0

    @property
    def ended(self) -> float:
        return self.began + self.metered.seconds


@dataclass(frozen=True, slots=True)
class Waited:
    """Energy that went by while ranks waited for others: the time of waiting, at the share of power that is theirs."""

    seconds: float
    energy_j: float | None


def joined(readers: Sequence[Reader]) -> Metered:
    """All devices of all nodes once, phases by the rank whose reading counts, and the use of all processes added up."""
    devices: dict[tuple[str, str], list[tuple[Reader, Energy]]] = {}
    for reader in readers:
        for part in reader.metered.energy:
            devices.setdefault((reader.machine, part.device.id), []).append((reader, part))
    several = len({reader.machine for reader in readers}) > 1
    energy, phases, rest = [], dict[str, dict[str, float]](), dict[str, float]()
    for (machine, device), seen in devices.items():
        known = [one for one in seen if one[1].energy_j is not None] or seen
        known.sort(key=lambda one: (-one[1].seconds, one[0].rank))
        name = f"{machine}/{device}" if several else device
        part = _together(known) if known[0][1].how == MODELLED else _once(known)
        energy.append(replace(part, device=replace(part.device, id=name)))
        _share(known, part.energy_j, device, name, phases, rest)
    seconds = max((reader.ended for reader in readers), default=0.0) - min((r.began for r in readers), default=0.0)
    spans = _mean(readers)
    return Metered(
        seconds=seconds,
        energy=tuple(energy),
        phases={p: PhaseEnergy(by_device, APPORTIONED, spans.get(p, 0.0)) for p, by_device in phases.items()},
        remainder_j=rest,
        usage=_usage(readers),
        overhead_s=math.fsum(reader.metered.overhead_s for reader in readers),
        settings=dict(readers[0].metered.settings) if readers else {},
        grid=readers[0].metered.grid if readers else {},
        notes=tuple(dict.fromkeys(note for reader in readers for note in reader.metered.notes)),
    )


def waited(readers: Sequence[Reader]) -> Waited:
    """A rank's share of power is its node's mean power divided by the ranks there."""
    there: dict[str, int] = {}
    for reader in readers:
        there[reader.machine] = there.get(reader.machine, 0) + 1
    watts: dict[str, float] = {}
    for machine in there:
        parts = counted(joined([r for r in readers if r.machine == machine]).energy)
        known = [part.mean_w for part in parts]
        if drawn := [power for power in known if power is not None]:
            watts[machine] = math.fsum(drawn) / there[machine]
    joules = [reader.waited * watts[reader.machine] for reader in readers if reader.machine in watts]
    return Waited(math.fsum(reader.waited for reader in readers), math.fsum(joules) if joules else None)


def _together(seen: Sequence[tuple[Reader, Energy]]) -> Energy:
    """A model speaks of one rank's processes: those of all ranks add up."""
    known = [part for _, part in seen if part.energy_j is not None]
    energy = math.fsum(part.energy_j or 0.0 for part in known) if known else None
    mean = math.fsum(part.mean_w or 0.0 for part in known) if known else None
    return replace(seen[0][1], energy_j=energy, mean_w=mean, peak_w=None)


def _once(seen: Sequence[tuple[Reader, Energy]]) -> Energy:
    """The longest reading; for times that only others covered, those at their mean power."""
    reader, best = seen[0]
    covered = [(reader.began, reader.ended)]
    energy, seconds, notes = best.energy_j, best.seconds, [best.note] if best.note else []
    for other, part in seen[1:]:
        extra = _uncovered(other.began, other.ended, covered)
        covered.append((other.began, other.ended))
        if energy is not None and part.mean_w is not None and extra > 0:
            energy, seconds = energy + part.mean_w * extra, seconds + extra
            if extra > TOGETHER:
                notes.append(f"{extra:.1f} s are of rank {other.rank}, at its mean power")
    return replace(
        best, energy_j=energy, seconds=seconds, mean_w=energy / seconds if energy is not None and seconds else None,
        peak_w=max((part.peak_w for _, part in seen if part.peak_w is not None), default=None), note="; ".join(notes),
    )  # fmt: skip


def _uncovered(began: float, ended: float, covered: Iterable[tuple[float, float]]) -> float:
    """Seconds of a stretch that lie in none of the others."""
    at, free = began, 0.0
    for start, stop in sorted(covered):
        free += max(0.0, min(start, ended) - at)
        at = max(at, stop)
    return free + max(0.0, ended - at)


def _share(
    seen: Sequence[tuple[Reader, Energy]], total: float | None, device: str, name: str,
    phases: dict[str, dict[str, float]], rest: dict[str, float],
) -> None:  # fmt: skip
    """By the phases of all ranks that read the device: each of them was there for its part of the time."""
    if total is None:
        return
    shares: dict[str, float] = {}
    for reader, part in seen:
        if part.energy_j:
            for phase, found in reader.metered.phases.items():
                shares[phase] = shares.get(phase, 0.0) + found.energy_j.get(device, 0.0) / part.energy_j / len(seen)
    for phase, share in shares.items():
        phases.setdefault(phase, {})[name] = total * share
    rest[name] = max(total - math.fsum(total * share for share in shares.values()), 0.0)


def _usage(readers: Sequence[Reader]) -> dict[str, float]:
    """Of processes, sums, and of their times the mean; of a machine, which every rank on it sees alike, the most."""
    found: dict[str, float] = {}
    of_machines: dict[str, dict[str, float]] = {}
    for reader in readers:
        for name, value in reader.metered.usage.items():
            if "." in name:
                seen = of_machines.setdefault(name, {})
                seen[reader.machine] = max(seen.get(reader.machine, 0.0), value)
            else:
                found[name] = found.get(name, 0.0) + value / (len(readers) if name in _TIMES else 1)
    for name, by_machine in of_machines.items():
        is_level = name.endswith(("_mean", "_peak"))
        found[name] = max(by_machine.values()) if is_level else math.fsum(by_machine.values())
    return found


def _mean(readers: Sequence[Reader]) -> Mapping[str, float]:
    spans: dict[str, float] = {}
    for reader in readers:
        for phase, found in reader.metered.phases.items():
            spans[phase] = spans.get(phase, 0.0) + found.seconds / len(readers)
    return spans


def readers(job: Joined, waits: Mapping[int, float] | None = None) -> list[Reader]:
    """The ranks of a job that metered, from the first lines of their files. `waits` are seconds by rank."""
    found = []
    for part in job.parts:
        fields = part.kept.summary.get("meter") or part.shares.get("meter")
        if fields:
            machine = part.rank.machine or part.rank.node
            wait = part.waited if waits is None else waits.get(part.number, 0.0)
            found.append(Reader(part.number, machine, _moment(part.kept.started), metered_of(fields), wait))
    return found


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
