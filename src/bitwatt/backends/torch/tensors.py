"""Tensors in the arguments and results of calls, however nested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

#: How many modes of the program's see calls of torch's functions; to read a shape is one.
function_modes: Callable[[], int] = torch._C._len_torch_function_stack


def hidden(function: Callable[..., Any], *args: Any) -> Any:
    """What it reads of tensors is seen by no such mode."""
    with torch._C.DisableTorchFunction():
        return function(*args)


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Every tensor in lists, tuples and dicts."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


def any_needs_grad(value: Any) -> bool:
    """Whether gradients can flow to or from it. An object of the user's may hold anything, so it counts as one."""
    if isinstance(value, Tensor):
        return bool(value.requires_grad)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return True
    return any(any_needs_grad(item) for item in value)


def nodes_behind(roots: Any) -> list[Any]:
    """Where backward begins: the nodes that made `roots`, which are tensors or edges of the graph itself."""
    nodes = [root.grad_fn if isinstance(root, Tensor) else root.node for root in roots]
    return [node for node in nodes if node is not None]


def graph_behind(roots: Any) -> Iterator[Any]:
    """The nodes of the graph behind `roots`, each once."""
    nodes = nodes_behind(roots)
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        yield node
        new = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= new
        nodes += new


def follow(args: Any, left: int) -> bool:
    """Whether what goes into a model was computed from what another put out: a model in several parts. `left` is the
    number that autograd had reached when the other was left."""
    return any(t.grad_fn is not None and t.grad_fn._sequence_nr() >= left for t in tensors_in(args))


def own(module: nn.Module, name: str = "weight") -> Any:
    """A parameter that a module itself holds, else None: never the attribute, since a property may compute it, and
    without `get`, which the dictionaries of scripted modules lack."""
    held = module._parameters
    return held[name] if name in held else None  # noqa: SIM401
