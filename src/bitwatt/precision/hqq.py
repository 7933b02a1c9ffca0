"""HQQ: groups of 1 to 8 bits with a scale and a zero point each, both in the dtype it computes in."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.precision.formats import integer
from bitwatt.precision.registry import Widths, precision, quantised


@precision("hqq.core.quantize.HQQLinear")
def hqq_linear(layer: Any) -> Widths | None:
    """`meta` tells all once the layer is quantised. Older versions could quantise scales and zero points again; then
    `scale_q` and `zero_q` stand for them, with a `meta` of their own."""
    meta = layer.meta
    if not meta or layer.W_q is None:  # waits for its weights
        return None
    shape = tuple(map(int, meta["shape"]))
    beside = [*_kept(meta, "scale"), *_kept(meta, "zero")]
    source = f"nbits={meta['nbits']}, group_size={meta['group_size']}, axis={meta['axis']}, packing={meta['packing']}"
    values = integer(meta["nbits"], signed=False)
    value = quantised(values, math.prod(shape), beside=beside, source=source, kept_in=layer.W_q)
    return Widths(value, None, (shape,))


def _kept(meta: Any, name: str) -> list[Any]:
    again, inner = meta.get(f"{name}_q"), meta.get(f"meta_{name}") or {}
    if again is None:
        return [meta.get(name)]
    return [again, *(tensor for tensor in (inner.get("scale"), inner.get("zero")) if hasattr(tensor, "element_size"))]
