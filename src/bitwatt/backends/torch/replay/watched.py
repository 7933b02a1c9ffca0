"""Laps whose events are known while the code between them is still watched: the first steps of every program.

Calls in that code are written down and compared with those known, in their order. They are booked with the lap, or,
where they turn out to be others, one by one after the lane has been left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.torch.replay.memory import BACKWARD, CALL, STEP
from bitwatt.backends.torch.replay.pace import over
from bitwatt.backends.torch.replay.rows import Rows

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.families import Log
    from bitwatt.backends.torch.replay.lanes import Lane
    from bitwatt.backends.torch.replay.lessons import Step

#: Calls in a gap that are kept in their order. Longer ones are watched the long way.
_SHORT = 64
#: Of events in such laps. A loader's time and calls are told by a frame, and lanes have none.
_KINDS = frozenset({CALL, BACKWARD, STEP})


def short(log: Log) -> Log | None:
    return log if len(log) <= _SHORT else None


class Watched(Rows):
    """What a thread does in such a lane that it does not do in others."""

    def _can_watch(self, lane: Lane) -> bool:
        state = self.state
        mode = state.mode or state.resting
        return (
            mode is not None
            and mode.watch.contents is None  # several ranks: there the values of arguments are looked at
            and not state.capturing
            and all(
                step.gap.log is not None
                and step.after is not None
                and not (step.gap.compiled or step.event.compiled)
                and step.key[2][0] in _KINDS
                for step in lane.steps
            )
        )

    def _watch_lane(self) -> None:
        """From here on, where a lap begins, the code between events is seen."""
        state, self.watched, self._seen = self.state, True, 0
        self._before = (state.forward_done, state.forward_seen, state.ever_differentiated)

    def _hold(self) -> None:
        """Code follows that is expected to be known."""
        self._switch(self.state, True)
        if self.state.mode is not None:
            self.state.mode.hold()

    def _as_known(self, step: Step) -> bool:
        """Whether the code that led to an event did what it did before."""
        gap, mode = step.gap, self.state.mode
        if mode is None or mode.held is None or mode.log is None or gap.log is None or len(mode.log) != len(gap.log):
            return False
        for (counts, key), (place, known) in zip(mode.log, gap.log, strict=True):
            if key != known or counts.place != place:
                return False
        mode.log, mode.held = None, None
        gap.streak += 1
        gap.heed(self._vouches)
        step.node.alike += 1
        if step.node.parent is not None:
            step.node.parent.calm = gap.trusted
        return True

    def aside(self, call: Callable[[Any], Any], arg: Any) -> Any:
        """Call something that is always counted, and no part of the code between events. If that comes to an event of
        its own, it is taken the long way."""
        state, pace = self.state, self.pace
        resting, expected, began = state.resting is not None, pace.next, self._time
        if resting:
            self._switch(state, True)
        mode = state.mode
        if mode is None:
            return call(arg)
        log, held, mode.log, mode.held = mode.log, mode.held, None, None
        if expected is not None:
            pace.next = over
        try:
            return call(arg)
        finally:
            if self._time == began:  # no event came
                mode.log, mode.held = log, held
                if pace.next is over:
                    pace.next = expected
                if resting:
                    self._switch(state, False)

    def _leaves(self, step: Step) -> None:
        """How an event leaves the thread's state: by it the phases of what follows are told."""
        state = self.state
        if step.after is not None:
            state.forward_done, state.forward_seen, state.ever_differentiated = step.after

    def _look_away(self) -> None:
        """The lane is left: the thread's state is again that of the beginning of the lap."""
        state, self.watched = self.state, False
        state.forward_done, state.forward_seen, state.ever_differentiated = self._before
