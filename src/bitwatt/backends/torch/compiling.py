"""torch.compile: a dispatch mode would switch it off for good, so counted code runs eagerly by torch's own switch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from bitwatt.imports import when_imported

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    stances: list[Any] = []

    def run_eagerly() -> None:
        if watch.on:
            stances.append(torch.compiler.set_stance("force_eager"))

    def restore() -> None:
        while stances:
            stances.pop().__exit__(None, None, None)

    # torch warns of global module hooks whenever a compiled module is called; ours are meant to be there.
    warnings.filterwarnings("ignore", message=r"Using `torch\.compile\(module\)` when there are global hooks")
    ours = warnings.filters[0]

    def warn_again() -> None:
        if ours in warnings.filters:
            warnings.filters.remove(ours)  # type: ignore[attr-defined]

    return [restore, warn_again, when_imported("torch._dynamo", run_eagerly)]
