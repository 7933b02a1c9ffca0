"""Measure one quantised layer and read what bitwatt makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

import bitwatt
from bitwatt.pricing import Entry, entries_of
from bitwatt.records import Layer, Product, Run


@dataclass(frozen=True)
class Seen:
    """A run of one layer: `holder` is the Sequential it sat in, so that the layer has the path "0"."""

    run: Run
    layer: Layer

    @property
    def entries(self) -> list[Entry]:
        return entries_of(self.run.ledger, self.run.layers)

    def products(self, phase: str = "forward") -> list[Product]:
        """Matrix products of a phase, one for each call."""
        return [
            product
            for entry in self.entries
            if entry.row.phase == phase and entry.work
            for product, times in entry.work.products
            for _ in range(times * entry.row.calls)
        ]

    def flops(self, phase: str = "forward", part: str | None = None, kind: str | None = None) -> int:
        """FLOPs of a phase, of one part ("quantisation") or kind ("mac") only if asked."""
        sums: Any = bitwatt.totals(self.run).by("phase", "part", "kind")
        return sum(
            n for (p, q, k), n in sums.items() if p == phase and part in (None, q) and (kind is None or kind == k)
        )


def seen(module: nn.Module, x: Any, *, backward: bool = False, training: bool = True) -> Seen:
    """Forward, and with `backward` the gradient of the sum of what comes out. Nothing may be missing."""
    holder = nn.Sequential(module).train(training)
    if backward:
        x = x.detach().clone().requires_grad_()
    with bitwatt.measure("layer", keep=False) as session:
        if backward:
            out = holder(x)
            (out if isinstance(out, torch.Tensor) else out.value).float().sum().backward()
        else:
            with torch.no_grad():
                holder(x)
    run = session.run
    assert run is not None
    assert bitwatt.totals(run).missing == {}
    return Seen(run, run.layers["0"])
