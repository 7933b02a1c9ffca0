"""GPTQModel: GPTQ, AWQ, QQQ and float8 layers, all `BaseQuantLinear`s with `bits`; kernels differ, buffers hardly."""

from __future__ import annotations

from typing import Any

from bitwatt.precision.formats import format_named, integer
from bitwatt.precision.packed import grouped, sides, tensor
from bitwatt.precision.registry import Widths, precision, quantised

_HERE = "gptqmodel.nn_modules.qlinear"


@precision(f"{_HERE}.GPTQQuantLinear", f"{_HERE}.AWQuantLinear")
def grouped_layer(module: Any) -> Widths:
    return grouped(module, module.bits, sides(module))


@precision(f"{_HERE}.qqq.QQQLinear")
def qqq(module: Any) -> Widths:
    """Four-bit weights whose products run in int8 (QQQ, 2406.09904)."""
    inputs = quantised(integer(8), source="W4A8", stored=False)
    return grouped(module, module.bits, sides(module), weight="B", beside=("s_channel", "s_group"), activations=inputs)


@precision(f"{_HERE}.fp8.TorchFP8Linear")
def fp8(module: Any) -> Widths:
    weight = tensor(module, "weight")
    value = format_named(str(weight.dtype))
    beside = [tensor(module, "weight_scale_inv")]
    return Widths(quantised(value, weight.numel(), beside=beside, source=value.name), shapes=(sides(module),))
