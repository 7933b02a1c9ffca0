"""What is known of a program: a tree of the marks it passes, and at each the calls that were counted there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from bitwatt.backends.torch.replay.checks import compiled_frames
from bitwatt.backends.torch.replay.families import Families, Family, Kin, Log, Rows, exchanged, tells_apart
from bitwatt.backends.torch.replay.marks import Sizes
from bitwatt.backends.torch.state import Counts, Place
from bitwatt.backends.torch.trail import NOTHING, Stretch

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.lanes import Lane
    from bitwatt.backends.torch.state import ThreadState

#: So many equal looks make an event known; more where it has been seen to change.
_ENOUGH = 2
_PATIENCE = 256
#: Of a call in which the program's own code reads what was computed: it may decide by it what to do.
READS = 8
#: Of the step of an optimizer that is not torch's own: some do more work every so often, and no checksum tells.
FOREIGN = 64
#: And the code before one: it has no checksum but its graph nodes. Where the allocator tells of it too, fewer will do:
#: with the steps that teach it ten, since that is how often programs print something.
GAPS, VOUCHED, _GAP_PATIENCE = 32, 8, 8192
#: Samples of a stretch, kept to state an interval where it changes.
_KEPT = 64


class Lesson:
    """One stretch of the program, the code between two marks or the call behind one, and what it does each time."""

    __slots__ = (
        "_later", "_rows", "assumed", "calls", "changes", "compiled", "credited", "enough", "final", "flushed",
        "frames", "inside", "is_gap", "laps", "log", "nodes", "predicted", "ran", "replays", "samples", "seconds",
        "squares", "streak", "trail", "weighed",
    )  # fmt: skip

    def __init__(self, is_gap: bool = False) -> None:
        self.is_gap = is_gap
        self.enough = GAPS if is_gap else _ENOUGH
        self._rows: Rows | None = None
        self._later: tuple[tuple[Place, Credit], ...] | None = None
        self.predicted: tuple[Family, Sizes] | None = None  # rows that follow from those at other sizes
        self.assumed = False  # what is known was taken from another stretch
        self.streak = 0  # equal looks in a row
        self.changes = 0
        self.replays = 0
        self.credited = False  # since it was last looked at
        self.flushed = 0  # of the replays, those already written to the counts
        self.laps = 0  # of lanes, beside the replays, that are not written yet
        self.nodes = 0  # autograd nodes made
        self.trail: Stretch = NOTHING  # and the layers that made them
        self.inside: int | None = None  # how often modules were called, and how much went into them
        self.calls = 0  # of ops
        self.compiled = (
            False  # it has parts that run compiled when it is replayed: they call no modules, and make other nodes
        )
        self.ran: tuple[int, int] | None = None  # nodes and `inside` of that
        self.frames = -1  # what dynamo had looked at by then
        self.seconds = 0.0
        self.log: Log | None = None  # of a gap: its calls in their order, where they are few
        self.samples: list[Rows] = []
        self.squares = self.weighed = 0  # of how often each look was credited, until so many replays
        self.final: dict[Place, Place] = {}  # where calls went that had no phase yet when they were counted

    @property
    def known(self) -> bool:
        return self._rows is not None or self.predicted is not None

    @property
    def trusted(self) -> bool:
        streak, changes = self.streak, self.changes
        if self.predicted is not None:  # what was found at other sizes speaks for it, or against it
            family = self.predicted[0]
            streak, changes = max(streak, family.agreed), changes + family.missed
        if self.is_gap:
            return streak >= min(self.enough << min(changes, 16), _GAP_PATIENCE)
        return streak >= min(self.enough << 2 * min(max(changes - 1, 0), 16), _PATIENCE)

    def heed(self, allocator: bool) -> None:
        """Of a gap: how often it must be seen alike, with the allocator to tell of it later or without."""
        self.enough = min(VOUCHED, GAPS) if allocator else GAPS

    @property
    def varies(self) -> bool:
        return self.changes > 1

    def ready(self, sampling: bool) -> bool:
        """May be credited: it is known, or a sample of it will do."""
        return self.trusted or (sampling and self.varies and len(self.samples) >= _ENOUGH)

    @property
    def settled(self) -> bool:
        """Whether all of its calls have got their phases."""
        return all(place[2][0] != "?" or place in self.final for place in self._places)

    @property
    def _places(self) -> Iterable[Place]:
        return self.predicted[0].places if self._rows is None and self.predicted is not None else self.rows

    @property
    def rows(self) -> Rows:
        if self._rows is None:  # worked out anew each time: there may be thousands of sizes
            return self.predicted[0].rows(self.predicted[1]) if self.predicted is not None else {}
        return self._rows

    @property
    def source(self) -> Callable[[], Rows]:
        """What its rows are now, to be worked out later."""
        rows, predicted = self._rows, self.predicted
        return (
            partial(predicted[0].rows, predicted[1]) if rows is None and predicted is not None else lambda: rows or {}
        )

    def foresee(self, family: Family, sizes: Sizes) -> None:
        self.predicted = (family, sizes)

    def joins(self, family: Family | None, sizes: Sizes) -> None:
        """It was counted before there was a family: does it say the same?"""
        own = self._rows
        if family is not None and own is not None and family.holds(sizes) and family.rows(sizes) == own:
            self.predicted, self._rows = (family, sizes), None

    def assume(self, twin: Lesson | None, sizes: Sizes, here: Sizes) -> None:
        """Take what is known of another stretch, with its sizes exchanged, until this one is seen."""
        self._rows = exchanged(twin.rows, sizes, here) if twin is not None else {}
        self._later, self.trail = None, twin.trail if twin is not None else NOTHING
        self.assumed = True

    def look(self, rows: Rows, calls: int) -> Rows | None:
        """What was counted this time. Returns what was expected where that was something else."""
        self.squares, self.weighed = self._squares, self.replays
        self.calls, self.assumed = calls, False
        expected = self.rows if self.known else None
        agrees = expected == rows
        family = self.predicted[0] if self.predicted is not None else None
        if agrees:
            self.streak += 1
            if family is not None:
                family.agreed += 1
        else:
            if family is not None:
                family.misses(refuted=True)
            for _, credit in self._later or ():
                credit.keep()
            self.streak = 1
            self.changes += expected is not None
            self._rows, self._later, self.predicted = rows, None, None
        if self._rows is not None:
            if len(self.samples) >= _KEPT:
                del self.samples[::2]
            self.samples.append(self._rows)
        return None if agrees else expected

    def recall(self, twin: Lesson) -> None:
        """The same event was counted elsewhere: what it did there is a look, too, whatever its phases were called."""
        alike = (self.nodes, self.inside, self.calls) == (twin.nodes, twin.inside, twin.calls)
        if not alike or self.streak != 1 or self.changes or twin.changes:
            return
        if self.rows == twin.rows or _ops(self.rows) == _ops(twin.rows):
            self.streak += twin.streak

    @property
    def _squares(self) -> int:
        return self.squares + (self.replays - self.weighed) ** 2

    @property
    def uncertainty(self) -> int:
        """The variance of what was credited against what was done, in variances of a sample: a look that was credited
        twice as often errs twice as far, and each of those that ran unseen errs by itself."""
        return self._squares + self.replays

    def confirms(self, nodes: int, inside: int = 0) -> bool:
        """Whether a replay has the checksums that it should have. Those of compiled code are learned from the first
        replay in which nothing was compiled."""
        if not self.compiled:
            return nodes == self.nodes and self.inside in (None, inside)
        ran, frames = (nodes, inside), compiled_frames()
        if self.ran is None or frames != self.frames:
            self.ran = ran if frames == self.frames else None
            self.frames = frames
            return True
        return ran == self.ran

    def doubt(self) -> None:
        """A checksum told that this time something else happened."""
        if self.predicted is not None:
            self.predicted[0].misses(refuted=False)
        self.streak = 0
        self.changes += 1
        self.ran = None

    @property
    def later(self) -> tuple[tuple[Place, Credit], ...]:
        """What cannot be booked yet, since its phase is decided by what comes after."""
        if self._later is None:
            self._later = tuple([(place, Credit(self, place)) for place in self._places if place[2][0] == "?"])
        return self._later


class Credit:
    """Stands in the counts for all the calls of a lesson at one place."""

    __slots__ = ("_rows", "lesson", "place")

    def __init__(self, lesson: Lesson, place: Place) -> None:
        self.lesson, self.place = lesson, place
        self._rows: dict[Any, int] | None = None if lesson._rows is None else lesson._rows[place]

    @property
    def rows(self) -> dict[Any, int]:
        return self.lesson.rows[self.place] if self._rows is None else self._rows

    def keep(self) -> None:
        """It stands for what is known until now: a look has found something else. Not before, as there may be thousands
        of sizes."""
        self._rows = self.rows


class Step:
    """A mark with its sizes, and those of the marks before it in the unit: the stretch that leads to it and its own."""

    __slots__ = (
        "after", "closes", "differentiates", "event", "first", "flags", "gap", "hooked", "key", "meanings", "node",
        "number", "opaque", "phase", "safe", "sizes",
    )  # fmt: skip

    def __init__(self, node: Node, sizes: Sizes, key: Any) -> None:
        self.node, self.sizes = node, sizes
        self.key = key  # by which it was found: place, context, who is called, with what
        self.gap, self.event = Lesson(is_gap=True), Lesson()
        self.safe = False  # the whole unit it was last part of is known
        self.opaque = False  # it runs code of the program's own,
        self.hooked = False  # that hangs on a model, where what it does is mostly no part of the graph
        self.phase = ""  # which phase the event begins
        self.number = 0  # stands for the node and the sizes
        self.after: tuple[bool, bool, bool] | None = None  # how the event leaves the thread's state
        self.first: Any = None  # of a backward: a weak reference to a parameter that gets a gradient
        self.closes = False  # of a compiled function: a unit ends with it,
        self.differentiates = False  # a backward runs in it, with no forward after it,
        self.meanings: list[dict[str, str]] = []  # the phases that are decided in it,
        self.flags = (False, False, False)  # and how it leaves the thread's state

    @property
    def unchecked(self) -> bool:
        """It ran code of the program's own that makes no graph and calls no module: no checksum tells what it did."""
        return self.hooked or (self.opaque and not (self.event.nodes or self.event.inside or self.event.compiled))

    @property
    def apart(self) -> bool:
        """A batch is read, and nothing that follows goes through it: it may be counted while the rest is replayed."""
        return bool(self.key[2][0] == "fetch" and not self.event.nodes)

    @property
    def booked(self) -> str:
        """The phase that the time of the event belongs to."""
        kind = self.key[2][0]
        if kind in ("function", "graph"):
            return self.phase
        if kind == "call":
            return "forward" if self.phase[0] == "?" else self.phase
        return {"backward": "backward", "step": "optimizer"}.get(kind, "preprocess")

    def became(self, phase: str) -> set[str]:
        """What calls before it turned out to be, of those that had no phase yet when they were counted."""
        return {at[2] for place, at in self.gap.final.items() if place[2] == phase}

    def settle(self, state: ThreadState) -> None:
        """A compiled function was replayed: what it means for what came before it."""
        for meaning in self.meanings:
            state.resolve(meaning)
        state.forward_done, state.forward_seen, state.ever_differentiated = self.flags

    def foresee(self, kin: Kin) -> None:
        """What happens at sizes that were never seen, where that can be worked out."""
        before, family, twin = kin
        if before is not None:
            self.gap.foresee(before, self.sizes)
            self.gap.streak, self.gap.seconds = self.node.alike, twin.gap.seconds
            self.gap.nodes, self.gap.trail = twin.gap.nodes, twin.gap.trail
        event, other = self.event, twin.event
        event.foresee(family, self.sizes)
        event.nodes, event.trail, event.enough, event.compiled = other.nodes, other.trail, other.enough, other.compiled
        event.inside = family.inside_at(self.sizes) if not other.compiled else None
        self.phase, self.opaque, self.first, self.hooked = twin.phase, twin.opaque, twin.first, twin.hooked
        self.safe, self.gap.compiled = event.trusted, twin.gap.compiled
        self.closes, self.differentiates = twin.closes, twin.differentiates
        self.meanings, self.flags = twin.meanings, twin.flags


