"""The conventions of "Precision-Aware Workload Analytics for AI Systems", its gaps filled and stated."""

from __future__ import annotations

import math
from collections.abc import Iterable

from bitwatt.costs import paper_estimators
from bitwatt.dtypes import Precision, dtype
from bitwatt.pricing import Charge, Entry, cost_model
from bitwatt.records import ARITHMETIC, RECOMPUTED, TensorSpec

_SOURCE = "Precision-Aware Workload Analytics for AI Systems, section 3"


def _flops(entry: Entry) -> int:
    work, op = entry.work, entry.op
    if paper_estimators.is_estimator(op):
        return paper_estimators.flops(op) or 0
    assert work is not None
    assert entry.rule is not None
    family = entry.rule.family
    arguments = dict(op.args)
    weight = arguments.get("weight")
    if family == "conv" and isinstance(weight, TensorSpec) and op.out and "grad_output" not in arguments:
        return 2 * op.out[0].numel * weight.numel // max(weight.shape[0], 1)
    if family in ("matmul", "conv", "rnn"):
        return 2 * work.macs
    if family == "attention":
        scores = sum(n for kind, _, part, n in work.ops if kind == "exp" and part != RECOMPUTED)
        return 2 * work.macs + 3 * scores
    sizes = [spec.numel for spec in (*op.inputs, *op.out)]
    if family == "softmax":
        return 3 * max(sizes, default=0)
    if family == "optimizer":
        return sum(n for kind, _, _, n in work.ops if kind in ARITHMETIC)
    computes = any(kind in ARITHMETIC or kind == "compare" for kind, *_ in work.ops) or bool(work.products)
    return max(sizes, default=0) if computes else 0


def _width(entry: Entry) -> Precision:
    """What the layer's weights carry; those of a layer in a wider dtype are cast to that of the op (autocast)."""
    if paper_estimators.is_estimator(entry.op):
        return paper_estimators.width(entry.op)
    own = _own_width(entry)
    layer = entry.layer
    if layer is None or layer.weight_dtype is None:
        return own
    if layer.weights is not None:  # what an optimizer remembers is no weight: it computes in its own width
        return layer.weights.precision if layer.shapes else own
    kept = dtype(layer.weight_dtype).precision
    return own if own.kind == kept.kind and own.bits < kept.bits else kept


def _own_width(entry: Entry) -> Precision:
    """The wider factor of a product, else the widest tensor."""
    if entry.work is not None and entry.work.products:  # not its scales, nor what it accumulates in
        factors = [factor for product, _ in entry.work.products for factor in (product.a, product.b)]
        return max(factors, key=lambda precision: precision.bits)
    found = [spec.precision for spec in (*entry.op.inputs, *entry.op.out)]
    floats = [precision for precision in found if precision.kind in ("float", "complex")]
    return max(floats or found or [dtype("float32").precision], key=lambda precision: precision.bits)


def _lacks(entry: Entry) -> bool:
    return paper_estimators.is_estimator(entry.op) and paper_estimators.flops(entry.op) is None


@cost_model("flops:paper", unit="FLOP", source=_SOURCE, lacks=_lacks)
def FLOPS_PAPER(entry: Entry) -> Iterable[Charge]:
    """Matrix products 2·M·N·K; convolution 2·N_out·W/W_0 (also where it is transposed, though that is not what runs);
    attention 4·B·H·Lq·Lk·D + 3·B·H·Lq·Lk, so softmax 3 per element; element-wise max(N_in, N_out). Left open there and
    chosen here: normalisation, reductions, pooling and losses are element-wise; recurrent layers and the backward of
    convolutions are their matrix products; fused optimizers are the arithmetic of the steps they replace; copies,
    casts, look-ups and random numbers are 0. Estimators: least squares 2·N·F² + 2/3·F³; iterative linear models
    T·N·F·max(C, 1), C being classes beyond two; trees·N·F·log2 N; neighbours 2·N_train·F·N; k-means T·N·F·K; others
    are missing."""
    yield Charge("paper", _width(entry).name, _flops(entry))


@cost_model("bops:paper", unit="BOP", source=_SOURCE, lacks=_lacks)
def BOPS_PAPER(entry: Entry) -> Iterable[Charge]:
    """flops:paper times the width of the layer's weights, of the op's own tensors where the layer has none; of an
    estimator that of the input array, 64 bits where it has none."""
    width = _width(entry)
    yield Charge("paper", width.name, math.ceil(_flops(entry) * width.bits))
