"""Who held up the others: from the time each rank was busy before it met them, step by step.

Somebody is always the last. A rank is named where that can hardly be chance: it comes last again and again, over the
whole run, by more than the others do; or once, by a delay unlike all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bitwatt.ranks import chance
from bitwatt.ranks.arrivals import Arrivals

#: Being last by less than this is no delay: in seconds, and as a share of a step.
_LEAST, _SHARE = 1e-3, 0.05
#: Delays of a rank are longer than those of the others where they are so many times as long.
_LATER = 3
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
#: Runs are cut into so many parts at least, if they are long enough: what is late for a while is late in few of them.
_PARTS = 32
#: In runs of fewer steps than this, a rank must come last in three quarters of the run to be late again and again.
_SHORT = 320
#: What would happen by chance in one of so many jobs is not told: of coming last again and again by more than the
#: others do, of coming last again and again at all, and of one delay.
_AGAIN, _SURELY, _ONE = 4e-3, 1e-5, 1e-3
#: Stragglers that are looked for beside each other.
_STRAGGLERS = 8
#: Pairs of rank and step that are looked at: with very many ranks, fewer steps of each, but so many at least.
_LOOKS, _ENOUGH = 300_000, 100

Spans = dict[int, tuple[int, int]]  # of one step: rank -> busy, wait


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
    least = max(_LEAST, _SHARE * typical)
    again = _again_and_again([spans for _, spans in steps], least)
    least = max(least, 2 * _noise([spans for _, spans in steps], again))
    held_up = {rank: _beyond(found.get(rank, ()), least) + outliers.get(rank, []) for rank in {**found, **outliers}}
    delays = [_delay(rank, late_by, len(steps)) for rank, late_by in held_up.items() if late_by]
    totals = dict.fromkeys(met, 0.0) | {delay.rank: delay.total for delay in delays}
    named = [delay for delay in delays if delay.rank in again and delay.total > _WORTH * typical * delay.of]
    named += _apart(found, outliers, typical, len(steps), {delay.rank for delay in named})
    count = max(one.count for one in met.values())
    return Waiting(
        count,
        {rank: one.wait for rank, one in met.items()},
        {rank: total * count / len(steps) for rank, total in totals.items()},
        sorted(named, key=lambda delay: -delay.total),
    )


def _beyond(delays: Sequence[tuple[int, float]], least: float) -> list[tuple[int, float]]:
    """Steps in which a rank was late by more than any is now and then, and not by little beside its other delays."""
    own = sorted(late for _, late in delays)
    large = own[9 * len(own) // 10] if own else 0.0
    return [(index, late) for index, late in delays if late > max(least, _SMALL * large)]


def _noise(steps: Sequence[Spans], without: Collection[int]) -> float:
    """By how much the last of the others comes later, three times out of four."""
    others = [_without(spans, without) for spans in steps]
    lates = [_last(spans)[1] for spans in others if len(spans) > 1]
    if lates:
        return _upper(lates)
    # Only one other is left. Beside a rank that is late now and then, its own delays tell; beside one that always is,
    # it comes last by the longest of them only, and how evenly the two lie apart tells.
    apart = [late if last in without else -late for last, late in map(_last, steps)]
    middle = median(apart)
    return min(_upper([-late for late in apart if late < 0]), _upper([abs(late - middle) for late in apart]))


def _upper(lates: Sequence[float]) -> float:
    """Three quarters are less."""
    return sorted(lates)[3 * len(lates) // 4] if len(lates) > 3 else 0.0


def _without(spans: Spans, ranks: Collection[int]) -> Spans:
    return {rank: span for rank, span in spans.items() if rank not in ranks}


def _steps(met: Mapping[int, Arrivals]) -> Iterator[tuple[int, Spans]]:
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


def _again_and_again(steps: Sequence[Spans], least: float) -> set[int]:
    """Ranks that were last so often, and by so much, as no rank would be by chance; with those found left out, others
    may be."""
    found: set[int] = set()
    for _ in range(_STRAGGLERS):
        rest = [_without(spans, found) for spans in steps]
        new = _more_than_chance([spans for spans in rest if len(spans) > 1], least)
        if not new:
            break
        found |= new
    return found


def _more_than_chance(steps: Sequence[Spans], least: float) -> set[int]:
    """Parts of the run are compared, not steps: a busy minute of one machine is long in steps, but it is one event."""
    lates = [(late if late > least else 0.0, last) for last, late in map(_last, steps)]
    players = max(map(len, steps), default=0)
    rounds = [(late, last, players) for late, last in _leaders(lates, _PARTS)]
    chances = chance.of_winning(rounds, list({last for _, last, _ in rounds}))
    found = {
        rank
        for rank, by_chance in chances.items()
        if by_chance * players < (_AGAIN if _is_later(rank, lates, steps) else _SURELY)
    }
    if len(steps) < _SHORT:
        quarters = [last for _, last in _leaders(lates, 4)]
        found = {rank for rank in found if quarters.count(rank) >= 3}
    return found


def _leaders(lates: Sequence[tuple[float, int]], parts: int) -> list[tuple[float, int]]:
    """Who was late most in each part of the run, and by how much; parts in which nobody was are left out."""
    length, leaders = max(1, len(lates) // parts), []
    for begin in range(0, len(lates), length):
        sums: dict[int, float] = {}
        for late, last in lates[begin : begin + length]:
            sums[last] = sums.get(last, 0.0) + late
        leader = max(sums, key=lambda rank: sums[rank])
        if sums[leader]:
            leaders.append((sums[leader], leader))
    return leaders


def _is_later(rank: int, lates: Sequence[tuple[float, int]], steps: Sequence[Spans]) -> bool:
    """Whether half of its delays are longer than most of the others', and not by little."""
    return median(late for late, last in lates if late and last == rank) > _LATER * _noise(steps, {rank})


def _apart(
    found: Mapping[int, Sequence[tuple[int, float]]], outliers: Mapping[int, Sequence[tuple[int, float]]],
    typical: float, of: int, known: set[int],
) -> list[Delay]:  # fmt: skip
    """The few delays that are unlike all others, of ranks not named yet."""
    lates = [(late, rank, index) for delays in (found, outliers) for rank, own in delays.items() for index, late in own]
    count, by_chance = chance.of_apart([late for late, *_ in lates])
    single: dict[int, list[tuple[int, float]]] = {}
    for late, rank, index in sorted(lates, reverse=True)[: count if by_chance < _ONE else 0]:
        if late > _ONCE * typical and rank not in known:
            single.setdefault(rank, []).append((index, late))
    return [_delay(rank, own, of) for rank, own in single.items()]
