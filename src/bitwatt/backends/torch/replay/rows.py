"""Rows of laps: taken the swiftest way (replay.swift), written down when they end, and vouched for by the allocator."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from bitwatt.backends.torch.replay import checks
from bitwatt.backends.torch.replay.memory import CALL, Memory
from bitwatt.backends.torch.replay.swift import FIRST, MOST, Row, is_settled
from bitwatt.backends.torch.tensors import hidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bitwatt.backends.torch.replay.lanes import Lane

_sequence = torch.autograd._get_sequence_nr
_now = time.perf_counter

#: A lap that lasts so many times as long as one used to, and a millisecond more, is a pause.
PAUSES, NOISE = 3.0, 1e-3
#: Lanes in a ring.
_RING = 8


class Rows(Memory):
    """A row begins and ends where a lap does, or ends where something is not as expected."""

    def _hurry(self, lane: Lane) -> None:
        """Take laps the swiftest way, as many as nothing is due and it is nobody's turn to be timed."""
        lanes = self._ring(lane)
        if self._until_peek or not lanes or self.structures is None:
            return
        due = min(self.starts[one.then.form].countdown for one in lanes) - 1
        laps = min(self._random.randint(self._longest // 2, self._longest) // len(lanes) + 1, due)
        if laps < 1 or not all(is_settled(one) for one in lanes):
            return
        if self._expected is not None and any(one.blocks is None for one in lanes):
            return
        if lane.row is None or not lane.row.stands(lanes):
            try:
                lane.row = Row(self, self.structures, lanes)
            except KeyError:  # a state of a model that has been forgotten since: a program that makes many
                lane.plain = False
                return
        self._until_peek = self._random.randint(1, len(lanes))  # each of them is peeked at now and then
        self._longest = min(4 * self._longest, MOST)
        pace = self.pace
        pace.pause, pace.began = len(lanes) * (PAUSES * self._unit_seconds + NOISE), self._began
        pace.seq, pace.laps, pace.done, pace.at, pace.entered, pace.inside = self.seq, laps, 0, 0, 0, 0
        lane.row.begin()
        self._swift_from, self.swift, pace.next = _now(), lane.row, lane.row.expects[0]
        if len(lanes) > 1:
            self.state.trail.mark(self.seq, lane.row.trail)

    def lingered(self, began: float, now: float) -> None:
        """A lap has taken much longer than one used to: a pause, unless a loader was waited for, or a processor."""
        usual = self._unit_seconds * (1 if self.swift is None else len(self.swift.lanes))
        queued, self._queued = self._queued, checks.queued()
        spent = now - began - self.loading(began) - (self._queued - queued)
        if spent > PAUSES * usual + NOISE:
            self.tally.pause(spent - usual)

    def loaded(self, began: float) -> None:
        """A loader has handed out a batch, or started its workers: no code of the program's ran here meanwhile."""
        if (spent := _now() - began) > NOISE:
            self._waits.append((began, spent))

    def loading(self, since: float) -> float:
        """Seconds for which loaders were waited for."""
        return sum([spent for began, spent in self._waits if began >= since])

    def _ring(self, lane: Lane) -> tuple[Lane, ...]:
        """The lanes that come after this one until it comes again."""
        ring: list[Lane] = []
        one: Lane | None = lane
        while one is not None and one.plain and one.trusted and one not in ring and len(ring) < _RING:
            ring.append(one)
            start = self.starts.get(one.then.form)
            if start is None or not start.safe:
                return ()
            one = start.lane
        return tuple(ring) if one is lane else ()

    def _step_back(self) -> None:
        """The event that was passed last has raised: it is under way, the ordinary way."""
        row, pace = self.swift, self.pace
        if row is None:
            return
        if not pace.at:
            pace.done -= 1
            pace.seq -= row.nodes[-1]
            pace.entered -= row.inside[-1]
            pace.at = row.ends[-1]
        pace.at -= 1
        self._slow_down()
        if self.lane is not None:
            self.step, self.replaying = self.lane.steps[self.at], True

    def _slow_down(self) -> None:
        """From here on the ordinary way. The event that began last may still run: its time is not known."""
        row, pace = self.swift, self.pace
        if row is None:
            return
        at, done = pace.at, pace.done
        self.state.moves += 1
        self.swift, pace.next = None, None
        self._time, self._began, self.seq, self.at = 0.0, pace.began, pace.seq, at
        self.marking = self.state.timeline
        if self.marking is not None and len(row.lanes) > 1:
            self.marking.mark_row(row.lanes)
        if at:
            self.seq += row.nodes[at] - row.gap(at)  # to the end of the last event
        if not hidden(row.lasts, self.structures):
            self.tally.disagrees("marks of models")
        if hidden(getattr, row, "turned_unheard"):
            self.tally.disagrees("marks of optimizers")
        if row.excuses:
            self.seq = _sequence() - row.gap(at)
        spent = self._began - self._swift_from if done else 0.0
        known = sum(sum(lane.seconds) for lane in row.lanes)
        begin = 0
        for lane, end in zip(row.lanes, row.ends, strict=True):
            laps = done + (at >= end)
            lane.laps += laps
            lane.rest += spent * (sum(lane.seconds) / known if known else 1 / len(row.lanes))
            self.tally.replayed += laps
            self.tally.events += laps * len(lane.steps)
            self.tally.gaps += laps * len(lane.steps)
            self.tally.unchecked += laps * lane.unchecked
            self.starts[lane.then.form].countdown -= laps
            self._add_laps(lane, laps)
            self._ran.add(lane)
            if begin <= at < end:
                self.lane, self.at = lane, at - begin
                before = lane.steps[0].node.parent
                if before is not None:
                    self.start = self.node = before
            begin = end
        self.state.moves += 1
        steps = [step for lane in row.lanes for step in lane.steps]
        for step in [*steps[at:], *steps[:at]][::-1]:
            if step.key[2][0] == CALL and self.structures is not None:
                seen = self.structures.states.get(step.key[2][1])
                self.caller = seen.model.ref if seen is not None else None
                break

    def under_way(self) -> Iterator[tuple[Lane, int]]:
        """Lanes with laps that are not in the counts yet, and how many. Also read by other threads."""
        row, at, done = self.swift, self.pace.at, self.pace.done
        ends = dict(zip(row.lanes, row.ends, strict=True)) if row is not None else {}
        for lane in {self.lane, *list(self._ran), *ends} - {None}:
            if lane is not None:
                more = done + (at >= ends[lane]) if lane in ends else 0
                yield lane, lane.laps - lane.flushed + more

    def unbooked(self) -> Iterator[tuple[Lane, float]]:
        """The same lanes, and the seconds of the row that is under way that are theirs."""
        row, spent = self.swift, self.pace.began - self._swift_from
        lanes, known = (row.lanes, sum(sum(lane.seconds) for lane in row.lanes)) if row is not None else ((), 0.0)
        for lane, _ in self.under_way():
            yield lane, max(spent, 0.0) * sum(lane.seconds) / known if lane in lanes and known else 0.0

    # -- the allocator

    def _ask_allocator(self) -> None:
        """Whether a unit that has just been counted took memory of a GPU."""
        now, before = checks.allocations(), self._blocks
        self._blocks, self._vouches = now, now is not None and before is not None and now > before

    def _open_row(self) -> None:
        """Laps begin after which the allocator must have handed out so many blocks more."""
        self._off_at, self._queued = checks.allocations(), checks.queued()
        now = self._off_at
        self._expected, self._row = None if now is None else 0, 0

    def _count_blocks(self, lane: Lane) -> None:
        """How many blocks a lap takes is learned from the first: a dispatch mode makes autograd copy some gradients."""
        now = checks.allocations() if lane.blocks is None else None
        if now is not None and self._off_at is not None and self._expected is not None:
            lane.blocks = now - self._off_at - self._expected  # the laps before it have been counted
        self._add_laps(lane, 1)

    def _add_laps(self, lane: Lane, laps: int) -> None:
        self._row += laps * len(lane.steps)
        if self._expected is not None:
            self._expected = None if lane.blocks is None else self._expected + laps * lane.blocks

    def _close_row(self, *, ended: bool = False) -> int | None:
        """Asked where a lap has just ended, or where a loop has `ended` and done a part of what it does between laps.
        If the allocator vouches for all that ran since the row was opened: the blocks taken after the last lap."""
        now, expected, self._expected = checks.allocations(), self._expected, None
        if now is None or self._off_at is None or not expected:  # none: the program runs elsewhere
            return None
        more = now - self._off_at - expected
        if 0 <= more <= ((self.lane.blocks or 0) if ended and self.lane is not None else 0):
            self.tally.allocations += 1
            self.tally.vouched += self._row
            return more
        self.tally.disagrees("allocations")
        self._longest = FIRST
        for step in self.lane.steps if self.lane is not None else ():
            step.gap.doubt()
        return None
