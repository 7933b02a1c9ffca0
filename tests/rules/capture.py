"""Run real torch code under a bare dispatch mode and write down its ops; numbers that count what is done to them."""

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

torch.set_num_threads(1)

#: Operations done on every Number since the last clear(), by kind.
TALLY: Counter[str] = Counter()


class _Capture(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        phase = "backward" if torch._C._current_graph_task_id() >= 0 else "forward"
        named = tuple((name, key_of(value)) for name, value in kwargs.items())
        self.ledger.add(phase, "", decode(func, tuple(key_of(arg) for arg in args), named, key_of(out)))
        return out


def ledger_of(function: Callable[[], object]) -> Ledger:
    """The ops that `function` dispatches."""
    with _Capture() as capture:
        function()
    return capture.ledger


def works_of(function: Callable[[], object]) -> dict[str, Work]:
    """The work of all calls of each op that `function` dispatches, by name."""
    works: dict[str, Work] = {}
    for entry in entries_of(ledger_of(function)):
        assert entry.work is not None, f"{entry.op}: {entry.reason}"
        works[entry.op.name] = works.get(entry.op.name, Work()) + entry.work * entry.row.calls
    return works


def kinds(work: Work) -> dict[str, int]:
    """Operations by kind, in whatever precision."""
    counts: Counter[str] = Counter()
    for kind, _, _, n in work.ops:
        counts[kind] += n
    return dict(counts)


def kinds_of(name: str, function: Callable[[], object]) -> dict[str, int]:
    """Operations by kind of the op called `name` among those that `function` dispatches."""
    return kinds(works_of(function)[name])


def tallied(function: Callable[..., Any], *args: Any) -> tuple[Any, dict[str, int]]:
    """What `function` gives, and the operations it did on Numbers."""
    TALLY.clear()
    value = function(*args)
    return value, dict(TALLY)


class Number(float):
    """A float that counts what is done to it."""

    def _count(self, kind: str, value: float) -> Number:
        TALLY[kind] += 1
        return Number(value)

    def __add__(self, other: float) -> Number:
        return self._count("add", float(self) + float(other))

    def __sub__(self, other: float) -> Number:
        return self._count("add", float(self) - float(other))

    def __rsub__(self, other: float) -> Number:
        return self._count("add", float(other) - float(self))

    def __mul__(self, other: float) -> Number:
        return self._count("mul", float(self) * float(other))

    def __truediv__(self, other: float) -> Number:
        return self._count("div", float(self) / float(other))

    def __rtruediv__(self, other: float) -> Number:
        return self._count("div", float(other) / float(self))

    def __abs__(self) -> Number:
        return self._count("logic", abs(float(self)))

    def __neg__(self) -> Number:
        return self._count("logic", -float(self))

    def __lt__(self, other: float) -> bool:
        TALLY["compare"] += 1
        return float(self) < float(other)

    def __gt__(self, other: float) -> bool:
        TALLY["compare"] += 1
        return float(self) > float(other)

    __radd__, __rmul__ = __add__, __mul__
    __hash__ = float.__hash__


def _function(kind: str, real: Callable[[float], float]) -> Callable[[float], Number]:
    def counted(x: float) -> Number:
        TALLY[kind] += 1
        return Number(real(float(x)))

    return counted


exp, expm1 = _function("exp", math.exp), _function("exp", math.expm1)
log, log1p = _function("log", math.log), _function("log", math.log1p)
sin, cos = _function("sin", math.sin), _function("sin", math.cos)
sinh, cosh = _function("tanh", math.sinh), _function("tanh", math.cosh)
sqrt, tanh, erf = _function("sqrt", math.sqrt), _function("tanh", math.tanh), _function("erf", math.erf)
sigmoid = _function("sigmoid", lambda x: 1 / (1 + math.exp(-x)))


def larger(x: float, y: float) -> Number:
    """The larger of two: one comparison."""
    TALLY["compare"] += 1
    return Number(max(float(x), float(y)))


def smaller(x: float, y: float) -> Number:
    """The smaller of two: one comparison."""
    TALLY["compare"] += 1
    return Number(min(float(x), float(y)))
