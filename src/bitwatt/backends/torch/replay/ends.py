"""Where loops and sessions end, or events raise: code has run since the last event, and perhaps nobody watched it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from bitwatt.backends.torch.replay.checks import Tally
from bitwatt.backends.torch.replay.laps import Laps
from bitwatt.backends.torch.replay.memory import FETCH
from bitwatt.backends.torch.replay.pace import stepping
from bitwatt.passing import is_passing

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.families import Log
    from bitwatt.backends.torch.replay.lessons import Lesson, Step
    from bitwatt.context import Token

_sequence = torch.autograd._get_sequence_nr
_now = time.perf_counter

#: What ran after the last event is a pause where it lasted longer than this, and than this share of a unit.
NOISE, PAUSE = 1e-3, 0.25
#: Seconds after the last event that are told.
_TAIL = 0.1
#: Calls before the first event of its kind that are remembered.
_LED = 64


class Ends(Laps):
    """The code between two rounds of a loop is the end of one and the beginning of the other. What led to the first of
    them was its beginning alone: so it is known what a loop does after its last event."""

    def _led_to(self, step: Step) -> None:
        """A unit begins with an event: what led to the first one of its kind is remembered, for each kind that came
        before it."""
        if not self.path:
            before = self._led.setdefault(step.node.form, {})
            before.setdefault(self.start.form, (step.sizes, [key for _, key in self._gap_log[-_LED:]]))

    def _beginning(self, step: Step) -> list[Any] | None:
        """What led to the first event of its kind and sizes, when it came after something else than it usually does. A
        model that has changed in mid-loop never did: its loop begins as the program's first one did."""
        for before in (self._led.get(step.node.form, {}), *self._led.values()):
            for start, (sizes, led) in before.items():
                if start != self.start.form and sizes == step.sizes:
                    return led
        return None

    def closes(self, token: Token) -> Tally:
        """A session has ended: what it was credited goes to the counts, and what follows is learned anew."""
        tally = self.tallies.pop(token, None) or Tally()
        if self.pace.next is stepping:
            self.abort()
        self._slow_down()
        between = self.step is None and (self.lane is None or not self.at)
        ending = self._ending() if between else None
        blocks = self._close_row(ended=ending is not None) if between and self.lane is not None else None
        self._leave_lane()
        began, lessons = _now(), list(self._lessons())
        self._flush(lessons)
        self._spent(_now() - began)
        for lesson in lessons:
            if lesson.changes and lesson.replays and token.exactness == "sample":
                tally.samples.append((lesson.uncertainty, lesson.samples))
        if self.state.resting is not None and self.step is None and self.context and self.context.token is token:
            tally.gaps += blocks != 0 or ending is not None  # code after the last event ran unseen
            self._book(ending, tally)
            ended = _now() if token.ended is None else token.ended
            began = self._time or self._began  # the latter where laps were taken the swiftest way
            spent = ended - began - self.loading(began)
            if spent > max(NOISE, PAUSE * self._unit_seconds):
                tally.pause(spent)
            tally.tail += spent if spent > max(_TAIL, 2 * self._unit_seconds) else 0.0
        self.stale = True
        return tally

    def _ending(self) -> tuple[Lesson, Log] | None:
        """What leads from one round of a loop to the next, and the part of it that is not what led to the first. Where
        sizes vary it depends on what came before and after, and is not known."""
        lane = self.lane
        if lane is None or self.start.lane is not lane:
            return None
        first = lane.steps[0]
        log, led = first.gap.log, self._beginning(first)
        if log is None or led is None or not first.gap.trusted:
            return None
        alike = 0
        while alike < min(len(log), len(led)) and log[-1 - alike][1] == led[-1 - alike]:
            alike += 1
        return (first.gap, log[: len(log) - alike]) if alike < len(log) else None

    def _book(self, ending: tuple[Lesson, Log] | None, tally: Tally) -> None:
        """Credit what a loop does after its last event. Calls that have no phase yet get it as the session ends."""
        nodes, log = (ending[0].nodes, ending[1]) if ending is not None else (0, [])
        if not 0 <= _sequence() - self.seq <= nodes:
            tally.disagrees("graph nodes")
        for place, key in log:
            self.state.counts_at(place).setdefault(key, [0])[0] += 1

    def read(self, token: Token) -> Tally:
        """A session has ended while this thread goes on: what came of it so far, asked by another thread. This one
        finds out by itself (swift.Row.lap), and as it is `stale` begins anew."""
        tally = replace(self.tallies.get(token) or Tally())  # its own may still be added to
        for lane, _ in self.under_way():
            if self.swift is not None and lane in self.swift.lanes and lane.steps[0].key[1].token is token:
                laps = self.pace.done
                tally.replayed += laps
                tally.events += laps * len(lane.steps)
                tally.gaps += laps * len(lane.steps)
                tally.unchecked += laps * lane.unchecked
        return tally

    def halts(self) -> None:
        """A loader has come to its end. What follows is no part of the loop, and is seen; what led here is taken to be
        what leads to the next batch."""
        self.surprised()
        self._leave_lane()
        if self.step is not None or self.state.resting is None:
            return
        usual = self.node.usual
        if usual is not None and usual.key[2][0] == FETCH:
            self._credit(usual.gap)
            if not usual.gap.confirms(_sequence() - self.seq):
                self.tally.disagrees("graph nodes")
        self.tally.gaps += 1
        self._whole = False
        self._switch(self.state, True)
        self._log()
        self._mark()

    def abort(self) -> None:
        """The event raised: its unit is no example for others, and it is looked at when it comes again."""
        if self.swift is not None:
            self._step_back()
        self._leave_lane()
        step = self.step
        if step is None:
            return
        if self.replaying:
            step.event.doubt()
            step.safe = self.start.safe = False
            self.tally.assumed += 1
        self.step, self.kind, self.replaying, self.pace.mute = None, "", False, 0
        self._anew()

    def skip(self) -> None:
        """An event comes that cannot be marked: it is counted, and what is known begins anew after it."""
        if self.state.resting is not None:
            self.tally.assumed += 1  # code before it ran unseen
        self._anew()

    def fails(self, error: BaseException) -> None:
        """Something of ours went wrong: the program goes on, what is known begins anew, and it is told. What is the
        program's own error, as its handler of a signal raised it here, is handed on."""
        self.tally.assumed += 1
        self.step, self.kind, self.replaying, self.pace.mute = None, "", False, 0
        self._anew()
        if is_passing(error):
            raise error
        self._failed("an event", error)

    def _anew(self) -> None:
        self._leave_lane()
        self.looking, self._whole, self.frame = True, False, None
        self._begin_unit(None)
        self._switch(self.state, True)
        self._log()
        self._mark()
