"""Fake tensors: shapes and dtypes that behave like tensors and hold nothing."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.utils
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    FakeCopyMode,
    FakeTensor,
    FakeTensorMode,
    unset_fake_temporarily,
)
from torch.utils._python_dispatch import TorchDispatchMode

from bitwatt.errors import EstimateError

aten = torch.ops.aten
#: Ops that make a small known tensor. Models read numbers out of such ones while they are built
#: (`[p.item() for p in torch.linspace(0, 0.2, depth)]`), so these keep their values.
_KNOWN = {
    aten.linspace.default, aten.arange.default, aten.arange.start, aten.arange.start_step, aten.full.default,
    aten.zeros.default, aten.ones.default, aten.scalar_tensor.default, aten.eye.default,
}  # fmt: skip
_SMALL = 4096
_MASK = 1024 * 1024  # nn.TransformerEncoder compares a square mask with a causal one


class _Fakes(FakeTensorMode):
    """A fake tensor that is copied drags its mode along, and fakes of two modes do not mix: so there is one."""

    def __deepcopy__(self, _: Any) -> _Fakes:
        return self


class _KnownValues(TorchDispatchMode):
    """Lies above the fake mode and gives small constants values, which torch's own constant folding carries on."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __init__(self, fakes: FakeTensorMode) -> None:
        super().__init__()
        self.fakes = fakes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func in _KNOWN and type(out) is FakeTensor and _is_worth_keeping(out.shape):
            with unset_fake_temporarily():
                out.constant = func(*args, **{**(kwargs or {}), "device": torch.device("cpu")})
            self.fakes.fake_tensor_converter.add_constant_storage_mapping(out)
        return out


def _is_worth_keeping(shape: torch.Size) -> bool:
    square = len(shape) == 2 and shape[0] == shape[1]
    return bool(shape.numel() <= (_MASK if square else _SMALL))


@contextmanager
def _lenient() -> Iterator[None]:
    """Places where building a fake model fails in torch though no count depends on them: it asks constants of more
    than one element for their values, samples trunc_normal_ until all values fit (skipped, as torch does on meta), and
    refuses `model.to(...)` because the fake mode itself holds weak references to parameters.
    """
    kept = fake_tensor.CONSTANT_NUMEL_LIMIT, torch.nn.init._no_grad_trunc_normal_, torch.utils.swap_tensors
    fake_tensor.CONSTANT_NUMEL_LIMIT = _MASK
    torch.nn.init._no_grad_trunc_normal_ = lambda tensor, *_, **__: tensor
    torch.utils.swap_tensors = _take_over
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Accessing the data pointer of FakeTensor")  # by copy.deepcopy
            yield
    finally:
        fake_tensor.CONSTANT_NUMEL_LIMIT, torch.nn.init._no_grad_trunc_normal_, torch.utils.swap_tensors = kept


def _take_over(tensor: Any, other: Any) -> None:
    tensor.data = other.data


@contextmanager
def run_on_fakes(fn: Any, args: Any, kwargs: Any) -> Iterator[Callable[[], Any]]:
    """A call of `fn` under a fake mode, arguments faked together so that an optimizer keeps its model's parameters."""
    mode = _Fakes()
    owner = fn if isinstance(fn, torch.nn.Module) else None
    with FakeCopyMode(mode):
        owner, args, kwargs = copy.deepcopy((owner, args, kwargs))
    try:
        with _lenient(), mode, _KnownValues(mode):
            yield lambda: (owner if owner is not None else fn)(*args, **kwargs)
    except DataDependentOutputException as error:
        raise EstimateError(
            f"{error.func} needs the values of a tensor, and a fake tensor has none. Measure this function on real "
            "data with bitwatt.measure, or take the branch that depends on values out of it."
        ) from error
    except AssertionError as error:
        if "FakeTensor" not in str(error):
            raise
        raise EstimateError(
            "the function uses a real tensor or model from outside. Pass it as an argument of estimate(), or build it "
            "inside the function."
        ) from error
