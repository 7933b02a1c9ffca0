"""What one thread is doing: a stack of frames (module calls, optimizer steps, ...) and the counts made under each."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from bitwatt.backends.torch.device_memory import BUILT, DeviceMemory
from bitwatt.backends.torch.replay.pace import Pace
from bitwatt.backends.torch.tensors import own
from bitwatt.backends.torch.timeline import Timeline, timeline_here
from bitwatt.backends.torch.trail import Trail
from bitwatt.context import CONTEXT, Context, Token, current
from bitwatt.observing import Ranges

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.lanes import Lane
    from bitwatt.backends.torch.replay.learner import Learner

graph_task = torch._C._current_graph_task_id
_sequence = torch.autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled

#: Phases not known yet. What becomes of them is decided when backward, a step, or the end of the session arrives.
BEFORE, BEFORE_GRAPH, AFTER, LOSS, FORWARD = "?before", "?before.graph", "?after", "?loss", "?forward"

#: Where calls are counted: the context, the user's phases when the found phase began, that phase, the scope.
#: A plain tuple, made and hashed for every call of a module.
Place = tuple[Context, tuple[str, ...], str, str]


class Counts(dict[Any, list[int]]):
    """Call -> a list of one int: adding to it in place hashes the key once, not twice."""

    __slots__ = ("place",)

    def __init__(self, place: Place | None = None) -> None:
        self.place = place


#: Frames kept before the program's dead modules are looked for among them.
FRAMES = 1_000


class Frame:
    """One entry of a thread's stack. `task` is the autograd graph task it runs in, -1 outside backward.

    The frame of a module's call is kept and used again when the module is called at the same place: `below` holds those
    of the modules it calls. It holds the module itself only while the call lasts.
    """

    __slots__ = ("base", "below", "context", "counts", "module", "phase", "ref", "scope", "task", "weight")

    def __init__(
        self,
        phase: str,
        scope: str,
        task: int = -1,
        context: Context | None = None,
        counts: Counts | None = None,
        module: Any = None,
        base: tuple[str, ...] = (),
    ) -> None:
        self.phase, self.scope, self.task, self.module = phase, scope, task, module
        self.ref: Any = None
        if isinstance(module, torch.nn.Module):
            self.ref, self.weight = weakref.ref(module), type(own(module))
        self.context, self.base = context, base
        self.counts: Counts = counts if counts is not None else Counts()
        self.below: dict[int, Frame] = {}

    def calls(self, frame: Frame) -> None:
        """`frame` is a call of a module made inside this one, and will be the same when it is made again."""
        if len(self.below) > FRAMES:  # a module that makes others as it goes
            self.below = {key: known for key, known in self.below.items() if known.ref() is not None}
        self.below[id(frame.module)] = frame


class Step:
    """A step of an optimizer, and the Python frame it runs in: torch tells nobody when it ends by an exception."""

    __slots__ = ("closure", "frame", "optimizer")

    def __init__(self, optimizer: Any, frame: Any, *, closure: bool = False) -> None:
        self.optimizer, self.frame = optimizer, frame_mark(frame)
        self.closure = closure  # it calls models by itself


def frame_mark(frame: Any) -> tuple[int, Any]:
    """Which Python frame it is. The frame itself would keep alive what its code held when it raised."""
    return id(frame), frame.f_code


def is_running(mark: tuple[int, Any]) -> bool:
    """Whether a frame is still on this thread's stack."""
    frame: Any = sys._getframe(1)
    while frame is not None and (id(frame), frame.f_code) != mark:
        frame = frame.f_back
    return frame is not None


