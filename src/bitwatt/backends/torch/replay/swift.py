"""The swiftest way: rows of laps in which little more is done than to compare each event with the one expected.

For each event of a lap there is one object (replay.expecting) that does all comparisons: the mark, and what has
happened since the lap began (graph nodes made, modules called and how much went into them). Nothing is booked before
the row ends. One lap in many is run the ordinary way, with clocks; the time of the others is shared out as in those.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bitwatt.backends.torch.replay.checks import compiled_frames
from bitwatt.backends.torch.replay.expecting import (
    EVERY,
    RARELY,
    SELDOM,
    SURE,
    Event,
    ExpectedBackward,
    ExpectedCall,
    ExpectedFunction,
    ExpectedWhole,
    is_quiet,
    is_torchs,
)
from bitwatt.backends.torch.replay.expecting_steps import ExpectedStep
from bitwatt.backends.torch.replay.pace import over
from bitwatt.backends.torch.trail import Stretch, chained

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.lanes import Lane
    from bitwatt.backends.torch.replay.lessons import Lesson, Step
    from bitwatt.backends.torch.replay.marks import Structures
    from bitwatt.backends.torch.replay.rows import Rows

_now = time.perf_counter

#: Laps in a row: so many at first, four times as many each time, at most. Then one is timed event by event, and after
#: it the code between events is watched for one unit.
FIRST, MOST = 64, 4096
KINDS: dict[str, type[Event]] = {
    "call": ExpectedCall, "backward": ExpectedBackward, "step": ExpectedStep, "function": ExpectedFunction,
    "fetch": ExpectedWhole, "graph": ExpectedWhole,
}  # fmt: skip


class Row:
    """Lanes that follow each other in a ring, mostly one, as a list of what is expected next."""

    __slots__ = (
        "called", "compiled", "ends", "events", "expects", "first", "frames", "inside", "kinds", "lanes", "learner",
        "made", "models", "nodes", "pace", "quiet", "ran", "token", "turn",
    )  # fmt: skip

    def __init__(self, learner: Rows, structures: Structures, lanes: tuple[Lane, ...]) -> None:
        self.lanes, self.learner, self.pace = lanes, learner, learner.pace
        steps = [step for lane in lanes for step in lane.steps]
        self.frames = compiled_frames()
        self.compiled = any(step.gap.compiled or step.event.compiled for step in steps)
        self.ran = [(step.gap.ran, step.event.ran) for step in steps]
        #: Up to where each lane goes.
        self.ends = [sum(len(lane.steps) for lane in lanes[: i + 1]) for i in range(len(lanes))]
        #: Graph nodes when each event begins, and the last has ended, counted from the beginning of the lap. And how
        #: often modules were called by then, and how much went into them.
        self.nodes, self.inside = [0], [0]
        for step in steps:
            self.nodes[-1] += ran(step.gap)[0]
            self.nodes.append(self.nodes[-1] + ran(step.event)[0])
            self.inside.append(self.inside[-1] + (0 if is_quiet(step, structures) else ran(step.event)[1]))
        self.kinds: list[str] = [step.key[2][0] for step in steps]
        self.models = [(number, structures.states[number]) for step in steps for number in _models(step)]
        self.turn = -1  # after so many laps another share of them is looked at closely
        self.quiet = all(is_torchs(step, structures) for step in steps)
        self.made, self.called = self.nodes[-1], self.inside[-1]  # graph nodes in a lap, and modules
        self.token = steps[0].key[1].token
        events = [KINDS[self.kinds[at]](self, at, step, structures) for at, step in enumerate(steps)]
        events[-1].end = self.lap
        self.events, self.expects = events, [event.way(self.quiet) for event in events]
        self.first = self.expects[0]
        for at, event in enumerate(events[:-1]):
            event.next = self.expects[at + 1]

    def lap(self) -> bool:
        """The last event of a lap has come."""
        pace, now = self.pace, _now()
        if now - pace.began > pace.pause:
            self.learner.lingered(pace.began, now)
        pace.began = now
        pace.seq += self.made
        pace.entered += self.called
        pace.at = 0
        pace.done = done = pace.done + 1
        if done == self.turn:
            self._turn()
        pace.next = self.first if done < pace.laps and self.token.open else over
        return True

    def gap(self, at: int) -> int:
        """Graph nodes made by the code before an event."""
        lane, end = next((lane, end) for lane, end in zip(self.lanes, self.ends, strict=True) if at < end)
        return ran(lane.steps[at - end].gap)[0]

    def begin(self) -> None:
        """The first lap begins: what is not likely to change is looked at in each until the lanes are well known."""
        known, last = min(lane.laps for lane in self.lanes), self.pace.laps - 1
        self.pace.seldom, self.pace.rarely, self.turn = SELDOM, 0, last
        if self.quiet and known >= SURE:
            self.pace.seldom = self.pace.rarely = RARELY
        elif self.quiet:
            self.turn = min(SURE - known, last)
        for event in self.events:
            event.begin()

    def _turn(self) -> None:
        """The lanes are well known now; or this is the last lap: what has changed since they were looked at closely is
        found before the row ends, as the next unit would take it for a mark of its own."""
        pace, last = self.pace, self.pace.laps - 1
        if pace.done < last:
            pace.seldom = pace.rarely = RARELY
        else:
            pace.seldom, pace.rarely = EVERY, pace.rarely and EVERY
        self.turn = last

    @property
    def excuses(self) -> bool:
        """Whether something was compiled meanwhile, which calls modules and makes graph nodes of its own."""
        return self.compiled and self.frames != compiled_frames()

    def lasts(self, structures: Structures | None) -> bool:
        """Whether the models are what they were when they were last called; what was announced since is seen by the
        next call."""
        if structures is None:
            return True
        return not any(event.frozen_unheard for event in self.events) and all(
            state.lasts
            for number, state in self.models
            if state.model.stamp == structures.stamp and state.model.number == number
        )

    @property
    def turned_unheard(self) -> bool:
        """Whether options of optimizers have come into use since they were last looked at."""
        return any(event.turned_unheard for event in self.events)

    @property
    def trail(self) -> Stretch:
        return chained([(lane.trail[2], lane.trail) for lane in self.lanes])

    def stands(self, lanes: tuple[Lane, ...]) -> bool:
        """Whether it can be taken again: what it expects of compiled code is still so."""
        return (
            self.lanes == lanes
            and self.frames == compiled_frames()
            and self.ran == [(step.gap.ran, step.event.ran) for lane in lanes for step in lane.steps]
        )


def is_settled(lane: Lane) -> bool:
    """Whether it has been timed, and the checksums of its compiled parts have been learned."""
    lessons = [lesson for step in lane.steps for lesson in (step.gap, step.event) if lesson.compiled]
    frames = compiled_frames() if lessons else 0
    return any(lane.seconds) and all(lesson.ran is not None and lesson.frames == frames for lesson in lessons)


def ran(lesson: Lesson) -> tuple[int, int]:
    """The checksums of a lesson when it is replayed."""
    return lesson.ran if lesson.compiled and lesson.ran is not None else (lesson.nodes, lesson.inside or 0)


def _models(step: Step) -> list[int]:
    """The states of the models that an event calls."""
    who = step.key[2]
    return [who[1]] if who[0] == "call" else [number for number, _ in who[3]] if who[0] == "function" else []
