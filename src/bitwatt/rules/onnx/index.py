"""Elements taken from and put to places, sorted and looked for."""

import math
from collections.abc import Mapping
from typing import Any

from bitwatt.formulas import sort as order
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs
from bitwatt.rules._tables import size_of

_REDUCE: Mapping[str, Mapping[str, int]] = {
    "none": {}, "add": {"add": 1}, "mul": {"mul": 1}, "max": {"compare": 1}, "min": {"compare": 1},
}  # fmt: skip


@rule("onnx.Gather", "onnx.GatherElements", "onnx.GatherND", family="index")
def gather(out: Specs, indices: TensorSpec, **_: Any) -> Work:
    """Elements by index: 1 index per result; read are the indices and only the elements taken."""
    return pointwise(out[0], out[0].numel, index=1) + Work(bytes_read=out[0].nbytes + indices.nbytes)


@rule("onnx.Scatter", "onnx.ScatterElements", "onnx.ScatterND", family="index")
def scatter(data: TensorSpec, updates: TensorSpec, reduction: str = "none", **_: Any) -> Work:
    """A copy with values put at indices: 1 index each, and 1 add, mul or compare where they are reduced."""
    return pointwise(data, updates.numel, index=1, **_REDUCE[reduction])


@rule("onnx.TensorScatter", family="index")
def tensor_scatter(past_cache: TensorSpec, update: TensorSpec, **_: Any) -> Work:
    """New rows put into a cache in place: 1 index per element, whose bytes alone are moved."""
    moved = Work(bytes_read=update.nbytes, bytes_written=update.nbytes)
    return pointwise(past_cache, update.numel, index=1) + moved


@rule("onnx.OneHot", family="index")
def one_hot(indices: TensorSpec, **_: Any) -> Work:
    """One value at the class, another elsewhere: 1 index for each class that is set."""
    return pointwise(indices, indices.numel, index=1)


@rule("onnx.NonZero", family="index")
def nonzero(X: TensorSpec, **_: Any) -> Work:
    """Places of elements that are not 0: 1 compare per element."""
    return pointwise(X, X.numel, compare=1)


@rule("onnx.Compress", family="index")
def compress(input: TensorSpec, condition: TensorSpec, **_: Any) -> Work:
    """Elements where a condition holds: 1 compare for each condition; how many are copied is data, half is taken."""
    half = input.nbytes // 2
    return Work(
        pointwise(condition, condition.numel, compare=1).ops,
        bytes_read=half + condition.nbytes,
        bytes_written=half,
        estimated=True,
    )


@rule("onnx.TopK", family="sort")
def topk(X: TensorSpec, out: Specs, axis: int = -1, **_: Any) -> Work:
    """The k largest selected, then sorted: 2n + k·log2 k compares per row."""
    length = X.shape[axis]
    return order.select(X, X.numel // max(length, 1), length, kept=out[0].shape[axis])


@rule("onnx.Unique", family="sort")
def unique(X: TensorSpec, axis: int | None = None, **_: Any) -> Work:
    """Sorted, then neighbours compared: n·log2 n + n compares; by rows, each compare as long as a row."""
    rows, length = (1, X.numel) if axis is None else (X.numel // max(X.shape[axis], 1), X.shape[axis])
    return order.sort(X, rows, length) + pointwise(X, X.numel, compare=1)


@rule("onnx.Multinomial", family="random")
def multinomial(input: TensorSpec, out: Specs, **_: Any) -> Work:
    """A running sum of the probabilities (1 exp, 1 add per class), then a draw and a binary search for each result."""
    table = pointwise(input, input.numel, exp=1, add=1) + pointwise(input, out[0].numel, random=1)
    return table + order.search(input, out[0].numel, input.shape[-1])


@rule("onnx.ReverseSequence", family="copy")
def reverse(**_: Any) -> Work:
    """Every element moved."""
    return Work()


@rule("onnx.TfIdfVectorizer", family="encoding")
def ngrams(
    X: TensorSpec,
    out: Specs,
    max_gram_length: int = 1,
    min_gram_length: int = 1,
    max_skip_count: int = 0,
    mode: str = "TF",
    **vocabulary: Any,
) -> Work:
    """Each word, and each run of up to max_gram_length of them for every skip, looked up in the vocabulary (1 text) and
    counted (1 add); weights 1 mul per result. Which are found is data."""
    lengths = max(max_gram_length - min_gram_length + 1, 1)
    looked = X.numel * lengths * (max_skip_count + 1)
    counted = pointwise(out[0] if out else X, looked, text=1, add=1)
    weighed = pointwise(out[0], out[0].numel, mul=int(mode != "TF")) if out else Work()
    read = X.nbytes + math.ceil(size_of(tuple(vocabulary.values())) / 2)
    return Work((counted + weighed).ops, bytes_read=read, estimated=True)
