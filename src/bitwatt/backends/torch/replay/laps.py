"""Units that repeat themselves: when a thread takes the short way, and how it comes back to the long one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from bitwatt.backends.torch.replay.functions import FUNCTION
from bitwatt.backends.torch.replay.lanes import Lane
from bitwatt.backends.torch.replay.lessons import Node, Step
from bitwatt.backends.torch.replay.memory import BACKWARD, CALL, STEP
from bitwatt.backends.torch.replay.pace import stepping
from bitwatt.backends.torch.replay.rows import NOISE, PAUSES
from bitwatt.backends.torch.replay.swift import FIRST, ran
from bitwatt.backends.torch.replay.watched import Watched
from bitwatt.backends.torch.state import AFTER, BEFORE, BEFORE_GRAPH, FORWARD
from bitwatt.backends.torch.timeline import ONE_IN

if TYPE_CHECKING:
    from bitwatt.backends.torch.state import ThreadState

_sequence = torch.autograd._get_sequence_nr


class Laps(Watched):
    """Lanes are entered at the beginning of a unit (by the learner), and left where something is due or unexpected."""

    def _find_lane(self, start: Node) -> None:
        """Remember the unit that ends here, if all of it is known."""
        if not all(step.safe for step in self.path):
            start.lane = None
        elif self._counted_here:
            if self._unresolved or self.sampling:
                start.lane = None
            elif start.lane is None or not start.lane.is_of(self.path):
                start.lane = Lane(self.path, self.node)
        elif self._unresolved:
            start.lane = None
        self._unresolved = []

    def _take_lane(self, *, watch: bool) -> None:
        """The unit that begins is taken the short way if it is known; `watch`: also where the code between its events
        is not, and nothing of it has run yet."""
        lane = self.start.lane if self.start.safe and not (self.looking or self._watch_gaps) else None
        if lane is None or not (lane.trusted or (watch and self._can_watch(lane))) or _names(self.state, lane):
            return
        self.lane, self.at, self.marking = lane, 0, self.state.timeline
        _name_before(self.state, lane)
        self.state.trail.mark(_sequence(), lane.trail)
        if lane.trusted:
            self._open_row()
        else:
            self._watch_lane()

    def _watched_lap(self, lane: Lane) -> None:
        lane.laps += 1
        self.tally.replayed += 1
        self.tally.events += len(lane.steps)
        self.tally.unchecked += lane.unchecked
        state = self.state
        self._seen += 1
        self.at, self._unit_seconds, self._began = 0, self._time - self._began, self._time
        self._before = (state.forward_done, state.forward_seen, state.ever_differentiated)
        start = self.starts[lane.then.form]
        follower = start.lane if start.safe else None
        start.countdown -= 1
        if start.countdown > 0 and follower is not None and not follower.trusted and self._can_watch(follower):
            if follower is not lane:
                self._change_lane(lane, start, follower)
            self._choose_marks(follower)
        else:
            self._leave_lane()
            self._begin_unit(lane.then.form)
            self.looking = not start.safe or start.countdown <= 0
            self._take_lane(watch=True)

    def _lap(self, lane: Lane) -> None:
        lane.laps += 1
        self.tally.replayed += 1
        self.tally.events += len(lane.steps)
        self.tally.gaps += len(lane.steps)
        self.tally.unchecked += lane.unchecked
        if self._expected is not None:
            self._count_blocks(lane)
        self.at = 0
        began, self._began = self._began, self._time
        if self._time - began > PAUSES * self._unit_seconds + NOISE:
            self.lingered(began, self._time)
        start = self.starts.get(lane.then.form)
        if start is None or not start.safe or start.lane is None or not start.lane.trusted:
            self._close_row()
            self._leave_lane()
            self._begin_unit(lane.then.form)
            if not self.node.calm:
                self._switch(self.state, True)
                self._log()
                self._mark()
            return
        start.countdown -= 1
        self._laps_since_peek += 1
        if self._until_peek:
            self._until_peek -= 1
            peek = not self._until_peek
        else:
            peek = self._laps_since_peek >= self._longest
        due = start.countdown <= peek  # a look would come right after the peek, and sees as much
        if peek and not due and self._can_wait(start):
            peek = False
        if peek and not due and start.lane is lane and self._can_watch(lane):
            self._close_row()
            self._until_peek = self._laps_since_peek = 0
            self._watch_lane()
            self._hold()
        elif peek or due:
            self._close_row()
            self._leave_lane()
            self._begin_unit(lane.then.form)
            self.looking = due
            self._peeking = not due  # at the code between events, for one unit: there programs do odd things
            self._until_peek = self._laps_since_peek = 0
            self._switch(self.state, True)
            self._log()
            self._mark()
        else:
            if start.lane is not lane:
                self._change_lane(lane, start, start.lane)
            self._hurry(start.lane)
            self._choose_marks(start.lane)

    def _can_wait(self, start: Node) -> bool:
        """Whether a peek may be left out: the row that follows will end with a look, which sees more, and the allocator
        vouches for what has run."""
        if start.countdown > self._longest or self._close_row() is None:
            return False
        self._open_row()
        self._until_peek = self._laps_since_peek = 0
        return True

    def _change_lane(self, lane: Lane, start: Node, follower: Lane) -> None:
        self.state.trail.mark(self.seq, follower.trail)
        self._ran.add(lane)
        if self.state.timeline is not None:
            self.state.timeline.mark_lane(lane, -1)
        self.lane, self.start, self.node = follower, start, start
        _name_before(self.state, follower)

    def _choose_marks(self, lane: Lane) -> None:
        """Whether the device's time of the lap that begins is taken event by event."""
        timeline = self.state.timeline if self.swift is None and not lane.laps % ONE_IN else None
        if timeline is not None and self.marking is None:
            timeline.mark_lane(lane, -1)
        self.marking = timeline

    def surprised(self) -> None:
        """An event begins that the swift way did not expect, or something before it did not happen as expected."""
        row, pace = self.swift, self.pace
        if row is None:
            return
        if pace.next is stepping:  # the step has raised: it is one whose frame is gone
            self._step_back()
            self.kind, self.frame = STEP, None
            return
        agrees = pace.inside - pace.entered == row.inside[pace.at] or row.excuses
        self._slow_down()
        lane = self.lane
        if not agrees and lane is not None:
            self.tally.disagrees("module calls")
            for step in lane.steps:
                step.event.doubt()
            self._longest = FIRST
            self._leave_lane()
            self._doubted = self.looking = True

    def unwatch(self) -> None:
        """Frames are put on the thread's stack, which lanes have none of: it goes on the long way."""
        self._leave_lane()

    def _leave_lane(self) -> None:
        """Back to the long way, as if it had been taken from the beginning of this unit."""
        self._slow_down()
        lane, at, inside = self.lane, self.at, self.step
        if lane is None:
            return
        self.lane = None
        state, watched = self.state, self.watched
        self.marking = None
        seen = [step.gap for step in lane.steps] if watched and self._seen else []
        self._ran.add(lane)
        while self._ran:
            self._ran.pop().flush(state)
        for gap in seen:
            gap.credited = False
        state.skip_clock(lane)
        if watched:
            self._look_away()
        began = self._began
        before = lane.steps[0].node.parent
        self._begin_unit(before.form if before is not None else None)
        self._began = began
        passed = lane.steps[:at]
        seq = self.seq - sum(ran(lesson)[0] for step in passed for lesson in (step.gap, step.event))
        if inside is not None:
            passed, seq = lane.steps[: at + 1], seq - ran(lane.steps[at].gap)[0]
        for i, step in enumerate(passed):
            self._credit(step.gap)
            _stage(state, step)
            if i == at:
                break  # the event under way ends the long way
            self._credit(step.event)
            self.tally.events += 1
            seq += ran(step.gap)[0] + ran(step.event)[0]
            if step.key[2][0] == CALL:
                state.left = seq
            self.path.append(step)
            self.node.heir = self.node = step.node
            self._place = step.number or self._numbered(step)
            self._closing = step.key[2][0] == BACKWARD or step.differentiates
        if watched and state.mode is not None:
            state.mode.book(state)


def _names(state: ThreadState, lane: Lane) -> bool:
    """Whether a lap begins with what tells the phase of calls before it: events in lanes give none."""
    return lane.steps[0].key[2][0] in (BACKWARD, STEP, FUNCTION) and any(state.pending.values())


def _name_before(state: ThreadState, lane: Lane) -> None:
    """What came before a lap that begins with a forward: calls in lanes give no phase to what has none yet."""
    first = lane.steps[0]
    forward = first.key[2][0] == CALL and (first.phase == "forward" or first.phase is FORWARD)
    if forward and not state.forward_done and any(state.pending.values()):
        state.resolve({BEFORE: "other", BEFORE_GRAPH: "forward"})


def _stage(state: ThreadState, step: Step) -> None:
    """What an event means for what came before it."""
    kind = step.key[2][0]
    if kind == CALL and (step.phase == "forward" or step.phase is FORWARD):
        state.enter_forward(continues="forward" in step.became(AFTER))
    elif kind == BACKWARD:
        state.enter_backward(through=lambda _: "loss" in step.became(BEFORE_GRAPH))
    elif kind == STEP:
        state.settle()
    elif kind == FUNCTION:
        step.settle(state)
