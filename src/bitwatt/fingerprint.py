"""A run's identity: the same program on the same data gives the same fingerprint on every machine and kernel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from bitwatt.config import Settings
from bitwatt.costs.flops import label
from bitwatt.folded import MARKS
from bitwatt.grid import without_asking
from bitwatt.impact.carbon import carbon
from bitwatt.impact.energy import used
from bitwatt.impact.money import ACCELERATORS, cost
from bitwatt.pricing import Entry, entries_of, totals
from bitwatt.records import Run, Work


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """FLOPs and BOPs by phase, and a digest of the multiply-accumulates that are the same for every kernel."""

    flops: dict[str, int]
    bops: dict[str, int]
    digest: str


def fingerprint(run: Run) -> Fingerprint:
    """The digest covers, for each phase and pair of operand precisions, every size of matrix product and how often it
    is computed: products on masks and sparse zeros included, those that a kernel repeats left out.

    Rows and columns are interchangeable (a kernel may compute the transpose) and a batch is that many products (a
    fused attention batches what others loop over). Element-wise work is not covered: kernels differ in it, and the
    FLOPs beside the digest hold it.

    Every product has a mark, a number made of its sizes and precisions, and the digest is made of their sums by phase:
    so calls that were folded into one row have left their part of it.
    """
    flops, bops = totals(run, "flops").by("phase"), totals(run, "bops").by("phase")
    return Fingerprint(_plain(flops), _plain(bops), _digest(run))


def _digest(run: Run) -> str:
    return hashlib.sha256(json.dumps(_canonical(run), separators=(",", ":")).encode()).hexdigest()[:16]


#: Phases whose FLOPs stand in a header.
_PHASES = 40


def summary(run: Run, settings: Settings | None = None) -> dict[str, Any]:
    """What a run file's header carries so that listings need no pricing. Carbon and money by `settings`, as far as no
    service need be asked: what one said when the run ended is in the run."""
    flops, bops = totals(run, "flops"), totals(run, "bops")
    coverage = flops.coverage
    phases = sorted(_plain(flops.by("phase")).items(), key=lambda one: -one[1])[:_PHASES]
    return {
        "coverage": {
            "counted": coverage.counted,
            "free": coverage.free,
            "missing": coverage.missing,
            "estimated": coverage.estimated,
        },
        "totals": {  # where nothing was watched nothing is known, which is not 0
            "flops": flops.total,
            "bops": bops.total,
            "macs": totals(run, "macs").total,
            "bytes": totals(run, "bytes").total,
        }
        if len(run.ledger)
        else {},
        "fingerprint": _digest(run),
        "by_phase": dict(phases),
        "parameters": sum(layer.parameters for layer in run.layers.values()),
        **_used(run, settings),
    }


def _used(run: Run, settings: Settings | None) -> dict[str, Any]:
    """Energy, memory, carbon and money: what is known of them."""
    found: dict[str, Any] = {}
    if run.observed is not None and run.observed.device_peak is not None:
        found["device_memory_bytes"] = run.observed.device_peak
    if run.meter is None:
        return found
    if (peak := run.meter.usage.get("memory_bytes_peak")) is not None:
        found["memory_bytes"] = peak
    known = settings or Settings()
    energy = used(run.meter, modelled=known.show_modelled)
    if energy.energy_j is not None:
        found |= {"energy_j": energy.energy_j, "energy_how": energy.label}
    began = datetime.fromisoformat(run.started)
    grid = without_asking(known, began, began + timedelta(seconds=run.meter.seconds), run.meter.grid)
    devices = sum(part.device.kind in ACCELERATORS for part in run.meter.energy)
    found["grams"] = carbon(run.meter, known, grid, began, devices=max(devices, 1)).total_g
    price = cost(run.meter, known)
    found |= {"cost": price.total, "currency": price.currency if price.total is not None else None}
    return {name: value for name, value in found.items() if value is not None}


def _canonical(run: Run) -> list[tuple[str, str]]:
    marks: dict[str, int] = {}
    for entry in entries_of(run.ledger, run.layers):
        marks[entry.row.phase] = (marks.get(entry.row.phase, 0) + _mark(entry)) % MARKS
    return sorted((phase, f"{sum:x}") for phase, sum in marks.items() if sum)


def _mark(entry: Entry) -> int:
    folded = entry.op.folded
    return (mark_of(entry.work) if folded is None else folded.mark) * entry.row.calls


def mark_of(work: Work | None) -> int:
    """Marks of the products of one call, added up."""
    return sum(
        _mark_of_one(label(product.a.name, product.b.name), *sorted((product.m, product.n)), product.k)
        * product.batch
        * times
        for product, times in (work.products if work else ())
        if not product.recomputed
    ) % MARKS  # fmt: skip


@lru_cache(4096)
def _mark_of_one(precisions: str, short: int, long: int, k: int) -> int:
    name = f"{precisions} {short} {long} {k}"
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest())


def _plain(sums: dict[str, int] | dict[tuple[str, ...], int]) -> dict[str, int]:
    return {str(phase): amount for phase, amount in sums.items()}
