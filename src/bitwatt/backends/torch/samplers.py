"""Which samples come next. A sampler shuffles where an epoch begins, and again where it ends, between two steps among
hundreds that are alike: whatever is known of those, what it does is counted. torch's own samplers do nothing in
between, so there they are left alone."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torch.utils.data import BatchSampler, dataloader, distributed, sampler

from bitwatt.backends.torch.replay.pace import stepping
from bitwatt.backends.torch.state import Frame, ThreadState, graph_task
from bitwatt.context import current

if TYPE_CHECKING:
    from bitwatt.backends.torch.watch import TorchWatch

_Iterator = dataloader._BaseDataLoaderIter
#: Samplers that hand out a list they have made at once.
_LISTS = frozenset(
    {sampler.SequentialSampler, sampler.SubsetRandomSampler, sampler.WeightedRandomSampler,
     distributed.DistributedSampler}
)  # fmt: skip


def install(watch: TorchWatch) -> list[Callable[[], None]]:
    original_index, original_init = _Iterator._next_index, _Iterator.__init__

    def watched_index(self: Any) -> Any:
        drawing = self.__dict__.get("_bitwatt_drawing")
        if drawing is not None and drawing[0] is self._sampler_iter and drawing[1]:
            drawing[1] -= 1
            return original_index(self)
        if not watch.on:
            return original_index(self)
        first = _is_fresh(self._sampler_iter)
        index = seen(original_index, self)
        if first:
            self._bitwatt_drawing = [self._sampler_iter, _quiet(self._index_sampler)]
        return index

    @functools.wraps(original_init)
    def watched_init(self: Any, loader: Any) -> None:
        if watch.on:
            seen(functools.partial(original_init, self), loader)
        else:
            original_init(self, loader)

    def seen(call: Callable[[Any], Any], arg: Any) -> Any:
        state = watch.states.here
        learner = state.learner
        if learner is None or learner.step is not None or state.pace.mute or state.pace.next is stepping:
            return call(arg)  # part of an event
        if graph_task() >= 0:
            return call(arg)
        frame = _enter(state)
        try:
            return learner.aside(call, arg)
        finally:
            if frame is not None and state.top is frame:
                state.stack.pop()
                state.top = state.stack[-1]

    def restore() -> None:
        _Iterator._next_index, _Iterator.__init__ = original_index, original_init

    _Iterator._next_index, _Iterator.__init__ = watched_index, watched_init
    return [restore]


def _is_fresh(draws: Any) -> bool:
    """Whether nothing has been drawn yet: a session may begin in mid-epoch."""
    return inspect.isgenerator(draws) and inspect.getgeneratorstate(draws) == inspect.GEN_CREATED


def _quiet(draws: Any) -> int:
    """How many draws after the first one take what that has made."""
    inner, rows = (draws.sampler, draws.batch_size) if type(draws) is BatchSampler else (draws, 1)
    if type(inner) is sampler.RandomSampler and not inner.replacement:
        return max(len(inner.data_source) // rows - 1, 0)
    return max(len(inner) // rows - 1, 0) if type(inner) in _LISTS else 0


def _enter(state: ThreadState) -> Frame | None:
    """A frame of the loader's without a clock, where it has none: the time is booked with what is around it."""
    context = current()
    if context is None or state.top.phase == "preprocess":
        return None
    counts = state.counts_at((context, context.phases, "preprocess", "DataLoader"))
    state.top = frame = Frame("preprocess", "DataLoader", -1, context, counts, None, context.phases)
    state.stack.append(frame)
    return frame
