"""What an op read when it was first called, as a small number: equal on two ranks means the same work on the same data.

That tells work that every rank repeats (optimizers of data parallel, norms of tensor parallel) from work that is shared
out, whoever wrote the program. Only first calls are looked at, and of large tensors only a sample.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from bitwatt.backends.torch.waits import waiting

#: Elements that are read of one tensor, and tensors of one call.
_ELEMENTS, _TENSORS = 64, 8
#: Distinct calls that are remembered: beyond, programs of many shapes are not told apart.
_LIMIT = 50_000


class Contents:
    """Call -> a number made of what it read; 0 where that tells nothing."""

    def __init__(self) -> None:
        self.known: dict[Any, int] = {}

    def saw(self, key: Any, args: Any) -> None:
        if key in self.known or len(self.known) >= _LIMIT:
            return
        try:
            with waiting():
                self.known[key] = _number(args)
        except Exception:  # a tensor without storage, a device that is lost: then nothing is known of this call
            self.known[key] = 0


def _number(args: Any) -> int:
    number, tells = 0, False
    for count, tensor in enumerate(_tensors(args)):
        if count == _TENSORS:
            break
        if tensor.is_cuda and torch.cuda.is_current_stream_capturing():  # reading would break the program's graph
            return 0
        values = _sample(tensor)
        if values is None:
            return 0
        number = zlib.crc32(values, number)
        width = len(values) // max(1, min(_ELEMENTS, tensor.numel()))
        tells = tells or values[:-width] != values[width:]  # zeros and ones are the same on ranks that share nothing
    return number if tells else 0


def _tensors(args: Any) -> Iterator[torch.Tensor]:
    for arg in args:
        if isinstance(arg, torch.Tensor):
            yield arg
        elif isinstance(arg, (list, tuple)):
            yield from _tensors(arg)


def _sample(tensor: torch.Tensor) -> bytes | None:
    if isinstance(tensor, FakeTensor) or tensor.is_meta or tensor.layout is not torch.strided or tensor.is_nested:
        return None
    flat = tensor.detach().reshape(-1) if tensor.is_contiguous() else _spread(tensor)
    if flat.numel() > _ELEMENTS:
        flat = flat[:: flat.numel() // _ELEMENTS][:_ELEMENTS]
    # A copy: numpy would forbid resizing the program's own storage, as FSDP does.
    return bytes(flat.clone().cpu().view(torch.uint8).numpy()) if flat.numel() else b""


def _spread(tensor: torch.Tensor) -> torch.Tensor:
    """A few elements of one that does not lie in one piece, without copying it whole."""
    tensor = tensor.detach()
    for dim, size in enumerate(tensor.shape):
        if tensor.numel() > 4 * _ELEMENTS and size > 8:
            tensor = tensor.narrow(dim, 0, 8)
    return tensor.reshape(-1)
