"""Calls of estimators: noted one by one, which must be quick, and entered in a ledger together.

What stands between two calls of the program runs with its own caches cold, and takes up to three times as long there
as in a row of many. So a note is only what had to be read at once; even whether an equal one is known is asked later.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bitwatt.backends.harvest import Folder
from bitwatt.backends.sklearn import facts
from bitwatt.backends.sklearn.names import op_name
from bitwatt.context import phase_path
from bitwatt.ledger import Ledger, Row
from bitwatt.records import Layer, Op, TensorSpec

#: What a call is made of, in the order of the arguments of `Call`.
Note = tuple[
    str, str, type, str, Any, facts.Items, facts.Items, list[Any], tuple[str, ...], dict[tuple[Any, ...], int],
    TensorSpec | None,
]  # fmt: skip

#: So many calls are noted before they are counted, and so many different ones are held before they go to the ledger:
#: few enough to be young when they are thrown away.
MANY = 256


class Call:
    """Calls that are equal at first sight, with what had to be read at once; the rest can wait."""

    __slots__ = ("arguments", "calls", "fitted", "function", "keywords", "kind", "method", "op", "out", "parameters",
                 "phase", "probes", "scope")  # fmt: skip

    def __init__(
        self, phase: str, scope: str, kind: type, method: str, function: Any, parameters: facts.Items,
        fitted: facts.Items, arguments: list[Any], keywords: tuple[str, ...],
        probes: Mapping[tuple[Any, ...], int], out: TensorSpec | None,
    ) -> None:  # fmt: skip
        self.phase, self.scope, self.kind, self.method, self.function = phase, scope, kind, method, function
        self.parameters, self.fitted, self.arguments, self.keywords = parameters, fitted, arguments, keywords
        self.probes, self.out = probes, out
        self.op: Op | None = None
        self.calls = 0

    def told(self) -> Op:
        if self.op is None:
            known = self.parameters + facts.settled(self.fitted)
            known += facts.named(self.function, self.arguments, self.keywords)
            if self.probes:
                known += (("probes", _sorted([(*what, times) for what, times in self.probes.items()])),)
            out = (self.out,) if self.out is not None else ()
            self.op = Op(op_name(self.kind, self.method, self.function), known, out)
        return self.op


def _sorted(seen: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(seen))
    except TypeError:  # sizes of several kinds in one place
        return tuple(sorted(seen, key=repr))


class Calls:
    """Of one session and one path of the user's phases. Who appends to `waiting` beyond MANY calls `count`."""

    def __init__(
        self, phases: tuple[str, ...], layers: dict[str, Layer], lost: Callable[[str, Exception], None]
    ) -> None:
        self._phases, self._layers, self._lost = phases, layers, lost
        #: By what tells calls apart, where values go by their identity, which holds as long as their call is here.
        #: Equal calls need not have one key: the ledger finds them.
        self._known: dict[tuple[Any, ...], Call] = {}
        self.waiting: list[Note] = []
        self._counted: list[Call] = []
        self._ledger = Ledger()
        self._lock = threading.Lock()

    def add(self, rows: Iterable[Row]) -> None:
        with self._lock:
            for row in rows:
                self._ledger.add(row.phase, row.scope, row.op, row.calls)

    def count(self) -> None:
        with self._lock:
            self._count()
            if len(self._known) >= MANY:
                self._enter()

    def ledger(self) -> Ledger:
        """All of them until now."""
        with self._lock:
            self._count()
            self._enter()
            return self._ledger

    def _count(self) -> None:
        batch = self.waiting[:]
        del self.waiting[: len(batch)]  # other threads may have noted more by now
        for note in batch:
            try:
                call = self._found(note)
            except Exception as error:
                self._lost(f"{note[2].__name__}.{note[3]}", error)
                continue
            if not call.calls:
                self._counted.append(call)
            call.calls += 1

    def _found(self, note: Note) -> Call:
        phase, scope, kind, method, function, parameters, fitted, values, keywords, probes, out = note
        key = (
            phase, scope, kind, method, id(function), id(parameters), id(fitted), id(out), keywords,
            *map(id, values), *probes.items(),
        )  # fmt: skip
        call = self._known.get(key)
        if call is None:
            call = Call(*note)
            call.told()  # what it is read from may be let go
            self._known[key] = call
            if scope not in self._layers:
                self._layers[scope] = Layer(kind.__name__)
        return call

    def _enter(self) -> None:
        self._known = {}
        for call in self._counted:
            phase = phase_path(call.phase, self._phases, self._phases)
            self._ledger.add(phase, call.scope, call.told(), call.calls)
            call.calls = 0
        self._counted.clear()

    @property
    def size(self) -> int:
        return len(self._ledger)

    def fold(self, folder: Folder, limit: int) -> int:
        """Put calls of many sizes together; how many rows are left."""
        with self._lock:
            self._ledger = folder.ledger(self._ledger, limit)
            return len(self._ledger)
