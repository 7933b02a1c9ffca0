"""What a thread has learned of its program: the tree of marks, the unit under way, and the calls of each stretch."""

from __future__ import annotations

import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch

from bitwatt.backends.torch.replay.checks import Tally
from bitwatt.backends.torch.replay.families import Log, Rows
from bitwatt.backends.torch.replay.functions import Function
from bitwatt.backends.torch.replay.lanes import Lane, write
from bitwatt.backends.torch.replay.lessons import Credit, Lesson, Node, Step
from bitwatt.backends.torch.replay.marks import Sizes, Structures, split
from bitwatt.backends.torch.replay.swift import FIRST, Row

if TYPE_CHECKING:
    from bitwatt.backends.torch.state import Counts, ThreadState
    from bitwatt.backends.torch.timeline import Timeline
    from bitwatt.context import Context, Token

_sequence = torch.autograd._get_sequence_nr
_now = time.perf_counter

#: Kinds of events.
CALL, BACKWARD, STEP, FETCH = "call", "backward", "step", "fetch"

#: Marks in the tree, and calls remembered in it.
_MARKS, _WEIGHT = 2_048, 200_000
#: Sizes remembered at one mark.
_SIZES = 2_048
#: Calls that are written to the counts at once, before it is asked whether there is room.
_WRITTEN = 10_000
#: Times that loaders were waited for which are remembered: those of one lap matter.
_WAITS = 64


