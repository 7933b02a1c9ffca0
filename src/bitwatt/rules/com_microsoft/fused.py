"""Activations, norms and look-ups that ONNX Runtime fuses, and moves between its layouts."""

from functools import partial
from typing import Any

from bitwatt.formulas import norm as formulas
from bitwatt.formulas.linalg import bias_add
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.reduction import distances
from bitwatt.formulas.softmax import softmax
from bitwatt.records import QUANTISATION, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules import _tables
from bitwatt.rules._onnx import activated, biased
from bitwatt.rules._products import Specs
from bitwatt.rules.aten.reduction import over
from bitwatt.rules.onnx import index, norm, quantising, signals

SPACE = "com_microsoft"
each = partial(_tables.each, space=SPACE)
activation = partial(_tables.each, space=SPACE, family="activation")

for _name, _function, _family in (
    ("LayerNormalization", norm.layer_norm, "norm"),
    ("SimplifiedLayerNormalization", norm.rms_norm, "norm"),
    ("QuantizeLinear", quantising.quantize, "cast"),
    ("DequantizeLinear", quantising.dequantize, "cast"),
    ("GatherND", index.gather, "index"),
    ("TorchEmbedding", index.gather, "index"),
    ("Tokenizer", signals.text, "text"),
):
    rule(f"{SPACE}.{_name}", family=_family)(_function)

activation("Gelu", "x·½·(1 + erf(x/√2))", mul=3, add=1, erf=1)
activation("BiasGelu", "GELU of x + b", mul=3, add=2, erf=1)
activation("BiasSplitGelu", "a·GELU(b), a and b the halves of x + bias", mul=4, add=3, erf=1)
activation("QuickGelu ScaledSiLU", "x·σ(α·x)", mul=2, sigmoid=1)
each("BiasAdd", "x + b + y", add=2)
each("GatedAdd", "x + g·y", add=1, mul=1)
each("ComplexMul ComplexMulConj", "the product of complex numbers, two elements each", mul=2, add=1)
over("IsAllFinite", "a test of each number", of="in", space=SPACE, compare=1)
each("MurmurHash3", "bits mixed", of="in", logic=8, mul=4)
each("NGramRepeatBlock", "what would repeat is forbidden", compare=1)
_tables.moved("Pad", "Every element copied into a filled border.", space=SPACE)
_tables.moved("Trilu", "Every element copied, or zeroed beyond the diagonal.", space=SPACE)
_tables.written("Range", "start + i·step, one step after the other", space=SPACE, add=1)


@rule("com_microsoft.FastGelu", family="activation")
def fast_gelu(out: Specs, bias: TensorSpec | None = None, **_: Any) -> Work:
    """½·x·(1 + tanh(k·(x + c·x³))): 6 mul, 2 add, 1 tanh per element, and 1 add for a bias."""
    return pointwise(out[0], out[0].numel, mul=6, add=2, tanh=1) + biased(bias, out[0])


@rule("com_microsoft.BiasSoftmax", family="softmax")
def bias_softmax(data: TensorSpec, **_: Any) -> Work:
    """A bias added, then e^(x - max) / Σ: 1 compare, 3 add, 1 exp, 1 div per element."""
    return bias_add(data.numel, data.precision) + softmax(data.numel, data.precision)


@rule("com_microsoft.BiasDropout", family="pointwise")
def bias_dropout(out: Specs, residual: TensorSpec | None = None, **_: Any) -> Work:
    """x + b, plus a residual where there is one; nothing is dropped where nothing is trained."""
    return bias_add(out[0].numel * (1 + (residual is not None)), out[0].precision)


@rule("com_microsoft.SkipLayerNormalization", family="norm")
def skip_layer_norm(
    input: TensorSpec, beta: TensorSpec | None = None, bias: TensorSpec | None = None, **_: Any
) -> Work:
    """LayerNorm of x + skip + bias: 1 add per element for each, then as LayerNormalization."""
    n, rows = input.numel, input.numel // max(input.shape[-1], 1)
    summed = bias_add(n * (1 + (bias is not None)), input.precision)
    return summed + formulas.layer_norm(n, rows, input.precision, weight=True, bias=beta is not None)


@rule("com_microsoft.SkipSimplifiedLayerNormalization", family="norm")
def skip_rms_norm(input: TensorSpec, bias: TensorSpec | None = None, **_: Any) -> Work:
    """RMSNorm of x + skip + bias: 1 add per element for each, then 3 mul, 1 add."""
    n, rows = input.numel, input.numel // max(input.shape[-1], 1)
    summed = bias_add(n * (1 + (bias is not None)), input.precision)
    return summed + formulas.rms_norm(n, rows, input.precision, weight=True)


@rule("com_microsoft.GroupNorm", "com_microsoft.SkipGroupNorm", family="norm")
def group_norm(
    X: TensorSpec, groups: int, gamma: TensorSpec, activation: int = 0, skip: TensorSpec | None = None, **_: Any
) -> Work:
    """Group norm with a line for each channel; a residual added before it, and x·σ(x) behind it where asked for."""
    samples = X.shape[0]
    work = formulas.channel_norm(X.numel, samples * groups, samples * gamma.numel, X.precision)
    return work + biased(skip, X) + activated("silu" if activation else "", X)


@rule("com_microsoft.EmbedLayerNormalization", family="norm")
def embed_layer_norm(out: Specs, segment_embedding: TensorSpec | None = None, **_: Any) -> Work:
    """Rows of two or three tables looked up (1 index per element) and added, then LayerNorm."""
    return _embedded(out[0], 2 + (segment_embedding is not None), Work())


@rule("com_microsoft.QEmbedLayerNormalization", family="norm")
def quantised_embed(out: Specs, segment_embedding: TensorSpec | None = None, **_: Any) -> Work:
    """As EmbedLayerNormalization, each row that is looked up brought back to float: 1 add, 1 mul, 1 cast."""
    tables, n = 2 + (segment_embedding is not None), out[0].numel
    back = Work.of(out[0].precision, QUANTISATION, add=n * tables, mul=n * tables, cast=n * tables)
    return _embedded(out[0], tables, back)


def _embedded(out: TensorSpec, tables: int, more: Work) -> Work:
    n, rows = out.numel, out.numel // max(out.shape[-1], 1)
    looked = pointwise(out, n * tables, index=1) + bias_add(n * (tables - 1), out.precision)
    normed = formulas.layer_norm(n, rows, out.precision, weight=True, bias=True)
    return looked + normed + more + Work(bytes_read=out.nbytes * tables)


@rule("com_microsoft.GatherBlockQuantized", family="index")
def gather_quantised(
    out: Specs, indices: TensorSpec, bits: int = 4, zero_points: TensorSpec | None = None, **_: Any
) -> Work:
    """Rows looked up (1 index per element) and brought back to float: 1 mul, 1 cast, 1 add for a zero point; only what
    is taken is read."""
    n = out[0].numel
    back = quantising.dequantised(out[0], zero_points is not None)
    return pointwise(out[0], n, index=1) + back + Work(bytes_read=n * bits // 8 + indices.nbytes)


@rule("com_microsoft.CDist", family="linalg")
def pairwise(A: TensorSpec, B: TensorSpec, metric: str = "sqeuclidean", **_: Any) -> Work:
    """‖a - b‖ of each pair of rows: 2 add, 1 mul per component, and 1 sqrt per pair unless squares are asked for."""
    pairs = A.shape[0] * B.shape[0]
    work = distances(A, pairs, A.shape[1])
    return work if metric == "euclidean" else Work(tuple(op for op in work.ops if op[0] != "sqrt"))
