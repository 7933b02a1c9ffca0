"""bitlinear: BitNet layers whose ranges are chosen freely; weights are floats, rounded in each forward."""

from __future__ import annotations

from typing import Any

from bitwatt.precision.formats import spanning
from bitwatt.precision.registry import Widths, precision, quantised


@precision("bitlinear.bitlinear.BitLinear")
def layer(module: Any) -> Widths | None:
    """Without a measure nothing is rounded, and with λ below 1 only in part: then the floats stand."""
    if module.lambda_ != 1:
        return None
    weight = module._parameters["weight"]
    weights = inputs = None
    if module.weight_measure is not None:
        source = f"weight_range={tuple(module.weight_range)}"
        weights = quantised(spanning(*module.weight_range), weight.numel(), source=source, stored=False)
    if module.activation_measure is not None:
        source = f"activation_range={tuple(module.activation_range)}"
        inputs = quantised(spanning(*module.activation_range), source=source, stored=False)
    return Widths(weights, inputs) if weights or inputs else None
