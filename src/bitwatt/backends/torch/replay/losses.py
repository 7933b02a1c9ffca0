"""What a backward will go through, as far as it is told at a glance at the end of its graph."""

from __future__ import annotations

from itertools import islice
from typing import Any

import torch
from torch import Tensor

from bitwatt.backends.torch.replay.marks import is_own
from bitwatt.backends.torch.tensors import graph_behind

_sequence = torch.autograd._get_sequence_nr

#: Graph nodes that are looked at from the end of a loss backwards, those in search of what it is of, and those whose
#: kinds are told.
_BACK, _NEAR, _KINDS = 6, 3, 16
#: Those that are looked at, once, in search of the program's own.
_FAR = 10_000
_SCALAR = torch.Size([])


def behind(roots: Any, nodes: int, *, compiled: bool) -> tuple[str, str]:
    """What a backward will go through, as far as it is told at a glance: how many graph nodes the loss has made, and
    how far back each is that leads from its end to what the loss is of. Numbers of nodes differ in compiled
    code."""
    node = roots[0].grad_fn if len(roots) == 1 and not compiled and isinstance(roots[0], Tensor) else None
    last, found = _sequence(), [nodes]
    while node is not None and len(found) < _BACK:
        seq = node._sequence_nr()
        found.append(last - seq if seq < last else -1)  # leaves have no number
        if not 0 < found[-1] <= nodes:
            break
        node = node.next_functions[0][0] if node.next_functions else None
    return "behind", str(found)


def taken(roots: Any, nodes: int, *, compiled: bool) -> tuple[torch.Size, str]:
    """The shape of what a loss is of, part of a batch or all of it, and what the loss is made of: two of as many nodes
    need not be alike. Graphs of compiled code differ."""
    node = roots[0].grad_fn if len(roots) == 1 and not compiled and isinstance(roots[0], Tensor) else None
    shape, made = _SCALAR, _made_of(node, nodes)
    for _ in range(_NEAR):
        if node is None or not node.next_functions or (node := node.next_functions[0][0]) is None:
            break
        if (shape := node._input_metadata[0].shape) != _SCALAR:
            break
    return torch.Size(shape), made


def runs_own_code(roots: Any) -> bool:
    """Whether a backward goes through functions of the program's own."""
    functions = [getattr(node, "_forward_cls", None) for node in islice(graph_behind(roots), _FAR)]
    return any(function is not None and is_own(function) for function in functions)


def _made_of(node: Any, nodes: int) -> str:
    """The kinds of the graph nodes that the loss has made, in all its branches, from its end backwards."""
    last, found, waiting = _sequence(), [], [node]
    for one in waiting:  # which grows meanwhile
        if one is None or not 0 < last - one._sequence_nr() <= nodes:
            continue
        found.append(one.name())
        if len(found) == _KINDS:
            break
        waiting += [after for after, _ in one.next_functions]
    return " ".join(found)
