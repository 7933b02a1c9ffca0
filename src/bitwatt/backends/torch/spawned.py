"""Processes of torch.multiprocessing.spawn: each is measured as a rank of its own, in the store of the session that
started them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bitwatt.context import current
from bitwatt.imports import when_imported

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    undo: list[Callable[[], None]] = []

    def put() -> None:
        from torch.multiprocessing.spawn import start_processes

        space = start_processes.__globals__  # the module's own name is taken by a function
        wrap = space["_wrap"]

        def started(fn: Any, args: Any = (), nprocs: int = 1, *rest: Any, **named: Any) -> Any:
            context = current()
            offer = context.token.offer if context is not None and watch.on else None
            if offer is not None and nprocs > 1:
                watch.has_workers = True
                space["_wrap"] = functools.partial(import_module("bitwatt.spawned").by_torch, offer, nprocs)
            try:
                return start_processes(fn, args, nprocs, *rest, **named)
            finally:
                space["_wrap"] = wrap

        space["start_processes"] = started
        undo.append(lambda: space.update(start_processes=start_processes))

    def take_out() -> None:
        while undo:
            undo.pop()()

    return [take_out, when_imported("torch.multiprocessing.spawn", put)]
