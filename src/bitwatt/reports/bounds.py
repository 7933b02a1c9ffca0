"""What holds each phase up, with the evidence: joins the times of a run with its work and its devices' roofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from bitwatt.impact.bound import UNKNOWN, Bound, Spent, classify
from bitwatt.impact.work import Executed
from bitwatt.pricing import COUNTED, Entry
from bitwatt.ranks.arrivals import Arrivals
from bitwatt.ranks.shares import message_kind
from bitwatt.reports.blocks import Block
from bitwatt.reports.devices import PREPARING, Devices
from bitwatt.units import format_duration, format_percent

if TYPE_CHECKING:
    from bitwatt.records import Run
    from bitwatt.reports.model import View

#: Phases that are told of have so much of the time; of those, the longest.
_SHARE, _LISTED = 0.05, 4
#: Shorter phases say nothing.
_NOTHING = 1e-6
_HELP = "; bitwatt doctor --probe measures it, or [peaks] in bitwatt.toml tells it"


@dataclass(frozen=True)
class Bounds:
    """Of a run's phases, by their own names, and of the whole run; with the seconds that shares are taken of."""

    phases: Mapping[str, Bound]
    seen: Bound  # of the whole run, as the GPUs' own sensors saw
    seconds: Mapping[str, float]
    clocks: Mapping[str, str]  # phase -> whose seconds they are: the GPU's (gaps included) or the host's
    gpu_idle: float | None = None  # share of the run, as the GPUs' own sensors saw
    without_peak: str = ""

    def word(self, phase: str) -> str:
        """For a table; phases by the names that reports give them."""
        found = self.run if phase == "total" else self.phases.get(phase)
        if found is None and phase == "other":
            found = self.phases.get("")
        return "—" if found is None or found.bound == UNKNOWN else found.bound

    @property
    def is_known(self) -> bool:
        """Of a part of the time that matters."""
        return 1 - self.shares().get(UNKNOWN, 0.0) >= _SHARE

    @property
    def told(self) -> dict[str, Bound]:
        """Those that are phases: "other" is what lies between them, unless it does something that can be named."""
        named = {phase: one for phase, one in self.phases.items() if phase != "other" or one.bound != UNKNOWN}
        return named or dict(self.phases)

    @property
    def whole(self) -> float:
        return sum(self.seconds[phase] for phase in self.told)

    def shares(self) -> dict[str, float]:
        """Bound -> share of the time in phases, the greatest first, the unknown last."""
        sums: dict[str, float] = {}
        for phase, one in self.told.items():
            sums[one.bound] = sums.get(one.bound, 0.0) + self.seconds[phase] / self.whole
        return dict(sorted(sums.items(), key=lambda item: (item[0] == UNKNOWN, -item[1])))

    @property
    def run(self) -> Bound:
        """What most of the time goes to; where sensors saw the GPUs wait for most of it, what they waited for."""
        if self.seen.bound != UNKNOWN:
            return self.seen
        shares = self.shares()
        most = max(shares, key=lambda bound: shares[bound])
        return Bound(most, {f"{most}_share": shares[most]}, f"{format_percent(shares[most])} of the time in phases")


@dataclass
class _Cost:
    """What one phase did on its device."""

    calls: int = 0
    bytes_moved: int | None = 0
    messages: int = 0
    work: list[Executed] = field(default_factory=list)

    def add(self, entry: Entry) -> None:
        if entry.status != COUNTED or entry.work is None:
            return
        self.calls += entry.calls
        read, written = entry.work.bytes_read, entry.work.bytes_written
        if read is None or written is None:
            self.bytes_moved = None
        elif self.bytes_moved is not None:
            self.bytes_moved += (read + written) * entry.row.calls
        if message_kind(entry.op):
            self.messages += max(read or 0, written or 0) * entry.row.calls


def bounds(view: View) -> Bounds | None:
    """None where no phase was timed."""
    run, devices = view.run, view.devices
    seconds = {
        phase: run.device_seconds[phase] if devices.has_gpu and phase in run.device_seconds else spent
        for phase, spent in {**run.device_seconds, **run.phase_seconds}.items()
    }
    seconds = {phase: spent for phase, spent in seconds.items() if spent > _NOTHING}
    if not seconds:
        return None
    costs = {phase: _Cost() for phase in seconds}
    for entry in view.entries:
        if (phase := _place(entry.row.phase, seconds)) is not None:
            costs[phase].add(entry)
    for gpu in (True, False):
        for one in devices.work(view.entries, gpu=gpu):
            phase = _place(one.phase, seconds)
            if phase is not None and devices.is_on_gpu(one.phase) == gpu:
                costs[phase].work.append(one)
    waits = _waits(run, costs)
    idle = _gpu_idle(devices)
    found = {
        phase: _one(phase, spent, costs[phase], waits.get(phase), devices, idle) for phase, spent in seconds.items()
    }
    clocks = {phase: "gpu" if phase in run.device_seconds and devices.has_gpu else "host" for phase in seconds}
    return Bounds(found, _seen(seconds, waits, idle), seconds, clocks, idle, _without_peak(devices))


def _place(phase: str, timed: Mapping[str, float]) -> str | None:
    """The phase whose time holds it: its own, else that of what it is a part of."""
    while phase not in timed:
        if not phase:
            return None
        phase = phase.rpartition("/")[0]
    return phase