class Memory:
    """The tree, and where in it the thread is."""

    def __init__(
        self,
        state: ThreadState,
        switch: Callable[[ThreadState, bool], None],
        relieve: Callable[[ThreadState], None],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self.state, self._switch, self._relieve, self._failed = state, switch, relieve, failed
        self.pace = state.pace
        self.tallies: dict[Token, Tally] = {}
        self.tally = Tally()
        self.structures: Structures | None = None
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
        self.frame: Any = None  # marks that of an optimizer's step: torch tells nobody when one raises
        self.nested = 0  # steps inside that step: of its parent class, or of other optimizers
        self.context: Context | None = None
        self.replaying = False
        self.sampling = False
        self.pace.inside = 0
        self._numbers = itertools.count(1)
        self._marks = self._weight = 0  # nodes in the tree, and calls that are remembered in it
        self._vain = self._rest = self._rests = 0  # units that taught nothing, and those that are to teach nothing
        self._whole = False  # everything since the last event has been seen
        self._optimizers = False  # whether steps end the units of this program
        self._calls_only = False  # nothing is differentiated: each call is a unit
        self._gap_log: Log = []
        self._led: dict[Any, dict[Any, tuple[Sizes, list[Any]]]] = {}  # calls before first events (replay.ends)
        self._watch_gaps = True
        self._peeking = False  # in this unit gaps are watched, and events replayed
        self._unit_seconds = 0.0
        self.lane: Lane | None = None
        self.at = 0
        self.watched = False  # in this lane the code between events is seen (replay.watched)
        self._before: tuple[bool, bool, bool] = (False, False, False)  # the thread's state when the lap began
        self._seen = 0  # laps in which it was as known, since the lane was taken
        self.swift: Row | None = None  # laps that are taken the swiftest way (replay.swift)
        self.pace.next, self.pace.mute = None, 0
        self.marking: Timeline | None = None  # while the device's time is marked, event by event
        self._longest = FIRST
        self._until_peek = self._laps_since_peek = 0
        self._random = random.Random(0)  # so that what a program does every so often is not missed each time
        self._swift_from = 0.0
        self._queued = 0.0  # seconds for which others had the processor until the row began, or a lap took long
        self._waits: deque[tuple[float, float]] = deque(maxlen=_WAITS)  # for loaders: when they began, and seconds
        self._ran: set[Lane] = set()  # lanes with laps that are not written yet
        self._unresolved: list[tuple[Lesson, Any]] = []
        self._opening: list[Step] = []  # a unit that began where none had ended
        self._blocks: int | None = None  # that the allocator had handed out after the last unit that was counted
        self._vouches = False  # it handed some out in it: it will tell of what runs unseen
        self._off_at: int | None = None
        self._expected: int | None = None
        self._row = 0  # gaps in it
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
            step = node.steps[whole] = Step(node, whole, key)
            kin = node.families.at(whole)
            if kin is not None and node.foresees(whole):
                step.foresee(kin)
        self.node.quick[key] = step
        return step

    def _clear(self) -> None:
        """A program that is never the same for long (models made anew, names in arguments): an empty tree."""
        began = _now()
        self._flush(self._lessons())
        self.starts, self._led, self._marks, self._weight = {}, {}, 0, 0
        self._spent(_now() - began)
        self._begin_unit(None)

    def _forget(self, node: Node) -> None:
        began = _now()
        self._flush(lesson for step in node.steps.values() for lesson in (step.gap, step.event))
        self._relieved(spend(self.state, counts, credit) for counts, credit in self._credits())
        node.steps.clear()
        self.node.quick.clear()
        self._spent(_now() - began)

    def _credits(self) -> list[tuple[Counts, Credit]]:
        """Those that have got their phases, and where they stand: each holds on to a lesson."""
        return [(counts, call) for counts in self.state.counts.values() for call in counts if type(call) is Credit]

    def _flush(self, lessons: Iterable[Lesson]) -> None:
        """Write what was credited to the counts."""
        self._relieved(flush(self.state, lesson) for lesson in lessons)

    def _relieved(self, parts: Iterable[int]) -> None:
        """What is written in parts of so many calls: at thousands of sizes it is more than is to be kept, so room is
        made on the way."""
        written = 0
        for part in parts:
            written += part
            if written > _WRITTEN:
                self._relieve(self.state)
                written = 0
        self._relieve(self.state)

    def _spent(self, seconds: float) -> None:
        """Time of ours: it is not to pass for that of code which nobody knows."""
        self._time, self._began = self._time and self._time + seconds, self._began + seconds

    def _numbered(self, step: Step) -> int:
        step.number = next(self._numbers)
        return step.number

    def _lessons(self) -> Iterator[Lesson]:
        waiting = list(self.starts.values())
        while waiting:
            node = waiting.pop()
            waiting += node.children.values()
            for step in list(node.steps.values()):
                yield step.gap
                yield step.event

    def _log(self) -> None:
        if self.state.mode is not None:
            self.state.mode.log = None if self._rest else []

    def _taken(self) -> Log:
        """What was counted since the last mark."""
        mode = self.state.mode
        if mode is not None and mode.log is None:  # too many
            self._whole = False
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

    def _recall(self) -> None:
        """A program's first unit begins where no other one does. What the second does alike has been seen twice. For
        units in which all is torch's own: others might do the same twice by chance."""
        opening, self._opening = self._opening, [] if isinstance(self.start.form, tuple) else self.path
        for before, step in zip(opening, self.path, strict=False):
            if before.key[1:] == step.key[1:]:
                step.event.recall(before.event)

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

    def resolved(self, meaning: dict[str, str]) -> None:
        """Phases that were not known yet have got their names."""
        if self.function is not None and self.step is not None:
            self.step.meanings.append(meaning)
        early = self.function is not None or self.state.capturing or get_ident() != self.state.thread
        if early and (mode := self.state.mode) is not None and mode.log:  # before the stretch is learned
            mode.log = [(self._final(counts, meaning), key) for counts, key in mode.log]
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


def flush(state: ThreadState, lesson: Lesson) -> int:
    """Write what was credited so far to the counts: how many different calls it is."""
    times, laps = lesson.replays - lesson.flushed, lesson.laps
    if not times and not laps:
        return 0
    state.moves += 1
    lesson.flushed, lesson.laps = lesson.flushed + times, 0
    written = write(state, lesson, laps) if laps else 0
    rows = lesson.rows if times else {}
    for place, keys in rows.items():
        if place[2][0] != "?":  # those stand in the counts already
            counts = state.counts_at(place)
            for key, n in keys.items():
                counts.setdefault(key, [0])[0] += n * times
    state.moves += 1
    return written + sum(map(len, rows.values()))


def spend(state: ThreadState, counts: Counts, credit: Credit) -> int:
    """Put in the place of a credit what it stands for: how many different calls it is."""
    rows = credit.rows
    state.moves += 1
    times = counts.pop(credit)[0]
    for key, n in rows.items():
        counts.setdefault(key, [0])[0] += n * times
    state.moves += 1
    return len(rows)
