"""Cheap checksums of what ran unseen, and the tally of what was counted, replayed and found again."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from typing import Any

import torch

from bitwatt.records import Replay

_aten: Any = torch.ops.aten

#: Pairs of what was expected and what was found are kept so long: the largest is reported.
_KEPT = 32
#: Seconds of code that nobody watched that are worth a note: a busy machine takes tenths of one without our doing.
_LONG = 1.0


def allocations() -> int | None:
    """How many blocks the CUDA allocator has handed out in all; None where CUDA is not in use."""
    if not torch.cuda.is_initialized():
        return None
    stats: dict[str, Any] = torch._C._cuda_memoryStats(torch._C._cuda_getDevice())
    return int(stats["allocation"]["all"]["allocated"])


def queued() -> float:
    """Seconds for which this thread could have run and others had the processor; 0 where the system does not tell."""
    try:
        with open("/proc/thread-self/schedstat", "rb", buffering=0) as file:
            return int(file.read(64).split()[1]) * 1e-9
    except (OSError, LookupError, ValueError):
        return 0.0


def compiled_frames() -> int:
    """How much Python code dynamo has looked at; compiling makes graph nodes of its own."""
    dynamo: Any = sys.modules.get("torch._dynamo.convert_frame")
    return int(getattr(dynamo, "FRAME_COUNTER", 0))


@dataclass(slots=True)
class Tally:
    """Of one thread. Units are training steps, or calls of a model where there are none."""

    counted: int = 0
    replayed: int = 0
    events: int = 0  # replayed, with the graph nodes, module calls and sizes that they were known by
    gaps: int = 0  # unseen, with the graph nodes that they were known by
    unchecked: int = 0  # of the events, those that have nothing to compare
    allocations: int = 0  # rows of replayed units after which the allocator had handed out what was expected
    vouched: int = 0  # gaps in those rows
    disagreed: dict[str, int] = field(default_factory=dict)
    looks: int = 0  # units that were known, and counted again
    deviated: int = 0
    assumed: int = 0  # stretches that ran unseen before a mark that nobody expected there
    pauses: int = 0  # stretches that ran unseen and took much longer than when they were known,
    paused: float = 0.0  # and by how many seconds
    tail: float = 0.0  # seconds after the last event that ran unseen
    deviations: list[tuple[Any, Any]] = field(default_factory=list)
    samples: list[tuple[int, list[Any]]] = field(default_factory=list)  # as in a Harvest

    def __iadd__(self, other: Tally) -> Tally:
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.tail, self.paused = max(self.tail, other.tail), self.paused + other.paused
        for name, n in other.disagreed.items():
            self.disagreed[name] = self.disagreed.get(name, 0) + n
        self.deviations += other.deviations
        self.samples += other.samples
        return self

    def replay(self, exactness: str) -> Replay:
        return Replay(
            exactness,
            self.counted,
            self.replayed,
            self.looks,
            self.deviated,
            self.assumed,
            self.pauses,
            {
                "calls and steps": self.events - self.unchecked,
                "code between them": self.gaps,
                "allocations": self.allocations,
                "code between them, by allocations": self.vouched,
            },
            dict(self.disagreed),
            unchecked=self.unchecked,
            paused=self.paused,
        )

    @property
    def told(self) -> list[str]:
        found = []
        if self.tail:
            found.append(f"what ran in the last {self.tail:.1f} s, after the last step or call, was not watched")
        longer, places = self.paused - self.tail, self.pauses - bool(self.tail)
        where = f"{places:,} places that were" if places > 1 else "one place that was"
        if longer > _LONG and self.gaps > self.vouched:
            found.append(
                f"between steps {longer:.1f} s more passed than is known of the code there, in {where} not watched:"
                " what it computed there, if anything, is not counted (exactness='always' counts it)"
            )
        return found

    def pause(self, seconds: float) -> None:
        """A stretch that ran unseen took so much longer than when it was known."""
        self.pauses += 1
        self.paused += seconds

    def disagrees(self, check: str) -> None:
        self.disagreed[check] = self.disagreed.get(check, 0) + 1

    def deviation(self, expected: Any, found: Any) -> None:
        self.deviated += 1
        if len(self.deviations) < _KEPT:
            self.deviations.append((expected, found))


_NUMBERS = [one.name for one in fields(Tally) if one.type == "int"]

#: Ops whose results a program can see, or that give as many values as there are of some kind.
_READING = frozenset(
    {id(op.default) for op in (_aten._local_scalar_dense, _aten.nonzero, _aten.masked_select, _aten.equal)}
)


def reads(key: Any) -> bool:
    """Whether a call is one of those."""
    return type(key) is tuple and id(getattr(key[0], "func", None)) in _READING
