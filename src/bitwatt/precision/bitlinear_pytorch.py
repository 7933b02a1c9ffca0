"""bitlinear-pytorch: BitNet b1.58 (2402.17764) by class, no attribute tells more."""

from __future__ import annotations

from typing import Any

from bitwatt.precision.formats import integer
from bitwatt.precision.registry import Widths, precision, quantised


@precision("bitlinear_pytorch.bitlinear.BitLinear")
def layer(module: Any) -> Widths:
    weight = module._parameters["weight"]
    weights = quantised("ternary", weight.numel(), source="BitNet b1.58", stored=False)
    return Widths(weights, quantised(integer(8), source="int8 per token, dynamic", stored=False))
