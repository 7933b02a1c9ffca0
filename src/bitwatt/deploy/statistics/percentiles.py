"""What one scenario took in one setting: percentiles, throughput, CPU time per wall time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bitwatt.deploy.records import CONTROL, Call
from bitwatt.deploy.statistics import table
from bitwatt.deploy.statistics.table import Key, Table

BEYOND = {"p90_ms": 0.90, "p95_ms": 0.95, "p99_ms": 0.99}


@dataclass(frozen=True)
class Times:
    """Of one batch, in ms of wall time, over all warm calls. A percentile that lies beyond all calls but the slowest is
    None: nobody knows it."""

    batch: int
    calls: int
    blocks: int
    processes: int
    p50_ms: float
    p90_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float
    mean_ms: float
    cpu_ms: float  # the median of CPU time, over all threads
    cpu_per_wall: float  # the median over calls: what neighbours took away from some of them does not count
    got: float  # CPU time over wall time of all calls together: neighbours count

    @property
    def ms_per_sample(self) -> float:
        return self.p50_ms / self.batch

    @property
    def throughput(self) -> float:
        """Samples per second, one call after the other at the median."""
        return 1000.0 * self.batch / self.p50_ms

    def per_sample(self, name: str) -> float | None:
        """`p95_ms`, say, of one sample."""
        value: float | None = getattr(self, name)
        return None if value is None else value / self.batch


def cells(calls: Sequence[Call] | Table, *, control: bool = False) -> dict[Key, Times]:
    """By scenario, batch size and threads; the control only where asked for."""
    return {
        key: _times(key, cell)
        for key, cell in table.of(calls).cells.items()
        if len(cell.wall_ns) and (control or not key.scenario.endswith(CONTROL))
    }


def _times(key: Key, cell: table.Cell) -> Times:
    wall = cell.wall_ns / 1e6
    known = {name: _quantile(wall, share) for name, share in BEYOND.items()}
    finite = np.isfinite(cell.medians)
    return Times(
        batch=key.batch, calls=len(wall), blocks=int(finite.sum()), processes=int(finite.any(axis=1).sum()),
        p50_ms=float(np.median(wall)), max_ms=float(wall.max()), mean_ms=float(wall.mean()),
        cpu_ms=float(np.median(cell.cpu_ns)) / 1e6,
        cpu_per_wall=float(np.median(cell.cpu_ns / cell.wall_ns)),
        got=float(cell.cpu_ns.sum() / cell.wall_ns.sum()), **known,
    )  # fmt: skip


def _quantile(wall: Any, share: float) -> float | None:
    return float(np.quantile(wall, share)) if round(len(wall) * (1 - share), 6) >= 1 else None
