"""Rows on their way into fresh processes: one file, from which batches are cut in turn."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from bitwatt.deploy.given import rows as forms


def save(inputs: Any, path: Path) -> Path:
    """Tensors are kept as arrays, so that a process without torch can read them."""
    with path.open("wb") as file:
        pickle.dump(_packed(inputs), file, protocol=pickle.HIGHEST_PROTOCOL)
    return path


def load(path: Path | str, *, tensors: bool = True) -> Any:
    """What `save` wrote, in this session's own folder. Without `tensors`, arrays stand where tensors were."""
    with Path(path).open("rb") as file:
        return _unpacked(pickle.load(file), tensors)


def batch(rows: Any, start: int, size: int) -> Any:
    """`size` rows from `start` on, again from the first where they end."""
    count = forms.count(rows)
    start %= count
    if start + size <= count:
        return forms.take(rows, slice(start, start + size))
    import numpy as np

    return forms.take(rows, np.arange(start, start + size) % count)


def batches(rows: Any, size: int, most: int) -> list[Any]:
    """Different batches to be taken in turn: one that is repeated would stay in the caches, and its branches would be
    known to the processor. They begin all over the rows."""
    count = forms.count(rows)
    wanted = min(most, max(-(-count // size), min(count, 8)))
    return [batch(rows, index * count // wanted, size) for index in range(wanted)]


class _Tensor:
    """An array that was a tensor."""

    def __init__(self, array: Any, kind: str, device: str) -> None:
        self.array, self.kind, self.device = array, kind, device


def _packed(rows: Any) -> Any:
    if isinstance(rows, tuple):
        return tuple(_packed(part) for part in rows)
    if forms.is_tensor(rows):
        return _Tensor(forms.on_host(rows), str(rows.dtype).removeprefix("torch."), str(rows.device))
    return rows


def _unpacked(rows: Any, tensors: bool) -> Any:
    if isinstance(rows, tuple):
        return tuple(_unpacked(part, tensors) for part in rows)
    if not isinstance(rows, _Tensor):
        return rows
    if not tensors:
        return rows.array
    import torch

    return torch.from_numpy(rows.array).to(device=rows.device, dtype=getattr(torch, rows.kind))
