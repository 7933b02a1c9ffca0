"""What one thread is doing: a stack of frames (module calls, optimizer steps, ...) and the counts made under each."""

from __future__ import annotations

import threading
import time
from typing import Any

import torch

from bitwatt.backends.torch.trail import Trail
from bitwatt.context import CONTEXT, Context, Token, current

graph_task = torch._C._current_graph_task_id

#: Phases not known yet. What becomes of them is decided when backward, a step, or the end of the session arrives.
BEFORE, BEFORE_GRAPH, AFTER, LOSS, FORWARD = "?before", "?before.graph", "?after", "?loss", "?forward"

#: Call -> a list of one int: adding to it in place hashes the key once, not twice.
Counts = dict[Any, list[int]]


#: Where calls are counted: the context, the user's phases when the found phase began, that phase, the scope.
#: A plain tuple, made and hashed for every call of a module.
Place = tuple[Context, tuple[str, ...], str, str]


class Frame:
    """One entry of a thread's stack. `task` is the autograd graph task it runs in, -1 outside backward."""

    __slots__ = ("base", "below", "context", "counts", "module", "phase", "scope", "task")

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
        self.context, self.base = context, base
        self.counts: Counts = counts if counts is not None else {}
        self.below: Any = None  # scopes of the modules it calls, once it calls one


class ThreadState:
    """Frames, counts, pending phases, the forward trail and the clock of one thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.counts: dict[Place, Counts] = {}
        self.pending: dict[Place, Counts] = {}
        self.seconds: dict[tuple[Context, tuple[str, ...], str], float] = {}
        self.bottom = Frame(BEFORE, "")
        self.stack: list[Frame] = [self.bottom]
        self.top = self.bottom
        self.trail = Trail()
        self.launches: list[Launch] = []
        self.forward_done = False  # since the last backward or step
        self.forward_seen = False  # since the last step
        self.ever_differentiated = False
        self.mode: Any = None
        self.last_backward: tuple[Any, str, Counts] = (None, "", {})  # launch, scope and counts of the last such op
        self.sessions = 0  # opened on this thread and not closed yet
        self._tick = time.perf_counter()

    def counts_at(self, place: Place) -> Counts:
        store = self.pending if place[2][0] == "?" else self.counts
        counts = store.get(place)
        if counts is None:
            counts = store[place] = {}
        return counts

    def push(self, phase: str, scope: str, module: Any = None, base: tuple[str, ...] | None = None) -> Frame:
        context = CONTEXT.get()
        if context is None or not context.token.open:
            context = current()
        if phase != self.top.phase:
            self.clock()
        if base is None:
            base = context.phases if context is not None else ()
        counts = self.counts_at((context, base, phase, scope)) if context is not None else {}
        self.top = frame = Frame(phase, scope, graph_task(), context, counts, module, base)
        self.stack.append(frame)
        return frame

    def pop(self, frame: Frame) -> None:
        """Leave `frame`, and whatever an exception left above it."""
        stack = self.stack
        if stack[-1] is not frame and frame not in stack:
            return
        if stack[-2].phase != frame.phase:
            self.clock()
        while stack.pop() is not frame:
            pass
        self.top = stack[-1]

    def clock(self, phase: str | None = None) -> None:
        """Book the time since the last call under `phase`, by default that of the top frame."""
        now = time.perf_counter()
        frame = self.top
        context = frame.context or current()
        idle = frame is self.bottom and not self.sessions and not self.forward_done  # a thread that may only be waiting
        if context is not None and not idle:
            if phase is None:
                phase = frame.phase if frame is not self.bottom else (AFTER if self.forward_done else BEFORE)
            base = frame.base if frame is not self.bottom else context.phases
            key = (context, base, phase)
            self.seconds[key] = self.seconds.get(key, 0.0) + now - self._tick
        self._tick = now

    def resolve(self, meaning: dict[str, str], token: Token | None = None) -> None:
        """Give pending phases, of one session or all, their name. The dicts stay: frames on the stack hold them."""
        for (context, base, phase, scope), counts in list(self.pending.items()):
            name = meaning.get(phase)
            if name and counts and token in (None, context.token):
                known = self.counts_at((context, base, name, scope))
                for call, cell in counts.items():
                    known.setdefault(call, [0])[0] += cell[0]
                counts.clear()
        for key in [k for k in list(self.seconds) if k[2] in meaning and token in (None, k[0].token)]:
            named = (key[0], key[1], meaning[key[2]])
            self.seconds[named] = self.seconds.get(named, 0.0) + self.seconds.pop(key)

    def enter_forward(self) -> None:
        """The outermost module is called: what came before was part of the model or had nothing to do with it."""
        self.clock()  # the time until now came before
        if self.pending and not self.forward_done:
            self.resolve({BEFORE: "other", BEFORE_GRAPH: "forward"})
        self.forward_done = self.forward_seen = True

    def enter_backward(self) -> None:
        """Backward begins: what this thread did since the last one was its forward and its loss."""
        self.clock()
        if self.forward_done:
            meaning = {AFTER: "loss", BEFORE: "other", BEFORE_GRAPH: "forward"}
        elif self.forward_seen:  # a second backward through the same forward: a penalty on gradients, retain_graph
            meaning = {BEFORE: "loss", BEFORE_GRAPH: "loss", AFTER: "loss"}
        else:  # functional code: no module was called at all
            meaning = {BEFORE: "other", BEFORE_GRAPH: "forward", AFTER: "loss"}
        self.resolve({**meaning, LOSS: "loss", FORWARD: "forward"})
        self.forward_done = False
        self.ever_differentiated = True

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
        everyone.append(self.here)
