"""Leaves the user's process as it was: runtimes that are loaded here set how many threads libraries use."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def threads() -> Iterator[None]:
    """BLAS, OpenMP and torch have the threads afterwards that they had before."""
    from threadpoolctl import threadpool_limits

    with ExitStack() as ends:
        ends.enter_context(threadpool_limits())
        torch = sys.modules.get("torch")
        if torch is not None:
            ends.callback(torch.set_num_threads, torch.get_num_threads())
        yield


@contextmanager
def traces() -> Iterator[None]:
    """What converters leave behind when they are imported: folders on the path, handlers of the root logger."""
    path, handlers = sys.path[:], logging.root.handlers[:]
    try:
        yield
    finally:
        sys.path[:] = path
        logging.root.handlers[:] = handlers
