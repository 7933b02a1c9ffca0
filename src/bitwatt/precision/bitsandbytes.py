"""bitsandbytes: int8 rows (LLM.int8(), 2208.07339) and 4-bit blocks (QLoRA, 2305.14314)."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.precision.formats import format_named, integer
from bitwatt.precision.registry import Widths, precision, quantised
from bitwatt.records import Quantised

#: A float32 scale for each row.
_SCALE_BITS = 32


@precision("bitsandbytes.nn.modules.Int8Params")
def int8_weight(weight: Any) -> Widths | None:
    """Rows of int8 with a scale each. The scales move to the layer in its first forward: then it is asked instead."""
    if getattr(weight, "SCB", None) is None:
        return None
    value = quantised(integer(8), weight.numel(), beside=[weight.SCB], source="one scale per row")
    return Widths(value, shapes=(_shape(weight),))


@precision("bitsandbytes.nn.modules.Linear8bitLt")
def linear_8bit(layer: Any) -> Widths:
    """The weight, whichever of layer, weight and neither holds its scales yet. What becomes of the activations differs
    between training and evaluation, and its ops tell: they take int8, or multiply the expanded weight."""
    state, weight = layer.state, layer._parameters["weight"]
    rows = weight.shape[0]
    source = f"one scale per row, has_fp16_weights={state.has_fp16_weights}, threshold={state.threshold}"
    value = Quantised(
        integer(8), 8 + _SCALE_BITS * rows / max(weight.numel(), 1), source, stored=not state.has_fp16_weights
    )
    return Widths(value, shapes=(_shape(weight),))


@precision("bitsandbytes.nn.modules.Params4bit")
def weight_4bit(weight: Any) -> Widths | None:
    return _blocks(getattr(weight, "quant_state", None))


@precision("bitsandbytes.nn.modules.Linear4bit", "bitsandbytes.nn.parametrize.Bnb4bitParametrization")
def layer_4bit(layer: Any) -> Widths | None:
    """The layer keeps the same state as its weight, and still has it where sharding has made the weight a plain one."""
    return _blocks(getattr(layer, "quant_state", None))


def _blocks(state: Any) -> Widths | None:
    """Scales of blocks as they are kept now: float32, uint8 with scales of their own, or bfloat16 once repacked for a
    CPU. The table of code values is the same for all layers and not counted."""
    if state is None:  # not on a device yet: still float
        return None
    shape = tuple(map(int, state.shape))
    beside, second = [state.absmax], getattr(state, "state2", None)
    told = [f"quant_type={state.quant_type}", f"blocksize={state.blocksize}"]
    if state.nested and second is not None:
        beside += [second.absmax, state.offset]
        told.append("double quantised")
    if getattr(state, "packing_format_for_cpu", False):
        told.append(f"repacked for the CPU with {str(state.absmax.dtype).removeprefix('torch.')} scales")
    value = quantised(format_named(state.quant_type), math.prod(shape), beside=beside, source=", ".join(told))
    return Widths(value, None, (shape,))


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(map(int, tensor.shape))
