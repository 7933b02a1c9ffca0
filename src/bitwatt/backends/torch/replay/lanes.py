"""The short way of almost all steps: a unit that is known from end to end and repeats itself.

In a lane nothing is booked before the unit is complete. Marks are compared with those expected, and checksums with
those learned; phases are those that the unit had when it was counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bitwatt.backends.torch.replay.lessons import Lesson, Node, Step
from bitwatt.backends.torch.trail import chained

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.swift import Row
    from bitwatt.backends.torch.state import Place, ThreadState
    from bitwatt.context import Context


class Lane:
    """The steps of a unit, how often it ran, and the time spent in each of them and before it."""

    __slots__ = (
        "blocks", "flushed", "laps", "plain", "rest", "row", "seconds", "steps", "then", "trail", "unchecked",
        "written",
    )  # fmt: skip

    def __init__(self, steps: list[Step], then: Node) -> None:
        self.steps, self.then = tuple(steps), then
        self.laps = self.flushed = 0
        self.seconds = [0.0] * (2 * len(steps))
        self.written = [0.0] * (2 * len(steps))
        self.rest = 0.0  # seconds of laps in which no clocks were read inside
        self.plain = any(step.key[2][0] != "step" for step in steps)  # something tells how many graph nodes were made
        self.row: Row | None = None  # as it is taken the swiftest way
        self.unchecked = sum(step.unchecked for step in steps)  # events in a lap
        self.blocks: int | None = None  # of the CUDA allocator, that a lap takes
        self.trail = chained([(lesson.nodes, lesson.trail) for step in steps for lesson in (step.gap, step.event)])

    def is_of(self, steps: list[Step]) -> bool:
        return len(steps) == len(self.steps) and all(a is b for a, b in zip(steps, self.steps, strict=True))

    @property
    def trusted(self) -> bool:
        """Whether the code between its events need not be watched."""
        return all(step.gap.trusted for step in self.steps)

    def flush(self, state: ThreadState) -> None:
        """Write complete laps to the counts, and times to the clock."""
        state.moves += 1
        laps = self.laps - self.flushed
        self.flushed += laps
        self._share_out()
        for step in self.steps if laps else ():
            add(state, step.gap, laps)
            add(state, step.event, laps)
        for j, span in enumerate(self.spans()):
            spent = self.seconds[j] - self.written[j]
            if spent:
                self.written[j] += spent
                state.seconds[span] = state.seconds.get(span, 0.0) + spent
        state.moves += 1

    def unwritten(self, more: float) -> list[float]:
        """Times that are not written to the clock yet, with those of laps that are under way."""
        known = sum(self.seconds)
        scale = 1 + (self.rest + more) / known if known else 1.0
        return [spent * scale - written for spent, written in zip(self.seconds, self.written, strict=True)]

    def spans(self) -> list[tuple[Context, tuple[str, ...], str]]:
        """Whose the time before each event and in it is."""
        return [
            (step.key[1], step.key[1].phases, phase) for step in self.steps for phase in (_between(step), step.booked)
        ]

    def _share_out(self) -> None:
        known = sum(self.seconds)
        if known and self.rest:
            scale, self.rest = 1 + self.rest / known, 0.0
            self.seconds = [spent * scale for spent in self.seconds]


def _between(step: Step) -> str:
    """Time before a backward is the loss's, as it is when nothing is replayed."""
    return "loss" if step.key[2][0] == "backward" else "other"


def add(state: ThreadState, lesson: Lesson, times: int) -> None:
    """Credit all of a lesson, also what had no phase yet when it was counted: it has got one since."""
    lesson.credited = True
    if lesson.predicted is not None and lesson.settled:  # to work it out for every lap takes long
        lesson.laps += times
    else:
        write(state, lesson, times)


def write(state: ThreadState, lesson: Lesson, times: int) -> int:
    """Returns how many different calls it is."""
    rows = lesson.rows
    for place, keys in rows.items():
        at: Place = lesson.final.get(place, place)
        counts = state.counts_at(at)
        for key, n in keys.items():
            cell: Any = counts.get(key)
            if cell is None:
                counts[key] = [n * times]
            else:
                cell[0] += n * times
    return sum(map(len, rows.values()))
