"""NVIDIA ModelOpt: layers with a quantiser each for weights, input and output; weights stay floats until exported."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision.formats import integer, minifloat
from bitwatt.precision.registry import Widths, precision
from bitwatt.records import Quantised


@precision("modelopt.torch.quantization.nn.modules.quant_module.QuantLinearConvBase")
def layer(module: Any) -> Widths | None:
    weight = module._parameters["weight"]
    if weight.element_size() == 1:
        raise ValueError("its weights have been compressed, in a layout that is not described here")
    weights = _quantised(module._modules.get("weight_quantizer"), tuple(weight.shape))
    inputs = _quantised(module._modules.get("input_quantizer"), ())
    return Widths(weights, inputs) if weights or inputs else None


def _quantised(quantiser: Any, shape: tuple[int, ...]) -> Quantised | None:
    """`num_bits` is a number, or exponent and mantissa of a float. A quantiser that is switched off has one too."""
    several = list(quantiser._modules.values()) if _is_sequence(quantiser) else [quantiser]
    quantiser = next((one for one in several if one is not None and not one._disabled), None)
    if quantiser is None:
        return None
    bits = quantiser._num_bits
    value: Precision = integer(bits) if isinstance(bits, int) else minifloat(*bits)
    beside = _scale_bits(quantiser, shape) if shape else 0
    source = f"num_bits={bits}, block_sizes={quantiser._block_sizes}, axis={quantiser._axis}"
    source += f", the first of {len(several)}" if len(several) > 1 else ""
    return Quantised(value, value.bits + beside / max(math.prod(shape), 1), source, stored=False)


def _is_sequence(quantiser: Any) -> bool:
    """Quantisers one after the other (W4A8): the first makes what is stored, the next what is multiplied."""
    return quantiser is not None and "_disabled" not in vars(quantiser) and "0" in quantiser._modules


def _scale_bits(quantiser: Any, shape: tuple[int, ...]) -> int:
    """A scale for each block, of the width that is asked for, else one in float32 for each channel or for all."""
    blocks = quantiser._block_sizes
    if not blocks or not isinstance(blocks.get(-1), int):
        return 32 * (shape[0] if quantiser._axis in (0, (0,)) else 1)
    count = math.prod(shape[:-1]) * math.ceil(shape[-1] / int(blocks[-1]))
    width = blocks.get("scale_bits")
    if isinstance(width, tuple):  # exponents of microscaling formats have no sign
        return count * (8 if width == (8, 0) else 1 + sum(width))
    return count * int(width or 32)
