"""Tensors that come from elsewhere: a worker's batch, a file. To lay a tensor over memory that is there already is no
work, and with several workers nobody knows between which two steps it happens: it is no part of the program's calls."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import _utils

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    original = _utils._rebuild_tensor

    @functools.wraps(original)  # what is written to files goes by its name
    def rebuilt(*args: Any, **kwargs: Any) -> Any:
        state = watch.states.here
        if not watch.on or state.mode is None:
            return original(*args, **kwargs)
        watch.switch(state, False)
        try:
            return original(*args, **kwargs)
        finally:
            watch.switch(state, True)

    def restore() -> None:
        if _utils._rebuild_tensor is rebuilt:
            _utils._rebuild_tensor = original

    _utils._rebuild_tensor = rebuilt
    return [restore]
