"""Distances between sets of vectors, and products of three-vectors."""

import math
from typing import Any

from bitwatt.formulas.linalg import matmul
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.reduction import distances
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, each

each("cross linalg_cross", "a×b, two products and a difference", mul=2, add=1)
each("kron", "every product of two elements", mul=1)


@rule("aten._cdist_forward", "aten.cdist", family="reduction")
def cdist(x1: TensorSpec, out: Specs, p: Any = 2, **_: Any) -> Work:
    """‖x - y‖_p for every pair: per component 1 add for the difference and what the norm takes."""
    return distances(x1, out[0].numel, x1.shape[-1], p)


@rule("aten._euclidean_dist", family="reduction")
def euclidean(x1: TensorSpec, x2: TensorSpec, out: Specs, **_: Any) -> Work:
    """√(‖x‖² + ‖y‖² - 2·x·y): one matrix product, the squared norms (1 mul, 1 add per element), and 1 mul, 2 add,
    1 compare, 1 sqrt for each pair."""
    (m, k), n = x1.shape[-2:], x2.shape[-2]
    product = matmul(m, k, n, x1, x2, batch=math.prod(out[0].shape[:-2]))
    norms = pointwise(x1, x1.numel + x2.numel, mul=1, add=1)
    return product + norms + pointwise(x1, out[0].numel, mul=1, add=2, compare=1, sqrt=1)


@rule("aten._cdist_backward", family="reduction")
def cdist_backward(x1: TensorSpec, cdist: TensorSpec, p: Any = 2, **_: Any) -> Work:
    """Σ g·(x - y)/d for every pair: 1 div per pair, 2 add and 1 mul per component; other powers than 1, 2, inf also
    1 pow."""
    return _spread(x1, cdist.numel, p)


@rule("aten._pdist_forward", "aten.pdist", family="reduction")
def pdist(self: TensorSpec, out: Specs, p: Any = 2, **_: Any) -> Work:
    """‖x - y‖_p for every pair of rows once: per component 1 add for the difference and what the norm takes."""
    return distances(self, out[0].numel, self.shape[-1], p)


@rule("aten._pdist_backward", family="reduction")
def pdist_backward(self: TensorSpec, pdist: TensorSpec, p: Any = 2, **_: Any) -> Work:
    """As _cdist_backward, each pair adding to both its rows: 1 div per pair, 3 add and 1 mul per component."""
    return _spread(self, pdist.numel, p) + pointwise(self, pdist.numel * self.shape[-1], add=1)


def _spread(x: TensorSpec, pairs: int, p: Any) -> Work:
    power = int(p not in (1, 2, float("inf")))
    return pointwise(x, pairs * x.shape[-1], add=2, mul=1, pow=power) + pointwise(x, pairs, div=1)


@rule("aten.cosine_similarity", family="reduction")
def cosine_similarity(x1: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·y/(‖x‖·‖y‖): 3 mul and 3 add per element, 2 sqrt, 2 compare and 2 div per result."""
    elements = max(x1.numel, out[0].numel)
    return pointwise(x1, elements, mul=3, add=3) + pointwise(x1, out[0].numel, sqrt=2, compare=2, div=2)


@rule("aten.pairwise_distance", family="reduction")
def pairwise_distance(x1: TensorSpec, out: Specs, p: Any = 2, **_: Any) -> Work:
    """‖x - y + ε‖_p row by row: 2 add per component and what the norm takes."""
    return distances(x1, out[0].numel, x1.shape[-1], p) + pointwise(x1, x1.numel, add=1)
