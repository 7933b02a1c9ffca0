"""What holds a phase up: its input, other ranks, the launching of kernels, memory or arithmetic, with the evidence.

The rule: where the device waits for more than half of a phase, the longest wait names it (data, other ranks, and what
is left of the gaps: launches). Else the roof does: the phase is compute-bound where its arithmetic intensity is above
the ridge of the device, peak over bandwidth, and memory-bound below.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bitwatt.hardware.catalogue import Chip
from bitwatt.impact.utilisation import ideal
from bitwatt.impact.work import Executed
from bitwatt.units import format_count, format_percent

COMPUTE, MEMORY, INPUT, COMMUNICATION, LAUNCH, UNKNOWN = (
    "compute",
    "memory",
    "input",
    "communication",
    "launch",
    "unknown",
)
#: A device that waits for longer than this share of a phase is held up by what it waits for.
WAITING = 0.5


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time of a phase went, as far as it was seen; None where nobody looked."""

    seconds: float
    device_s: float | None = None  # the device was busy
    input_s: float | None = None  # waited for data
    communication_s: float | None = None  # waited for other ranks
    calls: int = 0  # ops, each a launch or more


@dataclass(frozen=True, slots=True)
class Bound:
    """`bound` is one of compute, memory, input, communication, launch, unknown; `evidence` what it follows from."""

    bound: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    why: str = ""

    def __str__(self) -> str:
        return f"{self.bound}-bound: {self.why}" if self.bound != UNKNOWN else f"unknown: {self.why}"


def classify(spent: Spent, work: Iterable[Executed], bytes_moved: int | None, chip: Chip | None) -> Bound:
    """One phase. `bytes_moved` of the ledger is what ops read and wrote without any cache, so memory time is at most
    that; `chip` is the device that the phase ran on."""
    if spent.seconds <= 0:
        return Bound(UNKNOWN, why="it took no time")
    evidence = _waits(spent)
    waits = {name: evidence[key] for name, key in _WAITS.items() if key in evidence}
    longest = max(waits, key=lambda name: waits[name], default="")
    if waits and sum(waits.values()) > WAITING:
        return Bound(longest, evidence, _waited(longest, waits, spent))
    if chip is None:
        return Bound(UNKNOWN, evidence, "the device's peaks are not known")
    shares = ideal(work, chip)
    flops = sum(share.flops for share in shares if share.peak)
    compute_s = sum(share.seconds for share in shares)
    if not bytes_moved or chip.bandwidth is None or not flops:
        return Bound(UNKNOWN, evidence, "no work, no bytes or no bandwidth is known")
    memory_s = bytes_moved / chip.bandwidth.value
    intensity, ridge = flops / bytes_moved, flops / compute_s / chip.bandwidth.value
    busy = spent.device_s or spent.seconds
    evidence |= {
        "flop_per_byte": intensity, "ridge_flop_per_byte": ridge, "of_peak": compute_s / busy,
        "of_bandwidth": memory_s / busy,
    }  # fmt: skip
    bound = COMPUTE if intensity >= ridge else MEMORY
    side = "above" if bound == COMPUTE else "below"
    why = (
        f"{format_count(float(f'{intensity:.3g}'))} FLOP/B is {side} the ridge at "
        f"{format_count(float(f'{ridge:.3g}'))}; {format_percent(compute_s / busy)} of the peak, "
        f"{format_percent(memory_s / busy)} of the bandwidth (bytes of the ledger, modelled)"
    )
    return Bound(bound, evidence, why)


_WAITS = {INPUT: "input_share", COMMUNICATION: "communication_share", LAUNCH: "launch_share"}


def _waits(spent: Spent) -> dict[str, float]:
    """Shares of the phase. Launching is what is left where the device's busy time is known and others do not explain
    the rest."""
    found: dict[str, float] = {}
    if spent.input_s is not None:
        found["input_share"] = min(spent.input_s / spent.seconds, 1.0)
    if spent.communication_s is not None:
        found["communication_share"] = min(spent.communication_s / spent.seconds, 1.0)
    if spent.device_s is not None:
        found["device_busy_share"] = min(spent.device_s / spent.seconds, 1.0)
        idle = spent.seconds - spent.device_s - (spent.input_s or 0.0) - (spent.communication_s or 0.0)
        found["launch_share"] = max(idle / spent.seconds, 0.0)
    return found


def _waited(name: str, waits: Mapping[str, float], spent: Spent) -> str:
    share = format_percent(waits[name])
    if name == INPUT:
        return f"it waited for data {share} of the time"
    if name == COMMUNICATION:
        return f"it waited for other ranks {share} of the time"
    gap = (
        f", {format_count(float(f'{waits[name] * spent.seconds / spent.calls:.3g}'), 's')} for each op"
        if spent.calls
        else ""
    )
    return f"the device had nothing to do {share} of the time, with no wait for data or ranks seen{gap}"
