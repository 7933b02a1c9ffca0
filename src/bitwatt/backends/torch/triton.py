"""Triton kernels launched by hand: they pass no dispatcher, so their launches are recorded as `triton.<kernel>`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from bitwatt.backends.torch.encode import key_of, value_of
from bitwatt.backends.torch.mode import mode_here
from bitwatt.imports import when_imported
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []

    def patch() -> None:
        jit: Any = sys.modules["triton.runtime.jit"].JITFunction
        run = jit.run

        def watched_run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            out = run(kernel, *args, **kwargs)
            mode = mode_here(watch)
            if watch.on and mode is not None and not kwargs.get("warmup"):
                try:
                    mode.record_op(_launch(kernel, args, kwargs))
                except Exception as error:
                    watch.failed(kernel, error)
            return out

        jit.run = watched_run
        undo.append(lambda: setattr(jit, "run", run))

    def restore() -> None:
        while undo:
            undo.pop()()

    return [restore, when_imported("triton.runtime.jit", patch)]


def _launch(kernel: Any, args: Any, kwargs: Any) -> Op:
    named = {**dict(zip(kernel.arg_names, args, strict=False)), **kwargs}
    plain = [
        (name, value_of(key_of(value)))
        for name, value in named.items()
        if name in kernel.arg_names and isinstance(value, (Tensor, int, float, bool, str))
    ]
    return Op(f"triton.{kernel.fn.__name__}", tuple(plain))
