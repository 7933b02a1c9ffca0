"""The ledger of a run in other formats: operands cast, work of the old formats left out, work of the new ones added."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from bitwatt.dtypes import DTYPES
from bitwatt.ledger import Ledger, Row
from bitwatt.precision.operands import is_backward, weight_side
from bitwatt.pricing import entries_of
from bitwatt.records import QUANTISATION, Layer, Op, Product, Run, TensorSpec, Work
from bitwatt.registry import RULES, work_of
from bitwatt.whatif.layers import Rewriting, outputs_first, per_value

_MODEL = frozenset({"forward", "inference", "backward", "recompute"})
#: Products that call what they add to the result `self`.
_ADDED_TO = ("aten.addmm", "aten.addmv", "aten.addbmm", "aten.baddbmm", "aten._addmm_activation")
_LOOK_UPS = ("aten.embedding", "aten.embedding_bag", "aten._embedding_bag")


def changed_ledger(run: Run, rewritings: Mapping[str, Rewriting]) -> Ledger:
    """Only what the model does is written anew: losses, optimizers and the making of data stay, and so do calls whose
    sizes were folded."""
    owners: dict[str, Rewriting | None] = {}
    ledger = Ledger()
    for entry in entries_of(run.ledger, run.layers):
        row = entry.row
        if row.scope not in owners:
            owners[row.scope] = owner(row.scope, rewritings, run.layers)
        found = owners[row.scope]
        if found is None or not is_of_model(row.phase) or row.op.folded is not None:
            ledger.add(row.phase, row.scope, row.op, row.calls)
            continue
        for op in _rewritten(row, entry.work, found):
            ledger.add(row.phase, row.scope, op, row.calls)
    return ledger


def is_of_model(phase: str) -> bool:
    return not _MODEL.isdisjoint(phase.split("/"))


def owner(scope: str, rewritings: Mapping[str, Rewriting], layers: Mapping[str, Layer]) -> Rewriting | None:
    """The layer that a scope is, or is a part of: with weights the nearest that has them, else the scope's own."""
    place = scope
    while place:
        if place in layers and layers[place].shapes:
            return rewritings.get(place, rewritings.get(scope))
        place = place.rpartition(".")[0]
    return rewritings.get(scope)


def _rewritten(row: Row, work: Work | None, to: Rewriting) -> Iterator[Op]:
    op = row.op if to.dtype is None else cast(row.op, to.dtype, lambda spec: spec.dtype == to.own)
    if _is_in_vain(op, row):
        return
    before = None if to.recorded is None else to.recorded.weights or to.recorded.activations
    if work is None or not to.layer.shapes:
        yield op
        return
    if before is not None and work.ops and not work.products and all(part == QUANTISATION for *_, part, _ in work.ops):
        return  # only went to or from the format that the layer had
    uses = [
        (product, side)
        for product, _ in work.products
        if (side := weight_side(product, to.layer, row.phase)) in ("a", "b")
    ]
    backward = is_backward(row.phase)
    dtype = to.layer.weight_dtype or "float32"
    if before is not None and before.assumed:  # by an earlier what_if, which changed nothing but the dtypes
        op = _widened(op, dtype)
    elif before is not None and uses and not backward and not _is_plain(row.op):
        yield from (_plain_product(row.op, product, to.multiplier or dtype, dtype) for product, _ in work.products)
        yield from _added(op, uses, to, backward)
        return
    if op.name in _LOOK_UPS and to.weights is not None:
        yield cast(op, to.weights.container, is_float)
    elif to.multiplier and uses and not backward and multiplies(op):
        yield cast(op, to.multiplier, lambda spec: is_float(spec) and len(spec.shape) > 1, results=False)
    else:
        yield op
    yield from _added(op, uses, to, backward)


def _added(op: Op, uses: list[tuple[Product, str]], to: Rewriting, backward: bool) -> Iterator[Op]:
    dtype = _result_dtype(op, to.layer.weight_dtype or "float32")
    if to.weights is not None and op.name in _LOOK_UPS:
        yield _dequantise(op.out[0].shape, to, dtype)
    for product, side in uses:
        if backward:
            if to.weights is not None:
                yield _dequantise(_weight_shape(product, side, to), to, dtype)
            continue
        if to.activations is not None:
            x = TensorSpec(input_shape(op, product, side), dtype)
            yield _quantise(x, to)
            if to.multiplier is None and not to.activations.is_cast:
                yield _expand(x, to)
        if to.multiplier is not None:
            shape = (product.batch, product.m, product.n)
            args = (("groups", _groups(product, to)), ("scale", dtype))
            yield Op("bitwatt.rescale", args, (TensorSpec(shape, dtype),))
        elif to.weights is not None:
            yield _dequantise(_weight_shape(product, side, to), to, dtype)


def _dequantise(shape: tuple[int, ...], to: Rewriting, dtype: str) -> Op:
    assert to.weights is not None
    assert to.layer.weights is not None
    weights = to.weights
    args = (
        ("values", TensorSpec(shape, weights.container)),
        ("format", weights.name),
        ("bits", to.layer.weights.effective_bits),
        ("scales", weights.scales(outputs_first(shape, to.transposed))),
        ("zero_point", weights.zero_point),
        ("code", weights.is_code),
    )
    return Op("bitwatt.dequantise", args, (TensorSpec(shape, dtype),))


