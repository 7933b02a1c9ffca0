"""Calls of estimators: noted one by one, which must be quick, and entered in a ledger together."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bitwatt.backends.harvest import Folder
from bitwatt.backends.sklearn import facts
from bitwatt.backends.sklearn.names import op_name
from bitwatt.context import phase_path
from bitwatt.ledger import Ledger, Row
from bitwatt.records import Op, TensorSpec

#: So many calls are noted before they are counted: few enough to be young when they are thrown away.
MANY = 256


class Call(NamedTuple):
    """One call, with what had to be read at once; the rest can wait."""

    phase: str
    scope: str
    kind: type
    method: str
    function: Any
    parameters: facts.Items
    fitted: facts.Items
    arguments: tuple[Any, ...]
    probes: Mapping[tuple[Any, ...], int]
    out: TensorSpec | None

    def op(self) -> Op:
        known = self.parameters + facts.settled(self.fitted) + facts.named(self.function, self.arguments)
        if self.probes:
            known += (("probes", _sorted([(*what, times) for what, times in self.probes.items()])),)
        out = (self.out,) if self.out is not None else ()
        return Op(op_name(self.kind, self.method, self.function), known, out)


#: A Call before it has its names.
Noted = tuple[Any, ...]


def _key(call: Noted) -> tuple[Any, ...]:
    """Calls of one key are equal. Equal calls need not have one key: the ledger finds them."""
    phase, scope, kind, method, function, parameters, fitted, values, probes, out = call
    counted = tuple(probes.items()) if probes else ()
    told = tuple([id(value) if type(value) is TensorSpec else value for value in values])
    return phase, scope, kind, method, id(function), id(parameters), id(fitted), id(out), told, counted


def _sorted(seen: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    try:
        return tuple(sorted(seen))
    except TypeError:  # sizes of several kinds in one place
        return tuple(sorted(seen, key=repr))


class Calls:
    """Of one session and one path of the user's phases. Who appends to `waiting` beyond MANY calls `ledger`."""

    def __init__(self, phases: tuple[str, ...]) -> None:
        self._phases = phases
        self.waiting: list[Noted] = []
        self._ledger = Ledger()
        self._lock = threading.Lock()

    def add(self, rows: Iterable[Row]) -> None:
        with self._lock:
            for row in rows:
                self._ledger.add(row.phase, row.scope, row.op, row.calls)

    def ledger(self) -> Ledger:
        """All of them until now."""
        with self._lock:
            batch = self.waiting[:]
            del self.waiting[: len(batch)]  # other threads may have noted more by now
            alike: dict[tuple[Any, ...], list[Noted]] = {}
            for noted in batch:
                alike.setdefault(_key(noted), []).append(noted)
            for found in alike.values():
                call = Call(*found[0])
                self._ledger.add(phase_path(call.phase, self._phases, self._phases), call.scope, call.op(), len(found))
            return self._ledger

    @property
    def size(self) -> int:
        return len(self._ledger)

    def fold(self, folder: Folder, limit: int) -> int:
        """Put calls of many sizes together; how many rows are left."""
        with self._lock:
            self._ledger = folder.ledger(self._ledger, limit)
            return len(self._ledger)
