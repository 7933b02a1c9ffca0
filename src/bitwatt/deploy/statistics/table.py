"""Calls as columns, and the median of every block: what all statistics begin with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bitwatt.deploy.records import Call


class Key(NamedTuple):
    """One scenario in one setting."""

    scenario: str
    batch: int
    threads: int


@dataclass(frozen=True)
class Cell:
    """The warm calls of a scenario in one setting, and the median wall time of each block, by process: NaN where there
    is none, or it was not warm."""

    wall_ns: Any
    cpu_ns: Any
    medians: Any  # processes x blocks


class Table:
    def __init__(self, calls: Sequence[Call]) -> None:
        known: dict[str, int] = {}
        codes = [known.setdefault(call.scenario, len(known)) for call in calls]
        names = list(known)
        read: list[Callable[[Call], int]] = [
            lambda call: call.batch, lambda call: call.threads, lambda call: call.process, lambda call: call.block,
            lambda call: call.wall_ns, lambda call: call.cpu_ns, lambda call: call.warm,
        ]  # fmt: skip
        columns = [np.array(codes, np.int64)]
        columns += [np.fromiter(map(one, calls), np.int64, len(calls)) for one in read]
        order = np.lexsort(columns[5::-1])  # by scenario, batch, threads, process, block; by wall time inside a block
        scenario, batch, threads, process, block, wall, cpu, warm = (column[order] for column in columns)
        self.cells: dict[Key, Cell] = {}
        for begin, end in _stretches(scenario, batch, threads):
            key = Key(names[scenario[begin]], int(batch[begin]), int(threads[begin]))
            here = slice(begin, end)
            medians = _medians(process[here], block[here], wall[here], warm[here])
            kept = warm[here] > 0
            self.cells[key] = Cell(wall[here][kept], cpu[here][kept], medians)

    @property
    def settings(self) -> list[tuple[int, int]]:
        """(batch, threads), in order."""
        return sorted({(key.batch, key.threads) for key in self.cells}, key=lambda one: (one[1], one[0]))

    def scenarios(self, batch: int, threads: int) -> list[str]:
        return [key.scenario for key in self.cells if key[1:] == (batch, threads)]


def of(calls: Sequence[Call] | Table) -> Table:
    """Made once where several questions are asked."""
    return calls if isinstance(calls, Table) else Table(calls)


def _stretches(*columns: Any) -> list[tuple[int, int]]:
    """Where sorted columns stay the same: (begin, end)."""
    count = len(columns[0])
    if count == 0:
        return []
    changed = np.zeros(count, bool)
    changed[0] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    begins = np.flatnonzero(changed)
    return list(zip(begins.tolist(), [*begins[1:].tolist(), count], strict=True))


def _medians(process: Any, block: Any, wall: Any, warm: Any) -> Any:
    """Sorted by process, block and wall time: the median is in the middle of each stretch."""
    spans = np.array(_stretches(process, block))
    begins, sizes = spans[:, 0], spans[:, 1] - spans[:, 0]
    middle = (wall[begins + (sizes - 1) // 2] + wall[begins + sizes // 2]) / 2
    found = np.full((int(process.max()) + 1, int(block.max()) + 1), np.nan)
    found[process[begins], block[begins]] = np.where(warm[begins] > 0, middle, np.nan)
    return found
