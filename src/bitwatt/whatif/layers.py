"""What a layer becomes in other formats: which format its arithmetic runs in, and what its weights then take."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bitwatt.dtypes import DTYPES
from bitwatt.precision.formats import stored_bits
from bitwatt.records import Layer, Quantised
from bitwatt.whatif.choice import Formats
from bitwatt.whatif.schemes import Scheme


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One layer written anew.

    `dtype` is the float that everything in the layer is cast to, if any. `weights` and `activations` are the formats
    that differ from what it runs in. `multiplier` is the narrow dtype that both operands of its forward products are
    given in; without one they are expanded first. `own` is the dtype that it was recorded in, and `transposed` the
    groups of a transposed convolution, whose weight has its inputs first.
    """

    layer: Layer
    dtype: str | None = None
    weights: Scheme | None = None
    activations: Scheme | None = None
    multiplier: str | None = None
    recorded: Layer | None = None
    own: str = "float32"
    transposed: int = 0


def rewritten(layer: Layer, formats: Formats, own: str = "float32", transposed: int = 0) -> Rewriting:
    """`own` is the float that the layer computes in, which the container of a packed weight does not tell."""
    weights = formats.weights or _recorded(layer)
    casts = [part for part in (formats.weights, formats.activations) if part is not None and part.is_cast]
    dtype = None
    if formats.weights is not None and casts:
        dtype = max(casts, key=lambda part: part.precision.bits).precision.name
    runs_in = dtype or own
    bits = int(DTYPES[runs_in].precision.bits)
    if not layer.shapes:
        cast = replace(layer, weight_dtype=layer.weight_dtype and runs_in)
        return Rewriting(_sized(cast, layer, own, None), dtype, own=own)
    kept = weights if weights is not None and weights.precision.name != runs_in else None
    inputs = formats.activations
    if inputs is not None and inputs.is_cast and inputs.precision.bits >= bits:
        inputs = None
    changed = replace(
        layer,
        weight_dtype=runs_in,
        weights=None if kept is None else _weights(kept, layer, bits, transposed),
        activations=None if inputs is None else _activations(inputs),
        unknown="",
    )
    if formats.weights is not None:
        changed = _sized(changed, layer, own, kept, transposed)
    elif changed.weights is not None and layer.weights is not None:
        changed = replace(changed, weights=replace(layer.weights, assumed=True))
    return Rewriting(changed, dtype, kept, inputs, _multiplier(kept, inputs), layer, own, transposed)


def own_shapes(layer: Layer) -> tuple[tuple[int, ...], ...]:
    """Its weights without those of parts that it uses without calling them, which come last and own their bytes."""
    shapes = list(layer.shapes)
    while shapes and sum(map(math.prod, shapes)) > layer.parameters:
        shapes.pop()
    return tuple(shapes)


def outputs_first(shape: tuple[int, ...], transposed: int) -> tuple[int, ...]:
    """The shape of a weight with its outputs first, as it is but in transposed convolutions of so many groups."""
    if not transposed or len(shape) < 3:
        return shape
    return (shape[1] * transposed, shape[0] // transposed, *shape[2:])


def per_value(inputs: Scheme) -> float:
    """Bits of one input with its share of the scales; a scale for the whole tensor is nothing beside its values."""
    share = (inputs.scale_bits or 32) / inputs.group if isinstance(inputs.group, int) else 0
    return stored_bits(inputs.precision) + share


def _weights(kept: Scheme, layer: Layer, own_bits: int, transposed: int) -> Quantised:
    bits = kept.effective_bits([outputs_first(shape, transposed) for shape in layer.shapes], own_bits)
    return Quantised(kept.precision, bits, f"what if: {kept.name}", assumed=True)


def _activations(inputs: Scheme) -> Quantised:
    return Quantised(inputs.precision, per_value(inputs), f"what if: {inputs.name}", stored=False, assumed=True)


def _multiplier(weights: Scheme | None, inputs: Scheme | None) -> str | None:
    """The wider of two formats of one kind that hardware multiplies; places in a table of codes it cannot."""
    if weights is None or inputs is None or any(part.is_cast or part.is_code for part in (weights, inputs)):
        return None
    if weights.precision.kind != inputs.precision.kind:
        return None
    return max((weights, inputs), key=lambda part: part.precision.bits).container


def _sized(changed: Layer, layer: Layer, own: str, kept: Scheme | None, transposed: int = 0) -> Layer:
    """With the bytes its parameters take: matrices in the new format; all else as it was, or cast with the layer."""
    runs_in = changed.weight_dtype or own
    shapes = own_shapes(layer)
    values = sum(map(math.prod, shapes))
    if kept is not None:
        first = [outputs_first(shape, transposed) for shape in shapes]
        bits = kept.effective_bits(first, int(DTYPES[runs_in].precision.bits))
    else:
        bits = float(DTYPES[runs_in].itemsize) * 8
    others = layer.parameters - values
    if runs_in != own:
        rest = others * float(DTYPES[runs_in].itemsize)
    else:
        before = layer.weights if layer.weights is not None and layer.weights.stored else None
        matrices = math.ceil(values * (before.memory_bits if before else float(DTYPES[own].itemsize) * 8) / 8)
        # more than the others can take belongs to the container of the matrices
        rest = min(max(layer.weight_bytes - matrices, 0), others * max(float(DTYPES[own].itemsize), 4.0))
    return replace(changed, weight_bytes=math.ceil(values * bits / 8) + math.ceil(rest))


def _recorded(layer: Layer) -> Scheme | None:
    told = layer.weights
    return None if told is None else Scheme(told.precision.name, told.precision, told=told.effective_bits)
