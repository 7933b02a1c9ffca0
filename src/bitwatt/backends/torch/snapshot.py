"""What was counted so far, read by another thread while the program goes on. Nothing is changed.

Copying a dict's items in one call is atomic under the interpreter's lock, and what is moved from one place to another
meanwhile is read again (`ThreadState.moves`). A step that is under way may be in the copy by half; its phases are named
as if it ended well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from bitwatt.backends.harvest import Harvest
from bitwatt.backends.torch.compact import Gathering
from bitwatt.backends.torch.replay.families import Rows
from bitwatt.backends.torch.replay.lessons import Credit
from bitwatt.backends.torch.state import AFTER, BEFORE, BEFORE_GRAPH, FORWARD, LOSS, Place, ThreadState
from bitwatt.context import Token, phase_path

if TYPE_CHECKING:
    from bitwatt.backends.torch.replay.learner import Learner
    from bitwatt.backends.torch.watch import TorchWatch

_TRAINING = {BEFORE: "other", BEFORE_GRAPH: "forward", AFTER: "loss", LOSS: "loss", FORWARD: "forward"}
#: Times that something is read again, a tenth of a millisecond apart.
_PATIENCE = 100
_EVALUATION = {**_TRAINING, AFTER: "other", FORWARD: "inference"}


def snapshot(watch: TorchWatch, token: Token) -> Harvest:
    ledger, seconds = Gathering(token, watch.scopes), dict[str, float]()
    watch.scopes.settle()  # models may have come since the last look
    for state in list(watch.everyone):
        for phase, scope, call, calls in counted(watch, state, token):
            ledger.add(phase, scope, watch.op(call), calls)
        for phase, span in spent(state, token).items():
            seconds[phase] = seconds.get(phase, 0.0) + span
    return Harvest(
        ledger,
        seconds,
        watch.scopes.layers(),
        tuple(watch.notes),
        watch.collectives.facts(running=True),
        watch.op_contents(),
    )


def counted(watch: TorchWatch, state: ThreadState, token: Token) -> Iterator[tuple[str, str, Any, int]]:
    """Phase, scope, call, and how often."""
    names = _names(state)
    for found in _whole(state, lambda: [*_calls(state, token)]):
        for (context, base, phase, scope), call, calls in _each(*found):
            if context.token is token:
                yield phase_path(names.get(phase, phase), base, context.phases), watch.scopes.final(scope), call, calls


class Owed(NamedTuple):
    """What a lesson was credited that is not written to the counts yet. There may be thousands, one for each size: they
    are worked out one after the other."""

    rows: Callable[[], Rows]
    final: Mapping[Place, Place] | None  # where calls went that had no phase; else those stand in the counts


def _each(place: Place | None, call: Any, times: int) -> Iterator[tuple[Place, Any, int]]:
    if type(call) is Owed:
        for at, keys in call.rows().items():
            if call.final is not None or at[2][0] != "?":
                to = at if call.final is None else call.final.get(at, at)
                yield from ((to, key, n * times) for key, n in keys.items())
    elif place is not None:
        rows = call.rows if type(call) is Credit else {call: 1}
        yield from ((place, key, n * times) for key, n in rows.items())


def spent(state: ThreadState, token: Token) -> dict[str, float]:
    """Seconds by phase."""
    names, seconds = _names(state), dict[str, float]()
    for (context, base, found), span in _whole(state, lambda: [*_spans(state)]):
        if context.token is token:
            phase = phase_path(names.get(found, found), base, context.phases)
            seconds[phase] = seconds.get(phase, 0.0) + span
    return seconds


def _names(state: ThreadState) -> dict[str, str]:
    return _TRAINING if state.ever_differentiated else _EVALUATION


def _whole(state: ThreadState, read: Callable[[], list[Any]]) -> list[Any]:
    """What `read` finds while nothing is being moved."""
    for _ in range(_PATIENCE):
        moves, found = state.moves, read()
        if state.moves == moves and not moves % 2:
            break
        time.sleep(1e-4)
    return found


def _spans(state: ThreadState) -> Iterator[tuple[Any, float]]:
    yield from list(state.seconds.items())
    for lane, more in state.learner.unbooked() if state.learner is not None else ():
        yield from zip(lane.spans(), lane.unwritten(more), strict=True)


def _calls(state: ThreadState, token: Token) -> Iterator[tuple[Place | None, Any, int]]:
    """Every call counted or credited for a session."""
    for place, counts in [*list(state.counts.items()), *list(state.pending.items())]:
        if place[0].token is token:
            yield from ((place, call, cell[0]) for call, cell in list(counts.items()))
    if state.learner is not None:
        yield from _credited(state.learner)


def _credited(learner: Learner) -> Iterator[tuple[None, Owed, int]]:
    laps = [(lesson, n) for lane, n in learner.under_way() for step in lane.steps for lesson in (step.gap, step.event)]
    lessons = [*learner._lessons()]
    for lesson, times in [*laps, *((lesson, lesson.laps) for lesson in lessons)]:
        if times:
            yield None, Owed(lesson.source, dict(lesson.final)), times
    for lesson in lessons:
        if times := lesson.replays - lesson.flushed:
            yield None, Owed(lesson.source, None), times
