"""Kernels of torch's CPU build on AVX2 that walk rows: matrix products, sums, softmax, norms, pools, losses.

Derived from ATen's sources and from counts made with fpcount (valgrind) at torch 2.13, one thread, MKL and oneDNN:
formulas marked exact reproduce every measured count, the others stay within a few per cent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bitwatt.hardware.processor import dims_of, split, up
from bitwatt.records import Op, Product, TensorSpec

Args = Mapping[str, Any]


def lanes(spec: TensorSpec) -> int:
    return 4 if spec.dtype == "float64" else 8


def gemm(m: int, k: int, n: int, *, vector: int = 8, added: bool = False) -> float:
    """MKL's sgemm on row-major m x k by k x n; `added` where it also adds what C holds.

    Small: columns in whole vectors, rows in threes, one more multiplication per element for alpha (exact). Large: the
    packed kernel, columns in half vectors; where it begins depends on the layout, which the ledger does not hold.
    """
    if not (m and k and n):
        return 0
    if n == 1 and m > 1:
        return m * dots(k)
    if k == 1:
        return m * (n + 1)
    if (m >= 56 and n >= 56 and k % 2 == 0) if added else (m >= 64 and n >= 96 and k > 2):
        return m * up(n, vector // 2) * 2 * k + added * m * n
    columns = up(n, vector)
    total = m * columns * (2 * k + 1 + added)
    if m % 6 == 2:
        total += 3 * columns
    if columns % (2 * vector) == vector:
        total += 32 * (m // 3) + 24 * (m % 3 > 0)
    return total


def dots(k: int) -> int:
    """A row of a matrix times a vector: 16 accumulators, folded."""
    return 2 * up(k, 8) + 18


def product(p: Product) -> float:
    """A matrix product of an op that has no formula of its own here."""
    if "complex" in (p.a.kind, p.b.kind):
        return 4 * p.batch * gemm(p.m, p.k, p.n)
    if p.executed.kind != "float":
        return 0
    return p.batch * gemm(p.m, p.k, p.n, vector=4 if p.executed.bits == 64 else 8)


def mm(a: Args, op: Op) -> float:
    (m, k), n = a["self"].shape, a["mat2"].shape[1]
    return gemm(m, k, n, vector=lanes(a["self"]))


def addmm(a: Args, op: Op) -> float:
    (m, k), n = a["mat1"].shape, a["mat2"].shape[1]
    if m == 1 or n <= 2:  # the weight lies transposed: dot products
        return float(m * n * dots(k))
    return gemm(m, k, n, vector=lanes(a["mat1"]), added=True)


def linear(a: Args, op: Op) -> float:
    k, n = a["input"].shape[-1], a["weight"].shape[0]
    return gemm(a["input"].numel // max(k, 1), k, n, vector=lanes(a["input"]), added=a.get("bias") is not None)


def bmm(a: Args, op: Op) -> float:
    """Below 400 multiply-accumulates ATen's own loop, else MKL on each matrix."""
    first = a.get("self") if "mat2" in a else a.get("batch1")
    second = a.get("mat2") or a["batch2"]
    assert isinstance(first, TensorSpec)
    (batch, m, k), n = first.shape, second.shape[2]
    added = "batch1" in a
    if m * k * n < 400:
        return float(batch * m * n * (2 * k + added))
    if k == 1:
        return float(batch * m * n * 3)
    if n == 1:  # MKL's batched form has no matrix-vector kernel
        return batch * m * 8 * (2 * k + 1)
    return batch * gemm(m, k, n, vector=lanes(first), added=added)


def mv(a: Args, op: Op) -> float:
    m, k = (a.get("mat") or a["self"]).shape
    return float(m * (2 * k + 12))  # 20 where rows are contiguous, 4 where columns are


def dot(a: Args, op: Op) -> float:
    return float(2 * a["self"].numel + 48)


