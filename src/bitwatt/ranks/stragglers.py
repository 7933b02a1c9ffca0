"""Who held up the others: from the time each rank was busy before it met them, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bitwatt.ranks.arrivals import Arrivals

#: Being last by less than this is no delay: in seconds, and as a share of a step.
_LEAST, _SHARE = 1e-3, 0.05
#: Beside its large delays, those below this share of them are noise.
_SMALL = 0.1
#: A rank that holds up fewer steps than this does so now and then, not always.
_CHRONIC = 0.1
#: A step held up once is told where it cost more than this many others.
_ONCE = 5
#: Delays that add up to less than this share of the time are not worth a word.
_WORTH = 0.02
#: Steps at the beginning, in which everybody loads and allocates.
_WARM_UP = 2
#: Steps that must be there to speak of any.
_FEW = 5
#: Pairs of rank and step that are looked at: with very many ranks, fewer steps of each, but so many at least.
_LOOKS, _ENOUGH = 300_000, 100


@dataclass(frozen=True, slots=True)
class Delay:
    """How one rank held up the others. Seconds."""

    rank: int
    steps: int  # it was the last in, by more than noise
    of: int
    typical: float  # the median of its delays
    total: float  # of the steps looked at
    worst: tuple[int, float]  # step and delay
    is_chronic: bool

    def __str__(self) -> str:
        from bitwatt.units import format_duration

        def told(seconds: float) -> str:
            return format_duration(float(f"{seconds:.2g}"))

        if self.is_chronic:
            share = round(100 * self.steps / self.of)
            return f"rank {self.rank} held up {share} % of steps by a median of {told(self.typical)}"
        step, delay = self.worst
        times = "once" if self.steps == 1 else f"{self.steps} times in {self.of:,} steps"
        return f"rank {self.rank} held up the others {times}, by {told(delay)} in step {step:,}"


@dataclass(frozen=True, slots=True)
class Waiting:
    """Where the time of the ranks went, and who is to blame. `waited` and `delayed` are seconds by rank."""

    steps: int
    step_seconds: float
    waited: Mapping[int, float] = field(default_factory=dict)
    delayed: Mapping[int, float] = field(default_factory=dict)
    delays: Sequence[Delay] = ()


def waiting(arrivals: Mapping[int, Arrivals]) -> Waiting | None:
    """None where no two ranks met often enough to tell."""
    met = {rank: one for rank, one in arrivals.items() if one.count}
    if len(met) < 2:
        return None
    steps = list(_steps(met))
    if len(steps) < _FEW:
        return None
    lengths = [median(busy + wait for busy, wait in spans.values()) for _, spans in steps]
    typical = median(lengths) / 1e6
    found: dict[int, list[tuple[int, float]]] = {}
    for index, spans in steps:
        last, late = _last(spans)
        found.setdefault(last, []).append((index, late))
    outliers = _outliers(met, steps, typical)
    held_up = {rank: _beyond_noise(rank, found, typical) + outliers.get(rank, []) for rank in {**found, **outliers}}
    delays = [_delay(rank, late_by, len(steps)) for rank, late_by in held_up.items() if late_by]
    totals = dict.fromkeys(met, 0.0) | {delay.rank: delay.total for delay in delays}
    named = [delay for delay in delays if _stands_out(delay, totals, typical)]
    count = max(one.count for one in met.values())
    return Waiting(
        count,
        typical,
        {rank: one.wait for rank, one in met.items()},
        {rank: total * count / len(steps) for rank, total in totals.items()},
        sorted(named, key=lambda delay: -delay.total),
    )


def _beyond_noise(
    rank: int, found: Mapping[int, Sequence[tuple[int, float]]], typical: float
) -> list[tuple[int, float]]:
    """Steps in which `rank` was late by more than another is now and then. Of the others the middle one tells: one of
    them may hold up the rest too."""
    noise = median([_upper(steps) for other, steps in found.items() if other != rank] or [0.0])
    own = sorted(late for _, late in found.get(rank, ()))
    large = own[9 * len(own) // 10] if own else 0.0
    least = max(_LEAST, _SHARE * typical, 2 * noise, _SMALL * large)
    return [(index, late) for index, late in found.get(rank, ()) if late > least]


def _upper(steps: Sequence[tuple[int, float]]) -> float:
    """Three quarters of the delays are shorter."""
    late = sorted(late for _, late in steps)
    return late[3 * len(late) // 4] if len(late) > 3 else 0.0


def _steps(met: Mapping[int, Arrivals]) -> Iterator[tuple[int, dict[int, tuple[int, int]]]]:
    """Steps that several ranks have kept, with what each did."""
    ranks = {rank: one.sample for rank, one in met.items()}
    longest = max(ranks.values(), key=len)
    looked = found = 0
    for index in longest:
        if index < _WARM_UP and len(longest) > 4 * _WARM_UP:
            continue
        spans = {rank: sample[index] for rank, sample in ranks.items() if index in sample}
        if len(spans) > 1:
            yield index, spans
            looked, found = looked + len(spans), found + 1
            if looked > _LOOKS and found >= _ENOUGH:
                return


def _last(spans: Mapping[int, tuple[int, int]]) -> tuple[int, float]:
    """The rank that came last and by how much, in seconds, it was later than the middle of the others."""
    last = max(spans, key=lambda rank: spans[rank][0])
    others = median(busy for rank, (busy, _) in spans.items() if rank != last)
    return last, (spans[last][0] - others) / 1e6


def _outliers(
    met: Mapping[int, Arrivals], steps: Sequence[tuple[int, object]], typical: float
) -> dict[int, list[tuple[int, float]]]:
    """Delays in the longest steps, as far as those are not among the others."""
    known = {index for index, _ in steps}
    found: dict[int, list[tuple[int, float]]] = {}
    for index in sorted({index for one in met.values() for index in one.longest} - known):
        spans = {rank: one.longest[index] for rank, one in met.items() if index in one.longest}
        if index >= _WARM_UP and len(spans) > 1:
            last, late = _last(spans)
            if late > _ONCE * typical:
                found.setdefault(last, []).append((index, late))
    return found


def _delay(rank: int, late: list[tuple[int, float]], of: int) -> Delay:
    delays = [delay for _, delay in late]
    worst = max(late, key=lambda one: one[1])
    return Delay(rank, len(late), of, median(delays), sum(delays), worst, len(late) >= _CHRONIC * of)


def _stands_out(delay: Delay, totals: Mapping[int, float], typical: float) -> bool:
    """Whether it is this rank rather than chance: where all are late alike, nobody holds up anybody."""
    if not delay.is_chronic:
        return delay.worst[1] > _ONCE * typical
    others = median(total for rank, total in totals.items() if rank != delay.rank)
    return delay.total > 3 * others and delay.total > _WORTH * typical * delay.of
