"""Element-wise work on quantised tensors: scaled in, computed, scaled out again, or looked up in a table of 256."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.softmax import softmax as normalised
from bitwatt.records import QUANTISATION, Product, TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules import _tables
from bitwatt.rules._packed import BYTE, requantised
from bitwatt.rules._products import Specs
from bitwatt.rules.onnx.quantising import dynamic_range
from bitwatt.rules.onnx.rnn import lstm as plain

SPACE = "com_microsoft"
looked_up = partial(_tables.each, space=SPACE, family="activation")

looked_up("QLinearSigmoid QLinearLeakyRelu", "one of 256 results, which are computed once", index=1)


def _scaled_in(spec: TensorSpec, n: int) -> Work:
    """(q - z)·s."""
    return Work.of(spec.precision, QUANTISATION, add=n, mul=n)


@rule("com_microsoft.QLinearAdd", family="pointwise")
def add(A: TensorSpec, B: TensorSpec, out: Specs, **_: Any) -> Work:
    """x + y, both scaled in (1 add, 1 mul each) and the sum out (1 mul, 1 add, 1 cast): 1 add per element beside."""
    return _pair(A, B, out, add=1)


@rule("com_microsoft.QLinearMul", family="pointwise")
def mul(A: TensorSpec, B: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·y, zero points taken off both (1 add each) and the product scaled out: 1 mul per element beside."""
    return _pair(A, B, out, mul=1)


def _pair(A: TensorSpec, B: TensorSpec, out: Specs, **kinds: int) -> Work:
    n = out[0].numel
    return pointwise(out[0], n, **kinds) + _scaled_in(A, n) + _scaled_in(B, n) + requantised(out[0], False)


@rule("com_microsoft.QLinearWhere", family="pointwise")
def where(out: Specs, **_: Any) -> Work:
    """x where the condition holds, y elsewhere, both by tables of 256: 1 compare, 1 index per element."""
    return pointwise(out[0], out[0].numel, compare=1, index=1)


@rule("com_microsoft.QLinearSoftmax", family="softmax")
def softmax(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """e^x by a table (1 index), a maximum, a sum and a division per element: counted as softmax, of 8-bit values, and
    scaled out."""
    return normalised(X.numel, X.precision) + Work.of(out[0].precision, QUANTISATION, mul=X.numel, cast=X.numel)


@rule("com_microsoft.QLinearAveragePool", family="pool")
def average(out: Specs, kernel_shape: tuple[int, ...], **_: Any) -> Work:
    """The mean of each window: window add, 1 div per result, scaled out."""
    return pointwise(out[0], out[0].numel, add=math.prod(kernel_shape), div=1) + requantised(out[0], False)


@rule("com_microsoft.QLinearGlobalAveragePool", family="pool")
def global_average(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """The mean of each channel: 1 add per element, 1 div per result, scaled out."""
    return pointwise(X, X.numel, add=1) + pointwise(X, out[0].numel, div=1) + requantised(out[0], False)


@rule("com_microsoft.QLinearReduceMean", "com_microsoft.ReduceSumInteger", family="reduction")
def mean(data: TensorSpec, out: Specs, **_: Any) -> Work:
    """Σx/n: 1 add per input element, 1 div per result, scaled out where the result is of 8 bits."""
    small = out[0].precision.bits <= 8
    work = pointwise(data, data.numel, add=1) + pointwise(data, out[0].numel, div=int(small))
    return work + requantised(out[0], False) if small else work


@rule("com_microsoft.QLinearConcat", family="copy")
def concat(out: Specs, **_: Any) -> Work:
    """Joined, each element brought to the scale of the result by a table of 256: 1 index."""
    n = out[0].numel
    return Work.of(out[0].precision, QUANTISATION, index=n)


@rule("com_microsoft.NhwcMaxPool", family="pool")
def largest(out: Specs, kernel_shape: tuple[int, ...], **_: Any) -> Work:
    """The largest of each window: window compare per result."""
    return pointwise(out[0], out[0].numel, compare=math.prod(kernel_shape))


@rule("com_microsoft.DynamicQuantizeLSTM", family="rnn")
def lstm(
    X: TensorSpec,
    W: TensorSpec,
    R: TensorSpec,
    B: TensorSpec | None = None,
    P: TensorSpec | None = None,
    sequence_lens: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """As LSTM, inputs and states quantised on the way in and products of 8-bit integers scaled back: 1 mul, 1 add,
    1 cast, 4 compare for each value that goes in, 1 mul for each gate."""
    # unlike LSTM's, weights lie as (directions, width, gates·hidden)
    turned = [TensorSpec((w.shape[0], w.shape[2], w.shape[1]), w.dtype) for w in (W, R)]
    work = plain(X=X, W=turned[0], R=turned[1], B=B, P=P, sequence_lens=sequence_lens)
    eight = tuple((_as(product, BYTE), n) for product, n in work.products)
    rows, hidden, ways = X.numel // max(X.shape[-1], 1), R.shape[1], W.shape[0]
    states = TensorSpec((rows * ways, hidden), X.dtype)
    back = Work.of(X.precision, QUANTISATION, mul=2 * rows * ways * R.shape[2])
    whole = Work(work.ops, eight, estimated=work.estimated)
    return whole + dynamic_range(X) * ways + dynamic_range(states) + back


def _as(product: Product, spec: TensorSpec) -> Product:
    return replace(product, a=spec.precision, b=spec.precision)
