"""Tables of many fits, read together: numpy takes as long for a small one as for a few.

A fit only holds on to its tables, which must never change. What is read of it may not depend on what is beside it.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

from bitwatt.backends.sklearn.facts import Facts, Later


class Held(ABC):
    """The tables of one fit, each with its size."""

    __slots__ = ("facts", "size", "tables")

    def __init__(self, tables: list[tuple[Any, int]]) -> None:
        self.tables, self.size = tables, sum([size for _, size in tables])
        self.facts: Facts | None = None

    @abstractmethod
    def settle(self) -> Facts:
        """All of its pieces have been read."""

    def pieces(self, room: int) -> Iterator[tuple[list[Any], int]]:
        """Hardly more at once than there is room for, with their size; all of about the same."""
        most = self.size / math.ceil(self.size / room) if self.size else room
        piece, filled = list[Any](), 0
        for table, size in self.tables:
            piece.append(table)
            filled += size
            if filled >= most:
                yield piece, filled
                piece, filled = [], 0
        if piece:
            yield piece, filled


#: Some of the tables of a fit, with it.
Piece = tuple[Any, list[Any]]


class Batches:
    """Fits wait until their tables fill the `room`: few enough for what is computed of them to stay in a processor's
    caches, and for their memory to be used again by the next."""

    def __init__(self, room: int, read: Callable[[list[Piece]], None]) -> None:
        self._room, self._read = room, read
        self._waiting: list[Held] = []
        self._lock = threading.RLock()

    def later(self, held: Held) -> Later:
        with self._lock:
            self._waiting.append(held)
            if sum([one.size for one in self._waiting]) > self._room:
                self._read_all()
        return Later(lambda: self.told(held))

    def told(self, held: Held) -> Facts:
        with self._lock:
            if held.facts is None:
                self._waiting.append(held)
                self._read_all()
            return held.facts or {}

    def _read_all(self) -> None:
        every = dict.fromkeys(self._waiting)
        self._waiting.clear()
        batch, filled = list[Piece](), 0
        for held in every:
            for piece, size in held.pieces(self._room):
                batch.append((held, piece))
                filled += size
                if filled > self._room:
                    self._read(batch)
                    batch, filled = [], 0
        if batch:
            self._read(batch)
        for held in every:
            held.facts, held.tables = held.settle(), []


def joined(tables: list[Any]) -> Any:
    """One table of all rows. numpy's own way compares the columns of each with the others', which takes longest."""
    import numpy as np

    return np.frombuffer(b"".join(tables), tables[0].dtype)
