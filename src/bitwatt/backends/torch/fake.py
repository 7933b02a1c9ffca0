"""Fake tensors: shapes and dtypes that behave like tensors and hold nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeCopyMode, FakeTensorMode
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from bitwatt.errors import EstimateError


def estimating() -> bool:
    """Whether the running code is under a fake mode."""
    return any(isinstance(mode, FakeTensorMode) for mode in _get_current_dispatch_mode_stack())


@contextmanager
def run_on_fakes(fn: Any, args: Any, kwargs: Any) -> Iterator[Callable[[], Any]]:
    """A call of `fn` under a fake mode, arguments faked together so that an optimizer keeps its model's parameters."""
    mode = FakeTensorMode()
    owner = fn if isinstance(fn, torch.nn.Module) else None
    with FakeCopyMode(mode):
        owner, args, kwargs = copy.deepcopy((owner, args, kwargs))
    try:
        with mode:
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
