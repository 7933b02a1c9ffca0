"""Around the user's function in a process that another one has started and wants to be measured."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bitwatt.ranks import identity
from bitwatt.session import measure


def by_torch(offer: dict[str, str], world: int, fn: Any, rank: int, args: Any, error_file: str) -> None:
    """In place of the wrapper that torch.multiprocessing.spawn puts around it, which it calls."""
    start: Any = import_module("torch.multiprocessing").start_processes
    identity.given = identity.this_rank(rank, world, offer["job"], rank)
    with measure(offer["name"], store=offer["store"], command=offer["command"]):
        start.__globals__["_wrap"](fn, rank, args, error_file)
