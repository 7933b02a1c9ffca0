"""Which operand of a matrix product is the layer's weight, and what the operands carry where the layer is quantised."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from bitwatt.dtypes import Precision
from bitwatt.records import ARITHMETIC, OTHER_KINDS, QUANTISATION, Layer, Op, Product, TensorSpec, Work

_BACKWARD, _RECOMPUTE = "backward", "recompute"


def weight_side(product: Product, layer: Layer, phase: str) -> str:
    """Which operand is one of the layer's weights, a or b; "out" where their gradient is computed, else nothing.

    A weight's shape names it: in a forward, and in the gradient of the input, it is a factor; in its own gradient it is
    the result. Where the sizes of a batch make both possible in backward, the factor is not claimed.
    """
    p, backward = product, is_backward(phase)
    for shape in layer.shapes:
        rows = shape[0] // max(p.batch, 1) if len(shape) > 2 else shape[0]
        sides = tuple(sorted((rows, math.prod(shape[1:]))))
        factors = [tuple(sorted((p.m, p.k))) == sides, tuple(sorted((p.k, p.n))) == sides]
        result = tuple(sorted((p.m, p.n))) == sides
        if backward and result and (layer.trains or not any(factors)):
            return "out"
        if factors[1]:
            return "b"
        if factors[0]:
            return "a"
    return ""


def is_backward(phase: str) -> bool:
    steps = phase.split("/")
    return _BACKWARD in steps and _RECOMPUTE not in steps


def effective(work: Work, op: Op, layer: Layer, phase: str, *, family: str = "", inside: bool = False) -> Work:
    """The work of a call in a quantised or pruned layer: its operands by what they carry, and what only serves to go to
    and from the format marked as such. `inside`: the call was made by a part of the layer, such as a fake quantiser."""
    products = tuple((_carried(product, layer, phase), n) for product, n in work.products)
    told = layer.weights is not None and not layer.weights.assumed
    quantises = family not in _OWN_WORK and (inside or _only_quantises(op, layer))
    if not told or work.products or not quantises:
        return replace(work, products=products)
    known = ARITHMETIC | OTHER_KINDS
    ops = tuple((kind, of, part or (QUANTISATION if kind in known else part), n) for kind, of, part, n in work.ops)
    return replace(work, ops=ops)


def _carried(product: Product, layer: Layer, phase: str) -> Product:
    side = weight_side(product, layer, phase)
    if side not in ("a", "b"):
        return product
    weight, other = (product.a, product.b) if side == "a" else (product.b, product.a)
    if layer.weights is not None:
        weight = layer.weights.precision
    if layer.activations is not None and not is_backward(phase):
        other = _narrower(other, layer.activations.precision)
    a, b = (weight, other) if side == "a" else (other, weight)
    zeros = product.sparse
    if layer.density < 1:
        zeros = max(zeros, round(product.batch * product.m * product.n * product.k * (1 - layer.density)))
    ran = product.executed if (a, b) != (product.a, product.b) else product.ran
    return replace(product, a=a, b=b, sparse=zeros, ran=ran)


def _narrower(one: Precision, other: Precision) -> Precision:
    return other if other.bits < one.bits else one


#: Families of ops that a layer does for its own sake, fused or looked up, whatever its weights are written in.
_OWN_WORK = frozenset(["activation", "attention", "dropout", "loss", "norm", "pooling", "rnn", "softmax"])
_SUMS = frozenset(["add", "sum", "add_relu"])


def _only_quantises(op: Op, layer: Layer) -> bool:
    """In a quantised layer all that is neither product, bias nor look-up goes to or from a format; in backward, all
    that does not add up gradients."""
    if layer.kind.startswith("GraphModule"):  # a whole program, whose ops say themselves which of them quantise
        return False
    name = op.name.rpartition(".")[2].rstrip("_")
    if op.out and op.out[0].precision.kind == "int" and name in _SUMS:
        return True  # sums of codes, which correct a product for its zero points
    outputs = {shape[0] for shape in layer.shapes} | {math.prod(shape[1:]) for shape in layer.shapes}
    bias = any(len(spec.shape) <= 1 and spec.numel in outputs for spec in op.inputs)
    only_bias = bool(op.out) and len(op.out[0].shape) == 1 and op.out[0].numel in outputs
    gathers = name.startswith("embedding") or (name == "sum" and bool(op.out) and op.out[0].numel in outputs)
    accumulates = name == "add" and len({spec.shape for spec in op.inputs}) == 1 and len(list(op.inputs)) == 2
    return not (name in _SUMS and bias) and not only_bias and not gathers and not accumulates


def effective_bytes(work: Work, op: Op, layer: Layer, phase: str) -> int | None:
    """Bytes of the call if weights and inputs moved in the format they are kept in: a product reads them so, and what
    only goes to and from the format would not pass memory at all. None where it is what moved anyway."""
    if work.bytes_read is None or work.bytes_written is None or layer.weights is None:
        return None
    if work.ops and not work.products and all(part == QUANTISATION for _, _, part, _ in work.ops):
        return 0
    if not any(weight_side(product, layer, phase) in ("a", "b") for product, _ in work.products):
        return None
    moved = work.bytes_read + work.bytes_written
    bits = layer.weights.effective_bits
    left = Counter(math.prod(shape) for shape in layer.shapes)
    saved = 0
    for spec in reversed(list(op.inputs)):  # weights stand behind the values that go in
        if left[spec.numel] and len(spec.shape) > 1 and spec.nbytes * 8 > spec.numel * bits:
            left[spec.numel] -= 1
            saved += spec.nbytes - math.ceil(spec.numel * bits / 8)
        else:
            saved += spec.nbytes - _packed(spec, layer)
    return moved - saved if saved else None


def _packed(spec: TensorSpec, layer: Layer) -> int:
    """Bytes of an input whose values are narrower than the byte that torch keeps each of them in."""
    told = layer.activations
    if told is None or spec.precision.bits != told.bits:
        return spec.nbytes
    return min(spec.nbytes, math.ceil(spec.numel * told.effective_bits / 8))
