"""What was counted so far, read by another thread while the program goes on. Nothing is changed.

Copying a dict's items in one call is atomic under the interpreter's lock, and what is moved from one place to another
meanwhile is read again (`ThreadState.moves`). A step that is under way may be in the copy by half; its phases are named
as if it ended well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from bitwatt.backends.harvest import Harvest
from bitwatt.backends.torch.compact import Gathering
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
    for (context, base, found, scope), call, calls in _whole(state, lambda: [*_calls(state, token)]):
        yield phase_path(names.get(found, found), base, context.phases), watch.scopes.final(scope), call, calls


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


def _calls(state: ThreadState, token: Token) -> Iterator[tuple[Place, Any, int]]:
    """Every call counted or credited for a session."""
    for place, counts in [*list(state.counts.items()), *list(state.pending.items())]:
        if place[0].token is not token:
            continue
        for call, cell in list(counts.items()):
            if type(call) is Credit:
                for key, n in list(call.rows.items()):
                    yield place, key, n * cell[0]
            else:
                yield place, call, cell[0]
    if state.learner is not None:
        yield from _credited(state.learner, token)


def _credited(learner: Learner, token: Token) -> Iterator[tuple[Place, Any, int]]:
    """What was replayed and not written to the counts yet."""
    laps = [(lesson, n, lesson.final) for lane, n in learner.under_way()
            for step in lane.steps for lesson in (step.gap, step.event)]  # fmt: skip
    lessons = [*learner._lessons()]
    laps += [(lesson, lesson.laps, lesson.final) for lesson in lessons]
    replays = [(lesson, lesson.replays - lesson.flushed, None) for lesson in lessons]
    for lesson, times, final in [*laps, *replays]:
        for place, keys in list(lesson.rows.items()) if times else ():
            at = place if final is None else final.get(place, place)
            if at[0].token is token and (final is not None or place[2][0] != "?"):  # else it stands in the counts
                for key, n in list(keys.items()):
                    yield at, key, n * times
