"""AutoGPTQ: a `QuantLinear` for each kernel, with the same buffers."""

from __future__ import annotations

from typing import Any

from bitwatt.precision.packed import grouped, sides, tensor
from bitwatt.precision.registry import Widths, precision


@precision("auto_gptq.nn_modules.qlinear.*.QuantLinear")
def layer(module: Any) -> Widths:
    """Marlin's has four bits always, says so nowhere, and calls its buffers B and s."""
    if tensor(module, "B") is not None:
        return grouped(module, 4, sides(module), weight="B", beside=("s",))
    return grouped(module, module.bits, sides(module))
