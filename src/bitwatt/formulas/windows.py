"""Windows over grids: pooling and resampling."""

import math
from collections.abc import Sequence

from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work


def adaptive_window(sizes: Sequence[int], outputs: Sequence[int]) -> int:
    """Elements under all windows when `sizes` are shared out over `outputs`: window i is floor(i·n/o) to
    ceil((i+1)·n/o), so neighbours overlap where o does not divide n."""

    def covered(n: int, o: int) -> int:
        return sum(-(-(i + 1) * n // o) - i * n // o for i in range(o))

    return math.prod(covered(n, o) for n, o in zip(sizes, outputs, strict=True))


def linear_resample(spec: TensorSpec, results: int, dims: int) -> Work:
    """2^d neighbours blended pairwise: 2^d - 1 blends a·w + b·(1-w) of 2 mul and 1 add per result."""
    blends = 2**dims - 1
    return pointwise(spec, results, mul=2 * blends, add=blends)


def linear_spread(spec: TensorSpec, results: int, dims: int) -> Work:
    """The transpose of linear resampling: each gradient split 2^d ways (2^(d+1) - 2 mul), each share added in."""
    return pointwise(spec, results, mul=2 ** (dims + 1) - 2, add=2**dims)


def separable(spec: TensorSpec, outer: int, sizes: Sequence[int], results: Sequence[int], taps: int) -> Work:
    """One dimension after the other, the last first, each result a weighted sum of taps·max(1, n/o) neighbours: the
    anti-aliasing filter widens as the picture shrinks."""
    work, shape = Work(), list(sizes)
    for axis in reversed(range(len(shape))):
        width = max(taps, math.ceil(taps * sizes[axis] / max(results[axis], 1)))
        shape[axis] = results[axis]
        work += pointwise(spec, outer * math.prod(shape) * width, mul=1, add=1)
    return work
