"""A dispatched call -> a small hashable key, quickly; and the key -> an Op, once per distinct call."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import Parameter

from bitwatt.records import Op, TensorSpec

#: Scalars that some rule can tell apart. All others differ from step to step (learning rates, bias corrections) and
#: would make equal work look distinct.
_TELLING = frozenset({0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, float("inf"), float("-inf")})
SCALAR = "scalar"
_NUMBERS = frozenset({int, float, bool})

_STRIDED = torch.strided


class _Spec(tuple[Any, ...]):
    """A tensor that shape and dtype do not describe: (shape, dtype, nnz, parts)."""

    __slots__ = ()


def key_of(value: Any) -> Any:
    """A hashable stand-in for one argument or result."""
    kind = type(value)
    if kind is Tensor or kind is Parameter:
        try:
            return (value.shape, value.dtype) if value.layout is _STRIDED else _tensor(value)
        except RuntimeError:  # a strided nested tensor has no sizes
            return _ragged(value)
    if kind is int or value is None or kind is bool or kind is str or kind is torch.dtype:
        return value
    if kind is float:
        return value if value in _TELLING else SCALAR
    if isinstance(value, (list, tuple)):
        return _List([key_of(item) for item in value])
    if isinstance(value, Tensor):
        return _tensor(value)
    if kind is torch.ScriptObject:
        if hasattr(value, "unpack"):  # packed weights of quantised layers
            return key_of(value.unpack())
        return _group(value)
    return f"<{kind.__name__}>"


def _group(value: Any) -> str:
    """The name of a process group: which link a collective used."""
    try:
        return f"group {torch.distributed.ProcessGroup.unbox(value).group_name}"
    except (AttributeError, RuntimeError):  # some other object of C++, or a torch without distributed
        return "<ScriptObject>"


def scalar_key(key: Any) -> Any:
    """A stand-in for an argument that is a value to compute with: integers become alike, as all floats have."""
    return SCALAR if type(key) is int and key not in _TELLING else key


def operand_key(key: Any) -> Any:
    """A stand-in for a number that is added, multiplied or divided by: no rule tells one of them from another. Adam
    divides by 1.0 once its bias has worn off."""
    if type(key) is _List:
        return _List([operand_key(item) for item in key])
    return SCALAR if type(key) in (float, int) else key


def factor_key(key: Any) -> Any:
    """A stand-in for a number that something is multiplied by on its way: rules ask only whether it is one. A learning
    rate may come to 0.5, or to 0."""
    if type(key) is _List:
        return _List([factor_key(item) for item in key])
    return SCALAR if type(key) in (float, int) and key not in (1, -1) else key


def result_key(out: Any) -> Any:
    """A stand-in for what an op gives back. A number that is read out of a tensor (a loss, a count of right answers, a
    step) may be another one each time, and is no part of what was called."""
    return SCALAR if type(out) in _NUMBERS else key_of(out)


class _List(tuple[Any, ...]):
    """A list argument, told from the (shape, dtype) of a tensor by its class."""

    __slots__ = ()


def _tensor(value: Tensor) -> Any:
    """One that may be nested or sparse."""
    if value.is_nested:
        return _ragged(value)
    if value.layout is _STRIDED:
        return value.shape, value.dtype
    if value.layout is torch._mkldnn:
        return _Spec((tuple(value.shape), value.dtype, None, None))
    stored = value.values().numel() if value.layout is not torch.sparse_coo else value._values().numel()
    return _Spec((tuple(value.shape), value.dtype, int(stored), None))


def _ragged(value: Tensor) -> Any:
    sizes = value._nested_tensor_size() if value.layout is _STRIDED else None
    if sizes is None:
        return _Spec((tuple(int(n) if isinstance(n, int) else 0 for n in value.shape), value.dtype, None, None))
    parts = tuple(tuple(row) for row in sizes.tolist())
    return _Spec(((len(parts),), value.dtype, None, parts))


def decode(func: Any, args: tuple[Any, ...], kwargs: tuple[tuple[str, Any], ...], out: Any) -> Op:
    """The Op behind a key, with arguments named as in the operator's schema."""
    schema = getattr(func, "_schema", None)
    names = [argument.name for argument in schema.arguments] if schema is not None else []
    names += [f"arg{i}" for i in range(len(names), len(args))]
    named = [(name, value_of(arg)) for name, arg in zip(names, args, strict=False)]
    named += [(name, value_of(arg)) for name, arg in kwargs if name != "out"]
    if out is None and named and isinstance(named[0][1], TensorSpec):
        outputs: tuple[TensorSpec, ...] = (named[0][1],)  # in place: what came out is the first argument
    else:
        decoded = value_of(out)
        outputs = tuple(o for o in (decoded if isinstance(decoded, tuple) else (decoded,)) if isinstance(o, TensorSpec))
    return Op(name_of(func), tuple(named), outputs, getattr(func, "_overloadname", ""))


def name_of(func: Any) -> str:
    """`aten.mm`, `quantized.linear_dynamic`, `higher_order.flex_attention`."""
    packet = getattr(func, "overloadpacket", None)
    if packet is not None:
        return str(packet._qualified_op_name).replace("::", ".")
    name = getattr(func, "name", None)
    return f"higher_order.{name()}" if callable(name) else str(func)


def dtype_name(value: torch.dtype) -> str:
    return str(value).removeprefix("torch.")


def value_of(key: Any) -> Any:
    """The plain value behind a stand-in."""
    if isinstance(key, _Spec):
        shape, dtype, nnz, parts = key
        return TensorSpec(shape, dtype_name(dtype), nnz, parts)
    if isinstance(key, _List):
        return tuple(value_of(item) for item in key)
    if isinstance(key, tuple):
        return TensorSpec(tuple(key[0]), dtype_name(key[1]))
    return dtype_name(key) if isinstance(key, torch.dtype) else key
