"""What a run showed beside its counts: samples and tokens, memory of the device, when phases ran, what others say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple


class Span(NamedTuple):
    """One entry of a phase, in seconds since the run began. `thread` numbers threads as they came."""

    phase: str
    begin_s: float
    seconds: float
    thread: int = 0


@dataclass(frozen=True, slots=True)
class Figure:
    """What another meter in the same program said. `energy_j` is None where it did not know."""

    meter: str  # CodeCarbon, Zeus
    energy_j: float | None
    how: str  # in words: by which method, of what
    seconds: float  # that it speaks of, inside the run
    parts_j: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Observed:
    """`device_memory` are bytes that were allocated in a phase, as far as it was looked at: its peak is no less. The
    peak of the whole run is `device_peak`, where the allocator tells it."""

    processed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # the user's phase -> samples, tokens, ...
    phases: Mapping[str, tuple[int, float]] = field(default_factory=dict)  # phase -> entries, seconds, inner ones too
    spans: tuple[Span, ...] = ()  # the first ones
    device_memory: Mapping[str, int] = field(default_factory=dict)
    device_peak: int | None = None
    others: tuple[Figure, ...] = ()

    def __bool__(self) -> bool:
        return any([self.processed, self.phases, self.device_memory, self.device_peak, self.others])

    def total(self, name: str) -> int:
        return sum(amounts.get(name, 0) for amounts in self.processed.values())

    @property
    def names(self) -> list[str]:
        return list(dict.fromkeys(name for amounts in self.processed.values() for name in amounts))

    def inside(self, phase: str) -> dict[str, int]:
        """What was processed in a phase and those in it."""
        sums: dict[str, int] = {}
        for path, amounts in self.processed.items():
            if path == phase or path.startswith(f"{phase}/"):
                for name, n in amounts.items():
                    sums[name] = sums.get(name, 0) + n
        return sums


def together(parts: Iterable[Observed]) -> Observed | None:
    """Of the processes of one job: what they processed adds up; times are those of the slowest; memory is the most
    that one of them had. When each was where is not told any more."""
    processed: dict[str, dict[str, int]] = {}
    phases: dict[str, tuple[int, float]] = {}
    memory: dict[str, int] = {}
    known, others = list(parts), list[Figure]()
    for part in known:
        for phase, amounts in part.processed.items():
            sums = processed.setdefault(phase, {})
            for name, n in amounts.items():
                sums[name] = sums.get(name, 0) + n
        for phase, (entries, seconds) in part.phases.items():
            before = phases.get(phase, (0, 0.0))
            phases[phase] = (max(before[0], entries), max(before[1], seconds))
        for phase, n in part.device_memory.items():
            memory[phase] = max(memory.get(phase, 0), n)
        others += part.others
    peaks = [part.device_peak for part in known if part.device_peak is not None]
    found = Observed(processed, phases, (), memory, max(peaks, default=None), tuple(others))
    return found or None


def observed_json(observed: Observed) -> dict[str, Any]:
    """For a file; `observed_of` reads it."""
    spans = [[span.phase, span.begin_s, span.seconds, span.thread] for span in observed.spans]
    return asdict(observed) | {"spans": spans}


def observed_of(fields: Mapping[str, Any]) -> Observed:
    known = {
        "phases": {phase: (entries, seconds) for phase, (entries, seconds) in fields["phases"].items()},
        "spans": tuple(Span(*one) for one in fields["spans"]),
        "others": tuple(Figure(**one) for one in fields["others"]),
    }
    return Observed(**{**fields, **known})


#: Less of a phase than this is noise of two clocks.
_NOISE = 0.01


def settled(spans: Mapping[str, float], told: Mapping[str, tuple[int, float]], seconds: float) -> dict[str, float]:
    """Seconds of each phase without those inside it, from what frameworks' clocks booked and what the user's phases
    lasted. The clocks look where models, steps and loaders are called: what ran before such a call was booked with it,
    though a phase may have ended in between. No time is made: what one phase is given is taken from where it was
    booked, from what is around it, or from `seconds` of the run that nobody booked."""
    if not spans:
        return {}
    found = dict(spans)
    free = max(0.0, seconds - sum(found.values()))
    deepest = sorted(told, key=lambda phase: -phase.count("/"))
    for phase in deepest:
        inside = _inside(found, phase)
        if (over := sum(inside.values()) - told[phase][1]) > _NOISE * told[phase][1]:
            free += over
            own = min(over, found.get(phase, 0.0))
            rest, others = over - own, sum(inside.values()) - found.get(phase, 0.0)
            for name, span in inside.items():
                found[name] = span - (own if name == phase else rest * span / others)
    for phase in deepest:
        lacks = told[phase][1] - sum(_inside(found, phase).values())
        if lacks <= _NOISE * told[phase][1]:
            continue
        given = min(lacks, free)
        free -= given
        for around in _around(phase):
            moved = min(lacks - given, found.get(around, 0.0))
            given += moved
            if moved:
                found[around] -= moved
        if given:
            found[phase] = found.get(phase, 0.0) + given
    return found


def _inside(spans: Mapping[str, float], phase: str) -> dict[str, float]:
    return {name: span for name, span in spans.items() if name == phase or name.startswith(f"{phase}/")}


def _around(phase: str) -> Iterator[str]:
    while phase := phase.rpartition("/")[0]:
        yield phase
    yield "other"
