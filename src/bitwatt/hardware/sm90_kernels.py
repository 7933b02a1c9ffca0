"""Kernels of torch's CUDA build on an H200 that work in tiles and rows: products, attention, softmax, norms, sums.

Each formula follows the counters of 2026-11-15 (torch 2.11+cu130; tests/data/torch_executed_sm90.jsonl) and is [read]
unless it says [code]. Thresholds between two readings (66 tiles, k of 256, 4096 results, HELD) are chosen, not read.
The pattern is the same everywhere: so much for an element, padded to the tile, and so much for each thread that takes
part in folding a row. The ledger holds neither strides nor the TF32 switch, so that a transposed operand and a TF32
tile are not told from others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from bitwatt.hardware.avx2_kernels import window_taps
from bitwatt.hardware.processor import Kernel, dims_of, split, up
from bitwatt.records import Op, Product, TensorSpec

Args = Mapping[str, Any]

EXP, LOG = 10.25, 24.25


def half(spec: TensorSpec) -> bool:
    return spec.precision.bits <= 16


def pow2(size: int) -> int:
    """The next power of two."""
    return 1 << max(size - 1, 0).bit_length()


def gemm(m: int, k: int, n: int, *, narrow: bool, bias: bool = False) -> float:
    """One matrix product; `narrow` on tensor cores in 16 bits or less, `bias` where a vector is added at the end."""
    if min(m, n) <= 1:
        return 2.0 * m * n * k
    return _tensor_gemm(m, k, n, bias) if narrow else _simt_gemm(m, k, n)


def _simt_gemm(m: int, k: int, n: int) -> float:
    """CUDA cores, float32: tiles of 32 x 32 x 8 and a fused multiply-add for alpha and beta.

    Where such tiles would leave half of the 132 multiprocessors idle and k is long, k is split among tiles of 64 x 64
    and summed afterwards. Kernels for a narrow side take it in eights.
    """
    few = up(m, 32) * up(n, 32) // 1024 < 66 and k >= 256 and min(m, n) > 32
    rows, columns = (_side(size, 64 if few else 32) for size in (m, n))
    return 2.0 * rows * columns * up(k, 8) + (12 if few else 2) * m * n


def _side(size: int, tile: int) -> int:
    return size if size <= 16 and size % 8 == 0 else up(size, tile)


def _tensor_gemm(m: int, k: int, n: int, bias: bool) -> float:
    """Tensor cores, 16 bits: k in steps of 64. Sides in multiples of 8 allow tiles of 128, or of 16 for a narrow side;
    other sides are loaded one by one in tiles of 64 x 64 x 32, or 16 x 16 where the whole result is tiny.

    The 16 x 16 case rests on one reading. A result of 64 to 131 tiles of 64 x 64 is cut into 64 x 48 ones in pairs, to
    use more multiprocessors: read wherever the second operand is a transposed weight, which is what a bias comes with,
    and for the gradient of the input, which nothing in the ledger tells from the gradient of the weight.
    """
    extra = m * n if bias else 0
    if m * n <= 4096 and (m % 8 or n % 8):
        return 2.0 * up(m, 16) * up(n, 16) * up(k, 64) + 3 * extra
    if any(size % 8 for size in (m, n)):
        return 2.0 * up(m, 64) * up(n, 64) * up(k, 32) + 3 * extra
    rows, columns = (up(size, 128) if size > 64 else up(size, 16) for size in (m, n))
    if bias and 64 <= rows * columns // 4096 < 132:
        rows, columns = (rows, up(columns, 96)) if columns <= rows else (up(rows, 96), columns)
    return 2.0 * rows * columns * up(k, 64) + extra


def product(p: Product) -> float:
    components = 4 if "complex" in (p.a.kind, p.b.kind) else 1
    return components * p.batch * gemm(p.m, p.k, p.n, narrow=p.executed.bits <= 16)


def mm(a: Args, op: Op) -> float:
    first = a.get("mat1") or a["self"]
    (m, k), n = first.shape, a["mat2"].shape[1]
    return gemm(m, k, n, narrow=half(first), bias="mat1" in a)


def bmm(a: Args, op: Op) -> float:
    first = a.get("batch1") or a["self"]
    second = a.get("batch2") or a["mat2"]
    (batch, m, k), n = first.shape, second.shape[2]
    return float(batch * gemm(m, k, n, narrow=half(first)))


def convolution(a: Args, op: Op) -> float:
    """An implicit matrix product: 32 pixels a tile, taps in eights (27 of a stem as 32). cuDNN changes the layout of
    what goes in and out, about one operation an element, and scales the result.

    Which algorithm it takes is not told by shapes. In the backward of a ResNet-18 at batch 32 three Winograd gradients
    spare 5.3 G and others, a strided one that multiplies the zeros above all, add 5.1 G to 71 G: single convolutions
    are up to four times off where their sum is not."""
    weight: TensorSpec = a["weight"]
    out = a.get("grad_output") or op.out[0]
    small, large = (a["input"], out) if a["transposed"] else (out, a["input"])
    pixels = up(small.shape[0] * math.prod(small.shape[2:]), 32)
    taps = weight.numel // max(weight.shape[0], 1)
    if a.get("groups", 1) == 1 and taps > 8:  # grouped ones have kernels of their own, not read
        taps = up(taps, 8)
    each = 2.0 * pixels * weight.shape[0] * taps
    moved = 1.2 * large.numel + weight.numel + 3.3 * small.numel
    if "output_mask" not in a:
        return each + moved
    data, weights, bias = a["output_mask"]
    return (each + moved) * (bool(data) + bool(weights)) + (out.numel if bias else 0)


def _scores(a: Args, tile: int) -> tuple[float, int, int]:
    """(scores computed in whole tiles, width of keys, width of values). A causal mask spares whole tiles."""
    q, k, v = a["query"], a["key"], a["value"]
    queries, keys = up(q.shape[-2], tile), up(k.shape[-2], tile)
    scores = float(math.prod(q.shape[:-2]) * queries * keys)
    if a.get("is_causal") and queries == keys > 0:
        scores *= (queries + tile) / (2 * queries)
    return scores, q.shape[-1], v.shape[-1]


def efficient_attention(a: Args, op: Op) -> float:
    """Tiles of 64 queries and keys; a product that yields values is 64 wide, one that yields scores is as deep as the
    head; float32 as three TF32 products. 20 operations of the CUDA cores for a score."""
    scores, keys, values = _scores(a, 64)
    split_up = 1 if half(a["query"]) else 3
    return scores * (2 * split_up * (keys + up(values, 64)) + 20)


def efficient_attention_backward(a: Args, op: Op) -> float:
    """Two products that yield scores, three that yield gradients; the rows of grad · out are summed beforehand."""
    scores, keys, values = _scores(a, 64)
    split_up = 1 if half(a["query"]) else 3
    wide = keys + values + 2 * up(keys, 64) + up(values, 64)
    q: TensorSpec = a["query"]
    return scores * (2 * split_up * wide + 51.7) + 2 * q.numel + 388 * q.numel / max(keys, 1)


def flash_attention(products: int, each: float, dot: float) -> Kernel:
    """16 bits: tiles of 128 queries and keys, heads padded to 64; `each` for a score, and `dot` for an element of the
    queries where grad · out is summed beforehand. Read for cuDNN's kernels; [code] for the flash ones."""

    def price(a: Args, op: Op) -> float:
        scores, keys, values = _scores(a, 128)
        width = max(up(keys, 64), up(values, 64))
        return float(scores * (2 * width * products + each) + dot * a["query"].numel)

    return price


