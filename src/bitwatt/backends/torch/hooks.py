"""What hangs in torch while a session is open and is taken out again: on modules, optimizers and autograd."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from bitwatt.backends.torch import code
from bitwatt.backends.torch.scopes import is_loss
from bitwatt.backends.torch.state import AFTER, BEFORE, FORWARD, LOSS, Launch, ThreadState, graph_task
from bitwatt.context import current

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch

_sequence = torch.autograd._get_sequence_nr


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    """Hang everything in; what comes back takes it out."""
    handles = [
        register_module_forward_pre_hook(ModuleHooks(watch).enter),
        register_module_forward_hook(ModuleHooks(watch).leave, always_call=True),
        register_optimizer_step_pre_hook(OptimizerHooks(watch).enter),
        register_optimizer_step_post_hook(OptimizerHooks(watch).leave),
    ]
    engine = torch.autograd._engine_run_backward
    torch.autograd._engine_run_backward = _watched_engine(watch, engine)

    def restore() -> None:
        torch.autograd._engine_run_backward = engine

    return [*(handle.remove for handle in handles), restore]


class ModuleHooks:
    """A frame for every module call; the outermost module with parameters decides the phase."""

    def __init__(self, watch: TorchWatch) -> None:
        self.watch = watch

    def enter(self, module: nn.Module, _: Any) -> None:
        if self.watch.on:
            try:
                self._enter(module)
            except Exception as error:  # the user's module runs whatever we make of it
                self.watch.failed(type(module).__name__, error)
                self.watch.states.here.push("other", type(module).__name__, module)

    def _enter(self, module: nn.Module) -> None:
        state = self.watch.states.here
        if state.mode is None:
            self.watch.join(state)
        if type(state.top.module) is _Step:
            _drop_stale_optimizers(state)
        task = graph_task()
        frame = state.top if isinstance(state.top.module, nn.Module) and state.top.task == task else None
        scope = self.watch.scopes.child(state.stack, module) if frame is not None or task < 0 else None
        if scope is None:
            scope = self._outermost(module)
        if frame is not None and frame.phase not in (BEFORE, AFTER, LOSS, "other", "preprocess"):
            inside_loss = frame.phase == "forward" and is_loss(module)
            state.push("loss" if inside_loss else frame.phase, scope, module, frame.base)
        else:
            state.push(self._phase(state, module, task), scope, module)
        if torch.is_grad_enabled():
            state.trail.mark(_sequence(), scope)

    def _outermost(self, module: nn.Module) -> str:
        """A module that no module's call led to: called by a method of its owner, or a model, or neither."""
        owner, _ = code.module_above(sys._getframe(3))
        within = self.watch.scopes.within(owner, module) if owner is not None and owner is not module else None
        if within is not None:
            return within
        return self.watch.scopes.root(module) if self.watch.scopes.is_model(module) else type(module).__name__

    def _phase(self, state: ThreadState, module: nn.Module, task: int) -> str:
        if task >= 0:
            return "backward/recompute"
        if not self.watch.scopes.is_model(module):
            return self._modest_phase(state, module)
        if not torch.is_grad_enabled() and not code.checkpointed(sys._getframe(2)):
            return "inference"
        if module.training:  # an evaluation before it, without no_grad, is over
            state.resolve({FORWARD: "inference"})
        state.enter_forward()
        return "forward" if module.training else FORWARD

    def _modest_phase(self, state: ThreadState, module: nn.Module) -> str:
        """A module without parameters on its own: a loss, a metric, a transform."""
        if type(module).__module__.startswith("torchvision.transforms") or state.top.phase == "preprocess":
            return "preprocess"
        if not torch.is_grad_enabled():
            return "other"
        return LOSS if is_loss(module) else AFTER if state.forward_done else BEFORE

    def leave(self, module: nn.Module, _: Any, output: Any) -> None:
        try:
            self._leave(module, output)
        except Exception as error:
            self.watch.failed(type(module).__name__, error)

    def _leave(self, module: nn.Module, output: Any) -> None:
        state = self.watch.states.here
        frame = state.top
        if frame.module is not module:  # an exception left frames behind, or this call began before the session
            frame = next((f for f in reversed(state.stack) if f.module is module), None)  # type: ignore[assignment]
        if frame is not None:
            state.pop(frame)
            if frame.phase == FORWARD and state.top.phase != FORWARD and not _any_needs_grad(output):
                state.resolve({FORWARD: "inference"})  # nothing can come back to it
            if torch.is_grad_enabled():
                state.trail.mark(_sequence(), state.top.scope)
        if len(state.stack) == 1:
            self.watch.part(state)


def _any_needs_grad(output: Any) -> bool:
    if isinstance(output, torch.Tensor):
        return bool(output.requires_grad)
    if isinstance(output, dict):
        output = output.values()
    elif not isinstance(output, (list, tuple)):
        return True  # an object of the user's: it may hold anything
    return any(_any_needs_grad(item) for item in output)


class OptimizerHooks:
    """A frame for every step of optimizers that fire torch's global hooks; others are found by their Python frames."""

    def __init__(self, watch: TorchWatch) -> None:
        self.watch = watch

    def enter(self, optimizer: Any, *_: Any) -> None:
        if not self.watch.on:
            return
        state = self.watch.states.here
        self.watch.join(state)
        _drop_stale_optimizers(state)
        if graph_task() < 0:
            state.settle()
        state.push("optimizer", type(optimizer).__name__, _Step(optimizer, sys._getframe(1)))

    def leave(self, optimizer: Any, *_: Any) -> None:
        state = self.watch.states.here
        for frame in reversed(state.stack):
            if isinstance(frame.module, _Step) and frame.module.optimizer is optimizer:
                state.pop(frame)
                break
        if len(state.stack) == 1:
            self.watch.part(state)


class _Step:
    """A step under way, and the Python frame it runs in: torch tells nobody when it ends by an exception."""

    __slots__ = ("frame", "optimizer")

    def __init__(self, optimizer: Any, frame: Any) -> None:
        self.optimizer, self.frame = optimizer, frame


def _drop_stale_optimizers(state: ThreadState) -> None:
    while isinstance(state.top.module, _Step):
        frame: Any = sys._getframe(1)
        while frame is not None and frame is not state.top.module.frame:
            frame = frame.f_back
        if frame is not None:
            return
        state.pop(state.top)


def _who_ran_forward(watch: TorchWatch, state: ThreadState) -> list[ThreadState]:
    """The thread that calls backward, or where it ran no forward, those that did."""
    if state.forward_done or state.forward_seen or any(state.pending.values()):
        return [state]
    return [other for other in watch.everyone if other.forward_done] or [state]


def _watched_engine(watch: TorchWatch, engine: Callable[..., Any]) -> Callable[..., Any]:
    def _engine_run_backward(*args: Any, **kwargs: Any) -> Any:
        if not watch.on:
            return engine(*args, **kwargs)
        state = watch.states.here
        launch = Launch(state, current())
        watch.join(state)
        _drop_stale_optimizers(state)
        for differentiated in _who_ran_forward(watch, state):
            differentiated.enter_backward()
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
