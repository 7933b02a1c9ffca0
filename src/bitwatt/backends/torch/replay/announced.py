"""Changes that are announced: what few programs do in mid-run is heard of where it is done, instead of looked for."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as registry
from torch.utils.hooks import RemovableHandle

from bitwatt.backends.torch.replay.marks import TELLS, Structures

if TYPE_CHECKING:
    from bitwatt.backends.torch.state import States


def install(structures: Structures, states: States) -> list[Any]:
    """Hear of what changes a model without being seen in it at a glance: parts, casts, hooks, training or not."""

    def moved(self: Any, *_: Any, **__: Any) -> None:
        structures.moved()

    def hung(self: Tensor, *_: Any, **__: Any) -> None:
        if self.is_leaf:
            structures.moved()
        else:  # on what a forward has made: for one backward
            states.pace.hung += 1

    def taken_out(module: Any, name: Any) -> None:
        if name in module.__dict__.get("_modules", ()) or name in module.__dict__.get("_parameters", ()):
            structures.moved()

    def removed(handle: Any) -> None:
        structures.hooked()
        if handle.id in structures.handles:
            structures.handles.discard(handle.id)
            structures.moved()

    return [
        _told(structures),
        registry.register_module_module_registration_hook(structures.moved).remove,
        registry.register_module_parameter_registration_hook(structures.moved).remove,
        _announced(nn.Module, "train", structures.switched),
        _announced(RemovableHandle, "remove", removed),
        _announced(nn.Module, "__delattr__", taken_out),
        _announced(nn.ModuleDict, "__delitem__", taken_out),
        *[_announced(nn.Module, name, moved) for name in _CHANGES],
        *[_announced(torch.optim.Optimizer, name, structures.hooked) for name in _HUNG],
        *[_announced(torch.Tensor, name, hung) for name in ("register_hook", "register_post_accumulate_grad_hook")],
    ]


#: Methods of a module after which it may do something else.
_CHANGES = (
    "_apply", "compile", "register_backward_hook", "register_forward_hook", "register_forward_pre_hook",
    "register_full_backward_hook", "register_full_backward_pre_hook",
)  # fmt: skip


#: And of an optimizer.
_HUNG = ("register_step_pre_hook", "register_step_post_hook")


def _told(structures: Structures) -> Any:
    """Hear of `parameter.requires_grad = ...`: to look at each parameter in each step takes as long as all the rest."""
    kept: Any = torch._C.TensorBase.requires_grad

    def write(self: Any, needs: Any) -> None:
        kept.__set__(self, needs)
        structures.hooked()

    def requires_grad_(self: Any, requires_grad: bool = True) -> Any:
        structures.hooked()
        return torch.Tensor.requires_grad_(self, requires_grad)

    ours = {"requires_grad": property(kept.__get__, write), "requires_grad_": requires_grad_, TELLS: True}
    for name, value in ours.items():
        setattr(nn.Parameter, name, value)

    def restore() -> None:
        for name, value in ours.items():
            if nn.Parameter.__dict__.get(name) is value:
                delattr(nn.Parameter, name)

    return restore


def _announced(owner: Any, name: str, tell: Any) -> Any:
    """Let `tell` know of each call of a method, by its first arguments; what comes back puts the method back."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def announced(self: Any, *args: Any, **kwargs: Any) -> Any:
        tell(self, *args)
        return method(self, *args, **kwargs)

    def restore() -> None:
        if getattr(owner, name) is announced:
            setattr(owner, name, method)

    setattr(owner, name, announced)
    return restore
