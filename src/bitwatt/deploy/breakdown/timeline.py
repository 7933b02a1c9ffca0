"""What a call was doing when: functions inside it say when they begin and end, and the time between is theirs.

A part's time is its own, without the parts inside it, so that parts add up to the call. Which group it belongs to is
told by when it ran: before the first operator that does the model's arithmetic, up to the last of them, or after.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from statistics import median
from typing import Any

from bitwatt.deploy.records import Stage
from bitwatt.uncollected import uncollected

PREPROCESS, LINEAR, POSTPROCESS = "preprocess", "linear", "postprocess"
#: Calls that are made and not used, the first of which may compile; the fewest and most that are.
WARM, LEAST, MOST = 3, 7, 400


@dataclass(frozen=True, slots=True)
class Part:
    """A function that is watched. `core`: it holds the arithmetic; of several kinds the highest that ran counts, so
    that an estimator's decision function stands for it where it has one. `group`: told by what it is, not by when."""

    name: str
    core: int = 0
    group: str = ""


@dataclass
class Timeline:
    """Of one call at a time, in the thread that makes it."""

    clock: Callable[[], int] = time.perf_counter_ns
    whole: str = "the rest of the call"
    _events: list[tuple[int, Part | None]] = field(default_factory=list)  # None: the innermost part ends
    _thread: int = 0

    def wrap(self, function: Callable[..., Any], part: Part) -> Callable[..., Any]:
        @functools.wraps(function, updated=())
        def watched(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != self._thread:  # a pool's: the part that waits for it has the time
                return function(*args, **kwargs)
            with self.during(part):
                return function(*args, **kwargs)

        return watched

    @contextmanager
    def during(self, part: Part) -> Iterator[None]:
        self._events.append((self.clock(), part))
        try:
            yield
        finally:
            self._events.append((self.clock(), None))

    def of(self, call: Callable[[], Any]) -> dict[tuple[str, str], int]:
        """Nanoseconds by name and group."""
        self._events.clear()
        self._thread = threading.get_ident()
        try:
            with self.during(Part(self.whole)):
                call()
        finally:
            self._thread = 0
        return _grouped(list(_segments(self._events)), self._events)


def _segments(events: Sequence[tuple[int, Part | None]]) -> Iterator[tuple[Part, int, int]]:
    """Stretches of time in which one part ran and none inside it."""
    stack: list[Part] = []
    since = 0
    for when, part in events:
        if stack and when > since:
            yield stack[-1], since, when
        if part is None:
            stack.pop()
        else:
            stack.append(part)
        since = when


def _grouped(
    segments: Iterable[tuple[Part, int, int]], events: Sequence[tuple[int, Part | None]]
) -> dict[tuple[str, str], int]:
    level = max((part.core for _, part in events if part is not None), default=0)
    spans = _spans(events, level) if level else []
    first, last = min((begun for begun, _ in spans), default=0), max((ended for _, ended in spans), default=0)
    found: dict[tuple[str, str], int] = {}
    for part, begun, ended in segments:
        group = part.group or (
            PREPROCESS if spans and ended <= first else POSTPROCESS if spans and begun >= last else LINEAR
        )
        found[part.name, group] = found.get((part.name, group), 0) + ended - begun
    return found


def _spans(events: Sequence[tuple[int, Part | None]], level: int) -> list[tuple[int, int]]:
    """When parts of this level ran."""
    spans, stack = [], []
    for when, part in events:
        if part is not None:
            stack.append((when, part))
            continue
        begun, ending = stack.pop()
        if ending.core == level:
            spans.append((begun, when))
    return spans


@dataclass(frozen=True, slots=True)
class Timed:
    """Plain and watched calls by turns, so that what a neighbour takes is taken from both."""

    plain_ms: float
    overhead: float
    stages: tuple[Stage, ...]
    calls: int


def slower(plain: Sequence[int], watched: Sequence[int]) -> float:
    """By how much, from calls made one right after the other: those met the same neighbours."""
    return median(later / earlier for earlier, later in zip(plain, watched, strict=True)) - 1


def compare(
    plain: Callable[[Any], Any],
    watched: Callable[[Any], dict[tuple[str, str], int]],
    batches: Iterator[Any],
    seconds: float,
) -> Timed:
    """Medians over calls: a mean is wrecked by one call that another program interrupted. A part that did not run in
    a call took no time in it."""
    bare: list[int] = []
    split: list[dict[tuple[str, str], int]] = []
    gc.collect()  # its cost would fall on whoever runs then
    with uncollected():
        for rows in islice(batches, WARM):
            plain(rows)
            watched(rows)
        until = time.perf_counter() + seconds
        late = until + 4 * seconds
        while len(split) < MOST:
            now = time.perf_counter()
            if split and now >= until and (len(split) >= LEAST or now >= late):
                break
            rows, plain_first = next(batches), len(split) % 2 == 0  # whoever comes second finds the rows in the caches
            if not plain_first:
                split.append(watched(rows))
            began = time.perf_counter_ns()
            plain(rows)
            bare.append(time.perf_counter_ns() - began)
            if plain_first:
                split.append(watched(rows))
    names = list(dict.fromkeys(name for call in split for name in call))
    stages = tuple(Stage(*name, median(call.get(name, 0) for call in split) / 1e6) for name in names)
    return Timed(median(bare) / 1e6, slower(bare, [sum(call.values()) for call in split]), stages, len(split))


def plainly(call: Callable[[Any], Any], batches: Iterator[Any], seconds: float) -> float:
    """Median ms of a call."""
    return compare(call, lambda rows: {}, batches, seconds).plain_ms
