"""joblib: tasks carry where they belong; those that run in another process bring their counts back with the result."""

from __future__ import annotations

import contextvars
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn.frames import STACK, Frame, Kinds, top
from bitwatt.context import CONTEXT, Context, current, opened
from bitwatt.ledger import Row

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

#: Calls of Parallel under way in this process: the watch, the context and the frames that their tasks belong to.
_calls: dict[int, tuple[Context, tuple[Frame, ...]]] = {}
_numbers = itertools.count()


def install(watch: EstimatorWatch) -> list[Callable[[], None]]:
    from joblib import Parallel

    original = Parallel.__call__

    def watched_call(self: Any, iterable: Any) -> Any:
        context = current() if watch.on else None
        if context is None:
            return original(self, iterable)
        number = next(_numbers)
        _calls[number] = (context, STACK.get())
        results = original(self, _tasks(iterable, number, context.phases))
        if isinstance(results, list):
            del _calls[number]
            return [_unwrapped(watch, context, result) for result in results]
        return _stream(watch, context, number, results)

    Parallel.__call__ = watched_call

    def restore() -> None:
        if Parallel.__call__ is watched_call:
            Parallel.__call__ = original

    return [restore]


def _tasks(iterable: Any, number: int, phases: tuple[str, ...]) -> Iterator[tuple[Task, Any, Any]]:
    frames = STACK.get()
    phase, scope = (frames[-1].phase, frames[-1].scope) if frames else ("", "")
    parts = frames[-1].parts() if frames else ()
    for i, (function, args, kwargs) in enumerate(iterable):
        fold = _fold(function, kwargs, i)
        place = ".".join(filter(None, (scope, fold)))
        yield Task(function, os.getpid(), number, phase, place, bool(fold), phases, parts), args, kwargs


def _fold(function: Any, kwargs: Any, number: int) -> str:
    """Which fold of a cross-validation a task fits and scores; its functions are known by their names."""
    inner = getattr(function, "function", function)
    if getattr(inner, "__name__", "") not in ("_fit_and_score", "_fit_and_predict", "_incremental_fit_estimator"):
        return ""
    progress = kwargs.get("split_progress")
    return f"fold {progress[0] + 1 if progress else number + 1}"


def _stream(watch: EstimatorWatch, context: Context, number: int, results: Any) -> Iterator[Any]:
    try:
        for result in results:
            yield _unwrapped(watch, context, result)
    finally:
        _calls.pop(number, None)


def _unwrapped(watch: EstimatorWatch, context: Context, result: Any) -> Any:
    if not isinstance(result, Brought):
        return result
    watch.add(context, result.rows, result.kinds, result.notes)
    frame = top()
    if frame is not None:  # what the call that made the task had done elsewhere
        frame.probes.update(result.probes)
    return result.value


@dataclass(frozen=True)
class Task:
    """A joblib task that knows where it was made."""

    function: Any
    process: int
    call: int
    phase: str
    scope: str
    is_fold: bool
    phases: tuple[str, ...]
    parts: Kinds

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        known = _calls.get(self.call) if os.getpid() == self.process else None
        if known is not None:
            return contextvars.copy_context().run(self._here, known, args, kwargs)
        return self._elsewhere(args, kwargs)

    def _here(self, known: tuple[Context, tuple[Frame, ...]], args: Any, kwargs: Any) -> Any:
        CONTEXT.set(known[0])
        STACK.set((*known[1], Frame(None, "", self.phase, self.scope)) if self.is_fold else known[1])
        return self.function(*args, **kwargs)

    def _elsewhere(self, args: Any, kwargs: Any) -> Any:
        watch = _workers_watch()
        with opened("worker", phases=self.phases) as context:
            frame = Frame(None, "", self.phase, self.scope, kinds=() if self.is_fold else self.parts)
            reset = STACK.set((frame,) if self.scope else ())
            try:
                value = _counted(self.function)(*args, **kwargs)
            finally:
                STACK.reset(reset)
            harvest = watch.collect(context.token)
        kinds = {scope: layer.kind for scope, layer in harvest.layers.items()}
        return Brought(value, list(harvest.ledger), kinds, harvest.notes, dict(frame.probes))


def _counted(function: Any) -> Any:
    """A function that came to this process before its watch began is not yet the one that counts."""
    inner = getattr(function, "function", None)  # inside scikit-learn's own wrapper, which carries its settings
    if inner is not None:
        function.function = _counted(inner)
        return function
    found = getattr(sys.modules.get(getattr(function, "__module__", "")), getattr(function, "__name__", ""), None)
    return found if getattr(found, "__wrapped__", None) is function else function


@dataclass(frozen=True)
class Brought:
    """What a task in another process sends home."""

    value: Any
    rows: list[Row]
    kinds: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    probes: dict[tuple[Any, ...], int] = field(default_factory=dict)


_worker: list[EstimatorWatch] = []


def _workers_watch() -> EstimatorWatch:
    """One for each worker process, for as long as it lives."""
    from bitwatt.backends.sklearn.watch import EstimatorWatch

    if not _worker or not _worker[0].on:
        _worker[:] = [EstimatorWatch()]
        _worker[0].start()
    return _worker[0]
