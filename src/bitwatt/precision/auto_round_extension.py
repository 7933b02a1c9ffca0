"""AutoRound: layers in the layout of GPTQ or AWQ, for each kernel a `QuantLinear`."""

from __future__ import annotations

from typing import Any

from bitwatt.precision.packed import grouped, sides
from bitwatt.precision.registry import Widths, precision


@precision("auto_round_extension.*.QuantLinear*")
def layer(module: Any) -> Widths:
    return grouped(module, module.bits, sides(module))
