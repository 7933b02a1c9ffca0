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
    """Fold ops one after the other, those with the most sizes first: layers that are alike make the same calls."""
    watch.scopes.settle()
    layers = watch.scopes.layers()
    folders: dict[Token, Folder] = {}
    groups: dict[str, list[tuple[Place, Counts, list[Any]]]] = {}
    for place, counts in [*state.counts.items(), *state.pending.items()]:
        if place[0].token.folder is not None and len(counts) > SIZES:
            for name, calls in _by_name(counts).items():
                groups.setdefault(name, []).append((place, counts, calls))
    for found in sorted(groups.values(), key=lambda one: -sum(len(calls) for *_, calls in one)):
        decoded: dict[Any, Op] = {}
        for place, counts, calls in found:
            if kept <= target:
                return kept
            token = place[0].token
            folder = folders.get(token) or folders.setdefault(token, token.folder(layers))  # type: ignore[misc]
            calls.sort(key=lambda call: 0 if _is_folded(call) else counts[call][0])
            taken = calls[: max(kept - target, SIZES) + 1]  # those made least often
            phase = phase_path(place[2], place[1], place[0].phases)
            made = folder.fold(
                phase, watch.scopes.final(place[3]), ((_op(one, decoded), counts[one][0]) for one in taken)
            )
            before = len(counts)
            state.moves += 1  # who reads meanwhile begins anew
            for one in taken:
                del counts[one]
            for op in made:
                counts.setdefault(op, [0])[0] += 1
            state.moves += 1
            kept -= before - len(counts)
    return kept


def _by_name(counts: Counts) -> dict[str, list[Any]]:
    """Calls that can be folded, where one op has many sizes."""
    groups: dict[str, list[Any]] = {}
    for call in counts:
        if (name := _name(call)) is not None:
            groups.setdefault(name, []).append(call)
    return {name: calls for name, calls in groups.items() if len(calls) > SIZES}


def _is_folded(call: Any) -> bool:
    return isinstance(call, Op) and call.folded is not None


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
        if len(decoded) >= OPS:
            decoded.clear()
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
