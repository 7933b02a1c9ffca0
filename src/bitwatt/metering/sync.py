"""What this process does on GPUs, asked of torch where it is in use: to wait for them, and which they are."""

from __future__ import annotations

import sys
from typing import Any


def synchronise() -> None:
    """Wait for every CUDA device this process uses, so that a counter read after holds what was queued before."""
    cuda = _cuda()
    try:
        if cuda is not None and not cuda.is_current_stream_capturing():
            for index in _touched(cuda):
                cuda.synchronize(index)
    except Exception:  # a device in a failed state: the user's own error tells of it
        return


def used_gpus() -> frozenset[str] | None:
    """The ids of devices that torch has memory on, in this process; None where it cannot tell."""
    cuda = _cuda()
    try:
        if cuda is None:
            return None
        return frozenset(f"gpu:GPU-{cuda.get_device_properties(index).uuid}" for index in _touched(cuda))
    except Exception:  # as above, or a torch that does not know them
        return None


def _cuda() -> Any:
    """Nothing where CUDA is not in use: asking would start it."""
    torch: Any = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None


def _touched(cuda: Any) -> list[int]:
    """A device that was never touched is left alone."""
    return [i for i in range(cuda.device_count()) if cuda.max_memory_reserved(i) or i == cuda.current_device()]
