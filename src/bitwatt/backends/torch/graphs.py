"""CUDA graphs: what is captured does not run then, and runs as often as the graph is replayed.

Calls made under capture are taken out of the counts and kept with the graph. Each replay is credited with them, in the
phases and layers in which they were captured. A replay outside everything else is an event, like the call of a model.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from bitwatt.backends.torch.mode import mode_here
from bitwatt.backends.torch.state import Counts, ThreadState, graph_task
from bitwatt.context import current
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.torch.mode import CountingMode
    from bitwatt.backends.torch.replay.learner import Learner
    from bitwatt.backends.torch.scopes import Scopes
    from bitwatt.backends.torch.watch import TorchWatch

GRAPH = "graph"
_METHODS = ("capture_begin", "capture_end", "replay")
_numbers = itertools.count()
#: A replay of what nobody saw being captured.
_UNSEEN = Op("torch.cuda.CUDAGraph.replay", (("unrecorded", "captured unseen"),), overload="unrecorded")


class Captured:
    """The calls in a graph: by phase and scope, how often each key. `scopes` names what the capturing session saw."""

    def __init__(self, scopes: Scopes, log: list[tuple[Counts, Any]] | None) -> None:
        self.number = next(_numbers)
        self.scopes = scopes
        self.seen = log is not None
        self.rows: dict[tuple[str, str], dict[Any, int]] = {}
        for counts, key in log or ():
            if counts.place is not None:
                at = self.rows.setdefault(counts.place[2:], {})
                at[key] = at.get(key, 0) + 1
        phases = {phase.partition("/")[0] for phase, _ in self.rows}
        self.closes = "optimizer" in phases or phases <= {"inference", "other"}
        self.differentiates = "backward" in phases
        sizes = {place: sum(keys.values()) for place, keys in self.rows.items() if place[0][0] != "?"}
        self.phase = max(sizes, key=lambda place: sizes[place])[0] if sizes else "other"


#: Graphs outlive the session that saw them captured.
_captured: weakref.WeakKeyDictionary[Any, Captured] = weakref.WeakKeyDictionary()


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    kind: Any = getattr(torch.cuda, "CUDAGraph", None)
    if kind is None:
        return []
    graphs, originals = Graphs(watch), {name: getattr(kind, name) for name in _METHODS}

    def capture_begin(graph: Any, *args: Any, **kwargs: Any) -> None:
        originals["capture_begin"](graph, *args, **kwargs)
        if watch.on:
            graphs.begin(graph)

    def capture_end(graph: Any) -> None:
        try:
            originals["capture_end"](graph)
        finally:
            graphs.end(graph)

    def replay(graph: Any) -> None:
        if watch.on:
            graphs.replay(graph, originals["replay"])
        else:
            originals["replay"](graph)

    for name, method in zip(_METHODS, (capture_begin, capture_end, replay), strict=True):
        setattr(kind, name, method)

    def restore() -> None:
        for name, method in originals.items():
            setattr(kind, name, method)

    return [restore]


class Capture:
    """One that is under way: ops go to a log of its own."""

    __slots__ = ("log", "mode", "state", "woken")

    def __init__(self, mode: CountingMode, state: ThreadState, woken: bool) -> None:
        self.mode, self.state, self.woken = mode, state, woken
        self.log, mode.log = mode.log, []


class Graphs:
    def __init__(self, watch: TorchWatch) -> None:
        self.watch = watch
        self._under_way: weakref.WeakKeyDictionary[Any, Capture] = weakref.WeakKeyDictionary()

    def begin(self, graph: Any) -> None:
        _captured.pop(graph, None)
        state = self.watch.states.here
        if state.learner is not None and (state.learner.replaying or state.pace.mute):
            return  # a part of something known, which captures for itself: compiled code does
        if state.learner is not None and state.learner.watched:
            state.learner.unwatch()
        woken = state.resting is not None
        if woken:
            self.watch.switch(state, True)
        mode = mode_here(self.watch)
        if mode is not None:
            self._under_way[graph] = Capture(mode, state, woken)
            state.capturing = True

    def end(self, graph: Any) -> None:
        self.watch.scopes.look_later()
        capture = self._under_way.pop(graph, None)
        if capture is None:
            return
        capture.state.capturing = False
        log, capture.mode.log = capture.mode.log or [], capture.log
        for counts, key in log:
            cell = counts.get(key)
            if cell is not None:
                cell[0] -= 1
                if not cell[0]:
                    del counts[key]
        _captured[graph] = Captured(self.watch.scopes, log)
        if capture.woken:
            self.watch.switch(capture.state, False)

    def replay(self, graph: Any, run: Callable[[Any], None]) -> None:
        captured = _captured.get(graph)
        if captured is None:
            captured = _captured[graph] = Captured(self.watch.scopes, None)
        state = self.watch.states.here
        learner = state.learner
        free = graph_task() < 0 and (learner is None or not (learner.replaying or state.pace.mute))
        if free and learner is not None and state.pace.next is not None:
            if state.pace.next(GRAPH, (GRAPH, captured.number), ()):
                try:
                    run(graph)
                except BaseException:
                    learner.abort()
                    raise
                return
            learner.surprised()
        learner = self.watch.events.ready(state) if free else None
        if learner is not None:
            self._event(state, learner, graph, captured, run)
            return
        run(graph)
        if mode_here(self.watch) is not None:
            self._credit(state, captured)

    def _event(
        self, state: ThreadState, learner: Learner, graph: Any, captured: Captured, run: Callable[[Any], None]
    ) -> None:
        known = learner.begin((GRAPH, captured.number))
        learner.compiled = True  # what runs here is not what was captured: other checksums
        step = learner.step
        if step is not None and not known:
            step.phase, step.differentiates = captured.phase, captured.differentiates
        if learner.lane is None:
            state.clock()
        try:
            run(graph)
        except BaseException:
            learner.abort()
            raise
        if not known:
            self._credit(state, captured)
        if learner.lane is None:
            state.clock(captured.phase)
        learner.end(closes=captured.closes)

    def _credit(self, state: ThreadState, captured: Captured) -> None:
        mode, context = mode_here(self.watch), current()
        if mode is None or context is None:
            return
        if state.learner is not None and state.learner.watched:
            state.learner.unwatch()
        if not captured.seen:
            mode.record_op(_UNSEEN)
        for (phase, scope), keys in captured.rows.items():
            if captured.scopes is not self.watch.scopes:
                scope = captured.scopes.final(scope)
            counts = state.counts_at((context, context.phases, phase, scope))
            for key, n in keys.items():
                counts.setdefault(key, [0])[0] += n
                if mode.log is not None:
                    mode.log += [(counts, key)] * n
