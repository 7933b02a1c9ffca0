"""A run's identity: the same program on the same data gives the same fingerprint on every machine and kernel."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from bitwatt.costs.flops import label
from bitwatt.pricing import entries_of, totals
from bitwatt.records import RECOMPUTED, Run


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """FLOPs and BOPs by phase, and a digest of the multiply-accumulates that are the same for every kernel."""

    flops: dict[str, int]
    bops: dict[str, int]
    digest: str


def fingerprint(run: Run) -> Fingerprint:
    """The digest covers, for each phase and pair of operand precisions, the multiply-accumulates of all matrix
    products: those on masks and sparse zeros included, those that a kernel repeats left out.

    Sums, not sizes, because sums are what kernels agree on: a fused causal attention enters its visible and its hidden
    pairs apart, with other rows, columns and reduction lengths than the two batched products it stands for; batches
    fold into rows and rows swap with columns. One change of width, depth, dtype, batch or number of steps moves a sum.
    Two changes that cancel (half the batch, twice the steps) do not: that is the same work. Element-wise work is not
    covered: kernels differ in it, and the FLOPs beside the digest hold it.
    """
    flops, bops = totals(run, "flops").by("phase"), totals(run, "bops").by("phase")
    digest = hashlib.sha256(json.dumps(_canonical(run), separators=(",", ":")).encode()).hexdigest()[:16]
    return Fingerprint(_plain(flops), _plain(bops), digest)


def summary(run: Run) -> dict[str, Any]:
    """What a run file's header carries so that listings need no pricing: coverage, totals and digest."""
    flops, bops = totals(run, "flops"), totals(run, "bops")
    coverage = flops.coverage
    return {
        "coverage": {
            "counted": coverage.counted,
            "free": coverage.free,
            "missing": coverage.missing,
            "estimated": coverage.estimated,
        },
        "totals": {"flops": flops.total, "bops": bops.total},
        "fingerprint": fingerprint(run).digest,
    }


def _canonical(run: Run) -> list[tuple[str, str, int]]:
    macs: dict[tuple[str, str], int] = {}
    for entry in entries_of(run.ledger, run.layers):
        for product, times in entry.work.products if entry.work else ():
            if product.part != RECOMPUTED:
                key = (entry.row.phase, label(product.a.name, product.b.name))
                macs[key] = macs.get(key, 0) + product.macs * times * entry.row.calls
    return sorted((*key, amount) for key, amount in macs.items() if amount)


def _plain(sums: dict[str, int] | dict[tuple[str, ...], int]) -> dict[str, int]:
    return {str(phase): amount for phase, amount in sums.items()}