def _quantise(x: TensorSpec, to: Rewriting) -> Op:
    assert to.activations is not None
    inputs = to.activations
    args = (
        ("values", x),
        ("format", inputs.name),
        ("bits", per_value(inputs)),
        ("scaled", not inputs.is_cast),
        ("blocks", isinstance(inputs.group, int)),
        ("zero_point", inputs.zero_point),
    )
    return Op("bitwatt.quantise", args, (TensorSpec(x.shape, inputs.container),))


def _expand(x: TensorSpec, to: Rewriting) -> Op:
    assert to.activations is not None
    inputs = to.activations
    values = ("values", TensorSpec(x.shape, inputs.container))
    args = (values, ("format", inputs.name), ("bits", per_value(inputs)), ("scales", 1))
    return Op("bitwatt.dequantise", (*args, ("zero_point", inputs.zero_point), ("code", inputs.is_code)), (x,))


def _plain_product(op: Op, product: Product, dtype: str, result: str) -> Op:
    """The same product without what the recorded format fused with it."""
    lead = (product.batch,) if product.batch > 1 else ()
    a, b = (TensorSpec((*lead, *sides), dtype) for sides in ((product.m, product.k), (product.k, product.n)))
    bias = _bias(op)
    with_bias = () if bias is None else (("bias", TensorSpec(bias.shape, result)),)
    out = TensorSpec((*lead, product.m, product.n), result)
    return Op("bitwatt.product", (("a", a), ("b", b), *with_bias), (out,))


def _bias(op: Op) -> TensorSpec | None:
    """What the product is added to: an argument of its own, or packed with the weight as (weight, bias, ...)."""
    args = dict(op.args)
    named = args.get("self" if op.name in _ADDED_TO else "bias")
    if isinstance(named, TensorSpec):
        return named
    for value in args.values():
        if isinstance(value, tuple) and len(value) > 1 and all(isinstance(part, TensorSpec) for part in value[:2]):
            weight, bias = value[:2]
            if len(weight.shape) > 1 and len(bias.shape) == 1:
                return TensorSpec(bias.shape, bias.dtype)
    return None


def _widened(op: Op, dtype: str) -> Op:
    """The call as it was before an earlier what_if gave it narrow operands."""
    if op.name in _LOOK_UPS:
        return cast(op, dtype, lambda spec: not is_float(spec) and spec.dtype not in ("int64", "int32"))
    if not multiplies(op):
        return op
    return cast(op, dtype, lambda spec: not is_float(spec) and len(spec.shape) > 1, results=False)


def _is_in_vain(op: Op, row: Row) -> bool:
    """Whether a change of dtype now goes to the dtype it comes from: then torch makes no call. One that names a device
    may go to another; in backward every one names it."""
    if op.name != "aten._to_copy" or ("device" in dict(op.args) and not is_backward(row.phase)):
        return False
    before, after = ([spec.dtype for spec in (*call.inputs, *call.out)] for call in (row.op, op))
    return len(set(before)) > 1 and len(set(after)) == 1


def cast(op: Op, dtype: str, which: Callable[[TensorSpec], bool], *, results: bool = True) -> Op:
    """The same call on tensors of another dtype, where `which` says so."""

    def changed(value: Any) -> Any:
        if isinstance(value, TensorSpec):
            return replace(value, dtype=dtype) if which(value) else value
        return tuple(map(changed, value)) if isinstance(value, tuple) else value

    args = tuple((name, changed(value)) for name, value in op.args)
    return replace(op, args=args, out=changed(op.out) if results else op.out)


def multiplies(op: Op) -> bool:
    """A matrix product or convolution and nothing more: what is fused with others keeps its operands."""
    rule = RULES.find(op.name)
    return rule is not None and rule.family in ("matmul", "conv") and len(work_of(rule, op).products) == 1


def _weight_shape(product: Product, side: str, to: Rewriting) -> tuple[int, ...]:
    sides = sorted((product.m, product.k) if side == "a" else (product.k, product.n))
    for shape in to.layer.shapes:
        rows = shape[0] // max(product.batch, 1) if len(shape) > 2 else shape[0]
        if sorted((rows, math.prod(shape[1:]))) == sides:
            return shape
    return tuple(sides)


def input_shape(op: Op, product: Product, side: str) -> tuple[int, ...]:
    """Of a convolution the tensor it slides over, each value once; else the other factor."""
    rule = RULES.find(op.name)
    if rule is not None and rule.family == "conv":
        return next(spec.shape for spec in op.inputs if len(spec.shape) > 1)
    return (product.batch, *((product.m, product.k) if side == "b" else (product.k, product.n)))


def _groups(product: Product, to: Rewriting) -> int:
    sizes = [part.group for part in (to.weights, to.activations) if part is not None and isinstance(part.group, int)]
    return max((math.ceil(product.k / size) for size in sizes), default=1)


def _result_dtype(op: Op, otherwise: str) -> str:
    return next((spec.dtype for spec in op.out if is_float(spec)), otherwise)


def _is_plain(op: Op) -> bool:
    return all(is_float(spec) for spec in op.inputs)


def is_float(spec: TensorSpec) -> bool:
    known = DTYPES.get(spec.dtype)
    return known is not None and known.precision.kind == "float" and known.precision.bits >= 16
