"""Calls of estimators: noted one by one, which must be quick, and entered in a ledger together.

What stands between two calls of the program runs with its own caches cold, and takes up to three times as long there
as in a row of many. So a note is only what had to be read at once; even whether an equal one is known is asked later.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from bitwatt.backends.harvest import Folder
from bitwatt.backends.sklearn import facts, specs
from bitwatt.backends.sklearn.names import library_of
from bitwatt.backends.sklearn.plans import Plan
from bitwatt.context import Context, entered, phase_path
from bitwatt.ledger import Ledger, Row
from bitwatt.records import Layer, Op

#: What was called: the method, parameters and facts of the fitted estimator, arguments and result, what probes saw.
#: Objects go by their identity. Equal calls need not have equal ones: the ledger finds them.
Call = tuple[Plan, facts.Told, facts.Given, tuple[tuple[tuple[Any, ...], int], ...]]
#: Phase, scope, and what was called there.
Note = tuple[str, str, Call]

#: So many calls are noted before they are counted, and of so many different ones the ops are remembered: few enough to
#: be young when they are thrown away.
MANY = 256


def _told(call: Call, arguments: dict[tuple[Plan, facts.Given], facts.Items]) -> Op:
    plan, (parameters, learnt, went), given, probes = call
    named = arguments.get((plan, given))
    if named is None:
        named = arguments[plan, given] = facts.named(plan.function, given.values, given.keywords)
    known = parameters.items + learnt.together(went) + named
    if probes:
        known += (("probes", _sorted([(*what, times) for what, times in probes])),)
    return Op(plan.name, known, (given.out,) if given.out is not None else ())


#: Parameters that may be functions of the program's own, and methods that call them.
_FUNCTIONS = frozenset({"kernel", "metric"})
_CALLING = frozenset({
    "fit", "fit_transform", "predict", "decision_function", "transform", "score_samples", "kneighbors",
    "radius_neighbors",
})  # fmt: skip


def _own_code(call: Call) -> list[Op]:
    """A kernel or distance that the program wrote is arithmetic that only its author can give a rule for."""
    plan, (parameters, *_) = call[:2]
    if not specs.own or plan.method not in _CALLING:
        return []
    own = [(name, told) for name, told in parameters.items if name in _FUNCTIONS and told in specs.own]
    return [Op(f"{library_of(plan.kind)}.{name}.{told[1:-1]}") for name, told in own]


def _sorted(seen: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(seen))
    except TypeError:  # sizes of several kinds in one place
        return tuple(sorted(seen, key=repr))


class Calls:
    """Of one session and one path of the user's phases. Who appends to `waiting` beyond MANY calls `count`."""

    def __init__(self, context: Context, layers: dict[str, Layer], lost: Callable[[str, Exception], None]) -> None:
        self._context, self._layers, self._lost = context, layers, lost
        self._ops: dict[Call, Op] = {}
        self._arguments: dict[tuple[Plan, facts.Given], facts.Items] = {}  # of them, by name
        self._own: dict[Call, list[Op]] = {}  # functions of the program's own that they call
        self._kinds: dict[type, Layer] = {}
        self.waiting: list[Note] = []
        self.paths: dict[str, str] = {}  # of phases that were found and are too short to be measured one by one
        self.seconds: dict[str, float] = defaultdict(float)  # by phase that was found
        self._ledger = Ledger()
        self._lock = threading.Lock()

    def begin(self, phase: str) -> Any:
        """The outermost call of a phase that is not in `paths` begins: for `context.left`, where that wants to know."""
        mark, observer = entered(self._context, phase), self._context.token.observer
        if mark is not None and (mark[0] is not None or observer.nvtx):
            return mark
        self.paths[phase] = self._path(phase)  # the meter does not ask again
        return None

    def _path(self, phase: str) -> str:
        return phase_path(phase, self._context.phases, self._context.phases)

    def add(self, rows: Iterable[Row]) -> None:
        with self._lock:
            for row in rows:
                self._ledger.add(row.phase, row.scope, row.op, row.calls)

    def count(self) -> None:
        with self._lock:
            self._count()

    def ledger(self) -> Ledger:
        """All of them until now."""
        with self._lock:
            self._count()
            return self._ledger

    def _count(self) -> None:
        batch = self.waiting[:]
        del self.waiting[: len(batch)]  # other threads may have noted more by now
        if len(self._ops) >= MANY:
            self._ops, self._arguments, self._own = {}, {}, {}
        ops, paths, layers, add = self._ops, dict[str, str](), self._layers, self._ledger.add
        for (found, scope, call), times in Counter(batch).items():
            op = ops.get(call)
            if op is None:
                plan = call[0]
                try:
                    op = ops[call] = _told(call, self._arguments)  # at once: what it is read from may be let go
                    self._own[call] = _own_code(call)
                except Exception as error:
                    self._lost(f"{plan.kind.__name__}.{plan.method}", error)
                    continue
            if found not in paths:
                paths[found] = self._path(found)
            add(paths[found], scope, op, times)
            for one in self._own[call]:
                add(paths[found], scope, one, times)
            if scope not in layers:
                kind = call[0].kind
                layers[scope] = self._kinds.get(kind) or self._kinds.setdefault(kind, Layer(kind.__name__))

    @property
    def size(self) -> int:
        return len(self._ledger)

    def fold(self, folder: Folder, limit: int) -> int:
        """Put calls of many sizes together; how many rows are left."""
        with self._lock:
            self._ledger = folder.ledger(self._ledger, limit)
            return len(self._ledger)