class Node:
    """A place in the tree of marks. A unit begins at a start, one for each form that the unit before ended with."""

    __slots__ = (
        "alike", "calm", "children", "countdown", "families", "fastest", "form", "heir", "interval", "lane", "parent",
        "quick", "safe", "steps",
    )  # fmt: skip

    def __init__(self, form: Any = None, parent: Node | None = None) -> None:
        self.form, self.parent = form, parent
        self.children: dict[Any, Node] = {}
        self.quick: dict[Any, Step] = {}
        self.steps: dict[Sizes, Step] = {}
        self.heir: Node | None = None  # the child that came last
        self.families = Families()
        self.alike = 0  # gaps before it that were as expected, in a row, at whatever sizes
        self.calm = False  # the code that last came after it is known, and need not be watched
        self.interval = self.countdown = 16  # units until the next look
        self.fastest = float("inf")  # seconds of a unit that began here
        self.safe = False  # the unit that began here last is known
        self.lane: Lane | None = None  # that unit

    def child(self, form: Any) -> Node:
        node = self.children.get(form)
        if node is None:
            node = self.children[form] = Node(form, self)
        return node

    @property
    def usual(self) -> Step | None:
        """A step that came after this event, and whose way there is known."""
        steps = self.heir.steps.values() if self.heir is not None else ()
        return next((step for step in steps if step.gap.known), None)

    def twin(self, sizes: Sizes) -> Step | None:
        """A step at other sizes, the way to which is known: the last one of which it can be told what each size became,
        if there is one. Where batch and width are both 2, a 2 may become either."""
        known = [step for step in reversed(self.steps.values()) if step.gap.known]
        return next((step for step in known if tells_apart(step.sizes, sizes)), known[-1] if known else None)

    def foresees(self, sizes: Sizes) -> bool:
        """From here to the end of the unit, as it last went, what begins with sizes never seen can be worked out."""
        node: Node | None = self
        while node is not None:
            if not node.families.cover(sizes):
                return False
            node = node.heir
        return True


def _ops(rows: Rows) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for keys in rows.values():
        total.update(keys)
    return total


def expanded(counts: Counts) -> Iterator[tuple[Any, list[int]]]:
    """What stands in the counts, with the calls that credits stand for."""
    for call, cell in counts.items():
        if type(call) is Credit:
            for key, n in call.rows.items():
                yield key, [n * cell[0]]
        else:
            yield call, cell
