"""What holds a phase up: its input, other ranks, the issuing of ops, memory or arithmetic, with the evidence.

The rule, in this order:
1. Where the device waits for more than half of a phase, the longest wait names it: for data, for other ranks, and what
   is left of the gaps that a sensor saw (launch).
2. Where its work at the device's peaks would take little of the time, and issuing its ops explains the rest, it is
   launch-bound: each op took about as long as issuing one takes, or they are small and the host was at it all along.
   A sensor that saw the device hardly ever idle speaks against it: then the host waits for the device.
3. Where it comes near neither roof, and no sensor says that the device was busy, nobody knows.
4. Else the roof: compute-bound where the arithmetic would take longer than the memory, memory-bound where it would not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from bitwatt.hardware.catalogue import Chip
from bitwatt.impact.utilisation import ideal
from bitwatt.impact.work import Executed
from bitwatt.units import format_count, format_duration, format_percent

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
#: Issuing an op takes a framework about so long. One that takes longer than the second may be large itself.
ISSUING_S, SMALL_S = 10e-6, 100e-6
#: Where their work at peak takes less of the time than this, small ops are held up by the host, if that was at them for
#: so much of the time: one that runs ahead of a GPU is done earlier.
SLACK, PACE = 0.25, 0.8
#: What reaches less than this share of both roofs is held up by neither.
FAR = 0.1
#: Work in formats without a known peak is left out up to this share.
MINOR = 0.1


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time of a phase went, as far as it was seen; None where nobody looked. On a GPU `seconds` are from
    event to event in its queue, which holds the gaps between kernels, and
    `host_s` are those in which the program was at it."""

    seconds: float
    device_s: float | None = None  # kernels ran, as a sensor saw
    input_s: float | None = None  # waited for data
    communication_s: float | None = None  # waited for other ranks
    calls: int = 0  # ops, each a launch or more
    host_s: float | None = None
    idle: float | None = None  # share of the whole run in which a sensor saw no kernel run

    @property
    def is_busy(self) -> bool:
        """Whether a sensor says that the device hardly ever waited."""
        return self.idle is not None and self.idle < SLACK


@dataclass(frozen=True, slots=True)
class Bound:
    """`bound` is one of compute, memory, input, communication, launch, unknown; `evidence` what it follows from."""

    bound: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    why: str = ""

    def __str__(self) -> str:
        return f"{self.bound}-bound: {self.why}" if self.bound != UNKNOWN else f"unknown: {self.why}"


@dataclass(frozen=True, slots=True)
class _Roof:
    """How long the work takes at the peaks. A part is None where it is not known, and `because` says why."""

    compute_s: float | None
    memory_s: float | None
    flops: int = 0
    because: str = ""

    @property
    def ideal_s(self) -> float | None:
        """At least; of arithmetic and memory, which overlap, the longer."""
        known = [seconds for seconds in (self.compute_s, self.memory_s) if seconds is not None]
        return max(known) if known and not self.because else None


def classify(
    spent: Spent, work: Iterable[Executed], bytes_moved: int | None, chip: Chip | None, *, name: str = ""
) -> Bound:
    """One phase. `bytes_moved` of the ledger is what ops read and wrote without any cache, so memory time is at most
    that; `chip` is the device that the phase ran on, `name` what it is called."""
    if spent.seconds <= 0:
        return Bound(UNKNOWN, why="it took no time")
    evidence = _waits(spent)
    waits = {kind: evidence[key] for kind, key in _WAITS.items() if key in evidence}
    longest = max(waits, key=lambda kind: waits[kind], default="")
    if waits and sum(waits.values()) > WAITING:
        return Bound(longest, evidence, _waited(longest, waits, spent))
    roof = _roof(list(work), bytes_moved, chip, name or (chip.name if chip else ""))
    busy = spent.device_s or spent.seconds
    for key, seconds in (("of_peak", roof.compute_s), ("of_bandwidth", roof.memory_s)):
        if seconds is not None:
            evidence[key] = seconds / busy
    if why := _issuing(spent, roof.ideal_s):
        return Bound(LAUNCH, evidence | {"seconds_per_op": spent.seconds / spent.calls}, why)
    return _under(roof, spent, bytes_moved, evidence)


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
        return f"loading and preparing data took {_of(waits[name], 1.0)} of the time"
    if name == COMMUNICATION:
        return f"it waited for other ranks {share} of the time"
    gap = f", {_time(waits[name] * spent.seconds / spent.calls)} for each op" if spent.calls else ""
    return f"the device had nothing to do {share} of the time, with no wait for data or ranks seen{gap}"


