"""Reading a value from a GPU waits for it. Where bitwatt does, torch's debug mode has nothing to complain of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def waiting() -> Iterator[None]:
    """A program may ask torch to raise where the host waits for the GPU: it means its own code."""
    mode = torch._C._cuda_get_sync_debug_mode() if torch.cuda.is_initialized() else 0
    if not mode:
        yield
        return
    torch._C._cuda_set_sync_debug_mode(0)
    try:
        yield
    finally:
        torch._C._cuda_set_sync_debug_mode(mode)
