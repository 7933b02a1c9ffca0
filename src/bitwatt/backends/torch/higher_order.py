"""Operators that take functions: the branches that run are counted op by op, the opaque ones by name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch._ops import _higher_order_ops
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

if TYPE_CHECKING:
    from bitwatt.backends.torch.mode import CountingMode, Plan


def install(mode: type[CountingMode]) -> list[Callable[[], None]]:
    """Older versions of torch (2.8 to 2.9) refuse an operator under a mode that is not registered with it."""
    if hasattr(TorchDispatchMode, "supports_higher_order_operators"):
        return []
    undo: list[Callable[[], None]] = []
    for operator in list(_higher_order_ops.values()):
        table = operator.python_key_table
        table[mode] = functools.partial(_registered, operator)
        undo.append(functools.partial(table.pop, mode, None))
    return undo


def _registered(operator: Any, mode: CountingMode, *args: Any, **kwargs: Any) -> Any:
    return run(mode, mode.plan(operator), args, kwargs)


def run(mode: CountingMode, plan: Plan, args: Any, kwargs: Any) -> Any:
    """Run a higher-order operator under the mode; never let one break the program."""
    func = plan.func
    unfold = _UNFOLD.get(func.name())
    if unfold is not None:
        _push_mode(mode)
        try:
            return unfold(*args, **kwargs)
        finally:
            _pop_mode()
    out = func(*args, **kwargs)
    if mode.watch.on:
        try:
            mode.record(plan, args, kwargs, out)
        except Exception as error:
            mode.watch.failed(func, error)
    return out


def _cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    return true_fn(*operands) if pred else false_fn(*operands)


def _while_loop(cond_fn: Any, body_fn: Any, carried: Any, additional: Any = ()) -> Any:
    while cond_fn(*carried, *additional):
        carried = body_fn(*carried, *additional)
        if not isinstance(carried, (tuple, list)):
            carried = (carried,)
    return carried


def _out_dtype(op: Any, dtype: Any, *args: Any) -> Any:
    """A product of small integers into large ones: torch's own way of computing it, with its parts seen."""
    from torch._higher_order_ops.out_dtype import out_dtype_dense

    return out_dtype_dense(op, dtype, *args)


_UNFOLD = {"cond": _cond, "while_loop": _while_loop, "out_dtype": _out_dtype}