def _roof(work: list[Executed], bytes_moved: int | None, chip: Chip | None, name: str) -> _Roof:
    if chip is None:
        return _Roof(None, None, because=f"no peak is known for {name!r}" if name else "its device is not known")
    shares = ideal(work, chip)
    flops = sum(share.flops for share in shares)
    lost = {share.format: share.flops for share in shares if share.peak is None}
    memory_s = bytes_moved / chip.bandwidth.value if bytes_moved is not None and chip.bandwidth else None
    if flops and sum(lost.values()) > MINOR * flops:
        return _Roof(None, memory_s, flops, f"no peak of {name} is known for {', '.join(sorted(lost))}")
    compute_s = sum(share.seconds for share in shares)
    if memory_s is None:
        missing = "the bytes it moved are" if bytes_moved is None else f"the bandwidth of {name} is"
        return _Roof(compute_s, None, flops, f"{missing} not known")
    because = "" if bytes_moved else "it moved no byte" if compute_s else "no work was counted in it"
    return _Roof(compute_s, memory_s, flops, because)


def _issuing(spent: Spent, ideal_s: float | None) -> str:
    """Why it is the issuing of ops that takes the time; empty where that cannot be said."""
    if not spent.calls or spent.is_busy:
        return ""
    each = spent.seconds / spent.calls
    told = f"{spent.calls:,} ops, {_time(each)} each"
    if ideal_s is None:
        return f"{told}: about what issuing one takes" if each <= ISSUING_S else ""
    share = ideal_s / spent.seconds
    told += f"; their work at peak is {format_percent(share)} of that"
    if share < WAITING and each * WAITING <= ISSUING_S:
        return told
    if share < SLACK and each <= SMALL_S and spent.host_s is not None and spent.host_s >= PACE * spent.seconds:
        return f"{told}, and the host was at it {_of(spent.host_s, spent.seconds)} of the time"
    return ""


def _under(roof: _Roof, spent: Spent, bytes_moved: int | None, evidence: dict[str, float]) -> Bound:
    compute, memory = evidence.get("of_peak"), evidence.get("of_bandwidth")
    if compute is None or memory is None or not bytes_moved or roof.because:  # one alone says it where most time goes
        for bound, share, what in ((COMPUTE, compute, "peak"), (MEMORY, memory, "bandwidth")):
            if share is not None and share > WAITING:
                return Bound(bound, evidence, f"{format_percent(share)} of the {what}; {roof.because}")
        return Bound(UNKNOWN, evidence, roof.because)
    reached = f"{format_percent(compute)} of the peak, {format_percent(memory)} of the bandwidth"
    if max(compute, memory) < FAR and not spent.is_busy:
        return Bound(UNKNOWN, evidence, "far from both roofs, and no wait or issuing of ops explains it")
    if compute:
        ridge = roof.flops / bytes_moved * memory / compute
        evidence |= {"flop_per_byte": roof.flops / bytes_moved, "ridge_flop_per_byte": ridge}
        side = "above" if compute >= memory else "below"
        reached = f"{_count(roof.flops / bytes_moved)} FLOP/B is {side} the ridge at {_count(ridge)}; {reached}"
    far = "; the device was busy, its kernels are far from both" if max(compute, memory) < FAR else ""
    far += "; more than the peak, so in a faster format or clock" if compute > 1 + MINOR else ""
    return Bound(COMPUTE if compute >= memory else MEMORY, evidence, f"{reached} (bytes of the ledger, modelled){far}")


def _of(part: float, whole: float) -> str:
    return "all" if part >= whole else format_percent(part / whole)


def _time(seconds: float) -> str:
    return format_duration(float(f"{seconds:.2g}"))


def _count(amount: float) -> str:
    return format_count(float(f"{amount:.3g}")) if amount >= 1 else f"{amount:.3g}"
