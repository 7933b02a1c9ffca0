"""What real torch code costs by phase, and the sizes of its products."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from capture import ledger_of

from bitwatt.pricing import entries_of, totals
from bitwatt.records import RECOMPUTED, Op, Work
from bitwatt.registry import RULES, work_of


def flops(function: Callable[[], object], model: str = "flops") -> dict[str, int]:
    """By phase; no op may be missing."""
    return dict(totals(ledger_of(function), model, strict=True).by("phase"))


def macs(function: Callable[[], object]) -> dict[str, int]:
    """Multiply-accumulates by phase; no op may be missing."""
    return flops(function, "macs")


def products(function: Callable[[], object]) -> dict[str, Counter[tuple[Any, ...]]]:
    """Sizes of matrix products by phase: (batch, smaller and larger of m and n, k). Repeated ones are left out."""
    sizes: dict[str, Counter[tuple[Any, ...]]] = {}
    for entry in entries_of(ledger_of(function)):
        assert entry.work is not None, f"{entry.op}: {entry.reason}"
        for product, times in entry.work.products:
            if not product.recomputed:
                key = (product.batch, *sorted((product.m, product.n)), product.k)
                sizes.setdefault(entry.row.phase, Counter())[key] += times * entry.row.calls
    return sizes


def work(name: str, *, out: tuple[Any, ...] = (), **args: Any) -> Work:
    """The work of one op written down by hand, for those that no kernel on this machine computes."""
    rule = RULES.find(name)
    assert rule is not None, name
    return work_of(rule, Op(name, tuple(args.items()), out))


def arithmetic(work: Work) -> int:
    """FLOPs of one work, kinds that are no arithmetic left out, repeated and masked parts in."""
    element_wise = sum(n for kind, _, part, n in work.ops if kind not in NO_FLOP and part != RECOMPUTED)
    return element_wise + 2 * work.macs


NO_FLOP = {"compare", "logic", "cast", "random", "index", "text", "comm"}
