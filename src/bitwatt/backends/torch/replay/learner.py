"""What a thread does next, and whether it is known: the walk through the tree of marks.

A thread's program is a row of events (a call of an outermost module, a backward, an optimizer's step, a fetch of data)
with code between them, the gaps. A unit is a row of events after which nothing is left open: it ends with an optimizer's
step, or with a call that nothing can be differentiated through. Units are counted until all their stretches are known,
then credited with the mode off, and counted again at growing intervals.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from bitwatt.backends.torch.replay.checks import Tally, allocations
from bitwatt.backends.torch.replay.functions import FUNCTION, Function
from bitwatt.backends.torch.replay.lanes import Lane
from bitwatt.backends.torch.replay.families import Log, Sample, fit
from bitwatt.backends.torch.replay.lessons import Lesson, Node, Rows, Step
from bitwatt.backends.torch.replay.marks import Sizes, split
from bitwatt.backends.torch.replay.swift import TIMED
from bitwatt.backends.torch.state import FORWARD

if TYPE_CHECKING:
    from bitwatt.backends.torch.state import Counts, ThreadState
    from bitwatt.context import Context, Token

_sequence = torch.autograd._get_sequence_nr
_now = time.perf_counter

CALL, BACKWARD, STEP, FETCH, EPOCH = "call", "backward", "step", "fetch", "epoch"

#: Units between two looks, at most.
_SELDOM = 1024
#: Calls of models in a row, with no backward, after which each is a unit of its own; events in the longest unit.
_CALLS, _LONG = 32, 10_000
#: Marks in the tree, and calls remembered in it.
_MARKS, _WEIGHT = 2_048, 200_000
#: Sizes remembered at one mark, and samples kept until they make a family.
_SIZES, _SAMPLES = 2_048, 16
#: What the mode costs for an op, in seconds, and the share of a unit's time that watching its gaps may take.
_OP, _SHARE = 12e-6, 0.004
#: A gap that lasts so much longer than it did when it was known, and so much of its unit, is looked at again.
_LONGER, _NOISE, _PAUSE = 6.0, 1e-3, 0.25
_PAUSES = 3.0


class Learner:
    """One per thread."""

    def __init__(
        self,
        state: ThreadState,
        switch: Callable[[ThreadState, bool], None],
        relieve: Callable[[ThreadState], None],
    ) -> None:
        self.state, self._switch, self._relieve = state, switch, relieve
        self.tallies: dict[Token, Tally] = {}
        self.tally = Tally()
        self.reset()

    def reset(self) -> None:
        """Know nothing, and count."""
        self.stale = False  # a session has closed since
        self.starts: dict[Any, Node] = {}
        self.looking = True
        self.step: Step | None = None  # the event under way
        self.kind = ""  # of that event
        self.caller: Any = None  # a weak reference to the model that was called last
        self.function: Function | None = None  # the compiled function that is counted now
        self.frame: Any = None  # of an optimizer's step: torch tells nobody when one raises
        self.context: Context | None = None
        self.replaying = False
        self.sampling = False
        self.inside = 0  # how often modules were called in the event, and how much went into them
        self._numbers = itertools.count(1)
        self._marks = self._weight = 0  # nodes in the tree, and calls that are remembered in it
        self._whole = False  # everything since the last event has been seen
        self._optimizers = False  # whether steps end the units of this program
        self._calls_only = False  # nothing is differentiated: each call is a unit
        self._gap_log: Log = []
        self._watch_gaps = True
        self._peeking = False  # in this unit gaps are watched, and events replayed
        self._unit_seconds = 0.0
        self.lane: Lane | None = None
        self.at = 0
        self.swift = False  # this lap is taken the swiftest way (replay.swift)
        self.first: Any = None  # a weak reference to the first parameter that gets a gradient
        self._laps = 0  # to be taken so
        self._has_hurried, self._laps_since_peek = False, 0
        self._pause = 0.0
        self._swift_from, self._swift_laps = 0.0, 0
        self._ran: set[Lane] = set()  # lanes with laps that are not written yet
        self._unresolved: list[tuple[Lesson, Any]] = []
        self._off_at: int | None = None
        self._blocks_at: int | None = None
        self._expected: int | None = None
        self._begin_unit(None)
        self._mark()

    def _begin_unit(self, after: Any) -> None:
        start = self.starts.get(after)
        if start is None:
            start = self.starts[after] = Node(after)
        self.start = self.node = start
        self.path: list[Step] = []
        self._place = 0
        self._closing = False  # a backward came last
        self._counted_here = False
        self._doubted = False
        self.compiled = False  # it has parts that run compiled when they are replayed
        self._began = _now()

    def _mark(self) -> None:
        """Where the next stretch begins."""
        self.seq, self._time = _sequence(), _now()

    # -- an event begins

    def begin(self, who: Any, values: Any = ()) -> bool:
        """A mark has come: who is called, with what. True if that is known, and runs with the mode off."""
        if self._closing and who[0] != STEP and not self._optimizers:
            self._end_unit()  # backward was the last of it: nothing here steps
        lane = self.lane
        if lane is not None:
            step = lane.steps[self.at]
            key = step.key
            seq = _sequence()
            if (
                who == key[2]
                and values == key[3]
                and self.context is key[1]
                and (step.gap.confirms(seq - self.seq) if step.gap.compiled else seq - self.seq == step.gap.nodes)
                and self.state.resting is not None
            ):
                now = _now()
                if self._time:
                    lane.seconds[2 * self.at] += now - self._time
                self.kind, self.step, self.replaying = who[0], step, True
                self.inside = 0
                self.seq, self._time = seq, now
                return True
            self._leave_lane()
        self.kind = who[0]
        key = (self._place, self.context, who, values)
        self.step = step = self.node.quick.get(key) or self._find(key)
        state = self.state
        if state.mode is not None:
            self._gap_seen(step)
        else:
            self._gap_unseen(step)
        self.replaying = replaying = step.safe and not self.looking
        if replaying:
            if state.mode is not None:
                self._switch(state, False)
        else:
            self.looking = True  # to the end of the unit: its backward goes through what is counted now
            self._switch(state, True)
            self._log()
        self.inside = 0
        self._mark()
        return replaying

    def _find(self, key: Any) -> Step:
        """The slow way: a key that did not come here before."""
        sizes: list[int] = []
        form = (key[1], key[2], split(key[3], sizes))
        if form not in self.node.children:
            self._marks += 1
            if self._marks > _MARKS or self._weight > _WEIGHT:
                self._clear()
        node = self.node.child(form)
        whole: Sizes = (*(self.path[-1].sizes if self.path else ()), *sizes)
        step = node.steps.get(whole)
        if step is None:
            if len(node.steps) >= _SIZES:
                self._forget(node)
            twin = next(iter(node.steps.values()), None)
            step = node.steps[whole] = Step(node, whole, key)
            if twin is not None and node.families is not None and node.foreseen:
                step.foresee(node.families, twin)
        self.node.quick[key] = step
        return step

    def _clear(self) -> None:
        """A program that is never the same for long (models made anew, names in arguments): begin with an empty tree."""
        for lesson in self._lessons():
            flush(self.state, lesson)
        self.starts, self._marks, self._weight = {}, 0, 0
        self._begin_unit(None)
        self._relieve(self.state)

    def _forget(self, node: Node) -> None:
        for step in node.steps.values():
            flush(self.state, step.gap)
            flush(self.state, step.event)
        node.steps.clear()
        self.node.quick.clear()
        self._relieve(self.state)

    def _gap_seen(self, step: Step) -> None:
        self._gap_log = self._taken()
        if self._whole:
            self._learn(step.gap, self._gap_log)
            self.node.calm = step.gap.trusted
            step.node.alike = step.node.alike + 1 if step.gap.streak > 1 else 0
            step.gap.seconds = _now() - self._time

    def _gap_unseen(self, step: Step) -> None:
        gap = step.gap
        if not gap.known:  # nobody expected this mark here: what led to it is taken from what led to others
            self.tally.assumed += 1
            twin = next((s for s in step.node.steps.values() if s.gap.known), self.node.usual)
            gap.assume(twin.gap if twin else None, twin.sizes if twin else (), step.sizes)
            self._watch(gap)
        elif not gap.confirms(_sequence() - self.seq):
            self.tally.disagrees("graph nodes")
            self._watch(gap)
        else:
            self.tally.gaps += 1
            spent = _now() - self._time
            if spent > _LONGER * gap.seconds + _NOISE and spent > _PAUSE * self._unit_seconds:
                self.tally.pauses += 1
                self.node.calm = False  # the next one is watched
        self.state.trail.mark(self.seq, gap.trail)
        self._credit(gap)

    def _watch(self, gap: Lesson) -> None:
        """Something unexpected happened here: it is watched again, for longer."""
        gap.doubt()
        self.node.calm = False

    # -- an event ends

    def end(self, *, closes: bool) -> None:
        """The event is over. `closes`: nothing that comes can be differentiated through it, so a unit ends."""
        step = self.step
        if step is None:
            return
        lane = self.lane
        if lane is not None:
            event, seq = step.event, _sequence()
            if (
                event.confirms(seq - self.seq, self.inside)
                if event.compiled
                else seq - self.seq == event.nodes and (event.inside == self.inside or event.inside is None)
            ):
                self.step, self.kind, self.replaying = None, "", False
                now = _now()
                lane.seconds[2 * self.at + 1] += now - self._time
                self.seq, self._time = seq, now
                self.at += 1
                if self.at == len(lane.steps):
                    self._lap(lane)
                return
            self._leave_lane()
        self.step = None
        if self.replaying:
            self.replaying = False
            self._replayed(step)
        else:
            self._counted(step)
        self.path.append(step)
        self.node.heir = self.node = step.node
        self._place = step.number or self._numbered(step)
        kind, self.kind = self.kind, ""
        self._closing = kind == BACKWARD or step.differentiates
        if self._closing:
            self._calls_only = False
        elif kind == STEP:
            self._optimizers = True
        if closes or self._calls_only or (len(self.path) >= _CALLS and self._is_long()):
            self._end_unit()
        state = self.state
        if self.lane is None and (self.looking or self._watch_gaps or self._peeking or not self._is_calm()):
            self._switch(state, True)
            self._log()
        elif state.mode is not None:
            self._switch(state, False)
        self._whole = True
        self._mark()

    def _is_calm(self) -> bool:
        """Whether what follows is always the same."""
        node = self.node
        if self._closing and not self._optimizers:  # a unit that ends when the next begins
            node = self.starts.get(node.form, node)
        return node.calm

    def _numbered(self, step: Step) -> int:
        step.number = next(self._numbers)
        return step.number

    def _is_long(self) -> bool:
        self._calls_only = all(step.node.form[1][0] in (CALL, FUNCTION) for step in self.path)
        return self._calls_only or len(self.path) > _LONG

    def _replayed(self, step: Step) -> None:
        event = step.event
        agrees = _sequence() - self.seq == event.nodes
        if event.confirms(_sequence() - self.seq, self.inside):
            self.tally.events += 1
        else:
            self.tally.disagrees("module calls" if agrees else "graph nodes")
            event.doubt()
            self._doubted = self.looking = True
        self.state.trail.mark(self.seq, event.trail)
        self._credit(event)

    def _counted(self, step: Step) -> None:
        self._counted_here = True
        log = self._taken()
        self._learn(step.event, log)
        step.event.inside = self.inside
        node = step.node
        if self._whole and node.families is None and all(sample.sizes != step.sizes for sample in node.samples):
            node.samples = [*node.samples[-_SAMPLES:], Sample(step.sizes, self._gap_log, log)]
            node.families = fit(node.samples)
            if node.families is not None:
                node.samples = []

    def abort(self) -> None:
        """The event raised: its unit is no example for others."""
        hurried = self.swift
        if hurried:
            self.at = max(self.at - 1, 0)
            self._slow_down()
        self._leave_lane()
        if self.step is None and not hurried:
            return
        self.tally.assumed += self.replaying or hurried
        self.step, self.kind, self.replaying = None, "", False
        self.skip()

    def _end_unit(self) -> None:
        last, start = self.node, self.start
        if self._counted_here or self._doubted:
            known = all(step.event.ready(self.sampling) for step in self.path)
            for step in self.path:
                step.safe = known
        else:
            known = True
        self._unit_seconds = _now() - self._began
        if self._counted_here:
            self.tally.counted += 1
            self._weigh_gaps()
            if known and start.safe:
                self.tally.looks += 1
                start.interval = min(4 * start.interval, _SELDOM)
            start.countdown = start.interval
        else:
            self.tally.replayed += 1
        start.safe = known
        was_looking = self.looking
        self._find_lane(start, known)
        self._begin_unit(last.form)
        self.start.countdown -= 1
        self.looking = not known or self.start.countdown <= 0
        if was_looking != self.looking:
            self._compare_allocations()
        self._peeking = False
        lane = self.start.lane if self.start.safe and not (self.looking or self._watch_gaps) else None
        if lane is not None and all(step.gap.trusted for step in lane.steps):
            self.lane, self.at = lane, 0
            self.state.trail.mark(_sequence(), lane.trail)

    # -- lanes

    def resolved(self, meaning: dict[str, str]) -> None:
        """Phases that were not known yet have got their names."""
        if self.function is not None and self.step is not None:
            self.step.meanings.append(meaning)
        if (self.function is not None or self.state.capturing) and self.state.mode is not None:
            self.state.mode.log = [(self._final(counts, meaning), key) for counts, key in self.state.mode.log or ()]
        if self._unresolved:
            for lesson, place in self._unresolved:
                if place[2] in meaning:
                    lesson.final[place] = (place[0], place[1], meaning[place[2]], place[3])
            self._unresolved = [entry for entry in self._unresolved if entry[1][2] not in meaning]

    def opens(self, function: Function) -> None:
        """A compiled function is counted: whatever it does is part of one event."""
        function.stepped = False
        self.function = function
        if self.step is not None:
            self.step.meanings = []

    def steps_inside(self, optimizer: Any) -> None:
        """An optimizer steps in the compiled function that is counted: units end with it."""
        self._optimizers = True
        if self.function is not None:
            self.function.steps(optimizer)

    def _final(self, counts: Counts, meaning: dict[str, str]) -> Counts:
        place = counts.place
        if place is None or place[2] not in meaning:
            return counts
        return self.state.counts_at((place[0], place[1], meaning[place[2]], place[3]))

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
        if self._expected is not None:
            self._count_blocks(lane)
        self.at = 0
        spent, self._began = self._time - self._began, self._time
        if spent > _PAUSES * self._unit_seconds + _NOISE:
            self.tally.pauses += 1
        start = self.starts.get(lane.then.form)
        if start is None or not start.safe or start.lane is None:
            self._leave_lane()
            return
        start.countdown -= 1
        self._laps_since_peek += 1
        if (lane.plain and self._has_hurried) or self._laps_since_peek >= TIMED:
            self._peek()
            return
        if start.countdown <= 0:
            self._leave_lane()
            self.looking = True
            self._compare_allocations()
            self._switch(self.state, True)
            self._log()
            self._mark()
        else:
            if start.lane is not lane:
                self.state.trail.mark(self.seq, start.lane.trail)
                self._ran.add(lane)
                self.lane, self.start, self.node = start.lane, start, start
            self._hurry(start.lane)

    def _peek(self) -> None:
        """Look at the code between events for one unit, which costs little, and is where programs do odd things."""
        self._leave_lane()
        self._has_hurried, self._laps_since_peek, self._peeking = False, 0, True
        self._switch(self.state, True)
        self._log()
        self._mark()

    def _hurry(self, lane: Lane) -> None:
        """Take laps the swiftest way, as many as nothing is due and it is nobody's turn to be timed."""
        after = self.starts.get(lane.then.form)
        if lane.plain and after is not None and after.safe and (self._expected is None or lane.blocks is not None):
            alone = after.lane is lane
            self._laps = min(TIMED, after.countdown - 1) if alone else int(after.countdown > 1 and after.lane is not None)
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
            self.starts[lane.then.form].countdown -= laps
            if self._expected is not None:
                self._expected = None if lane.blocks is None else self._expected + laps * lane.blocks

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

    def _count_blocks(self, lane: Lane) -> None:
        """How many blocks a lap takes is learned from the first: a dispatch mode makes autograd copy some gradients."""
        if lane.blocks is None:
            now = allocations()
            before, self._blocks_at = self._blocks_at, now
            if now is not None and before is not None:
                lane.blocks = now - before
        self._expected = None if lane.blocks is None or self._expected is None else self._expected + lane.blocks

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

    def _weigh_gaps(self) -> None:
        """Watching what runs between events is cheap beside long steps, and leaves nothing to assume."""
        calls = sum(step.gap.calls for step in self.path) + len(self.path)
        # the unit was slowed down by being counted: it takes perhaps half as long
        self._watch_gaps = _OP * calls < _SHARE * self._unit_seconds / 2

    def _compare_allocations(self) -> None:
        now = allocations()
        if not self.looking:
            self._off_at = self._blocks_at = now
            self._expected = None if now is None else 0
        elif now is not None and self._off_at is not None and self._expected is not None:
            if now - self._off_at == self._expected:
                self.tally.allocations += 1
            else:
                self.tally.disagrees("allocations")
                self.start.calm = False

    # -- stretches

    def _log(self) -> None:
        if self.state.mode is not None:
            self.state.mode.log = []

    def _taken(self) -> Log:
        """What was counted since the last mark."""
        mode = self.state.mode
        log = [(counts.place, key) for counts, key in mode.log] if mode is not None and mode.log else []
        return [entry for entry in log if entry[0] is not None]

    def _learn(self, lesson: Lesson, log: Log) -> None:
        trusted = lesson.trusted
        flush(self.state, lesson)
        rows: Rows = {}
        lesson.final = {}
        for place, key in log:
            if place[2][0] == "?" and place not in rows:
                self._unresolved.append((lesson, place))
            at = rows.setdefault(place, {})
            at[key] = at.get(key, 0) + 1
        foreseen = lesson.predicted
        if not lesson.known:
            self._weight += len(log)
        expected = lesson.look(rows, len(log))
        seq = _sequence()
        lesson.nodes, lesson.trail = seq - self.seq, self.state.trail.stretch(self.seq, seq)
        lesson.compiled = lesson.compiled or self.compiled
        credited, lesson.credited = lesson.credited or (foreseen is not None and foreseen[0].credited), False
        if expected is not None and trusted and credited:
            self.tally.deviation(expected, rows)
            if foreseen and self.step is not None:
                self.step.node.families = None

    def _credit(self, lesson: Lesson) -> None:
        lesson.replays += 1
        lesson.credited = True
        if lesson.predicted is not None:
            lesson.predicted[0].credited = True
        self._expected = None  # blocks are counted for whole laps alone
        for place, credit in lesson.later:
            cell = (counts := self.state.counts_at(place)).get(credit)
            if cell is None:
                counts[credit] = [1]
            else:
                cell[0] += 1

    # -- sessions and tasks

    def enters(self, context: Context) -> None:
        """The session that the next event belongs to, which has a tally of its own."""
        if self.stale:
            self.reset()
        self.context, self.sampling = context, context.token.exactness == "sample"
        tally = self.tallies.get(context.token)
        if tally is None:
            tally = self.tallies[context.token] = Tally()
        self.tally = tally

    def closes(self, token: Token) -> Tally:
        """A session has ended: what it was credited goes to the counts, and what follows is learned anew."""
        tally = self.tallies.pop(token, None) or Tally()
        self._leave_lane()
        for lesson in self._lessons():
            flush(self.state, lesson)
            if lesson.samples and lesson.replays:
                tally.samples.append((lesson.replays, lesson.samples))
        if self.state.resting is not None and self.step is None and self.context and self.context.token is token:
            if _sequence() != self.seq:  # code after the last event ran unseen
                tally.disagrees("graph nodes")
            tally.pauses += _now() - self._time > max(_NOISE, _PAUSE * self._unit_seconds)
        self.stale = True
        return tally

    def skip(self) -> None:
        """An event comes that cannot be marked: it is counted, and what is known begins anew after it."""
        self._leave_lane()
        self.looking, self._whole = True, False
        self._begin_unit(None)
        self._switch(self.state, True)
        self._log()
        self._mark()

    def attach(self) -> None:
        """The thread takes up another task: what it did before is no part of it."""
        self.abort()
        self.looking = self._whole = True
        self._begin_unit("task")
        self._log()
        self._mark()

    def _lessons(self) -> Iterator[Lesson]:
        waiting = list(self.starts.values())
        while waiting:
            node = waiting.pop()
            waiting += node.children.values()
            for step in list(node.steps.values()):
                yield step.gap
                yield step.event


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


def flush(state: ThreadState, lesson: Lesson) -> None:
    """Write what was credited so far to the counts."""
    times = lesson.replays - lesson.flushed
    if not times:
        return
    lesson.flushed += times
    for place, keys in lesson.rows.items():
        if place[2][0] != "?":  # those stand in the counts already
            counts = state.counts_at(place)
            for key, n in keys.items():
                counts.setdefault(key, [0])[0] += n * times
