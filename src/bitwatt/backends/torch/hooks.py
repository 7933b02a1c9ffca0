"""What hangs in optimizers and autograd while a session is open and is taken out again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from bitwatt.backends.torch.state import Launch, Step, ThreadState, graph_task
from bitwatt.context import current

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    """Hang everything in; what comes back takes it out."""
    handles = [
        register_optimizer_step_pre_hook(OptimizerHooks(watch).enter),
        register_optimizer_step_post_hook(OptimizerHooks(watch).leave),
    ]
    engine = torch.autograd._engine_run_backward
    torch.autograd._engine_run_backward = _watched_engine(watch, engine)

    def restore() -> None:
        torch.autograd._engine_run_backward = engine

    return [*(handle.remove for handle in handles), restore]


class OptimizerHooks:
    """A frame for every step of optimizers that fire torch's global hooks; others are found by their Python frames."""

    def __init__(self, watch: TorchWatch) -> None:
        self.watch = watch

    def enter(self, optimizer: Any, *_: Any) -> None:
        if not self.watch.on:
            return
        state = self.watch.states.here
        self.watch.join(state)
        state.drop_stale_steps()
        if graph_task() < 0:
            state.settle()
        state.push("optimizer", type(optimizer).__name__, Step(optimizer, sys._getframe(1)))

    def leave(self, optimizer: Any, *_: Any) -> None:
        state = self.watch.states.here
        for frame in reversed(state.stack):
            if isinstance(frame.module, Step) and frame.module.optimizer is optimizer:
                state.pop(frame)
                self.watch.scopes.stepped(optimizer)
                break
        if len(state.stack) == 1:
            self.watch.part(state)


def _who_ran_forward(watch: TorchWatch, state: ThreadState) -> list[ThreadState]:
    """The thread that calls backward, or where it ran no forward, those that did."""
    if state.forward_done or state.forward_seen or any(state.pending.values()):
        return [state]
    return [other for other in watch.everyone if other.forward_done] or [state]


def _reaches(roots: Any, left: int, limit: int = 10_000) -> bool:
    """Whether the graph behind `roots` goes back to nodes made before number `left`, when a model was last left."""
    nodes = [root.grad_fn for root in roots if root.grad_fn is not None]
    seen = set(nodes)
    while nodes and len(seen) < limit:
        node = nodes.pop()
        if node._sequence_nr() < left:
            return True
        new = [after for after, _ in node.next_functions if after is not None and after not in seen]
        seen.update(new)
        nodes += new
    return bool(nodes)


def _watched_engine(watch: TorchWatch, engine: Callable[..., Any]) -> Callable[..., Any]:
    def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        if not watch.on:
            return engine(*args, **kwargs)
        state = watch.states.here
        launch = Launch(state, current())
        watch.join(state)
        state.drop_stale_steps()
        for differentiated in _who_ran_forward(watch, state):
            differentiated.enter_backward(through=lambda left: _reaches(args[0], left))
        state.launches.append(launch)
        watch.launches.append(launch)
        try:
            return engine(*args, **kwargs)
        finally:
            state.clock("backward")
            state.launches.remove(launch)
            watch.launches.remove(launch)
            if len(state.stack) == 1:
                watch.part(state)

    return _engine_run_backward
