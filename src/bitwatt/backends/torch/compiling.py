"""torch.compile: what is counted runs eagerly, what is known runs compiled, and dynamo never meets a dispatch mode.

Dynamo skips code that it meets under a mode, and leaves it skipped for good. So where compiled code is called, a thread
that counts is told to run eagerly, this once: nothing is compiled then, nothing is marked, and other threads go on as
they were. An outermost call of a compiled function is an event like the call of a model. Graphs stay whole: our own
wrappers are left out of them.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bitwatt.backends.torch.mode import mode_here
from bitwatt.backends.torch.replay.checks import compiled_frames
from bitwatt.backends.torch.replay.functions import FUNCTION, Functions
from bitwatt.backends.torch.replay.marks import arguments
from bitwatt.backends.torch.replay.pace import ADDED, stepping
from bitwatt.backends.torch.state import AFTER, BEFORE_GRAPH, FORWARD, LOSS, ThreadState, graph_task
from bitwatt.backends.torch.tensors import nodes_behind
from bitwatt.context import current
from bitwatt.imports import when_imported
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.learner import Learner
    from bitwatt.backends.torch.watch import TorchWatch

_getframe = sys._getframe
_OURS = __name__.partition(".")[0]
#: The function in which torch calls compiled code.
_WRAPPER = "compile_wrapper"
#: What it calls first of all, before it looks at the dispatch keys, and after all else.
_STANCE, _LAST = "_is_skip_guard_eval_unsafe_stance", "_maybe_set_eval_frame"
_CALLED, _CHOSEN, _RUNNING = range(3)
_sequence = torch.autograd._get_sequence_nr
#: A backward that is counted though its forward was compiled, and cannot be seen into.
_UNSEEN = Op("torch.compile.backward", (("unrecorded", "compiled before it was counted"),), overload="unrecorded")
#: What a phase that was not decided inside a compiled function becomes most of the time: its time is booked there.
_LIKELY = {AFTER: "loss", LOSS: "loss", FORWARD: "forward", BEFORE_GRAPH: "forward"}


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []

    def patch() -> None:
        frames: Any = sys.modules["torch._dynamo.eval_frame"]
        if watch.on and hasattr(frames, "_callback_from_stance") and hasattr(frames, _LAST):
            undo.extend([Regions(watch).install(frames), _leave_us_out()])
        elif watch.on:  # by torch's public switch: all threads run eagerly while the session is open
            stance = torch.compiler.set_stance("force_eager")
            undo.append(lambda: stance.__exit__(None, None, None))

    def restore() -> None:
        while undo:
            undo.pop()()

    return [restore, when_imported("torch._dynamo", patch)]


def _leave_us_out() -> Callable[[], None]:
    """No frame of ours is compiled when it runs between two graphs, and dynamo reads past our wrapper of modules."""
    rules: Any = sys.modules["torch._dynamo.trace_rules"]
    before = list(rules.SKIP_DIRS)
    rules.add(_OURS)
    added = [entry for entry in rules.SKIP_DIRS if entry not in before]
    ours: Any = nn.Module.__call__
    original = getattr(ours, "_torchdynamo_inline", None)
    if original is not None:  # else someone wrapped it again
        sys.modules["torch._dynamo.eval_frame"].skip_code(ours.__code__)
        _call_modules_by(ours)

    def restore() -> None:
        for entry in added:
            rules.SKIP_DIRS.remove(entry)
        rules._recompile_re()
        if original is not None:
            _call_modules_by(original)

    return restore


def _call_modules_by(call: Any) -> None:
    """Tell dynamo which function is the plain call of a module, and needs no reading."""
    for name in ("utils", "variables.nn_module"):
        reader: Any = sys.modules.get(f"torch._dynamo.{name}")
        if hasattr(reader, "unpatched_nn_module_call"):
            reader.unpatched_nn_module_call = call


@contextlib.contextmanager
def eager_backward(watch: TorchWatch, roots: Any) -> Iterator[None]:
    """Around a backward: if it is counted, autograd itself is not compiled, and what has been compiled is named."""
    mode, learner = mode_here(watch), watch.states.here.learner
    autograd: Any = sys.modules.get("torch._dynamo.compiled_autograd")
    if mode is not None and compiled_frames():
        for _ in range(_compiled_nodes(roots)):
            mode.record_op(_UNSEEN)
    if mode is None or not getattr(autograd, "compiled_autograd_enabled", False):
        yield
        return
    if learner is not None:
        learner.compiled = True
    with autograd._disable():
        yield


def _compiled_nodes(roots: Any, limit: int = 10_000) -> int:
    """Nodes behind `roots` whose backward was compiled with their forward: what is fused in it passes no dispatcher."""
    waiting = nodes_behind(roots)
    seen, found = set(waiting), 0
    while waiting and len(seen) < limit:
        node = waiting.pop()
        found += node.name() == "CompiledFunctionBackward"
        new = [after for after, _ in node.next_functions if after is not None and after not in seen]
        seen.update(new)
        waiting += new
    return found


class Region:
    """An outermost call of a compiled function, which is an event."""

    __slots__ = ("frame", "handling", "learner", "stage", "state", "swift", "undo")

    def __init__(self, frame: Any, state: ThreadState, learner: Learner, swift: bool = False) -> None:
        self.frame, self.state, self.learner, self.swift = frame, state, learner, swift
        self.stage = _CALLED
        self.handling = sys.exc_info()[1]  # an exception that has nothing to do with it
        self.undo: Callable[[], None] | None = None


class _Open(threading.local):
    def __init__(self) -> None:
        self.open: list[Region] = []


class Regions:
    """What happens where compiled code begins and ends, on all threads of a watch."""

    def __init__(self, watch: TorchWatch) -> None:
        self.watch = watch
        self.functions = Functions(watch.events.structures)
        self._open = _Open()
        self._lock, self._regions = threading.Lock(), 0
        self._await_last: Callable[[bool], None] = lambda _: None

    def install(self, frames: Any) -> Callable[[], None]:
        """A call of compiled code asks for a stance, chooses its frame evaluation by it, and sets it; at last it sets
        what was before. Its dispatch keys are frozen in between: a mode may only come or go at both ends. torch itself
        sets frame evaluations often, where it does not want to be compiled: ours stands there only while it is awaited.
        """
        first = _STANCE if hasattr(frames, _STANCE) else "set_eval_frame"
        names = (first, "_callback_from_stance", _LAST)
        begin, choose, set_frame = originals = [getattr(frames, name) for name in names]
        regions = self._open

        def begins(*args: Any) -> Any:
            frame = _getframe(1)
            if frame.f_code.co_name == _WRAPPER and not (regions.open and regions.open[-1].frame is frame):
                self._enter(frame)
            return begin(*args)

        def callback_from_stance(callback: Any) -> Any:
            chosen = choose(callback)
            if chosen is None and not self._regions:  # torch's own: each `zero_grad` passes here
                return None
            frame = _getframe(1)
            if regions.open and regions.open[-1].frame is frame:
                regions.open[-1].stage = _CHOSEN
            return None if chosen is None or (self.watch.on and self._counts(frame)) else chosen

        def maybe_set_eval_frame(callback: Any) -> Any:
            open_ = regions.open
            if open_ and open_[-1].frame is _getframe(1):
                if open_[-1].stage == _CHOSEN:
                    open_[-1].stage = _RUNNING
                else:
                    self._awaited(False)
                    self._end(open_.pop())
            return set_frame(callback)

        def replace(*functions: Any) -> None:
            for name, function in zip(names, functions, strict=True):
                setattr(frames, name, function)

        def await_last(on: bool) -> None:
            setattr(frames, _LAST, maybe_set_eval_frame if on else set_frame)

        self._await_last = await_last
        replace(begins, callback_from_stance, set_frame)
        return lambda: replace(*originals)

    def _awaited(self, on: bool) -> None:
        """One more region is open on some thread, or one less."""
        with self._lock:
            self._regions += 1 if on else -1
            self._await_last(self._regions > 0 and self.watch.on)

    def _opens(self, region: Region) -> None:
        self._open.open.append(region)
        self._awaited(True)

    def _enter(self, frame: Any) -> None:
        """Compiled code is called. If nothing is under way, the call is an event."""
        state = self.watch.states.here
        learner = state.learner
        if learner is None or state.pace.mute or learner.replaying or graph_task() >= 0 or not self.watch.on:
            return
        inside = frame.f_locals
        if not self.functions.knows(inside.get("fn")) and not _is_event(inside):
            return
        if inside["self"].export or torch.compiler.is_compiling():
            return
        if learner.swift is not None:
            if state.pace.next is stepping and stepping(FUNCTION):
                return
            if self._is_expected(state, learner, frame, inside):
                return
            learner.surprised()
        learner = self.watch.events.ready(state)
        if learner is not None:
            self._begin(state, learner, frame, inside)

    def _is_expected(self, state: ThreadState, learner: Learner, frame: Any, inside: Any) -> bool:
        """The swiftest way of a compiled function."""
        pace, row = state.pace, learner.swift
        if row is None or pace.next is None or pace.done >= pace.laps or row.kinds[pace.at] != FUNCTION:
            return False
        try:
            function = self.functions.of(inside["fn"])
            if not pace.next(FUNCTION, function, inside["args"], inside["kwargs"]):
                return False
        except Exception:  # what cannot be marked: the long way knows how to go on
            return False
        pace.mute = ADDED
        self._opens(region := Region(frame, state, learner, swift=True))
        if function.optimizers:
            region.undo = self.watch.optimizer_hooks.out()
        return True

    def _begin(self, state: ThreadState, learner: Learner, frame: Any, inside: Any) -> None:
        try:
            function = self.functions.of(inside["fn"])
            values = arguments(inside["args"], inside["kwargs"], sizes=True)
            mark = self.functions.mark(function)
        except Exception as error:  # the program comes first: what cannot be marked is counted
            learner.skip()
            self.watch.failed("the mark of a call", error)
            return
        known = learner.begin(mark, values)
        learner.compiled = True
        region = Region(frame, state, learner)
        self._opens(region)
        if known:
            if function.optimizers:
                region.undo = self.watch.optimizer_hooks.out()
            if learner.lane is None:
                state.clock()
        else:
            learner.opens(function)

    def _counts(self, frame: Any) -> bool:
        """Whether compiled code that begins in the call behind `frame` is to be counted, and so runs eagerly."""
        state = self.watch.states.here
        learner = state.learner
        if learner is not None:
            learner.compiled = True
            if state.pace.mute or learner.replaying:
                return False
        counted = mode_here(self.watch) is not None or (graph_task() < 0 and _is_unknown(state))
        if not counted or getattr(frame.f_locals.get("self"), "export", False):
            return False
        _excuse_fullgraph()
        return True

    def _end(self, region: Region) -> None:
        if region.undo is not None:
            region.undo()
        state, learner = region.state, region.learner
        if region.swift:
            if sys.exc_info()[1] is not region.handling:
                learner.abort()
            state.pace.mute = 0
            return
        function, learner.function = learner.function, None
        step = learner.step
        if step is None or sys.exc_info()[1] is not region.handling:
            learner.abort()
            return
        if learner.replaying:
            if learner.lane is None:
                state.clock(step.booked)
                step.settle(state)
        else:
            state.clock()
            step.flags = state.forward_done, state.forward_seen, state.ever_differentiated
            step.differentiates = (
                any("loss" in meaning.values() for meaning in step.meanings) and not state.forward_done
            )
            made = torch.is_grad_enabled() and _sequence() != learner.seq  # something that can be differentiated
            step.closes = not (state.forward_done or made) or (function is not None and function.stepped)
            step.phase = _main_phase(learner)
        learner.end(closes=step.closes)


def _is_event(inside: Any) -> bool:
    """A function that the program has compiled. torch compiles some of its own, made anew at each call (the operators
    that take functions)."""
    function = inside.get("fn")
    if function is None or inside.get("callback") is None or "args" not in inside:
        return False
    internal = (function.__module__ or "").startswith("torch.") if hasattr(function, "__module__") else False
    return not (internal and "<locals>" in getattr(function, "__qualname__", ""))


def _is_unknown(state: ThreadState) -> bool:
    """A thread that no session was told of: its models are counted when they are called."""
    return state.mode is None and state.resting is None and current() is not None


def _excuse_fullgraph() -> None:
    """With fullgraph=True torch counts what it compiled and wants some; a negative number stops that for this call."""
    count = getattr(torch._C._dynamo.eval_frame, "set_fullgraph_compiled_frame_count", None)
    if count is not None:
        count(-1)


def _main_phase(learner: Learner) -> str:
    """Where most of the calls are: time inside a compiled function cannot be told apart."""
    calls: dict[str, int] = {}
    for counts, _ in (learner.state.mode.log if learner.state.mode is not None else None) or ():
        if counts.place is not None:
            phase = counts.place[2]
            calls[phase] = calls.get(phase, 0) + 1
    phase = max(calls, key=lambda name: calls[name]) if calls else "other"
    return _LIKELY.get(phase, "other" if phase[0] == "?" else phase)
