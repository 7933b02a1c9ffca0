"""What a thread does next, and whether it is known: the walk through the tree of marks.

A thread's program is a row of events (a call of an outermost module, a backward, an optimizer's step, a compiled
function) with code between them, the gaps. A unit is a row of events after which nothing is left open: it ends with an
optimizer's step, or with a call that nothing can be differentiated through. Units are counted until all their stretches
are known, then credited with the mode off, and counted again at growing intervals.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from bitwatt.backends.torch.replay.checks import Tally, reads
from bitwatt.backends.torch.replay.ends import NOISE, PAUSE, Ends
from bitwatt.backends.torch.replay.expecting import is_torchs
from bitwatt.backends.torch.replay.families import Sample
from bitwatt.backends.torch.replay.functions import FUNCTION
from bitwatt.backends.torch.replay.lessons import READS, Lesson, Node, Step
from bitwatt.backends.torch.replay.memory import BACKWARD, CALL, STEP
from bitwatt.backends.torch.replay.pace import ADDED
from bitwatt.backends.torch.replay.watched import short

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.marks import Structures
    from bitwatt.context import Context

_sequence = torch.autograd._get_sequence_nr
_now = time.perf_counter

#: Units between two looks, at most; and where they vary and are sampled: few samples would tell little.
_SELDOM, _SAMPLED = 1024, 32
#: Where all that runs in events is torch's own, and what it does follows from sizes: units before the first look, and
#: between two of them at most.
_PLAIN, _SELDOMER = 128, 8192
#: Calls of models in a row, with no backward, after which each is a unit of its own; events in the longest unit.
_CALLS, _LONG = 32, 10_000
#: Units counted, of which none became known: then as many are counted without learning anything of them, and twice as
#: many the next time, at most. One that is known, or replayed, is worth so many.
_VAIN, _REST, _WORTH = 64, 1024, 8
#: Seconds that the mode costs for an op, and the long way for a unit (a model of forty layers); and the share of a
#: unit's time that watching its gaps may take.
_OP, _LONG_WAY, _SHARE = 12e-6, 1e-3, 0.008
#: A gap that lasts so much longer than it did when it was known, and so much of its unit, is looked at again.
_LONGER = 6.0


class Learner(Ends):
    """One per thread."""

    def begin(self, who: Any, values: Any = ()) -> bool:
        """A mark has come: who is called, with what. True if that is known, and runs with the mode off."""
        try:
            return self._begins(who, values)
        except BaseException as error:  # the program comes first
            self.fails(error)
            return False

    def _begins(self, who: Any, values: Any) -> bool:
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
                and (self._as_known(step) if self.watched else self.state.resting is not None)
            ):
                if self.watched:
                    self._switch(self.state, False)
                now = _now()
                if self.marking is not None:
                    self.marking.mark_lane(lane, 2 * self.at if self._time else -1)
                if self._time:
                    lane.seconds[2 * self.at] += now - self._time
                self.kind, self.step, self.replaying = who[0], step, True
                self.pace.mute = ADDED if who[0] != STEP else 0
                self.pace.inside = 0
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
        self.pace.mute = ADDED if replaying and who[0] != STEP else 0
        if replaying:
            if state.mode is not None:
                self._switch(state, False)
        else:
            self.looking |= not step.apart  # to the end of the unit: its backward goes through what is counted now
            self._switch(state, True)
            self._log()
        self.pace.inside = 0
        self._mark()
        return replaying

    def _gap_seen(self, step: Step) -> None:
        self._gap_log = self._taken()
        if self._whole:
            self._learn(step.gap, self._gap_log)
            step.gap.log = short(self._gap_log)
            self._led_to(step)
            step.gap.heed(self._vouches)
            self.node.calm = step.gap.trusted
            step.node.alike = step.node.alike + 1 if step.gap.streak > 1 else 0
            if self._time:  # else nobody knows when it began
                step.gap.seconds = _now() - self._time - self.loading(self._time)

    def _gap_unseen(self, step: Step) -> None:
        gap = step.gap
        if not gap.known:  # nobody expected this mark here: what led to it is taken from what led to others
            self.tally.assumed += 1
            twin = step.node.twin(step.sizes) or self.node.usual
            gap.assume(twin.gap if twin else None, twin.sizes if twin else (), step.sizes)
            self._watch(gap)
        elif gap.assumed:
            self.tally.assumed += 1
            self.node.calm = False
            if self.start.lane is not None:  # it happens again: from now on it is seen where each event ends
                self.start.lane.plain = False
        elif not gap.confirms(_sequence() - self.seq):
            self.tally.disagrees("graph nodes")
            self._watch(gap)
        else:
            self.tally.gaps += 1
            spent = _now() - self._time - self.loading(self._time) if self._time else 0.0
            if spent > _LONGER * gap.seconds + NOISE and spent > PAUSE * self._unit_seconds:
                self.tally.pause(spent - gap.seconds)
                self.node.calm = False  # the next one is watched
        self.state.trail.mark(self.seq, gap.trail)
        self._credit(gap)

    def _watch(self, gap: Lesson) -> None:
        """Something unexpected happened here: it is watched again, for longer."""
        gap.doubt()
        self.node.calm = False

    def end(self, *, closes: bool) -> None:
        """The event is over. `closes`: nothing that comes can be differentiated through it, so a unit ends."""
        if self.step is None:
            return
        try:
            self._ends(self.step, closes)
        except BaseException as error:
            self.fails(error)

    def _ends(self, step: Step, closes: bool) -> None:
        lane = self.lane
        if lane is not None:
            event, seq = step.event, _sequence()
            if (
                event.confirms(seq - self.seq, self.pace.inside)
                if event.compiled
                else seq - self.seq == event.nodes and (event.inside == self.pace.inside or event.inside is None)
            ):
                self.step, self.kind, self.frame = None, "", None
                self.replaying, self.pace.mute = False, 0
                now = _now()
                lane.seconds[2 * self.at + 1] += now - self._time
                if self.marking is not None:
                    self.marking.mark_lane(lane, 2 * self.at + 1)
                self.seq, self._time = seq, now
                self.at += 1
                if self.watched:
                    self._leaves(step)
                    if self.at == len(lane.steps):
                        self._watched_lap(lane)
                    self._go_on()
                elif self.at == len(lane.steps):
                    self._lap(lane)
                return
            self._leave_lane()
        self.step = self.frame = None
        self.pace.mute = 0
        if self.replaying:
            self.replaying = False
            self._replayed(step)
        else:
            self._counted(step)
        state = self.state
        step.after = (state.forward_done, state.forward_seen, state.ever_differentiated)
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
            self._end_unit(watch=True)
        self._go_on()

    def _go_on(self) -> None:
        """To the code after an event, which is watched or not."""
        state = self.state
        if self.watched:
            self._hold()
        elif self.lane is None and (self.looking or self._watch_gaps or self._peeking or not self._is_calm()):
            self._switch(state, True)
            self._log()
        elif state.mode is not None:
            self._switch(state, False)
        self._whole = True
        self._mark()
        if self.lane is not None and not self.watched:
            self._hurry(self.lane)

    def _is_calm(self) -> bool:
        """Whether what follows is always the same."""
        node = self.node
        if self._closing and not self._optimizers:  # a unit that ends when the next begins
            node = self.starts.get(node.form, node)
        return node.calm

    def _is_long(self) -> bool:
        self._calls_only = all(step.node.form[1][0] in (CALL, FUNCTION) for step in self.path)
        return self._calls_only or len(self.path) > _LONG

    def _replayed(self, step: Step) -> None:
        event = step.event
        agrees = _sequence() - self.seq == event.nodes
        if event.confirms(_sequence() - self.seq, self.pace.inside):
            self.tally.events += 1
            self.tally.unchecked += step.unchecked
        else:
            self.tally.disagrees("module calls" if agrees else "graph nodes")
            event.doubt()
            self._doubted = self.looking = True
        self.state.trail.mark(self.seq, event.trail)
        self._credit(event)

    def _counted(self, step: Step) -> None:
        self._counted_here |= not step.apart
        log = self._taken()
        if self.state.mode is not None and self.state.mode.log is None:
            if not self._rest:  # too long to be known
                step.event.doubt()
            return
        self._learn(step.event, log)
        step.event.inside = self.pace.inside
        if step.opaque and step.event.enough < READS and any(reads(key) for _, key in log):
            step.event.enough = READS
        if step.apart:
            step.safe = step.event.ready(self.sampling)
        self._sample(step)

    def _sample(self, step: Step) -> None:
        """What happens at these sizes is one more of the samples from which it is told at others."""
        families, gap, event = step.node.families, step.gap, step.event
        kin = families.at(step.sizes)
        if kin is not None:
            gap.joins(kin.gap, step.sizes)
            event.joins(kin.event, step.sizes)
        elif self._whole:
            nodes = gap.nodes, event.nodes
            families.adds(Sample(step.sizes, gap.rows, event.rows, nodes, self.pace.inside), step)

    def _end_unit(self, *, watch: bool = False) -> None:
        last, start = self.node, self.start
        told = self.structures
        plain = self._counted_here and told is not None and all(is_torchs(step, told) for step in self.path)
        if plain:
            self._recall()
        if self._counted_here or self._doubted:
            known = not self._rest and all(step.apart or step.event.ready(self.sampling) for step in self.path)
            for step in self.path:
                step.safe = step.event.ready(self.sampling) if step.apart else known
        else:
            known = True
        self._unit_seconds = _now() - self._began
        self._tires(in_vain=self._counted_here and not known)
        if self._counted_here:
            self.tally.counted += 1
            self._ask_allocator()
            self._weigh_gaps(start)
            if known and start.safe:
                self.tally.looks += 1
                varies = self.sampling and any(step.event.varies for step in self.path)
                start.interval = min(8 * start.interval, _SAMPLED if varies else _SELDOMER if plain else _SELDOM)
            elif known and plain:
                start.interval = max(start.interval, _PLAIN)
            start.countdown = self._random.randint(start.interval // 2 + 1, start.interval)
        else:
            self.tally.replayed += 1
        start.safe = known
        self._find_lane(start)
        self._begin_unit(last.form)
        self.start.countdown -= 1
        self.looking = not known or self.start.countdown <= 0 or self.state.in_closure
        self._peeking = False
        self._take_lane(watch=watch)

    def _tires(self, *, in_vain: bool) -> None:
        """What is never the same is counted, and to learn of it in every unit would make it slower still."""
        if self._rest:
            self._rest -= 1
        elif not in_vain:
            self._vain = max(self._vain - _WORTH, 0)
            self._rests = self._rests if self._vain else 0
        else:
            self._vain += 1
            if self._vain >= _VAIN:
                self._rest, self._vain = min(_VAIN << self._rests, _REST), 0
                self._rests += 1

    def _weigh_gaps(self, start: Node) -> None:
        """Watching what runs between events is cheap beside long steps, and leaves nothing to assume."""
        calls = sum(step.gap.calls for step in self.path) + len(self.path)
        start.fastest = min(start.fastest, self._unit_seconds)  # once it took long because the machine was busy
        # the unit was slowed down by being counted: it takes perhaps half as long
        self._watch_gaps = _LONG_WAY + _OP * calls < _SHARE * start.fastest / 2

    def enters(self, context: Context, structures: Structures) -> None:
        """The session that the next event belongs to, which has a tally of its own."""
        self.structures = structures
        if self.stale:
            self.reset()
        self.context, self.sampling = context, context.token.exactness == "sample"
        tally = self.tallies.get(context.token)
        if tally is None:
            tally = self.tallies[context.token] = Tally()
        self.tally = tally

    def attach(self) -> None:
        """The thread takes up another task: what it did before is no part of it."""
        self._leave_lane()
        self.abort()
        self.looking = self._whole = True
        self._begin_unit("task")
        self._log()
        self._mark()
