"""Threads: dispatch modes belong to one thread, so new threads and tasks of thread pools enter one of their own."""

from __future__ import annotations

import concurrent.futures.thread as pools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.torch import compact
from bitwatt.context import CONTEXT, current

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    start, run, make = threading.Thread.start, pools._WorkItem.run, pools._WorkItem.__init__

    def watched_start(thread: threading.Thread) -> None:
        # A pool's worker outlives the session: it is watched task by task instead.
        if watch.on and getattr(thread, "_target", None) is not pools._worker:
            _watch_run(watch, thread)
        start(thread)

    def watched_task(task: Any, *args: Any) -> None:
        state = watch.states.here
        if not watch.on:
            return run(task, *args)
        reset = CONTEXT.set(getattr(task, "bitwatt_context", None))
        watch.join(state, task)
        try:
            return run(task, *args)
        finally:
            watch.part(state, task)
            compact.retire(watch)
            CONTEXT.reset(reset)

    def watched_make(task: Any, *args: Any, **kwargs: Any) -> None:
        make(task, *args, **kwargs)
        task.bitwatt_context = current() or CONTEXT.get()  # of the code that submits it; it may be nobody's

    threading.Thread.start = watched_start  # type: ignore[method-assign,assignment]
    pools._WorkItem.run = watched_task  # type: ignore[method-assign,assignment]
    pools._WorkItem.__init__ = watched_make  # type: ignore[method-assign,assignment]

    def restore() -> None:
        threading.Thread.start = start  # type: ignore[method-assign]
        pools._WorkItem.run = run  # type: ignore[method-assign]
        pools._WorkItem.__init__ = make  # type: ignore[method-assign]

    return [restore]


def _watch_run(watch: TorchWatch, thread: threading.Thread) -> None:
    context, run = current() or CONTEXT.get(), thread.run

    def watched_run() -> None:
        thread.__dict__.pop("run", None)
        CONTEXT.set(context)
        state = watch.states.here
        watch.join(state, thread)
        try:
            run()
        finally:
            watch.part(state, thread)
            compact.retire(watch)

    thread.run = watched_run  # type: ignore[method-assign]
