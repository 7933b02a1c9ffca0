"""The short way of almost all steps: a unit that is known from end to end and repeats itself.

In a lane nothing is booked before the unit is complete. Marks are compared with those expected, and checksums with
those learned; phases are those that the unit had when it was counted.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from bitwatt.backends.torch.replay.lessons import Lesson, Node, Step
from bitwatt.backends.torch.trail import chained

if TYPE_CHECKING:
    from bitwatt.backends.torch.state import Place, ThreadState


class Lane:
    """The steps of a unit, how often it ran, and the time spent in each of them and before it."""

    __slots__ = (
        "_first", "blocks", "flushed", "inside", "laps", "nodes", "plain", "rest", "seconds", "steps", "then",
        "trail", "turns", "unchecked", "written",
    )  # fmt: skip

    def __init__(self, steps: list[Step], then: Node) -> None:
        self.steps, self.then = tuple(steps), then
        self.laps = self.flushed = 0
        self.seconds = [0.0] * (2 * len(steps))
        self.written = [0.0] * (2 * len(steps))
        self.rest = 0.0  # seconds of laps in which no clocks were read inside
        lessons = [lesson for step in steps for lesson in (step.gap, step.event)]
        self.turns = tuple([_turn(step) for step in steps])
        #: Graph nodes when each event begins, and the last has ended, counted from the beginning of the lap.
        self.nodes = [sum(lesson.nodes for lesson in lessons[: 2 * i + 1]) for i in range(len(steps))]
        self.nodes.append(sum(lesson.nodes for lesson in lessons))
        #: How often modules were called by then, and how much went into them. Before the first event: in the last lap.
        calls = [step.event.inside or 0 for step in steps]
        self.inside = [sum(calls), *[sum(calls[:i]) for i in range(1, len(steps))]]
        self._first: Any = None
        self.plain = (
            "call" in self.turns
            and None not in self.turns
            and not any(lesson.compiled for lesson in lessons)
            and not steps[-1].event.nodes
        )
        self.unchecked = sum(step.unchecked for step in steps)  # events in a lap
        self.blocks: int | None = None  # of the CUDA allocator, that a lap takes
        self.trail = chained([(lesson.nodes, lesson.trail) for step in steps for lesson in (step.gap, step.event)])

    def watches(self, parameter: Any) -> None:
        """One that gets a gradient: backward adds to what is there."""
        self._first = weakref.ref(parameter) if parameter is not None else None

    def adds(self) -> bool:
        parameter = self._first() if self._first is not None else None
        return parameter is not None and parameter.grad is not None

    def is_of(self, steps: list[Step]) -> bool:
        return len(steps) == len(self.steps) and all(a is b for a, b in zip(steps, self.steps, strict=True))

    def flush(self, state: ThreadState) -> None:
        """Write complete laps to the counts, and times to the clock. Called from the thread or while it runs."""
        laps = self.laps - self.flushed
        self.flushed += laps
        self._share_out()
        for i, step in enumerate(self.steps):
            if laps:
                add(state, step.gap, laps)
                add(state, step.event, laps)
            context = step.key[1]
            for j, phase in ((2 * i, _between(step)), (2 * i + 1, step.booked)):
                spent = self.seconds[j] - self.written[j]
                if spent:
                    self.written[j] += spent
                    key = (context, context.phases, phase)
                    state.seconds[key] = state.seconds.get(key, 0.0) + spent

    def _share_out(self) -> None:
        known = sum(self.seconds)
        if known and self.rest:
            scale, self.rest = 1 + self.rest / known, 0.0
            self.seconds = [spent * scale for spent in self.seconds]


def _turn(step: Step) -> Any:
    """What an event is told by when there is no time: its kind, or which optimizer steps."""
    who = step.key[2]
    if who[0] == "step":
        return who[1]
    return who[0] if who[0] in ("call", "backward") else None


def _between(step: Step) -> str:
    """Time before a backward is the loss's, as it is when nothing is replayed."""
    return "loss" if step.key[2][0] == "backward" else "other"


def add(state: ThreadState, lesson: Lesson, times: int) -> None:
    """Credit all of a lesson, also what had no phase yet when it was counted: it has got one since."""
    lesson.credited = True
    for place, keys in lesson.rows.items():
        at: Place = lesson.final.get(place, place)
        counts = state.counts_at(at)
        for key, n in keys.items():
            cell: Any = counts.get(key)
            if cell is None:
                counts[key] = [n * times]
            else:
                cell[0] += n * times
