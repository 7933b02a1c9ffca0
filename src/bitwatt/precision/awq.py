"""AutoAWQ: a `WQLinear_…` for each kernel, with the width in `w_bit` (AWQ, 2306.00978)."""

from __future__ import annotations

from typing import Any

from bitwatt.precision.packed import grouped, sides
from bitwatt.precision.registry import Widths, precision


@precision("awq.modules.linear.*.WQLinear_*")
def layer(module: Any) -> Widths:
    return grouped(module, module.w_bit, sides(module))