def inner_sum(n: int, vector: int = 8) -> float:
    """Cascade summation along contiguous elements: 4 vectors, folded every 16 steps, then 4 levels (exact)."""
    if n < vector:
        return n + 16
    step = 4 * vector * 16
    return n + 16 * vector + 1 + 4 * vector * (n // step + n // (16 * step))


def outer_sum(rows: int, n: int, vector: int = 8) -> float:
    """Sum over the rows of rows x n contiguous columns: four vectors of columns at once, the rest singly (exact)."""
    wide = 4 * vector if n >= vector else 4
    together, rest = n // wide * wide, n % wide
    return together * (rows + rows // 16 + rows // 256 + 4) + rest * (rows + 4 * (rows // 64) + 16)


def summed(spec: TensorSpec, dim: Any) -> float:
    """Dimensions side by side are one; of others the innermost run is summed as often as the rest has elements."""
    if spec.precision.kind not in {"float", "complex"} or not spec.numel:
        return 0
    dims = dims_of(dim, len(spec.shape))
    run = [d for i, d in enumerate(dims) if dims[-1] - d == len(dims) - 1 - i]
    before, reduced, after = split(spec.shape, tuple(run))
    vector = lanes(spec)
    return before * (inner_sum(reduced, vector) if after == 1 else outer_sum(reduced, after, vector))


def sum_(a: Args, op: Op) -> float:
    return summed(a["self"], a.get("dim"))


def mean(a: Args, op: Op) -> float:
    return summed(a["self"], a.get("dim")) + op.out[0].numel


def vector_norm(a: Args, op: Op) -> float:
    """Squares added up in vectors along the last dimension, singly elsewhere; other orders take a power each."""
    x: TensorSpec = a["self"]
    order = a.get("ord", a.get("p", 2))
    each = {None: 2.0, 2: 2.0, 1: 1.0, 0: 0.0, math.inf: 0.0, -math.inf: 0.0}.get(order, 28.0)
    _, reduced, after = split(x.shape, dims_of(a.get("dim"), len(x.shape)))
    folds = 8 if after == 1 and reduced >= 8 else 1
    return each * x.numel + (op.out[0].numel * folds if each == 2 else 0)


def var(a: Args, op: Op) -> float:
    """Welford in double precision, 6 an element; over everything two sums."""
    x: TensorSpec = a["self"]
    if a.get("dim") in (None, ()) and "mean" not in op.name:
        return 3 * x.numel + inner_sum(x.numel) + 5
    return 6 * x.numel + 2 * op.out[0].numel


def logsumexp(a: Args, op: Op) -> float:
    """exp(x - max), their sum, and a logarithm for each sum."""
    return float(20 * a["self"].numel + summed(a["self"], a.get("dim")) + 26 * op.out[0].numel)


def rows_of(x: TensorSpec, dim: int) -> tuple[int, int, bool]:
    """(rows, their length, whether they are contiguous)."""
    if not x.shape:
        return 1, 1, True
    size = x.shape[dim]
    return x.numel // max(size, 1), size, dim % len(x.shape) == len(x.shape) - 1


def folded(size: int) -> int:
    """What reducing the lanes of a row's last vector takes."""
    return 16 if size >= 8 else max(0, 8 * (size - 2))


def softmax(a: Args, op: Op) -> float:
    """exp at 20 and 4 more an element, rows in whole vectors, 17 to fold each (exact)."""
    rows, size, contiguous = rows_of(a["self"], a["dim"])
    if lanes(a["self"]) == 4:
        return rows * (37 * up(size, 4) + 9)
    return rows * (24 * up(size, 8) + folded(size) + 1) if contiguous else 24 * rows * size


def softmax_backward(a: Args, op: Op) -> float:
    rows, size, contiguous = rows_of(a["grad_output"], a["dim"])
    return rows * (4 * up(size, 8) + folded(size)) if contiguous else 4 * rows * size


def log_softmax(a: Args, op: Op) -> float:
    """As softmax, and a logarithm for each row, eight rows of a chunk at a time (exact)."""
    rows, size, contiguous = rows_of(a["self"], a["dim"])
    if lanes(a["self"]) == 4:
        return rows * (38 * up(size, 4) + 68)
    if not contiguous:
        return rows * (25 * size + 50)
    chunk = max(1, 4096 // max(size, 1))
    groups = rows // chunk * up(chunk, 8) // 8 + up(rows % chunk, 8) // 8
    return rows * (25 * up(size, 8) + folded(size)) + 400 * groups


def log_softmax_backward(a: Args, op: Op) -> float:
    rows, size, contiguous = rows_of(a["grad_output"], a["dim"])
    if lanes(a["grad_output"]) == 4:
        return rows * (37 * up(size, 4) + 8)
    return rows * (24 * up(size, 8) + folded(size)) if contiguous else 24 * rows * size


def moments(n: int) -> float:
    """Mean and variance of a row by Welford on vectors, chunks of 16 vectors folded pairwise."""
    chunks = -(-(n // 8) // 16)
    return 7 * n + 115 + (49 if chunks == 2 else 112 * max(chunks - 1, 0))


def layer_norm(a: Args, op: Op) -> float:
    n = math.prod(a["normalized_shape"])
    rows = a["input"].numel // max(n, 1)
    scaled = up(n, 8) + 3 * (-n % 8) if a.get("weight") is not None or a.get("bias") is not None else 0
    return float(rows * (moments(n) + 2 * n + 10 + scaled))


def layer_norm_backward(a: Args, op: Op) -> float:
    """One pass for the input's gradient, one for gamma and beta (exact)."""
    n = math.prod(a["normalized_shape"])
    rows = a["input"].numel // max(n, 1)
    mask = tuple(a.get("output_mask") or (True, True, True))
    total = rows * (7 * up(n, 8) + 42) if mask[0] else 0
    if mask[1] or mask[2]:
        total += rows * ((8 if mask[0] else 5) * up(n, 8) + 1) + 2 * n
    return total + 1


def group_norm(a: Args, op: Op) -> float:
    n, channels, size, groups = (int(a[key]) for key in ("N", "C", "HxW", "group"))
    inside = channels // groups * size
    return n * groups * (8.7 * inside + 90)


def group_norm_backward(a: Args, op: Op) -> float:
    return float(a["N"] * a["C"] * (7.1 * a["HxW"] + 2 * (a["HxW"] % 8) + 45))


def batch_norm(a: Args, op: Op) -> float:
    """Statistics in double precision for images, 4 an element; the transform is a fused multiply-add on vectors."""
    x: TensorSpec = a["input"]
    channels, spatial = x.shape[1], math.prod(x.shape[2:])
    training = a.get("training", True)
    if len(x.shape) == 2:
        return x.shape[0] * up(channels, 8) * (6 if training else 2) + (19 if training else 6) * channels
    fixed = 17 * channels if training else 6 * channels
    return x.shape[0] * channels * (2 * up(spatial, 8) + 4 * spatial * bool(training)) + fixed


def batch_norm_backward(a: Args, op: Op) -> float:
    x: TensorSpec = a["input"]
    training = a.get("train", True)
    if len(x.shape) == 2:
        return x.shape[0] * up(x.shape[1], 8) * (14 if training else 6) + 6 * x.shape[1]
    spatial = math.prod(x.shape[2:])
    return x.shape[0] * x.shape[1] * ((10 if training else 6) * up(spatial, 8) + 34)


def taps(size: int, out: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How many (output, kernel position) pairs along one dimension fall on the input rather than on padding."""
    total = 0
    for position in range(kernel):
        offset = position * dilation - padding
        first = max(0, -(offset // stride))  # the first output whose tap is at least 0
        last = (size - 1 - offset) // stride
        total += max(0, min(out - 1, last) - first + 1)
    return total


def per_dim(value: Any, rank: int) -> tuple[int, ...]:
    value = value if isinstance(value, tuple) else (value,)
    return tuple(value) * rank if len(value) == 1 else tuple(value)


def window_taps(a: Args, x: TensorSpec, out: TensorSpec) -> float:
    """Elements of the input that the windows of a pooling cover, counted as often as they are covered."""
    rank = len(a["kernel_size"]) if len(a["kernel_size"]) > 1 else len(x.shape) - 2
    kernel = per_dim(a["kernel_size"], rank)
    stride = per_dim(a.get("stride") or kernel, rank)
    padding = per_dim(a.get("padding") or 0, rank)
    total = out.numel // max(math.prod(out.shape[-rank:]), 1)
    sizes = zip(x.shape[-rank:], out.shape[-rank:], kernel, stride, padding, strict=True)
    return total * math.prod(taps(*size) for size in sizes)


def avg_pool(a: Args, op: Op) -> float:
    return window_taps(a, a["self"], op.out[0]) + 2 * op.out[0].numel


def avg_pool_backward(a: Args, op: Op) -> float:
    twice = len(a["kernel_size"]) == 3 and a["kernel_size"][2] > 1  # the three-dimensional one divides each element
    return float(window_taps(a, a["self"], a["grad_output"]) * (1 + twice) + a["grad_output"].numel)


def adaptive(x: TensorSpec, out: TensorSpec) -> float:
    """Windows from floor(i·n/o) to ceil((i+1)·n/o), which overlap where o does not divide n."""
    rank = len(out.shape) - 2 if len(out.shape) > 3 else len(out.shape) - 1
    covered = 1
    for size, o in zip(x.shape[-rank:], out.shape[-rank:], strict=True):
        covered *= sum(-(-(i + 1) * size // o) - i * size // o for i in range(o))
    return out.numel // max(math.prod(out.shape[-rank:]), 1) * covered + 2 * out.numel


def adaptive_avg_pool(a: Args, op: Op) -> float:
    return adaptive(a["self"], op.out[0])


def adaptive_avg_pool_backward(a: Args, op: Op) -> float:
    return adaptive(a["self"], a["grad_output"])
