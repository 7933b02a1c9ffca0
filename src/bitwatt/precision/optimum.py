"""optimum-quanto: rows of 8 bits, groups of 2 and 4 bits, and activations with one scale that calibration finds."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.precision.formats import format_named
from bitwatt.precision.registry import Widths, precision, quantised
from bitwatt.records import Quantised

#: Scales and shifts, in whichever layout a kernel wants them.
_BESIDE = ("_scale", "_shift", "_scale_shift", "_zeropoint")
#: Below a byte, a shift goes with each scale.
_BYTE = 8


@precision("optimum.quanto.tensor.qtensor.QTensor", "quanto.*.QTensor")
def weight(tensor: Any) -> Widths:
    """A frozen weight, packed however its kernel reads it. Values of less than a byte come in groups of their own."""
    told, group = tensor._qtype, getattr(tensor, "_group_size", None)
    source = f"qtype={told.name}, group_size={group or 'row'}"
    beside = [getattr(tensor, name, None) for name in _BESIDE]
    value = quantised(_format(told), tensor.numel(), beside=beside, source=source)
    return Widths(value, None, (tuple(map(int, tensor.shape)),))


@precision("optimum.quanto.tensor.activations.qbytes.ActivationQBytesTensor", "quanto.*.ActivationQBytesTensor")
def activation(tensor: Any) -> Widths:
    """What a layer that rounds its output hands to the next."""
    told = tensor._qtype
    value = quantised(_format(told), tensor.numel(), beside=[tensor._scale], source=f"qtype={told.name}, one scale")
    return Widths(activations=value)


@precision("optimum.quanto.nn.qmodule.QModuleMixin", "quanto.nn.qmodule.QModuleMixin")
def module(layer: Any) -> Widths | None:
    """Weights rounded in each forward until they are frozen, and inputs where the layer rounds them: convolutions and
    norms do not, they take what the layer before them gave."""
    kept = layer._parameters.get("weight")
    weights = None
    if layer.weight_qtype is not None and kept is not None:
        weights = _rounded(layer, kept)
    inputs = None
    if layer.activation_qtype is not None and "input" in getattr(layer, "_quantize_hooks", {"input": None}):
        told = layer.activation_qtype
        inputs = quantised(_format(told), source=f"activation_qtype={told.name}, one scale", stored=False)
    if weights is None and inputs is None:
        return None
    return Widths(weights, inputs, (tuple(map(int, kept.shape)),) if kept is not None else ())


def _rounded(layer: Any, kept: Any) -> Quantised:
    """A scale, and below 8 bits a shift, for each group or row, in the dtype of the float weight."""
    told, shape = layer.weight_qtype, kept.shape
    group = layer.weight_group_size or math.prod(shape[1:])
    each = kept.element_size() * 8 * (1 if told.bits == _BYTE else 2)
    source = f"weight_qtype={told.name}, group_size={layer.weight_group_size or 'row'}, not frozen"
    return Quantised(_format(told), told.bits + each / max(group, 1), source, stored=False)


def _format(told: Any) -> Precision:
    return format_named(told.name.removeprefix("q"))
