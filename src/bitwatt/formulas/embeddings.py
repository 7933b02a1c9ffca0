"""Steps of manifold learning beyond the distances, neighbours and eigenproblems that are counted on their own."""

from __future__ import annotations

import math
from dataclasses import replace

from bitwatt.formulas.distances import POWERS
from bitwatt.formulas.vector import DOUBLE, LOG, SINGLE, arithmetic, gemm
from bitwatt.records import Work


def tsne_exact(n: int, components: int, stored: int, loss: bool) -> Work:
    """One gradient over all pairs: Student's kernel and its sum (6 on each of n²/2 pairs), the loss a logarithm of
    each, and the force on each point, a product of its row with all differences (3 for each component)."""
    pairs = n * n / 2
    work = arithmetic(pairs * (8 + (LOG[0] + 4) * loss) + n * n * 2 * components, DOUBLE)
    return work + arithmetic(n * n * components, SINGLE)  # the differences of coordinates


def tsne_tree(n: int, components: int, stored: int, loss: bool, tenths: int = -1) -> Work:
    """One gradient with a tree: every point looks at `tenths` of cells, where some were asked; else at most of n cells
    where there are few, at 22·log2(n) where there are many. To find a cell its distance is measured (3 for each
    component) and judged, and that of those opened on the way, 0.45 for each in a plane and 0.24 in space, where they
    hold more. Its kernel and sums are 2 in single precision and 3 in double, its force fills a register of four with
    two operations; so do the differences, squares and forces of neighbours. Other kernels than Student's with one
    degree of freedom, in space, are powers; the loss is a logarithm in double. How many cells are looked at depends on
    where the points lie."""
    cells = n * (tenths / 10 if tenths >= 0 else min(0.78 * n, 22 * math.log2(max(n, 2))))
    more = max(components - 2, 0)
    found = (3 * components + 1) * (1.24 if more else 1.45)
    build = n * math.log2(max(n, 2)) * (4 * components + 4)
    single = cells * (found + 10 + 2 * more) + stored * (21 + 5 * more + loss) + build
    power, single_power = POWERS if more else (0, 0)
    double = cells * (3 + power) + stored * (single_power + (LOG[0] + 3) * loss)
    return replace(arithmetic(single, SINGLE) + arithmetic(double, DOUBLE), estimated=True)


def tsne_pairs(n: int, neighbours: int, bisections: int) -> Work:
    """Bandwidths for the perplexity: bisections, each an exponential (20), a product and a sum for each pair, and a
    division, a product and a sum again."""
    return replace(arithmetic(25 * bisections * n * neighbours, DOUBLE), estimated=True)


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
