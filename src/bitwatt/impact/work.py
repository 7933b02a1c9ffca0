"""Which operations of a run ran in which number format: what peaks are held against."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from bitwatt.pricing import Entry
from bitwatt.records import ARITHMETIC, RECOMPUTED

MATRIX, VECTOR = "matrix", "vector"


@dataclass(frozen=True, slots=True)
class Executed:
    """FLOPs of one phase in one format, on the matrix units or beside them."""

    phase: str
    unit: str
    format: str
    flops: int


def executed(entries: Iterable[Entry], *, tf32: Collection[str] = (), recomputed: bool = False) -> list[Executed]:
    """FLOPs by phase, unit and executed precision. `tf32` names families of ops (matmul, conv, ...) whose float32
    products ran on TF32 tensor cores: the ledger cannot tell. What a kernel computes twice counts once, as "model"
    FLOPs mean, unless `recomputed`."""
    sums: dict[tuple[str, str, str], int] = {}

    def add(phase: str, unit: str, format: str, flops: int) -> None:
        sums[phase, unit, format] = sums.get((phase, unit, format), 0) + flops

    for entry in entries:
        if entry.work is None or entry.rule is None:
            continue
        phase, calls = entry.row.phase, entry.row.calls
        for product, times in entry.work.products:
            if recomputed or not product.recomputed:
                name = product.executed.name
                if name == "float32" and entry.rule.family in tf32:
                    name = "tf32"
                add(phase, MATRIX, name, 2 * product.macs * times * calls)
        for kind, precision, part, n in entry.work.ops:
            if kind in ARITHMETIC and (recomputed or part != RECOMPUTED):
                add(phase, VECTOR, precision.name, n * calls)
    return [Executed(*key, flops) for key, flops in sums.items() if flops]
