"""The numbers of two runs side by side."""

from __future__ import annotations

import math
from collections.abc import Set
from dataclasses import dataclass

from bitwatt.precision.operands import is_backward, weight_side
from bitwatt.pricing import cost_models, entries_of, totals
from bitwatt.records import Run
from bitwatt.units import format_bytes, format_count
from bitwatt.whatif.choice import is_optimizer
from bitwatt.whatif.rows import input_shape

_FIRST = ("flops", "macs", "bops", "bops:executed", "bops:product", "bops:paper")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of both runs, under the name of its cost model or of what it is."""

    name: str
    unit: str
    before: float
    after: float

    @property
    def ratio(self) -> float | None:
        return self.after / self.before if self.before else None

    def cells(self) -> list[str]:
        ratio = "—" if self.ratio is None else f"{self.ratio:.3f}"
        return [self.name, _shown(self.before, self.unit), _shown(self.after, self.unit), ratio]


def compared(before: Run, after: Run, scopes: Set[str]) -> tuple[Figure, ...]:
    """FLOPs, MACs, bit-operations under every model, what weights and inputs take, bytes moved, and intensity. Inputs
    are those of the forward products of the changed layers, each time they are read."""
    known = cost_models()
    bops = sorted(name for name in known if name.startswith("bops") and name not in _FIRST)
    figures = [_priced(name, before, after) for name in (*_FIRST, *bops)]
    figures.append(Figure("weights", "B", *(_weight_bytes(run) for run in (before, after))))
    figures.append(Figure("activations", "B", *(_input_bytes(run, scopes) for run in (before, after))))
    moved = [_priced(name, before, after) for name in ("bytes", "bytes:effective")]
    flops = figures[0]
    for figure, name in zip(moved, ("intensity", "intensity:effective"), strict=True):
        pairs = ((flops.before, figure.before), (flops.after, figure.after))
        figures += [figure, Figure(name, "FLOP/B", *(n / m if m else 0.0 for n, m in pairs))]
    return tuple(figures)


def _weight_bytes(run: Run) -> int:
    return sum(layer.weight_bytes for layer in run.layers.values() if not is_optimizer(layer))


def _priced(name: str, before: Run, after: Run) -> Figure:
    one, other = totals(before, name), totals(after, name)
    return Figure(name, one.model.unit, one.total, other.total)


def _input_bytes(run: Run, scopes: Set[str]) -> int:
    taken = 0.0
    for entry in entries_of(run.ledger, run.layers):
        layer = entry.layer
        if entry.row.scope not in scopes or layer is None or entry.work is None or is_backward(entry.row.phase):
            continue
        if entry.op.folded is not None:  # its sizes are not known, and what_if leaves it as it is
            continue
        for product, _ in entry.work.products:
            side = weight_side(product, layer, entry.row.phase)
            if side not in ("a", "b"):
                continue
            values = product.a if side == "b" else product.b
            bits = layer.activations.effective_bits if layer.activations is not None else values.bits
            taken += entry.row.calls * math.prod(input_shape(entry.op, product, side)) * bits / 8
    return math.ceil(taken)


def _shown(value: float, unit: str) -> str:
    if unit == "B":
        return format_bytes(value)
    return f"{value:.3g} {unit}" if isinstance(value, float) else format_count(value, unit)
