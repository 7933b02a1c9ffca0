"""The ledger: how often each distinct op was called, by phase and scope. It holds no prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from bitwatt.folded import Folded
from bitwatt.records import Op


@dataclass(frozen=True, slots=True)
class Row:
    """`calls` equal calls of one op in one place. A folded op tells its calls itself, and stands in its row once."""

    phase: str
    scope: str
    op: Op
    calls: int


class Ledger:
    """Rows with equal (phase, scope, op) are one row, and so are the folded ones of one op in one place. Ledgers add
    and scale."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._calls: dict[tuple[str, str, Op], int] = {}
        #: By phase, scope, name, and whether no rule covers it.
        self._folded: dict[tuple[str, str, str, bool], Folded] = {}
        for row in rows:
            self.add(row.phase, row.scope, row.op, row.calls)

    def add(self, phase: str, scope: str, op: Op, calls: int = 1) -> None:
        if op.folded is not None:
            self._add_folded((phase, scope, op.name, bool(op.folded.reason)), op.folded * calls)
            return
        key = (phase, scope, op)
        rows = len(self._calls)
        known = self._calls.setdefault(key, calls)  # hashing an op takes long: once is enough for a new one
        if len(self._calls) == rows:
            self._calls[key] = known + calls

    def _add_folded(self, place: tuple[str, str, str, bool], folded: Folded) -> None:
        known = self._folded.get(place)
        self._folded[place] = folded if known is None else known + folded

    def clear(self) -> None:
        self._calls.clear()
        self._folded.clear()

    def __iter__(self) -> Iterator[Row]:
        for key, calls in self._calls.items():
            yield Row(*key, calls)
        for (phase, scope, name, _), folded in self._folded.items():
            yield Row(phase, scope, Op(name, folded=folded), 1)

    def __len__(self) -> int:
        return len(self._calls) + len(self._folded)

    @property
    def has_folded(self) -> bool:
        return bool(self._folded)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and (self._calls, self._folded) == (other._calls, other._folded)

    __hash__ = object.__hash__  # by identity: it can be a cache key, never a dict key by content

    def __add__(self, other: Ledger) -> Ledger:
        total = Ledger()
        total._calls = (self if self._calls else other)._calls.copy()  # hashing ops takes long: a copy hashes none
        if self._calls:
            for key, times in other._calls.items():
                total._calls[key] = total._calls.get(key, 0) + times
        total._folded = self._folded.copy()
        for place, folded in other._folded.items():
            total._add_folded(place, folded)
        return total

    def __mul__(self, times: int) -> Ledger:
        return Ledger(replace(row, calls=row.calls * times) for row in self)

    __rmul__ = __mul__

    def within(self, phase: str) -> Ledger:
        """The same rows as a part of `phase`."""
        return Ledger(replace(row, phase=f"{phase}/{row.phase}" if row.phase else phase) for row in self)

    def folded(self, limit: int) -> Ledger:
        """At most about `limit` rows: scopes give up their deepest level until the rows fit. No call is lost."""
        ledger = self
        while len(ledger) > limit:
            depth = max(row.scope.count(".") for row in ledger)
            if not depth:
                break
            ledger = Ledger(replace(row, scope=_cut(row.scope, depth)) for row in ledger)
        return ledger


def _cut(scope: str, depth: int) -> str:
    return scope if scope.count(".") < depth else scope.rpartition(".")[0]
