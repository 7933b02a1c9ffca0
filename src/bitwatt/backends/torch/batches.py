"""When DataLoaders hand out their first batch, and how many samples they hand out, where that can be known: of batches
that a sampler draws from a dataset with an index. An iterable dataset may end in a shorter batch, and one that batches
for itself does not tell its sizes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch.utils.data import dataloader

from bitwatt.context import current

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch

#: What is counted: loaded is not yet trained on, which only the program knows.
LOADED = "samples loaded"


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    """Workers are given indices ahead of time, so sizes wait until their batch is handed out."""
    iterator = dataloader._BaseDataLoaderIter
    original_index, original_next, original_reset = iterator._next_index, iterator.__next__, iterator._reset

    def next_index(self: Any) -> Any:
        index = original_index(self)
        if watch.on and self._dataset_kind == dataloader._DatasetKind.Map and self._auto_collation:
            self.__dict__.setdefault("_bitwatt_sizes", deque()).append(_length(index))
        return index

    def handed_out(self: Any) -> Any:
        batch = original_next(self)
        sizes = self.__dict__.get("_bitwatt_sizes")
        size = sizes.popleft() if sizes else 0
        context = current() if watch.on else None
        if context is not None and context.token.observer is not None:
            context.token.observer.batch()
            if size:
                context.token.observer.count("/".join(context.phases), LOADED, size)
        return batch

    def reset(self: Any, *args: Any, **kwargs: Any) -> None:
        self.__dict__.pop("_bitwatt_sizes", None)  # of an epoch that was left early
        original_reset(self, *args, **kwargs)

    iterator._next_index, iterator.__next__, iterator._reset = next_index, handed_out, reset

    def restore() -> None:
        iterator._next_index, iterator.__next__ = original_index, original_next
        iterator._reset = original_reset

    return [restore]


def _length(index: Any) -> int:
    try:
        return len(index)
    except TypeError:  # a sampler of batches may give anything that its dataset understands
        return 0
