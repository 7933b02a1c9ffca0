"""Dispatch keys: `torch.inference_mode` puts back those that it found, though our mode may have come or gone since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_inference_mode: Any = torch.autograd.grad_mode.inference_mode
_KEYS = ("Python", "PythonTLSSnapshot")


def install() -> list[Callable[[], None]]:
    leave = _inference_mode.__exit__

    def watched_exit(self: Any, *error: Any) -> None:
        leave(self, *error)
        align()

    _inference_mode.__exit__ = watched_exit

    def restore() -> None:
        _inference_mode.__exit__ = leave

    return [restore]


def align() -> None:
    """Modes are looked for if, and only if, there are any."""
    wanted = torch._C._len_torch_dispatch_stack() > 0
    for key in _KEYS:
        if torch._C._dispatch_tls_is_dispatch_key_included(key) != wanted:
            torch._C._dispatch_tls_set_dispatch_key_included(key, wanted)