class ThreadState:
    """Frames, counts, pending phases, the forward trail and the clock of one thread."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.thread = threading.get_ident()
        self.counts: dict[Place, Counts] = {}
        self.pending: dict[Place, Counts] = {}
        self.seconds: dict[tuple[Context, tuple[str, ...], str], float] = {}
        self.pending_seconds: dict[tuple[Context, tuple[str, ...], str], float] = {}
        self.bottom = Frame(BEFORE, "")
        self.stack: list[Frame] = [self.bottom]
        self.top = self.bottom
        self.frames: dict[tuple[Place, int], Frame] = {}  # of module calls, by place and module
        self.room = FRAMES  # with more of them, those of modules that are gone are dropped
        self.left = 0  # the sequence number when the outermost module was left
        self.trail = Trail()
        self.launches: list[Launch] = []
        self.forward_done = False  # since the last backward or step
        self.forward_seen = False  # since the last step
        self.ever_differentiated = False
        self.mode: Any = None
        self.resting: Any = None  # the mode, while what runs is known and need not be counted
        self.learner: Learner | None = None
        self.last_backward: tuple[Any, str, Counts] = (
            None,
            "",
            Counts(),
        )  # launch, scope and counts of the last such op
        self.capturing = False  # a CUDA graph: what is called does not run now
        self.sessions = 0  # opened on this thread and not closed yet
        self.moves = 0  # odd while what was credited is moved to the counts: another thread that reads waits for that
        self.fresh = 0  # calls written down that were new, since compact.relieve last looked
        self.memory = DeviceMemory() if BUILT else None
        self.ranges: Ranges | None = None  # where phases are to be marked for NVIDIA's tools
        self.timeline: Timeline | None = None  # of the GPU, once the program uses one
        self._tick = time.perf_counter()

    def abort(self) -> None:
        """What runs the swift way has raised."""
        if self.learner is not None:
            self.learner.abort()

    def counts_at(self, place: Place) -> Counts:
        store = self.pending if place[2][0] == "?" else self.counts
        counts = store.get(place)
        if counts is None:
            counts = store[place] = Counts(place)
        return counts

    def took_part(self, token: Token) -> bool:
        """Whether something on this thread belongs to a session. Also asked by other threads."""
        if self.learner is not None and token in self.learner.tallies:
            return True
        kept: tuple[dict[Any, Any], ...] = (self.counts, self.pending, self.seconds, self.pending_seconds)
        return any(place[0].token is token for store in kept for place in list(store))

    def push(self, phase: str, scope: str, module: Any = None, base: tuple[str, ...] | None = None) -> Frame:
        if self.learner is not None and self.learner.watched:
            self.learner.unwatch()
        context = CONTEXT.get()
        if context is None or not context.token.open:
            context = current()
        if phase != self.top.phase:
            self.clock()
            if self.ranges is not None:
                self.ranges.now(phase)
        if base is None:
            base = context.phases if context is not None else ()
        frame = self._frame(context, base, phase, scope, module)
        self.stack.append(frame)  # first: Ctrl-C may come between the two
        self.top = frame
        return frame

    def _frame(self, context: Context | None, base: tuple[str, ...], phase: str, scope: str, module: Any) -> Frame:
        if context is None:
            return Frame(phase, scope, graph_task(), None, None, module, base)
        place = (context, base, phase, scope)
        known = self.frames.get((place, id(module)))
        if known is not None and known.module is None and known.ref() is module:
            known.module, known.task = module, graph_task()
            return known
        frame = Frame(phase, scope, graph_task(), context, self.counts_at(place), module, base)
        if frame.ref is not None:
            if len(self.frames) >= self.room:
                self.frames = {key: known for key, known in self.frames.items() if known.ref() is not None}
                self.room = max(FRAMES, 2 * len(self.frames))
            self.frames[place, id(module)] = frame
        return frame

    def again(self, module: Any) -> Frame | None:
        """The frame of this call if the module running now has made it before: the short way of almost all calls."""
        top = self.top
        frame = top.below.get(id(module))
        if (
            frame is None
            or frame.ref() is not module
            or frame.module is not None
            or (context := CONTEXT.get()) is not frame.context
            or context is None
            or not context.token.open
            or graph_task() != top.task
            or type(own(module)) is not frame.weight  # quantised or pruned in between
        ):
            return None
        if frame.phase is not top.phase:
            self.clock()
            if self.ranges is not None:
                self.ranges.now(frame.phase)
        frame.module, frame.task = module, top.task
        self.stack.append(frame)
        self.top = frame
        if _grad_enabled():
            self.trail.mark(_sequence(), frame.scope)
        return frame

    def pop(self, frame: Frame) -> None:
        """Leave `frame`, and whatever an exception left above it."""
        stack = self.stack
        if stack[-1] is not frame and frame not in stack:
            self.top = stack[-1]
            return
        if stack[-2].phase is not frame.phase:
            self.clock()
            if self.ranges is not None:
                self.ranges.now(stack[-2].phase)
        while True:
            left = stack.pop()
            left.module = None
            if left is frame:
                break
        self.top = stack[-1]

    def depth(self) -> int:
        """How many frames there are, without steps that have raised."""
        self.drop_stale_steps()
        return len(self.stack)

    def cut(self, depth: int) -> None:
        """Leave the frames above so many: an error came, perhaps while one was being entered or left."""
        if len(self.stack) > depth:
            self.pop(self.stack[depth])
        self.top = self.stack[-1]

    @property
    def in_closure(self) -> bool:
        """Whether a step of an optimizer runs that calls models by itself."""
        return len(self.stack) > 1 and any(type(one := frame.module) is Step and one.closure for frame in self.stack)

    def drop_stale_steps(self) -> None:
        """Leave steps of optimizers whose Python frame is gone."""
        while type(step := self.top.module) is Step:
            if is_running(step.frame):
                return
            self.pop(self.top)

    def clock(self, phase: str | None = None, until: float | None = None) -> None:
        """Book the time since the last call under `phase`, by default that of the top frame."""
        now = time.perf_counter() if until is None else max(until, self._tick)
        frame = self.top
        context = frame.context or current()
        idle = frame is self.bottom and not self.sessions and not self.forward_done  # a thread that may only be waiting
        if context is not None and not idle:
            if self.ranges is None and context.token.observer is not None and context.token.observer.nvtx:
                self.ranges = Ranges()
            if self.ranges is not None and phase == "backward":
                self.ranges.now(frame.phase)
            if phase is None:
                phase = frame.phase if frame is not self.bottom else (AFTER if self.forward_done else BEFORE)
            base = frame.base if frame is not self.bottom else context.phases
            key, seconds = (context, base, phase), self.seconds if phase[0] != "?" else self.pending_seconds
            ended = context.token.ended  # this thread may go on for longer than the session
            spent = now - self._tick if ended is None else max(min(now, ended) - self._tick, 0.0)
            seconds[key] = seconds.get(key, 0.0) + spent
            if self.memory is not None and self.mode is not None:  # not in steps that are known
                self.memory.booked(key)
            if self.timeline is not None:
                self.timeline.mark(key)
            else:
                self.timeline = timeline_here()
        self._tick = now

    def begin_clock(self) -> None:
        """Whatever passed until now belongs to nobody."""
        self._tick = time.perf_counter()

    def skip_clock(self, lane: Lane) -> None:
        """The time until now has been booked in a lane."""
        self._tick = time.perf_counter()
        if self.timeline is not None:
            self.timeline.mark_lane(lane, -1)

    def resolve(self, meaning: dict[str, str], token: Token | None = None) -> None:
        """Give pending phases, of one session or all, their name. The dicts stay: frames on the stack hold them."""
        if self.learner is not None:
            self.learner.resolved(meaning)
        for (context, base, phase, scope), counts in list(self.pending.items()) if self.pending else ():
            name = meaning.get(phase) if counts else None
            if name and token in (None, context.token):
                known = self.counts_at((context, base, name, scope))
                for call, cell in counts.items():
                    known.setdefault(call, [0])[0] += cell[0]
                counts.clear()
        if self.memory is not None:
            self.memory.resolve(meaning, token)
        if self.timeline is not None:
            self.timeline.resolve(meaning, token)
        for key in list(self.pending_seconds):
            if key[2] in meaning and token in (None, key[0].token):
                named = (key[0], key[1], meaning[key[2]])
                self.seconds[named] = self.seconds.get(named, 0.0) + self.pending_seconds.pop(key)

    def enter_forward(self, continues: bool = False) -> None:
        """The outermost module is called: what came before was part of the model or had nothing to do with it. It
        `continues` a model in several parts if what happened since the last part made its input."""
        self.clock()  # the time until now came before
        if self.pending and not self.forward_done:
            self.resolve({BEFORE: "other", BEFORE_GRAPH: "forward"})
        elif self.pending and continues:
            self.resolve({AFTER: "forward"})
        self.forward_done = self.forward_seen = True

    def enter_backward(self, through: Callable[[int], bool]) -> None:
        """Backward begins: what this thread did since the last one was its forward and its loss. `through` tells
        whether it goes through what was computed before a given node."""
        self.clock()
        if self.forward_done:
            meaning = {AFTER: "loss", BEFORE: "other", BEFORE_GRAPH: "forward"}
        elif self.forward_seen and through(
            self.left
        ):  # a second backward through the same forward: a penalty on gradients, retain_graph
            meaning = {BEFORE: "loss", BEFORE_GRAPH: "loss", AFTER: "loss"}
        else:  # functional code: no module was called at all
            meaning = {BEFORE: "other", BEFORE_GRAPH: "forward", AFTER: "loss"}
        self.resolve({**meaning, LOSS: "loss", FORWARD: "forward"})
        self.forward_done = False
        self.ever_differentiated = True
        if self.ranges is not None:
            self.ranges.now("backward")

    def settle(self, closing: Token | None = None) -> None:
        """A step or the end of a session came without backward: what is pending was evaluation or other work."""
        functional = closing is not None and not self.forward_seen and not self.ever_differentiated
        self.resolve(
            {
                BEFORE: "other",
                BEFORE_GRAPH: "forward" if functional else "other",
                AFTER: "other",
                LOSS: "loss" if functional else "other",
                FORWARD: "inference",
            },
            closing,
        )
        if not any(self.pending.values()):
            self.forward_done = self.forward_seen = False


class Launch:
    """One call of the autograd engine: by which thread, in which context, and the graph task it became."""

    __slots__ = ("context", "state", "task")

    def __init__(self, state: ThreadState, context: Context | None) -> None:
        self.state, self.context, self.task = state, context, -1


class States(threading.local):
    """The state of the current thread, made on first use and remembered in `all`."""

    def __init__(self, everyone: list[ThreadState]) -> None:
        self.here = ThreadState()
        self.pace = self.here.pace
        everyone.append(self.here)
