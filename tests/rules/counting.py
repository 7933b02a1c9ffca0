"""What rule tests share: the real ops of a function, their work, and numbers that count what is done with them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bitwatt.backends.torch.encode import decode, key_of
from bitwatt.ledger import Ledger
from bitwatt.pricing import entries_of
from bitwatt.records import Work


class _See(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.is_inference_mode_enabled() and hasattr(func, "decompose"):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        out = func(*args, **kwargs)
        phase = "backward" if torch._C._current_graph_task_id() >= 0 else "forward"
        keys = tuple((name, key_of(value)) for name, value in kwargs.items())
        self.ledger.add(phase, "", decode(func, tuple(key_of(value) for value in args), keys, key_of(out)))
        return out


def ledger_of(function: Callable[[], Any]) -> Ledger:
    """Every op that the dispatcher sees while `function` runs."""
    with _See() as see:
        function()
    return see.ledger


def works_of(function: Callable[[], Any]) -> dict[str, Work]:
    """Op name -> the work of all its calls; an op without a rule, or with one that fails, is not there."""
    works: dict[str, Work] = {}
    for entry in entries_of(ledger_of(function)):
        if entry.work is not None:
            works[entry.op.name] = works.get(entry.op.name, Work()) + entry.work * entry.row.calls
    return works


def kinds(work: Work) -> dict[str, int]:
    """Kind -> how many."""
    counts: Counter[str] = Counter()
    for kind, _, _, n in work.ops:
        counts[kind] += n
    return dict(counts)


def kinds_of(name: str, function: Callable[[], Any]) -> dict[str, int]:
    """Kind -> how many, of one op among those that `function` calls."""
    return kinds(works_of(function)[name])


TALLY: Counter[str] = Counter()


class Number(float):
    """A float that notes in TALLY every operation done with it: arithmetic written out counts itself."""

    __slots__ = ()

    def __add__(self, other: float) -> Number:
        return _noted("add", float(self) + float(other))

    def __sub__(self, other: float) -> Number:
        return _noted("add", float(self) - float(other))

    def __rsub__(self, other: float) -> Number:
        return _noted("add", float(other) - float(self))

    def __mul__(self, other: float) -> Number:
        return _noted("mul", float(self) * float(other))

    def __truediv__(self, other: float) -> Number:
        return _noted("div", float(self) / float(other))

    def __rtruediv__(self, other: float) -> Number:
        return _noted("div", float(other) / float(self))

    def __neg__(self) -> Number:
        return _noted("logic", -float(self))

    def __abs__(self) -> Number:
        return _noted("logic", abs(float(self)))

    def __lt__(self, other: float) -> bool:
        TALLY["compare"] += 1
        return float(self) < float(other)

    def __gt__(self, other: float) -> bool:
        TALLY["compare"] += 1
        return float(self) > float(other)

    __radd__, __rmul__ = __add__, __mul__


def _noted(kind: str, value: float) -> Number:
    TALLY[kind] += 1
    return Number(value)


def function_of(kind: str, value: Callable[[float], float]) -> Callable[[float], Number]:
    """An elementary function that notes itself as one operation of `kind`."""
    return lambda x: _noted(kind, value(float(x)))


exp = function_of("exp", math.exp)
log = function_of("log", math.log)
log1p = function_of("log", math.log1p)
expm1 = function_of("exp", math.expm1)
sqrt = function_of("sqrt", math.sqrt)
erf = function_of("erf", math.erf)
tanh = function_of("tanh", math.tanh)
sigmoid = function_of("sigmoid", lambda x: 1 / (1 + math.exp(-x)))
sin = function_of("sin", math.sin)
cos = function_of("sin", math.cos)
sinh = function_of("tanh", math.sinh)
cosh = function_of("tanh", math.cosh)


def smaller(a: float, b: float) -> Number:
    return _noted("compare", min(float(a), float(b)))


def larger(a: float, b: float) -> Number:
    return _noted("compare", max(float(a), float(b)))


def tallied(function: Callable[..., Any], *values: Any) -> tuple[Any, dict[str, int]]:
    """What `function` returns for numbers that count, and what it did."""
    TALLY.clear()
    result = function(*values)
    return result, dict(TALLY)