def _rows(a: Args, x: TensorSpec) -> tuple[int, int, bool]:
    """(rows, their width, whether they lie side by side) of what a softmax runs over."""
    width = x.shape[a["dim"]] if x.shape else 1
    inner = not x.shape or a["dim"] % len(x.shape) == len(x.shape) - 1
    return x.numel // max(width, 1), width, inner


def softmax(*, log: bool) -> Kernel:
    """Up to 2048 a warp holds the row, padded to a power of two; wider ones are walked by a block of 1024 threads."""

    def price(a: Args, op: Op) -> float:
        x: TensorSpec = a["self"]
        rows, w, inner = _rows(a, x)
        if not inner:
            return (18.0 if log else 35.5) * x.numel  # the logarithm [code]
        if w <= 2048:
            p = pow2(w)
            lanes = min(p, 32)
            return float(rows * (12 * p + (w + 31 * lanes if log else 10 * w + 7 * lanes)))
        threads = 1024 if w > 4096 else 512
        return float(rows * (14 * w + 48 * threads if log else 33 * w + 42 * threads))

    return price


def softmax_backward(*, log: bool) -> Kernel:
    """Up to 1024 in a warp. Without the logarithm, the gradient is multiplied by the output in a pass of its own."""

    def price(a: Args, op: Op) -> float:
        x: TensorSpec = a["output"]
        rows, w, inner = _rows(a, x)
        if not inner:
            return (14.0 if log else 4.5) * x.numel
        if w <= 1024:
            p = pow2(w)
            lanes = min(p, 32)
            fold = lanes * (lanes.bit_length() - 1 + ((2 if p <= 128 else 6) if log else 0))
            return float(rows * (p + (14 if log else 3) * w + fold))
        threads = min(pow2(w // 8), 512)
        return float(rows * ((13.5 if log else 4) * w + (4 if log else 3) * threads))

    return price


def _moments(width: int, threads: int) -> float:
    """Welford's recurrence over a row, and the merging of its threads."""
    return 15.0 * width + 98 * min(threads, width)


def layer_norm(a: Args, op: Op) -> float:
    """Rows in fours by 128 threads, each element with a division by its count; other widths in two passes."""
    rows, w = _normed(a)
    if w % 4:
        return rows * (_moments(w, 512) + 4 * w)
    return float(rows * (16 * w + 84 * min(w // 4, 128) + 2621))


def rms_norm(a: Args, op: Op) -> float:
    rows, w = _normed(a)
    return rows * (_moments(w, 512) + 2 * w if w % 4 else 4.0 * w + 1680)


def norm_backward(each: int, fours: int, others: int, gamma: int, column: int) -> Kernel:
    """A row: `each` for an element and a fold; the weight: blocks of 256 rows, 32 columns, `gamma` for an element."""

    def price(a: Args, op: Op) -> float:
        rows, w = _normed(a)
        total = float(rows * (each * w + (others if w % 4 else fours)))
        return total + gamma * up(rows, 256) * up(w, 32) + column * up(w, 32)

    return price


def _normed(a: Args) -> tuple[int, int]:
    width = math.prod(a["normalized_shape"])
    return a["input"].numel // max(width, 1), width


def _channels(a: Args) -> tuple[int, int]:
    x: TensorSpec = a["input"]
    return x.shape[1], x.numel // max(x.shape[1], 1)


#: Elements of a channel that a block of cuDNN's batch norm still keeps in registers: 8192 do, 32768 do not.
HELD = 16384


def batch_norm(a: Args, op: Op) -> float:
    """Training: channels of up to 8192 elements are read once; from a size before 32768 on, twice."""
    channels, n = _channels(a)
    if not a.get("training", True):
        return 6.7 * channels * n
    return channels * (6 * n + 9038 if n <= HELD else 13.74 * n)


def batch_norm_backward(a: Args, op: Op) -> float:
    channels, n = _channels(a)
    return channels * (8 * n + 7495 if n <= HELD else 12.17 * n)


def native_batch_norm_backward(a: Args, op: Op) -> float:
    """In evaluation 5 for an element and 12130 for a channel; in training [code]."""
    channels, n = _channels(a)
    return channels * ((12.0 if a.get("train") else 5.0) * n + 12130)


def group_norm(a: Args, op: Op) -> float:
    groups: int = a["N"] * a["group"]
    n = a["input"].numel // max(groups, 1)
    return float(groups * _moments(n, 512 if n >= 512 else 32) + 5 * a["input"].numel + 7 * a["N"] * a["C"])


def group_norm_backward(a: Args, op: Op) -> float:
    channels, threads = a["N"] * a["C"], 512 if a["HxW"] >= 512 else 32
    inner: float = channels * (3 * a["HxW"] + (14.6 if threads == 512 else 12) * threads + 10)
    return float(inner + 8 * a["input"].numel + 350 * a["N"] * a["group"])


def folded(rows: int, width: int, stride: int, each: float = 1.0, fold: int = 7) -> float:
    """A reduction: `each` for an element, and for each thread the merging of four partial results (`fold`) and of the
    threads. Rows side by side: up to 32 threads a row, 512 where there are few rows; 16 elements a thread once a block
    is too small. Columns: 4 threads for four of them, more blocks from 1024 rows on."""
    if not rows:
        return 0.0
    total = each * rows * width
    if stride > 1:
        if rows % 4:
            return total + 146.0 * rows
        blocks = up(width, 64) // 64 if width >= 1024 else 1
        return total + rows * (21 if width >= 32 else 4.5) * blocks
    high = min(_floor2(rows), 16)
    threads = min(_floor2(width), 512 // high)
    if width // threads >= (256 if high > 1 else 16):
        if high > 1:
            threads = 512
        threads *= max(min(-(-width // threads // 16), max(528 // rows, 1)), 1)
    return total + rows * threads * (fold + min(threads, 512).bit_length() - 1)


def _floor2(size: int) -> int:
    return 1 << max(size.bit_length() - 1, 0)


def reduced(each: float, per_output: float, fold: int = 7) -> Kernel:
    def price(a: Args, op: Op) -> float:
        x: TensorSpec = a["self"]
        if x.precision.kind not in {"float", "complex"}:
            return 0
        before, width, after = split(x.shape, dims_of(a.get("dim"), len(x.shape)))
        outputs = before * after
        return folded(outputs, max(width, 1), after, each, fold) + per_output * outputs

    return price


def logsumexp(a: Args, op: Op) -> float:
    """Maximum, broadcast difference (4), exp, sum, log: five kernels."""
    x: TensorSpec = a["self"]
    total = reduced(1, LOG + 2)(a, op)
    return total + (4 + EXP) * x.numel + 128 * op.out[0].numel


def loss(each: float) -> Kernel:
    """`each` for an element of the input, and their mean or sum unless the loss is left unreduced (reduction 0)."""

    def price(a: Args, op: Op) -> float:
        n: int = a["self"].numel
        return each * n + (folded(1, n, 1) if a.get("reduction", 1) != 0 and n else 0)

    return price


def cumulated(a: Args, op: Op) -> float:
    """A scan in chunks of 64, up and down a tree."""
    x: TensorSpec = a["self"]
    width = x.shape[a["dim"]] if x.shape else 1
    return 193.0 * -(-width // 64) * x.numel / max(width, 1)


def avg_pool(a: Args, op: Op) -> float:
    return window_taps(a, a["self"], op.out[0]) + 12 * op.out[0].numel


def avg_pool_backward(a: Args, op: Op) -> float:
    """Each element gathers from the windows that cover it, and divides each time."""
    return 11 * window_taps(a, a["self"], a["grad_output"]) + 8 * float(a["self"].numel)
