"""Units that repeat themselves: when a thread takes the short way, and how it comes back to the long one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from bitwatt.backends.torch.replay.checks import allocations
from bitwatt.backends.torch.replay.functions import FUNCTION
from bitwatt.backends.torch.replay.lanes import Lane
from bitwatt.backends.torch.replay.lessons import Node, Step
from bitwatt.backends.torch.replay.memory import BACKWARD, CALL, STEP, Memory
from bitwatt.backends.torch.replay.swift import TIMED
from bitwatt.backends.torch.state import FORWARD

if TYPE_CHECKING:
    from bitwatt.backends.torch.state import ThreadState

_sequence = torch.autograd._get_sequence_nr
_now = time.perf_counter

#: A lap that lasts so many times as long as one used to, and a millisecond more, is a pause.
_PAUSES, _NOISE = 3.0, 1e-3


class Laps(Memory):
    """Lanes are entered at the beginning of a unit (by the learner), and left where something is due or unexpected."""

    def _find_lane(self, start: Node, known: bool) -> None:
        """Remember the unit that ends here, and take the short way if the next one is known too."""
        if self._counted_here:
            if not known or self._unresolved or self.sampling:
                start.lane = None
            elif start.lane is None or not start.lane.is_of(self.path):
                start.lane = Lane(self.path, self.node)
                start.lane.watches(self.first() if self.first is not None else None)
        elif self._unresolved:
            start.lane = None
        self._unresolved = []

    def _lap(self, lane: Lane) -> None:
        lane.laps += 1
        self.tally.replayed += 1
        self.tally.events += len(lane.steps)
        self.tally.gaps += len(lane.steps)
        self.tally.unchecked += lane.unchecked
        if self._expected is not None:
            self._count_blocks(lane)
        self.at = 0
        spent, self._began = self._time - self._began, self._time
        if spent > _PAUSES * self._unit_seconds + _NOISE:
            self.tally.pauses += 1
        start = self.starts.get(lane.then.form)
        if start is None or not start.safe or start.lane is None:
            self._close_row()
            self._leave_lane()
            return
        start.countdown -= 1
        self._laps_since_peek += 1
        peek = (lane.plain and self._has_hurried) or self._laps_since_peek >= TIMED
        if peek or start.countdown <= 0:
            self._close_row()
            self._leave_lane()
            self.looking = not peek
            self._peeking = peek  # at the code between events, for one unit: there programs do odd things
            self._has_hurried, self._laps_since_peek = False, 0
            self._switch(self.state, True)
            self._log()
            self._mark()
        else:
            if start.lane is not lane:
                self.state.trail.mark(self.seq, start.lane.trail)
                self._ran.add(lane)
                self.lane, self.start, self.node = start.lane, start, start
            self._hurry(start.lane)

    def _hurry(self, lane: Lane) -> None:
        """Take laps the swiftest way, as many as nothing is due and it is nobody's turn to be timed."""
        after = self.starts.get(lane.then.form)
        if lane.plain and after is not None and after.safe and (self._expected is None or lane.blocks is not None):
            alone = after.lane is lane
            self._laps = (
                min(self._random.randint(TIMED // 2, TIMED), after.countdown - 1)
                if alone
                else int(after.countdown > 1 and after.lane is not None)
            )
            self.swift = self._laps > 0
            if self.swift:
                self._has_hurried = True
                self._pause = _PAUSES * self._unit_seconds + _NOISE
                self._swift_from, self._swift_laps = _now(), lane.laps
                self.inside = lane.inside[0]

    def hurried_lap(self, lane: Lane) -> None:
        """The last event of a lap has begun. Where the next lap goes was known when this one began."""
        lane.laps += 1
        now = _now()
        if now - self._began > self._pause:
            self.tally.pauses += 1
        self._began = now
        self.at = 0
        self.seq += lane.nodes[-1]
        self._laps -= 1
        if self._laps:
            return
        self._slow_down()
        start = self.starts[lane.then.form]
        follower = start.lane
        if follower is not None and follower is not lane:
            self.state.trail.mark(self.seq, follower.trail)
            self._ran.add(lane)
            self.lane, self.start, self.node = follower, start, start
            self._hurry(follower)

    def _slow_down(self) -> None:
        """From here on the ordinary way. The event that began last may still run: its time is not known."""
        self.swift, self._time = False, 0.0
        lane = self.lane
        if lane is not None:
            if self.at:  # to the end of the last event
                self.seq += lane.nodes[self.at - 1] + lane.steps[self.at - 1].event.nodes
            laps = lane.laps - self._swift_laps
            lane.rest += self._began - self._swift_from if laps else 0.0
            self.tally.replayed += laps
            self.tally.events += laps * len(lane.steps)
            self.tally.gaps += laps * len(lane.steps)
            self.tally.unchecked += laps * lane.unchecked
            self.starts[lane.then.form].countdown -= laps
            self._add_laps(lane, laps)

    def surprised(self) -> None:
        """An event begins that the swift way did not expect, or something before it did not happen as expected."""
        lane, at = self.lane, self.at
        if lane is None:
            return
        agrees = self.inside == lane.inside[at] or lane.turns[at] != "call"
        self._slow_down()
        if not agrees:
            self.tally.disagrees("module calls")
            for step in lane.steps:
                step.event.doubt()
            self._leave_lane()
            self._doubted = self.looking = True

    def _open_row(self) -> None:
        """Laps begin after which the allocator must have handed out so many blocks more."""
        self._off_at = now = allocations()
        self._expected, self._row = None if now is None else 0, 0

    def _count_blocks(self, lane: Lane) -> None:
        """How many blocks a lap takes is learned from the first: a dispatch mode makes autograd copy some gradients."""
        now = allocations() if lane.blocks is None else None
        if now is not None and self._off_at is not None and self._expected is not None:
            lane.blocks = now - self._off_at - self._expected  # the laps before it have been counted
        self._add_laps(lane, 1)

    def _add_laps(self, lane: Lane, laps: int) -> None:
        self._row += laps * len(lane.steps)
        if self._expected is not None:
            self._expected = None if lane.blocks is None else self._expected + laps * lane.blocks

    def _close_row(self) -> bool:
        """Whether the allocator vouches for all that ran since the row was opened. Asked where a lap has just ended."""
        now, expected, self._expected = allocations(), self._expected, None
        if now is None or self._off_at is None or expected is None:
            return False
        if now - self._off_at == expected:
            self.tally.allocations += 1
            self.tally.vouched += self._row
            return True
        self.tally.disagrees("allocations")
        for step in self.lane.steps if self.lane is not None else ():
            step.gap.doubt()
        return False

    def _leave_lane(self) -> None:
        """Back to the long way, as if it had been taken from the beginning of this unit."""
        if self.swift:
            self._slow_down()
        lane, at, inside = self.lane, self.at, self.step
        if lane is None:
            return
        self.lane = None
        state = self.state
        self._ran.add(lane)
        while self._ran:
            self._ran.pop().flush(state)
        state.skip_clock()
        began = self._began
        before = lane.steps[0].node.parent
        self._begin_unit(before.form if before is not None else None)
        self._began = began
        for i, step in enumerate(lane.steps[: at + (inside is not None)]):
            self._credit(step.gap)
            _stage(state, step)
            if i == at:
                break  # the event under way ends the long way
            self._credit(step.event)
            self.tally.events += 1
            self.path.append(step)
            self.node.heir = self.node = step.node
            self._place = step.number or self._numbered(step)
            self._closing = step.key[2][0] == BACKWARD or step.differentiates


def _stage(state: ThreadState, step: Step) -> None:
    """What an event means for what came before it."""
    kind = step.key[2][0]
    if kind == CALL and (step.phase == "forward" or step.phase is FORWARD):
        state.enter_forward()
    elif kind == BACKWARD:
        state.enter_backward(through=lambda _: False)
    elif kind == STEP:
        state.settle()
    elif kind == FUNCTION:
        step.settle(state)