def _one(phase: str, seconds: float, cost: _Cost, waited: float | None, devices: Devices, idle: float | None) -> Bound:
    on_gpu = devices.is_on_gpu(phase)
    if on_gpu and devices.run.device_seconds and phase not in devices.run.device_seconds:
        return Bound(UNKNOWN, why="how long the GPU took for it is not known: no model was called in it")
    spent = Spent(
        seconds,
        input_s=seconds if phase.rpartition("/")[2] == PREPARING else None,
        communication_s=waited,
        calls=cost.calls,
        host_s=devices.run.phase_seconds.get(phase) if on_gpu else seconds,
        idle=idle if on_gpu else None,
    )
    chip, name = (devices.gpu_chip, devices.gpu) if on_gpu else (devices.cpu_chip, devices.cpu)
    return classify(spent, cost.work, cost.bytes_moved, chip, name=name)


def _seen(seconds: Mapping[str, float], waits: Mapping[str, float], idle: float | None) -> Bound:
    """What the GPUs waited for, where their sensors saw them wait for most of the time."""
    if idle is None:
        return Bound(UNKNOWN, why="no sensor of a GPU was read")
    whole = sum(seconds.values())
    data = sum(spent for phase, spent in seconds.items() if phase.rpartition("/")[2] == PREPARING)
    return classify(Spent(whole, (1 - idle) * whole, data, sum(waits.values()) or None), (), None, None)


def _waits(run: Run, costs: Mapping[str, _Cost]) -> dict[str, float]:
    """Seconds of waiting for other ranks, shared out by the bytes of each phase's messages: it is not known where each
    call was made."""
    if run.rank is None:
        return {}
    if run.rank.clock == "host":
        waited = sum(run.rank.comm_seconds.values())
    else:
        arrivals = Arrivals.unpacked(run.rank.arrivals)
        waited = arrivals.wait if arrivals is not None else 0.0
    sent = sum(cost.messages for cost in costs.values())
    return {phase: waited * cost.messages / sent for phase, cost in costs.items() if sent and cost.messages}


def _gpu_idle(devices: Devices) -> float | None:
    known = [(one.idle_seconds, one.seconds) for one in devices.accelerators if one.idle_seconds is not None]
    whole = sum(seconds for _, seconds in known)
    return sum(idle or 0.0 for idle, _ in known) / whole if whole > 0 else None


def _waited(run: Run) -> float:
    """Share of the run, where that matters."""
    use = run.meter.usage if run.meter is not None else {}
    share = use.get("cpu_wait_seconds", 0.0) / run.seconds if run.seconds > 0 else 0.0
    return min(share, 1.0) if share >= _SHARE else 0.0


def _without_peak(devices: Devices) -> str:
    return "" if devices.main_chip is not None or not devices.main else devices.main


def block(view: View) -> Block | None:
    found = view.bounds
    if found is None:
        return None
    document = _document(found)
    if not found.is_known:
        why = _unknown({phase: one for phase, one in _longest(found).items() if one.bound == UNKNOWN}, found)
        return Block("bottleneck", "Bottleneck", why[0][1] if why else UNKNOWN, tuple(why[1:]), document)
    told = [
        f"{name if name == UNKNOWN else f'{name}-bound'} {format_percent(share)}"
        for name, share in found.shares().items()
        if share >= 0.005
    ]
    told[0] += f" of {format_duration(float(f'{found.whole:.3g}'))} in phases"
    facts = [(phase or "other", str(one)) for phase, one in _longest(found).items() if one.bound != UNKNOWN]
    facts += _unknown({phase: one for phase, one in _longest(found).items() if one.bound == UNKNOWN}, found)
    if found.gpu_idle is not None:
        facts.append(("GPU idle", f"{format_percent(found.gpu_idle)} of the run, as its own sensor saw"))
    if waited := _waited(view.run):
        facts.append(("waited for a processor", f"{format_percent(waited)} of the run: others had it"))
    return Block("bottleneck", "Bottleneck", ", ".join(told), tuple(facts), document)


def _longest(found: Bounds) -> dict[str, Bound]:
    """Those that matter."""
    ordered = sorted(found.told, key=lambda phase: -found.seconds[phase])
    return {phase: found.told[phase] for phase in ordered[:_LISTED] if found.seconds[phase] >= _SHARE * found.whole}


def _unknown(phases: Mapping[str, Bound], found: Bounds) -> list[tuple[str, str]]:
    """Each reason once."""
    reasons: dict[str, list[str]] = {}
    for phase, one in phases.items():
        reasons.setdefault(one.why, []).append(phase)
    told = []
    for why, names in reasons.items():
        reached = [
            f"{format_percent(max(values))} of the {what}"
            for key, what in (("of_peak", "peak"), ("of_bandwidth", "bandwidth"))
            if (values := [phases[name].evidence[key] for name in names if key in phases[name].evidence])
        ]
        most = f" (at best {', '.join(reached)})" if reached else ""
        told.append((", ".join(name or "other" for name in names), f"unknown: {why}{most}{_help(why, found)}"))
    return told


def _help(why: str, found: Bounds) -> str:
    return _HELP if found.without_peak and found.without_peak in why else ""


def _document(found: Bounds) -> dict[str, Any]:
    return {
        "run": asdict(found.run),
        "shares": found.shares(),
        "by_phase": {
            phase or "other": {**asdict(one), "seconds": found.seconds[phase], "clock": found.clocks[phase]}
            for phase, one in found.phases.items()
        },
        "gpu_idle_share": found.gpu_idle,
    }
