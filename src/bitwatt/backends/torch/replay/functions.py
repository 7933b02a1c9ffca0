"""Marks of compiled functions: they are no modules, so what they use is learned from the calls that were counted."""

from __future__ import annotations

import weakref
from typing import Any

from bitwatt.backends.torch.replay.marks import Structures, flags

FUNCTION = "function"


class Function:
    """A function given to torch.compile, with the models it calls and the optimizers that step in it."""

    __slots__ = ("modules", "number", "optimizers", "stepped")

    def __init__(self, number: int) -> None:
        self.number = number
        self.modules: dict[int, weakref.ref[Any]] = {}
        self.optimizers: dict[int, weakref.ref[Any]] = {}
        self.stepped = False  # when it was last counted

    def calls(self, module: Any) -> None:
        self.modules[id(module)] = weakref.ref(module)

    def steps(self, optimizer: Any) -> None:
        self.optimizers[id(optimizer)] = weakref.ref(optimizer)
        self.stepped = True


class Functions:
    def __init__(self, structures: Structures) -> None:
        self._structures = structures
        self._known: dict[Any, Function] = {}
        self._seen: weakref.WeakKeyDictionary[Any, Function] = weakref.WeakKeyDictionary()

    def knows(self, function: Any) -> bool:
        try:
            return function in self._seen
        except TypeError:  # it has no hash
            return False

    def of(self, function: Any) -> Function:
        known = self._seen.get(function)
        if known is None:
            known = self._seen[function] = self._find(function)
        return known

    def _find(self, function: Any) -> Function:
        """One that is made anew each time, around the same things, is the same."""
        inner = getattr(function, "__func__", function)
        cells = [id(_content(cell)) for cell in getattr(inner, "__closure__", None) or ()]
        key = (getattr(inner, "__code__", None) or id(inner), id(getattr(function, "__self__", None)), *cells)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Function(len(self._known))
        return known

    def mark(self, function: Function) -> tuple[Any, ...]:
        modules = [module for ref in function.modules.values() if (module := ref()) is not None]
        optimizers = [optimizer for ref in function.optimizers.values() if (optimizer := ref()) is not None]
        return (
            FUNCTION,
            function.number,
            flags(),
            tuple([(self._structures.of(m), self._structures.has_gradients(m)) for m in modules]),
            tuple([standing(optimizer) for optimizer in optimizers]),
        )


def standing(optimizer: Any) -> tuple[Any, ...]:
    """What a step of an optimizer depends on: which parameters have gradients, and whether it has stepped before."""
    missing = tuple([p.grad is None for group in optimizer.param_groups for p in group["params"]])
    return id(optimizer), len(optimizer.state), missing


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
