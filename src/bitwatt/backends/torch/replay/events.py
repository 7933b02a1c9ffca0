"""Events of the torch backend as marks: what each is known by, and what a replayed one means for the thread's state."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bitwatt.backends.torch.replay.learner import Learner
from bitwatt.backends.torch.replay.lessons import FOREIGN, READS
from bitwatt.backends.torch.replay.losses import behind, runs_own_code, taken
from bitwatt.backends.torch.replay.marks import Structures, arguments, flags, hung, in_use, is_own, quick
from bitwatt.backends.torch.replay.memory import BACKWARD, CALL, FETCH, STEP
from bitwatt.backends.torch.state import FORWARD, frame_mark, is_running
from bitwatt.backends.torch.tensors import any_needs_grad, follow
from bitwatt.context import CONTEXT, current
from bitwatt.passing import handed_on

if TYPE_CHECKING:
    from bitwatt.backends.torch.state import ThreadState

_sequence = torch.autograd._get_sequence_nr
_tracing = torch._C._get_tracing_state


class Events:
    """The beginnings and ends of events on all threads of a watch."""

    def __init__(self, failed: Callable[[Any, Exception], None]) -> None:
        self.structures, self.failed = Structures(), failed

    def ready(self, state: ThreadState) -> Learner | None:
        """The learner of a thread that is between events of a session that may replay; None: what comes is counted."""
        learner = state.learner
        if learner is None or (state.mode is None and state.resting is None):
            return None
        if state.capturing or _tracing() is not None:  # nothing runs; a trace would hold what we look at
            return None
        if learner.step is not None and not self.is_stale(learner):
            return None
        context = CONTEXT.get()
        if context is None or not context.token.open:
            context = current()
        if context is None or context.token.exactness == "always":
            if context is not None and (state.resting is not None or learner.watched):
                learner.skip()  # a session inside one that replays, or around it
            return None
        if context is not learner.context or learner.stale:
            learner.enters(context, self.structures)
        return learner

    @staticmethod
    def is_stale(learner: Learner) -> bool:
        """Whether the event under way is a step that has raised: its Python frame is gone."""
        if learner.kind != STEP:
            return False
        stale = not is_running(learner.frame)
        if stale:
            learner.abort()
        return stale

    # -- calls of models

    def begin_call(self, learner: Learner, module: nn.Module, args: Any, kwargs: Any) -> bool:
        try:
            who, values = self._call(learner, module, args, kwargs)
        except Exception as error:  # something of the user's that does not like to be asked: it runs, and is counted
            return self._unmarked(learner, error)
        return learner.begin(who, values)

    def _unmarked(self, learner: Learner, error: Exception) -> bool:
        learner.skip()
        handed_on(error)
        self.failed("the mark of a call", error)
        return False

    def unexpected(self, error: Exception) -> bool:
        """An event cannot be compared with the one that is expected: it is not that one, and it is told."""
        handed_on(error)
        self.failed("an event", error)
        return False

    def _call(self, learner: Learner, module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        values = arguments(args, kwargs)
        if learner.caller is None or learner.caller() is not module:
            learner.caller = weakref.ref(module)
        return (CALL, self.structures.of(module), flags()), values

    def enter_replayed(self, state: ThreadState, learner: Learner, args: Any) -> None:
        """What the call of a model means for what came before it."""
        phase = learner.step.phase if learner.step is not None else ""
        if phase == "forward" or phase is FORWARD:
            if phase == "forward" and state.pending:
                state.resolve({FORWARD: "inference"})
            state.enter_forward(continues=bool(state.pending) and follow(args, state.left))
        else:
            state.clock()

    def leave_replayed(self, state: ThreadState, learner: Learner, out: Any) -> None:
        phase = learner.step.phase if learner.step is not None else ""
        state.clock(phase)
        learner.end(closes=phase == "inference" and not state.forward_done)
        if phase is FORWARD and not any_needs_grad(out):
            state.resolve({FORWARD: "inference"})
        state.left = _sequence()

    # -- backward and steps

    def begin_backward(self, learner: Learner, roots: Any, options: Any) -> bool:
        caller = learner.caller() if learner.caller is not None else None
        first = self.structures.first(caller)
        adds = first is not None and first.grad is not None
        try:
            nodes, compiled = _sequence() - learner.seq, learner.compiled
            of, led = taken(roots, nodes, compiled=compiled), behind(roots, nodes, compiled=compiled)
            values = (*[quick(root) for root in roots], of, led)
        except Exception as error:
            return self._unmarked(learner, error)
        hooks, learner.pace.hung = learner.pace.hung, 0
        known, step = learner.begin((BACKWARD, adds, options, hooks, flags()), values), learner.step
        if step is not None:
            step.first = weakref.ref(first) if first is not None else None
            step.opaque = step.opaque or hooks > 0 or self.structures.hooks_gradients(caller)
            if not (known or step.opaque or step.event.known):
                step.opaque = runs_own_code(roots)
        return known

    def begin_step(self, learner: Learner, optimizer: Any) -> bool:
        try:
            missing = tuple([p.grad is None for group in optimizer.param_groups for p in group["params"]])
            made = (len(optimizer.state), hung(optimizer), *[_options(group) for group in optimizer.param_groups])
        except Exception as error:
            return self._unmarked(learner, error)
        learner.frame, learner.nested = frame_mark(sys._getframe(4)), 0
        known = learner.begin((STEP, id(optimizer), made, missing))
        step = learner.step
        if step is not None and not type(optimizer).__module__.startswith("torch.optim"):
            step.opaque, step.event.enough = True, FOREIGN
        elif step is not None and _hooked(optimizer):
            step.opaque, step.event.enough = True, READS
        elif step is not None and isinstance(optimizer, torch.optim.ASGD):  # from some step on it averages
            step.opaque, step.event.enough = True, FOREIGN
        elif step is not None and isinstance(optimizer, torch.optim.RAdam):
            step.event.enough = READS  # it does less in its first five steps
        return known


def _hooked(optimizer: Any) -> bool:
    """Whether code of the program's own hangs on an optimizer's steps."""
    pre, post = optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks
    return bool(pre or post) and any(is_own(hook) for hook in (*pre.values(), *post.values()))


def _options(group: Any) -> tuple[Any, ...]:
    """What an optimizer does with a group: which of its options are in use, whatever their values."""
    return tuple(
        [
            (name, in_use(name, value))
            for name, value in group.items()
            if value is None or isinstance(value, (int, float))
        ]
    )


def marks_of_fetch(dataset: Any, index: Any) -> tuple[Any, Any]:
    """A batch is read by the program itself. How many samples it has is known, which ones does not matter."""
    rows = len(index) if isinstance(index, (list, tuple)) else 1
    return (FETCH, type(dataset), id(dataset)), (rows,)
