"""How one processor executes work: the table a cost model of executed operations reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bitwatt.records import Op, Product, TensorSpec

#: The floating-point operations that one call executes, from its arguments by name and the op itself.
Kernel = Callable[[Mapping[str, Any], Op], float]


@dataclass(frozen=True)
class Processor:
    """Prices, most specific first: a kernel's own formula, operations per element of an op, operations per kind."""

    name: str
    source: str
    #: One elementary operation of each kind, inside a fused loop.
    kinds: Mapping[str, float]
    #: A matrix product with its tiles.
    product: Callable[[Product], float]
    #: Element-wise ops: operations per element of what comes out.
    elements: Mapping[str, float] = field(default_factory=dict)
    #: The same in double precision and for complex numbers, where a kernel is another one.
    double: Mapping[str, float] = field(default_factory=dict)
    complex: Mapping[str, float] = field(default_factory=dict)
    #: Ops whose kernel does something else than its mathematics: tiles, several passes, another algorithm.
    kernels: Mapping[str, Kernel] = field(default_factory=dict)
    #: Parts of the work that its kernels leave out.
    skips: frozenset[str] = frozenset()


def up(size: int, multiple: int) -> int:
    """`size` rounded up to whole vectors or tiles."""
    return -(-size // multiple) * multiple


def elements_of(op: Op) -> int:
    """How many elements an element-wise op writes; in place on lists it returns nothing and writes its first list."""
    if op.out:
        return sum(spec.numel for spec in op.out)
    first = op.args[0][1] if op.args else ()
    if isinstance(first, TensorSpec):
        return first.numel
    return sum(spec.numel for spec in first if isinstance(spec, TensorSpec)) if isinstance(first, tuple) else 0


def dims_of(dim: Any, rank: int) -> tuple[int, ...]:
    """The reduced dimensions, counted from the front; all of them where none is named."""
    if dim is None or dim == ():
        return tuple(range(rank))
    chosen = dim if isinstance(dim, tuple) else (dim,)
    return tuple(sorted(d % rank for d in chosen)) if rank else ()


def split(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, int, int]:
    """(before, reduced, after): how many rows of how many elements with which stride a reduction runs over.

    Reduced dimensions that do not lie side by side are taken as one block ending at the last of them.
    """
    reduced = math.prod(shape[d] for d in dims)
    after = math.prod(shape[d] for d in range(dims[-1] + 1, len(shape))) if dims else 1
    return max(math.prod(shape), 1) // max(reduced * after, 1), reduced, after
