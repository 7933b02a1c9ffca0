"""AQLM: groups of weights are sums of entries of learned codebooks (2401.06118)."""

from __future__ import annotations

from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision.packed import sides, tensor
from bitwatt.precision.registry import Widths, precision, quantised


@precision("aqlm.inference.QuantizedLinear")
def layer(module: Any) -> Widths:
    """Codes of a group over its weights are the width of one; codebooks are learned for each layer, so they count."""
    out, into = sides(module)
    bits = module.num_codebooks * module.nbits_per_codebook / (module.in_group_size * module.out_group_size)
    source = f"{module.num_codebooks} x {module.nbits_per_codebook} bits for {module.in_group_size} weights"
    beside = [tensor(module, name) for name in ("codebooks", "scales")]
    value = Precision(f"int{bits:g}", "int", bits)
    return Widths(quantised(value, out * into, beside=beside, source=source), shapes=((out, into),))
