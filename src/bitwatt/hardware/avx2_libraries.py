"""Convolutions, attention, recurrent layers and factorisations as oneDNN, MKL and ATen execute them on AVX2.

Measured with fpcount (valgrind) at torch 2.13, one thread. oneDNN's direct convolutions skip the products of zero
padding and compute whole blocks of 8 channels; ATen's own convolution unfolds the input, padding included.
"""

from __future__ import annotations

import math
from typing import Any

from bitwatt.hardware.avx2_kernels import Args, dots, gemm, inner_sum, per_dim, taps
from bitwatt.hardware.processor import up
from bitwatt.records import Op, TensorSpec


class Convolution:
    """The sizes of a convolution and of its two gradients, and which library runs it."""

    def __init__(self, a: Args, x: TensorSpec, weight: TensorSpec, out: TensorSpec) -> None:
        self.rank = rank = len(x.shape) - 2
        self.transposed = bool(a["transposed"])
        self.groups = int(a["groups"])
        self.stride, self.padding = per_dim(a["stride"], rank), per_dim(a["padding"], rank)
        self.dilation, self.kernel = per_dim(a["dilation"], rank), weight.shape[2:]
        if self.transposed:  # it is the gradient of a convolution from `out` to `x`
            x, out = out, x
        self.batch, self.x, self.out, self.weight = x.shape[0], x, out, weight
        self.ic, self.oc = x.shape[1] // self.groups, out.shape[1] // self.groups

    @property
    def direct(self) -> bool:
        """Whether oneDNN is chosen (ATen's ConvParams::use_mkldnn with one thread) and has a direct kernel."""
        plain = all(n == 1 for n in (*self.stride, *self.dilation, *self.kernel))
        if self.rank == 3 and not self.transposed and self.groups == 1 and self.x.dtype == "float64":
            return False
        if plain and self.batch < 16:
            return False
        first = self.out if self.transposed else self.x
        large = all(n > 3 for n in self.kernel[-2:]) and self.rank >= 2
        if not (self.groups > 1 or large or self.batch > 1 or first.numel > 20480):
            return False
        depthwise = self.ic == 1 and self.oc == 1
        return self.groups == 1 or depthwise or (self.ic % 8 == 0 and self.oc % 8 == 0)

    def taps(self, *, data: bool = False) -> int:
        """Pairs of output and kernel positions that meet the input. The kernel of the data gradient takes whole
        strides along the last dimension where nothing is padded."""
        total = 1
        for d in range(self.rank):
            size, out, kernel, stride = self.x.shape[2 + d], self.out.shape[2 + d], self.kernel[d], self.stride[d]
            if data and d == self.rank - 1 and stride > 1 and kernel > stride and not self.padding[d]:
                total *= -(-size // stride) * kernel
            else:
                total *= taps(size, out, kernel, stride, self.padding[d], self.dilation[d])
        return total

    def weight_taps(self) -> float:
        """The weight gradient skips padding too, save for volumes and for wide depthwise kernels."""
        everywhere = self.spatial * math.prod(self.kernel)
        if self.rank == 3:
            return 1.12 * everywhere
        if self.groups > 1 and self.ic == 1 and max(self.kernel) > 3:
            return everywhere / self.out.shape[-1] * up(self.out.shape[-1], 4)
        return self.taps()

    @property
    def spatial(self) -> int:
        return math.prod(self.out.shape[2:])

    @property
    def unfolded(self) -> int:
        return self.ic * math.prod(self.kernel)

    def blocks(self, ic: int, oc: int) -> int:
        """Channel pairs computed for all groups."""
        if self.groups > 1 and self.ic == 1 and self.oc == 1:
            return up(self.groups, 8)
        return self.groups * ic * oc

    def forward(self, added: bool) -> float:
        if self.direct:
            ic = self.ic if self.ic < 8 else up(self.ic, 8)
            return 2 * self.batch * self.blocks(ic, up(self.oc, 8)) * self.taps() + 64
        unfold = self.unfolded * self.spatial if self.rank == 3 and not any(self.padding) else 0
        return self.batch * self.groups * (gemm(self.oc, self.unfolded, self.spatial, added=added) + unfold)

    def data_gradient(self) -> float:
        if self.direct:
            oc = self.oc if max(self.stride) > 1 else up(self.oc, 8)
            return 2 * self.batch * self.blocks(up(self.ic, 8), oc) * self.taps(data=True) + 64
        folded = 0 if math.prod(self.kernel) == 1 and set(self.stride) == {1} else self.ic * self.taps()
        sizes = (self.spatial, self.oc, self.unfolded) if self.transposed else (self.unfolded, self.oc, self.spatial)
        return self.batch * self.groups * (gemm(*sizes) + folded)

    def weight_gradient(self) -> float:
        tiny = any(self.padding) and self.out.shape[-1] < self.kernel[-1]
        if self.direct and set(self.dilation) == {1} and not tiny:
            flat = self.ic == 3 or (self.ic == 1 and self.rank == 3)  # images in colour are read as they lie
            ic = self.ic if flat else up(self.ic, 8)
            return 2 * self.batch * self.blocks(ic, up(self.oc, 8)) * self.weight_taps() + 64
        return self.batch * self.groups * gemm(self.oc, self.spatial, self.unfolded, added=True)

    def bias_gradient(self, grad: TensorSpec) -> float:
        spatial = math.prod(grad.shape[2:])
        if self.direct:
            return grad.shape[0] * up(grad.shape[1], 8) * spatial
        return grad.shape[0] * grad.shape[1] * inner_sum(spatial)


def convolution(a: Args, op: Op) -> float:
    conv = Convolution(a, a["input"], a["weight"], op.out[0])
    if conv.transposed:
        return conv.data_gradient()
    return conv.forward(added=a.get("bias") is not None)


def convolution_backward(a: Args, op: Op) -> float:
    grad: TensorSpec = a["grad_output"]
    conv = Convolution(a, a["input"], a["weight"], grad)
    data, weight, bias = a["output_mask"]
    total = 0.0
    if data:
        total += conv.forward(added=False) if conv.transposed else conv.data_gradient()
    if weight:
        total += conv.weight_gradient()
    if bias:
        total += conv.bias_gradient(grad)
    return total


def _blocks(length: int) -> list[int]:
    """The rows of queries that flash attention on the CPU takes at a time: 256, 64 or 32."""
    size = min(length, 256 if length >= 768 else 64 if length >= 192 else 32)
    return [size] * (length // size) + ([length % size] if length % size else [])


def _attention(a: Args) -> tuple[int, list[tuple[int, int]], int]:
    """(heads of the batch, (queries, keys) of each tile, width of a head).

    Keys come in tiles of 512; a causal mask spares whole tiles only.
    """
    q, k = a["query"], a["key"]
    keys, tiles, row = k.shape[-2], [], 0
    for block in _blocks(q.shape[-2]):
        row += block
        seen = min(up(row, 512), keys) if a.get("is_causal") else keys
        tiles += [(block, min(512, seen - start)) for start in range(0, seen, 512)]
    return math.prod(q.shape[:-2]), tiles, q.shape[-1]


def flash(a: Args, op: Op) -> float:
    """Scores, an exponential (20) and a sum for each, the product with the values and its rescaling."""
    heads, tiles, d = _attention(a)
    masked = a.get("attn_mask") is not None
    total = 0.0
    for q, k in tiles:
        row = 20 * (k // 8 * 8) + 24 * (k % 8) + d + 50 + masked * k
        scores = gemm(q, d, k) if q > 1 else k * dots(d)
        total += scores + gemm(q, k, d) + q * row
    return heads * total


def flash_backward(a: Args, op: Op) -> float:
    """Five products, two of them recomputing the scores and their gradient, and the exponentials once more."""
    heads, tiles, d = _attention(a)
    masked = a.get("attn_mask") is not None
    total = 0.0
    for q, k in tiles:
        total += 2 * gemm(q, d, k) + 2 * gemm(k, q, d, added=True) + gemm(q, k, d, added=True)
        total += q * (k * (24 + masked) + 3 * d + 20)
    return heads * total


def rnn_layer(a: Args, op: Op) -> float:
    """oneDNN's LSTM step: the products, 89 operations for each cell (elements past whole vectors cost a vector), bias
    and sums 18 a cell."""
    steps, batch, inputs = a["input"].shape
    hidden = int(a["hidden_size"])
    cells = hidden // 8 * 8 + 8 * (hidden % 8)
    macs = 4 * hidden * (inputs + hidden)
    return float(steps * batch * (2 * macs + 89 * cells + 18 * hidden))


def rnn_layer_backward(a: Args, op: Op) -> float:
    """Twice the products, rounded to vectors along the inputs; weight gradients added up at every step."""
    steps, batch, inputs = a["input"].shape
    hidden = int(a["hidden_size"])
    macs = 2 * 4 * hidden * (up(inputs, 8) + hidden)
    return float(steps * batch * (2 * macs + 34 * hidden) + 4 * hidden * (steps * hidden + inputs))


def _square(spec: TensorSpec) -> tuple[int, int, int]:
    """(matrices, the longer side, the shorter side)."""
    *batch, rows, columns = spec.shape
    return math.prod(batch), max(rows, columns), min(rows, columns)


def _matrix(a: Args) -> TensorSpec:
    spec = a.get("self") or a.get("A") or a.get("input")
    assert isinstance(spec, TensorSpec)
    return spec


def cholesky(a: Args, op: Op) -> float:
    batch, _, n = _square(_matrix(a))
    return batch * (n**3 / 3 + n**2 / 2 + 8 * n)


def lu(a: Args, op: Op) -> float:
    batch, m, n = _square(_matrix(a))
    blocked = 6 * m * n + 60 * n if n > 16 else 0
    return batch * (m * n**2 - n**3 / 3 + blocked)


def solve(a: Args, op: Op) -> float:
    batch, _, n = _square(_matrix(a))
    right = a["B"]
    columns = right.numel // max(batch * n, 1)
    return float(lu(a, op) + batch * 2.15 * n * n * columns)


def inverse(a: Args, op: Op) -> float:
    batch, _, n = _square(_matrix(a))
    return lu(a, op) + batch * 2.12 * n**3


def qr(a: Args, op: Op) -> float:
    """Householder reflections and, unless only R is wanted, as many again for Q."""
    spec = _matrix(a)
    batch, long, n = _square(spec)
    wide = spec.shape[-1] > spec.shape[-2]
    factor = 2 * long * n**2 - 2 * n**3 / 3
    form = 0 if a.get("mode") == "r" else 4 * n**3 / 3 if wide else factor
    more = 0.15 * (factor + form) + 12 * long * n if wide else n**3 / 2 + 20 * n**2
    return batch * (factor + form + more)


def svd(a: Args, op: Op) -> float:
    """Divide and conquer: depends a little on the data."""
    batch, m, n = _square(_matrix(a))
    fixed = 258 * n**2 if n > 20 else 170 * n**2
    return batch * (10 * n**3 + fixed + (m - n) * (9 * n**2 + 120 * n))


def eigh(a: Args, op: Op) -> float:
    batch, _, n = _square(_matrix(a))
    return batch * (4.9 * n**3 + 125 * n**2)


def eig(a: Args, op: Op) -> float:
    batch, _, n = _square(_matrix(a))
    return batch * 25 * n**3


def lstsq(a: Args, op: Op) -> float:
    batch, m, n = _square(_matrix(a))
    return batch * (2 * m * n**2 - 2 * n**3 / 3 + 60 * n**2)


def pinv(a: Args, op: Op) -> float:
    return svd(a, op) + 2.2 * _square(_matrix(a))[2] ** 3


def matrix_exp(a: Args, op: Op) -> float:
    """Degree 18 and squarings as many as the norm asks for; measured on normal matrices."""
    batch, _, n = _square(_matrix(a))
    return batch * 22.3 * n**3


def householder(a: Args, op: Op) -> float:
    batch, _, n = _square(_matrix(a))
    return batch * (1.75 * n**3 + 8 * n**2)


def cholesky_inverse(a: Args, op: Op) -> float:
    batch, _, n = _square(_matrix(a))
    return batch * (2 * n**3 / 3 + 14 * n**2)


def cholesky_solve(a: Args, op: Op) -> float:
    return float(2.2 * a["self"].numel * a["input2"].shape[-1])


def distances(a: Args, op: Op) -> float:
    """|x|² - 2x·y + |y|² as one product of width d + 2, then a square root (13)."""
    (m, d), n = a["x1"].shape[-2:], a["x2"].shape[-2]
    batch = math.prod(op.out[0].shape[:-2])
    return float(batch * (gemm(m, d + 2, n) + 13 * m * n + (m + n) * (inner_sum(d) + d)))


def pairs(each: float) -> Any:
    """Distances computed one by one: vectors of the width for each pair of rows."""

    def price(a: Args, op: Op) -> float:
        (m, d), n = a["x1"].shape[-2:], a["x2"].shape[-2]
        return float(each * math.prod(a["x1"].shape[:-2]) * m * n * up(d, 8))

    return price


def fft(a: Args, op: Op) -> float:
    """MKL: a share of 5 n log2 n that grows with the odd factors of n, about half of it for real data."""
    x, y = a["self"], op.out[0]
    dims: Any = a["dim"] if isinstance(a["dim"], tuple) else (a["dim"],)
    total = 0.0
    for i, dim in enumerate(dims):
        real = i == len(dims) - 1 and not (x.is_complex and y.is_complex)
        n = (y if x.is_complex else x).shape[dim]
        elements = max(x.numel, y.numel) if real else x.numel
        total += 5 * elements * math.log2(max(n, 2)) * _share(n, real)
    return total


def _share(n: int, real: bool) -> float:
    odd = n
    while odd % 2 == 0:
        odd //= 2
    if odd == 1:
        return (0.25 if n <= 16 else 0.4) if real else 0.65 if n <= 64 else 0.82
    if real:
        return {3: 0.52, 5: 0.7, 9: 0.7, 15: 0.7, 25: 0.85, 125: 0.59}.get(odd, 0.8 if _smooth(odd) else 1.59)
    return (0.95 if odd == 3 else 1.07 if n % 4 == 0 else 1.6) if _smooth(odd) else 3.1


def _smooth(odd: int) -> bool:
    for prime in (3, 5):
        while odd % prime == 0:
            odd //= prime
    return odd == 1
