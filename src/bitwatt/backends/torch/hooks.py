"""What hangs in optimizers and autograd while a session is open and is taken out again."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from bitwatt.backends.torch import compiling
from bitwatt.backends.torch.replay.memory import BACKWARD, STEP
from bitwatt.backends.torch.replay.pace import stepping
from bitwatt.backends.torch.state import Launch, Step, ThreadState, graph_task
from bitwatt.backends.torch.tensors import function_modes, graph_behind, hidden
from bitwatt.context import current

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.learner import Learner
    from bitwatt.backends.torch.watch import TorchWatch


#: Graph nodes that are looked at in search of older ones, which then are taken to be there.
_FAR = 10_000


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    """Hang everything in; what comes back takes it out."""
    engine = torch.autograd._engine_run_backward
    torch.autograd._engine_run_backward = _watched_engine(watch, engine)

    def restore() -> None:
        torch.autograd._engine_run_backward = engine

    return [watch.optimizer_hooks.install(), restore]


class OptimizerHooks:
    """A frame for every step of optimizers that fire torch's global hooks; others are found by their Python frames."""

    def __init__(self, watch: TorchWatch) -> None:
        self.watch, self._states = watch, watch.states
        self._undo: list[Callable[[], None]] = []

    def install(self) -> Callable[[], None]:
        states, enter, leave, unexpected = self._states, self.enter, self.leave, self.watch.events.unexpected

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            pace = states.pace
            expected = pace.next
            if expected is not None:
                try:
                    if pace.mute or (
                        hidden(expected, STEP, optimizer, args, kwargs)
                        if function_modes()
                        else expected(STEP, optimizer, args, kwargs)
                    ):
                        return
                except Exception as error:
                    unexpected(error)
            enter(optimizer, args, kwargs)

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            pace = states.pace
            if pace.next is stepping:  # it went the swift way
                pace.next = pace.then
            elif pace.next is None:
                leave(optimizer)

        self._undo += [register_optimizer_step_pre_hook(before).remove, register_optimizer_step_post_hook(after).remove]
        return self.remove

    def remove(self) -> None:
        while self._undo:
            self._undo.pop()()

    def out(self) -> Callable[[], None]:
        """Take the hooks out while a known step runs compiled: dynamo would trace them, and again once they are off."""
        self.remove()
        return self._back

    def _back(self) -> None:
        if self.watch.on and not self._undo:
            self.install()

    def enter(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self.watch.on:
            return
        state = self._states.here
        if state.learner is not None:
            state.learner.surprised()
        inside = graph_task() >= 0
        if inside and self.watch.replays_backward():
            return
        closure = _has_closure(args, kwargs)
        learner = self.watch.events.ready(state) if not inside and not closure else None
        if learner is not None and hidden(self.watch.events.begin_step, learner, optimizer):
            if learner.lane is None:
                state.settle()
            return
        if state.learner is not None and state.learner.kind == STEP and learner is None:
            state.learner.nested += 1
        if state.learner is not None and state.learner.replaying:  # a step inside a backward or a call that is known
            return
        unknown = closure and not (state.capturing or (state.learner is not None and state.learner.looking))
        if state.learner is not None and not inside and (state.resting is not None or unknown):
            state.learner.skip()  # all of it is counted, also what the optimizer does between calls of its closure
        self.watch.join(state)
        state.drop_stale_steps()
        if graph_task() < 0:
            state.settle()
        if state.learner is not None and state.learner.function is not None:
            state.learner.steps_inside(optimizer)
        state.push("optimizer", type(optimizer).__name__, Step(optimizer, sys._getframe(2), closure=closure))

    def leave(self, optimizer: Any) -> None:
        state = self._states.here
        learner = state.learner
        if learner is not None and learner.step is None and state.resting is not None:
            return  # and what was called in it did not
        nested = learner is not None and learner.kind == STEP and learner.nested > 0
        if learner is not None and nested:
            learner.nested -= 1
        if learner is not None and learner.replaying:
            if learner.kind == STEP and not nested:
                if learner.lane is None:
                    state.clock("optimizer")
                learner.end(closes=True)
            return
        if learner is not None and learner.kind == STEP and not nested:
            learner.end(closes=True)
        for frame in reversed(state.stack):
            if isinstance(frame.module, Step) and frame.module.optimizer is optimizer:
                state.pop(frame)
                hidden(self.watch.scopes.stepped, optimizer)
                break
        if len(state.stack) == 1:
            self.watch.part(state)


def _has_closure(args: Any, kwargs: Any) -> bool:
    """Given are the arguments of `step`, the optimizer first among them."""
    return (len(args) > 1 and args[1] is not None) or bool(kwargs and kwargs.get("closure") is not None)


def _who_ran_forward(watch: TorchWatch, state: ThreadState) -> list[ThreadState]:
    """The thread that calls backward, or where it ran no forward, those that did."""
    if state.forward_done or state.forward_seen or any(state.pending.values()):
        return [state]
    return [other for other in watch.everyone if other.forward_done] or [state]


def _reaches(roots: Any, left: int) -> bool:
    """Whether the graph behind `roots` goes back to nodes made before number `left`, when a model was last left."""
    return any(place == _FAR or node._sequence_nr() < left for place, node in enumerate(graph_behind(roots)))


def _watched_engine(watch: TorchWatch, engine: Callable[..., Any]) -> Callable[..., Any]:
    """In its place. Parameters have names, since in each step a dict of them would be made, read and unpacked."""
    states = watch.states

    def _engine_run_backward(
        roots: Any,
        gradients: Any,
        keep: Any,
        create: Any,
        inputs: Any = (),
        allow_unreachable: Any = False,
        accumulate_grad: Any = False,
    ) -> Any:
        pace = states.pace
        expected = pace.next
        #: What it is told: whether to keep or make a graph, for how many inputs, and whether gradients are added up.
        options = (keep, create, len(inputs) if inputs else 0, accumulate_grad)
        if expected is not None and not pace.mute:
            try:
                known = (
                    hidden(expected, BACKWARD, roots, options)
                    if function_modes()
                    else expected(BACKWARD, roots, options)
                )
            except Exception as error:
                known = watch.events.unexpected(error)
        else:
            known = False
        if known:
            try:
                out = engine(
                    roots, gradients, keep, create, inputs,
                    allow_unreachable=allow_unreachable, accumulate_grad=accumulate_grad,
                )  # fmt: skip
            except BaseException:
                states.here.abort()
                raise
            pace.mute = 0
            if pace.next is None:
                watch.wake(states.here)
            return out
        run = functools.partial(
            engine, roots, gradients, keep, create, inputs,
            allow_unreachable=allow_unreachable, accumulate_grad=accumulate_grad,
        )  # fmt: skip
        if pace.mute or not watch.on:  # inside an event that is known
            return run()
        state = states.here
        learner = state.learner
        if learner is not None:
            if learner.replaying:
                return run()
            learner.surprised()
        learner = watch.events.ready(state) if graph_task() < 0 else None
        if learner is not None:
            return event(state, learner, roots, options, run)
        return counted(state, roots, run)

    def event(state: ThreadState, learner: Learner, roots: Any, options: Any, run: Callable[[], Any]) -> Any:
        if not hidden(watch.events.begin_backward, learner, roots, options):
            try:
                out = counted(state, roots, run)
            except BaseException:
                learner.abort()
                raise
            learner.end(closes=False)
            return out
        try:
            if learner.lane is None:
                for differentiated in _who_ran_forward(watch, state):
                    differentiated.enter_backward(through=lambda left: _reaches(roots, left))
            out = run()
        except BaseException:
            learner.abort()
            raise
        if learner.lane is None:
            state.clock("backward")
            watch.wake(state)
        learner.end(closes=False)
        return out

    def counted(state: ThreadState, roots: Any, run: Callable[[], Any]) -> Any:
        launch = Launch(state, current())
        if state.learner is None or not state.learner.replaying:
            watch.join(state)
        state.drop_stale_steps()
        for differentiated in _who_ran_forward(watch, state):
            differentiated.enter_backward(through=lambda left: _reaches(roots, left))
        state.launches.append(launch)
        watch.launches.append(launch)
        try:
            with compiling.eager_backward(watch, roots):
                return run()
        finally:
            state.clock("backward")
            state.launches.remove(launch)
            watch.launches.remove(launch)
            if len(state.stack) == 1:
                watch.part(state)

    return _engine_run_backward
