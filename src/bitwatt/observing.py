"""Notes, for one session, when the user's phases ran and what they processed; marks them for NVIDIA's tools."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bitwatt import context
from bitwatt.errors import BitwattError
from bitwatt.observed import Figure, Observed, Span
from bitwatt.sensors.counters import Lock

#: Entries of phases that are kept one by one. Of later ones only their number and time are.
SPANS = 1_000
#: Names of things that are counted, in all phases together.
NAMES = 1_000
#: Ends of phases that are noted before they are added up.
NOTED = 256


def count(**amounts: int) -> None:
    """Say what is being processed: `bitwatt.count(samples=32, tokens=4096)`. Outside measure() it does nothing."""
    here = context.current()
    if here is None or here.token.observer is None:
        return
    for name, n in amounts.items():
        if isinstance(n, bool) or not hasattr(n, "__index__") or n.__index__() < 0:
            raise BitwattError(f"count({name}={n!r}): it takes whole numbers, 0 or more")
        here.token.observer.count("/".join(here.phases), name, n.__index__())


class Observer:
    """Told by `context` where phases begin and end (`Token.observer`)."""

    def __init__(self, *, nvtx: bool = False) -> None:
        self.nvtx = nvtx
        self._began = time.perf_counter()
        self._lock = Lock()
        self._processed: dict[str, dict[str, int]] = {}
        self._names = 0
        self._phases: dict[str, list[float]] = {}
        self._first: list[tuple[str, float, float, int]] = []  # of `ended`: they become spans when they are told
        self._threads: dict[int, int] = {}
        self._first_batch: float | None = None  # when a loader first handed one out
        #: Phase, begin, seconds, thread: not in the sums yet. Who appends to it beyond NOTED calls `add_up`.
        self.ended: list[tuple[str, float, float, int]] = []

    def enter(self, path: tuple[str, ...]) -> tuple[str, float, Any]:
        if not self.nvtx:
            return "/".join(path), time.perf_counter(), None
        ranges = cuda_ranges()
        ended = None if ranges is None else ranges.range_start(path[-1])  # a range may end on another thread
        return "/".join(path), time.perf_counter(), None if ranges is None else (ranges, ended)

    def leave(self, mark: tuple[str, float, Any]) -> None:
        """Only noted here, which is quick: phases may be as short, and as many, as calls of a method."""
        phase, began, marked = mark
        ended = self.ended
        ended.append((phase, began, time.perf_counter() - began, threading.get_ident()))
        if marked is not None:
            marked[0].range_end(marked[1])
        if len(ended) >= NOTED:
            self.add_up()

    def add_up(self) -> None:
        with self._lock:
            self._add()

    def _add(self) -> None:
        batch = self.ended[:]
        del self.ended[: len(batch)]  # other threads may have noted more by now
        phases = self._phases
        for phase, _, seconds, _ in batch:
            sums = phases.get(phase)
            if sums is None:
                sums = phases[phase] = [0, 0.0]
            sums[0] += 1
            sums[1] += seconds
        self._first += batch[: SPANS - len(self._first)]

    def _spans(self) -> Iterator[Span]:
        threads = self._threads
        for phase, began, seconds, ident in self._first:
            yield Span(phase, began - self._began, seconds, threads.setdefault(ident, len(threads)))

    def count(self, phase: str, name: str, n: int) -> None:
        with self._lock:
            amounts = self._processed.setdefault(phase, {})
            if name not in amounts:
                if self._names >= NAMES:
                    return
                self._names += 1
            amounts[name] = amounts.get(name, 0) + n

    def batch(self) -> None:
        """A loader hands one out."""
        if self._first_batch is None:
            self._first_batch = time.perf_counter()

    @property
    def beginning(self) -> dict[str, float]:
        """How long it took until the first batch was there."""
        return {} if self._first_batch is None else {"first_batch_seconds": self._first_batch - self._began}

    def take(self, inner: Observer, found: Observed | None, phases: tuple[str, ...]) -> None:
        """What a session inside this one noted is part of both. Its phases have told of themselves there."""
        if self._first_batch is None:
            self._first_batch = inner._first_batch
        for phase, amounts in found.processed.items() if found is not None else ():
            for name, n in amounts.items():
                self.count("/".join(filter(None, (*phases, phase))), name, n)

    def told(
        self,
        memory: Mapping[str, int] | None = None,
        peak: int | None = None,
        others: Iterable[Figure] = (),
    ) -> Observed | None:
        """Until now; None where there is nothing to tell."""
        with self._lock:
            self._add()
            found = Observed(
                {phase: dict(amounts) for phase, amounts in self._processed.items()},
                {phase: (int(entries), seconds) for phase, (entries, seconds) in self._phases.items()},
                tuple(self._spans()),
            )
        found = replace(found, device_memory=dict(memory or {}), device_peak=peak, others=tuple(others))
        return found or None


class Ranges:
    """Phases that a backend finds, as NVTX ranges of one thread: one is open at a time, or none."""

    def __init__(self) -> None:
        self.open: str | None = None

    def now(self, phase: str) -> None:
        """`phase` begins, in place of the one before. Names with a ? are not known yet: some of them mean nothing."""
        name = {"?forward": "forward", "?loss": "loss"}.get(phase, None if phase[:1] == "?" else phase)
        ranges = cuda_ranges()
        if ranges is None or name == self.open:
            return
        if self.open is not None:
            ranges.range_pop()
        if name is not None:
            ranges.range_push(name)
        self.open = name


def most(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The greatest of each name."""
    found: dict[str, int] = {}
    for part in parts:
        for name, n in part.items():
            found[name] = max(found.get(name, 0), n)
    return found


def cuda_ranges() -> Any:
    """torch's NVTX module where CUDA is in use; None elsewhere."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda.nvtx if cuda is not None and cuda.is_initialized() else None
