"""torch.compile: a dispatch mode would switch it off for good, so counted code runs eagerly by torch's own switch."""

from __future__ import annotations

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

    return [restore, when_imported("torch._dynamo", run_eagerly)]
