"""Intel Neural Compressor: weight-only layers in the layout of GPTQ, of integers or of four-bit floats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.precision.formats import format_named
from bitwatt.precision.packed import grouped, sides
from bitwatt.precision.registry import Widths, precision


@precision("neural_compressor.torch.algorithms.weight_only.modules.INCWeightOnlyLinear")
def layer(module: Any) -> Widths:
    widths = grouped(module, module.bits, sides(module))
    name = str(module.dtype)
    if "int" in name or widths.weights is None:
        return widths
    return replace(widths, weights=replace(widths.weights, precision=format_named(name.partition("_")[0])))
