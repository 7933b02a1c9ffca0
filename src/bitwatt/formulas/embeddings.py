"""Steps of manifold learning beyond the distances, neighbours and eigenproblems that are counted on their own."""

from __future__ import annotations

import math
from dataclasses import replace

from bitwatt.formulas.vector import DOUBLE, LOG, SINGLE, arithmetic, gemm
from bitwatt.records import Work


def tsne_exact(n: int, components: int, stored: int, loss: bool) -> Work:
    """One gradient over all pairs: Student's kernel and its sum (6 on each of n²/2 pairs), the loss a logarithm of
    each, and the force on each point, a product of its row with all differences (3 for each component)."""
    pairs = n * n / 2
    work = arithmetic(pairs * (8 + (LOG[0] + 4) * loss) + n * n * 2 * components, DOUBLE)
    return work + arithmetic(n * n * components, SINGLE)  # the differences of coordinates


#: Cells that a point looks at beside those of its own neighbourhood, and operations on each, at an angle of 0.5.
_CELL = 19


def tsne_tree(n: int, components: int, stored: int, loss: bool) -> Work:
    """One gradient with a tree: every point looks at most of n cells where there are few, at 22·log2(n) where there are
    many; each costs the difference, the squared distance and the force. Then the forces of its neighbours. In single
    precision; how many cells are looked at depends on where the points lie."""
    cells = min(0.78 * n, 22 * math.log2(max(n, 2)))
    attraction = stored * (4 * components + 4 + (LOG[1] + 3) * loss)
    build = n * math.log2(max(n, 2)) * (4 * components + 4)
    return replace(arithmetic(n * cells * _CELL + attraction + build, SINGLE), estimated=True)


def tsne_pairs(n: int, neighbours: int, bisections: int) -> Work:
    """Bandwidths for the perplexity: bisections, each an exponential, a sum and a product for each pair (20)."""
    return replace(arithmetic(20 * bisections * n * neighbours, DOUBLE), estimated=True)


def majorised(n: int, components: int) -> Work:
    """One step of SMACOF beyond its distances: the stress (3n²), the ratio and its sums (3n²), and the transform."""
    return gemm(n, n, components, DOUBLE) + arithmetic(6 * n * n, DOUBLE)


def centred_twice(n: int) -> Work:
    """Squared, less the means of rows and columns, halved."""
    return arithmetic(7 * n * n, DOUBLE)


def barycentres(points: int, neighbours: int, f: int) -> Work:
    """Weights that rebuild each point from its neighbours: differences, their Gram matrix; solving is counted."""
    return arithmetic(points * neighbours * (2 * neighbours * f + f + 3), DOUBLE)


def shortest_paths(n: int, edges: int, *, dense: bool) -> Work:
    """Floyd and Warshall add n³ times, less a third for what is not connected yet; Dijkstra from every point adds once
    for each edge, seen from both ends."""
    return replace(arithmetic(2 / 3 * n**3 if dense else 2 * n * edges, DOUBLE), estimated=True)


def through_neighbours(queries: int, neighbours: int, n: int) -> Work:
    """Distances of new points to all others by way of their neighbours, squared and halved."""
    return arithmetic(queries * n * (neighbours + 2), DOUBLE)
