"""A run's identity: the same program on the same data gives the same fingerprint on every machine and kernel."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from bitwatt.costs.flops import label
from bitwatt.pricing import entries_of, totals
from bitwatt.records import Run


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


def _canonical(run: Run) -> list[tuple[object, ...]]:
    computed: Counter[tuple[str, str, int, int, int]] = Counter()
    for entry in entries_of(run.ledger, run.layers):
        for product, times in entry.work.products if entry.work else ():
            if not product.recomputed:
                short, long = sorted((product.m, product.n))
                key = (entry.row.phase, label(product.a.name, product.b.name), short, long, product.k)
                computed[key] += product.batch * times * entry.row.calls
    return sorted((*key, times) for key, times in computed.items() if times)


def _plain(sums: dict[str, int] | dict[tuple[str, ...], int]) -> dict[str, int]:
    return {str(phase): amount for phase, amount in sums.items()}
