"""Calls of modules: each is a frame on the thread's stack, and the outermost with parameters decides the phase.

`nn.Module.__call__` is replaced while a session is open. Global module hooks would do too, but under them torch leaves
its short path for every module, does not tell when a call ends by Ctrl-C, and refuses to export.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bitwatt.backends.torch import code
from bitwatt.backends.torch.replay.memory import CALL, STEP
from bitwatt.backends.torch.replay.pace import ADDED, DIRECT, HUNG, QUIET
from bitwatt.backends.torch.scopes import is_loss
from bitwatt.backends.torch.state import AFTER, BEFORE, BEFORE_GRAPH, FORWARD, LOSS, Frame, ThreadState, graph_task
from bitwatt.backends.torch.tensors import any_needs_grad, follow, function_modes, hidden, tensors_in
from bitwatt.passing import handed_on

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.learner import Learner
    from bitwatt.backends.torch.watch import TorchWatch

_Tensor = torch.Tensor
_sequence = torch.autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled
_is_compiling = torch.compiler.is_compiling
_tracing = torch._C._get_tracing_state
_call_impl = nn.Module._call_impl

#: What torch's call of a module looks up.
_CALL_NAMES = ("_compiled_call_impl", "_call_impl")
#: A module called inside one of these phases begins one of its own.
_OPEN_PHASES = (BEFORE, BEFORE_GRAPH, AFTER, LOSS, "other", "preprocess")


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    call = nn.Module.__call__
    ours = _watched_call(watch, call)
    nn.Module.__call__ = ours

    def restore() -> None:
        if nn.Module.__call__ is ours:  # else someone wrapped it again, and calls ours, which only passes on
            nn.Module.__call__ = call

    return [restore]


def _watched_call(watch: TorchWatch, call: Callable[..., Any]) -> Callable[..., Any]:
    states, calls, events = watch.states, ModuleCalls(watch), watch.events
    #: A frame less in each call of a module: torch's own call does nothing else.
    inlined = getattr(call, "__code__", None) is not None and call.__code__.co_names == _CALL_NAMES
    before_all, after_all, before_backward_of_all, backward_of_all = HUNG

    def watched_call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        pace = states.pace
        mute = pace.mute
        if mute:  # inside an event that is known
            if mute is ADDED:
                inside = args and type(args[0]) is _Tensor
                pace.inside += 1 + ((hidden(args[0].numel) if function_modes() else args[0].numel()) if inside else 0)
            elif mute is QUIET:
                return self._call_impl(*args, **kwargs)
            held = self.__dict__
            try:  # as `_is_bare` asks, without a call for each layer; among torch's own modules nothing else can happen
                bare = not (
                    held["_forward_hooks"] or held["_forward_pre_hooks"]
                    or held["_backward_hooks"] or held["_backward_pre_hooks"] or "_call_impl" in held
                    or (mute is ADDED and (
                        before_all or after_all or backward_of_all or before_backward_of_all
                        or "_compiled_call_impl" in held or type(self)._call_impl is not _call_impl or _tracing()
                    ))
                )  # fmt: skip
            except KeyError:  # it was never initialised: torch says so
                bare = False
            return self.forward(*args, **kwargs) if bare else call(self, *args, **kwargs)
        expected = pace.next
        if expected is not None:
            try:
                known = (
                    hidden(expected, CALL, self, args, kwargs)
                    if function_modes()
                    else expected(CALL, self, args, kwargs)
                )
            except Exception as error:
                known = events.unexpected(error)
        else:
            known = False
        if known:
            try:
                if pace.mute is DIRECT and _is_bare(self):
                    out = self.forward(*args, **kwargs)
                elif inlined and self._compiled_call_impl is None:
                    out = self._call_impl(*args, **kwargs)
                else:
                    out = call(self, *args, **kwargs)
            except BaseException:
                states.here.abort()
                raise
            pace.mute = 0
            return out
        if _is_compiling() or not watch.on:
            return call(self, *args, **kwargs)
        state = states.here
        learner = state.learner
        if learner is not None:
            learner.surprised()
            if learner.step is not None and (learner.kind != STEP or not events.is_stale(learner)):  # inside an event
                pace.inside += 1 + (hidden(args[0].numel) if args and type(args[0]) is _Tensor else 0)
                if learner.replaying:
                    return call(self, *args, **kwargs)
            elif graph_task() < 0 and (learner := events.ready(state)) is not None:
                return calls.event(state, learner, call, self, args, kwargs)
        if graph_task() >= 0 and watch.replays_backward():  # recomputed, perhaps on one of autograd's threads
            return call(self, *args, **kwargs)
        depth = state.depth()
        try:
            frame = state.again(self) or calls.enter(state, self, args)
            out = call(self, *args, **kwargs)
            calls.leave(state, frame, out)
            return out
        except BaseException:  # also of Ctrl-C in code of ours
            calls.abandon(state, depth)
            raise

    watched_call._torchdynamo_inline = call  # type: ignore[attr-defined]  # what dynamo reads instead
    watched_call.__name__ = "_wrapped_call_impl"  # torch.compile knows a module's call by its name
    return watched_call


def _is_bare(module: nn.Module) -> bool:
    """Whether nothing hangs on its calls, as torch asks too, by attributes that are slow to look up."""
    held = module.__dict__
    return not (
        held["_forward_hooks"] or held["_forward_pre_hooks"]
        or held["_backward_hooks"] or held["_backward_pre_hooks"] or "_call_impl" in held
    )  # fmt: skip


class ModuleCalls:
    """What the first call of a module at a place needs to find out; later ones find the same frame again."""

    def __init__(self, watch: TorchWatch) -> None:
        self.watch = watch

    def event(
        self, state: ThreadState, learner: Learner, call: Callable[..., Any], module: nn.Module, args: Any, kwargs: Any
    ) -> Any:
        """The outermost call: it is replayed if it is known, and counted to be known if not."""
        events, depth = self.watch.events, state.depth()
        try:
            if hidden(events.begin_call, learner, module, args, kwargs):
                if learner.lane is None:
                    events.enter_replayed(state, learner, args)
                in_lane = learner.lane is not None
                out = call(module, *args, **kwargs)
                if in_lane and learner.lane is not None:
                    learner.end(closes=False)
                else:  # the long way, or something was not as expected
                    events.leave_replayed(state, learner, out)
                return out
            frame = self.enter(state, module, args)
            if learner.step is not None:
                learner.step.phase, learner.step.hooked = frame.phase, events.structures.hooks_calls(module)
                learner.step.opaque = learner.step.hooked or not events.structures.is_torchs(module)
            out = call(module, *args, **kwargs)
            learner.end(closes=frame.phase == "inference" and not state.forward_done)
            self.leave(state, frame, out)
            return out
        except BaseException:
            learner.abort()
            self.abandon(state, depth)
            raise

    def enter(self, state: ThreadState, module: nn.Module, args: Any) -> Frame:
        try:
            frame: Frame = hidden(self._enter, state, module, args)
            return frame
        except Exception as error:  # the user's module runs whatever we make of it
            handed_on(error)
            self.watch.failed(type(module).__name__, error)
            return state.push("other", type(module).__name__, module)

    def _enter(self, state: ThreadState, module: nn.Module, args: Any) -> Frame:
        if state.mode is None:
            self.watch.join(state)
        state.drop_stale_steps()
        task = graph_task()
        above = state.top if isinstance(state.top.module, nn.Module) and state.top.task == task else None
        scope = self.watch.scopes.child(state.stack, module) if above is not None or task < 0 else None
        if scope is None:
            scope = self._outermost(module)
        if above is None and state.learner is not None and state.learner.function is not None:
            state.learner.function.calls(module)
        scope = self.watch.scopes.called(scope, module)
        self.watch.scopes.received(scope, args)
        if above is not None and above.phase not in _OPEN_PHASES:
            inside_loss = above.phase == "forward" and is_loss(module)
            frame = state.push("loss" if inside_loss else above.phase, scope, module, above.base)
            above.calls(frame)
        else:
            frame = state.push(self._phase(state, module, task, args), scope, module)
        if _grad_enabled():
            state.trail.mark(_sequence(), scope)
        return frame

    def _outermost(self, module: nn.Module) -> str:
        """A module that no module's call led to: called by a method of its owner, or a model, or neither."""
        owner, _ = code.module_above(sys._getframe(5))
        within = self.watch.scopes.within(owner, module) if owner is not None and owner is not module else None
        if within is not None:
            return within
        return self.watch.scopes.root(module) if self.watch.scopes.is_model(module) else type(module).__name__

    def _phase(self, state: ThreadState, module: nn.Module, task: int, args: Any) -> str:
        if task >= 0:
            return "backward/recompute"
        if not self.watch.scopes.is_model(module):
            return self._modest_phase(state, module, args)
        if not _grad_enabled() and not code.checkpointed(sys._getframe(4)):
            return "inference"
        if module.training:  # an evaluation before it, without no_grad, is over
            state.resolve({FORWARD: "inference"})
        state.enter_forward(continues=follow(args, state.left))
        return "forward" if module.training else FORWARD

    def _modest_phase(self, state: ThreadState, module: nn.Module, args: Any) -> str:
        """A module without parameters on its own: a loss, a metric, a transform, or one that is given its weights."""
        if type(module).__module__.startswith("torchvision.transforms") or state.top.phase == "preprocess":
            return "preprocess"
        if not _grad_enabled():
            return "other"
        if is_loss(module):
            return LOSS
        if state.forward_done:
            return AFTER
        return BEFORE_GRAPH if any(t.requires_grad for t in tensors_in(args)) else BEFORE

    def leave(self, state: ThreadState, frame: Frame, out: Any) -> None:
        state.pop(frame)
        if frame.phase is FORWARD and state.top.phase is not FORWARD and not any_needs_grad(out):
            state.resolve({FORWARD: "inference"})  # nothing can come back to it
        self._left(state)

    def abandon(self, state: ThreadState, depth: int) -> None:
        """The call raised, or Ctrl-C came while it was entered or left."""
        state.cut(depth)
        self._left(state)

    def _left(self, state: ThreadState) -> None:
        if _grad_enabled():
            state.trail.mark(_sequence(), state.top.scope)
        if state.top is state.bottom:
            state.left = _sequence()
            self.watch.part(state)
