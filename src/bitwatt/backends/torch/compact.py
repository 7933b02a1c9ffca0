"""Counts that stay small: calls of too many sizes are folded as they come, and what dead threads counted is joined.

How calls are folded is the session's business: its token brings a folder, since a backend knows no rule.
"""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

from bitwatt.backends.torch.encode import decode, name_of
from bitwatt.context import Token, phase_path
from bitwatt.ledger import Ledger
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.harvest import Folder
    from bitwatt.backends.torch.scopes import Scopes
    from bitwatt.backends.torch.state import Counts, Place, ThreadState
    from bitwatt.backends.torch.watch import TorchWatch

#: Distinct calls that a thread keeps, about a kilobyte each.
LIMIT = 50_000
#: Whether there are more is asked each time so many new ones were written down; then room is made for as many.
STEP = 2_000
#: Rows in the ledger of a session that closes, and decoded calls: several kilobytes each.
ROWS = 20_000
OPS = 4_000
#: An op that was called with so many sizes in one place, or fewer, keeps them.
SIZES = 8
#: States of threads that are kept apart, and how many of the dead: another thread may still run their backward.
THREADS, DEAD = 64, 8

_lock = threading.Lock()


class Gathering(Ledger):
    """The ledger of a session that closes, folded as it grows."""

    def __init__(self, token: Token, scopes: Scopes) -> None:
        super().__init__()
        self._token, self._scopes, self._room = token, scopes, ROWS

    def add(self, phase: str, scope: str, op: Op, calls: int = 1) -> None:
        super().add(phase, scope, op, calls)
        if len(self) > self._room and self._token.folder is not None:
            folder: Folder = self._token.folder(self._scopes.layers())
            rows, self._room = folder.ledger(self), sys.maxsize
            self.clear()
            for row in rows:
                super().add(row.phase, row.scope, row.op, row.calls)
            self._room = max(ROWS, 2 * len(self))


def relieve(watch: TorchWatch, state: ThreadState) -> None:
    """Fold calls of this thread, at the places with the most, until there is room again. It takes a part of a second:
    pricing so many calls is the cost of forgetting them."""
    state.fresh = 0
    kept = _kept(state)
    if kept <= LIMIT:
        return
    try:
        left = _fold(watch, state, kept, LIMIT - STEP)
    except Exception as error:  # the user's program comes first: the calls are kept as they are
        watch.failed("the folding of sizes", error)
        left = kept
    if left > LIMIT:  # as many places as that: look again when there are half as many more
        state.fresh = -left // 2


def _kept(state: ThreadState) -> int:
    return sum(map(len, state.counts.values())) + sum(map(len, state.pending.values()))


def _fold(watch: TorchWatch, state: ThreadState, kept: int, target: int) -> int:
    watch.scopes.settle()
    layers = watch.scopes.layers()
    folders: dict[Token, Folder] = {}
    decoded: dict[Any, Op] = {}  # layers that are alike make the same calls
    places = [(place, counts) for store in (state.counts, state.pending) for place, counts in store.items()]
    for place, counts in sorted(places, key=lambda item: -len(item[1])):
        if kept <= target or len(counts) <= SIZES:
            break
        token = place[0].token
        if token.folder is not None:
            folder = folders.setdefault(token, token.folder(layers))
            before = len(counts)
            _fold_place(folder, place, watch.scopes.final(place[3]), counts, kept - target, decoded)
            kept -= before - len(counts)
    return kept


def _fold_place(folder: Folder, place: Place, scope: str, counts: Counts, excess: int, decoded: dict[Any, Op]) -> None:
    """Fold about `excess` calls, ops with the most sizes first, and of those the calls made least often."""
    context, base, found, _ = place
    phase = phase_path(found, base, context.phases)
    groups: dict[str, list[Any]] = {}
    for call in counts:
        if (name := _name(call)) is not None:
            groups.setdefault(name, []).append(call)
    for calls in sorted(groups.values(), key=len, reverse=True):
        if len(calls) <= SIZES or excess <= 0:
            break
        calls.sort(key=lambda call: 0 if isinstance(call, Op) and call.folded is not None else counts[call][0])
        taken = [(call, counts.pop(call)[0]) for call in calls[: max(excess, SIZES) + 1]]
        excess -= len(taken) - 1
        try:
            made = [(op, 1) for op in folder.fold(phase, scope, ((_op(call, decoded), n) for call, n in taken))]
        except BaseException:
            made = taken
            raise
        finally:
            for call, n in made:
                counts.setdefault(call, [0])[0] += n


def _name(call: Any) -> str | None:
    """The op behind a call that can be folded. A view has one key whatever its sizes."""
    if isinstance(call, Op):
        return call.name
    return name_of(call[0].func) if type(call) is tuple else None


def _op(call: Any, decoded: dict[Any, Op]) -> Op:
    if isinstance(call, Op):
        return call
    op = decoded.get(call)
    if op is None:
        plan, *rest = call
        op = decoded[call] = decode(plan.func, *rest)
    return op


def retire(watch: TorchWatch) -> None:
    """Join what threads that have ended counted: a program may start one for every request."""
    if len(watch.everyone) <= THREADS or not _lock.acquire(blocking=False):
        return
    try:
        running, everyone = sys._current_frames(), list(watch.everyone)
        latest = {state.thread: state for state in everyone}  # threads get the numbers of those that have ended
        dead = [state for state in everyone if state.thread not in running or latest[state.thread] is not state]
        heirs = [state for state in dead if state.learner is not None] or dead
        for state in dead[:-DEAD]:
            if state is not heirs[0]:
                _join(heirs[0], state)
                watch.everyone.remove(state)
        if dead:
            relieve(watch, heirs[0])
    finally:
        _lock.release()


def _join(into: ThreadState, state: ThreadState) -> None:
    if state.learner is not None and into.learner is not None:
        for token in list(state.learner.tallies):
            tally = state.learner.closes(token)  # and with it, what is credited goes to the counts
            tally += into.learner.tallies.get(token) or type(tally)()
            into.learner.tallies[token] = tally
    for token in {place[0].token for place in state.pending}:
        state.settle(closing=token)
    for store in (state.counts, state.pending):
        for place, counts in store.items():
            known = into.counts_at(place)
            for call, cell in counts.items():
                known.setdefault(call, [0])[0] += cell[0]
    for span, seconds in state.seconds.items():
        into.seconds[span] = into.seconds.get(span, 0.0) + seconds
