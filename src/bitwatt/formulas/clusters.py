"""Inner loops of clustering, as compiled: n rows, f features, k centres; `stored` elements of a sparse X, else -1."""

from __future__ import annotations

import math
from dataclasses import replace

from bitwatt.formulas.arrays import column_variances
from bitwatt.formulas.distances import of_bits, sparse_product
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm
from bitwatt.records import Work


def _stored(n: int, f: int, stored: int) -> int:
    return n * f if stored < 0 else stored


def lloyd(n: int, f: int, k: int, bits: int, stored: int, moves: bool) -> Work:
    """One iteration: -2·X·Cᵀ added to |c|² (counted on their own; of an empty row nothing but |c|² is left), the
    smallest taken. Where the centres move: each row
    times its weight is added to its centre (2 per element) and the weights to each other; then the division by the
    weight and how far each centre went (4kf)."""
    precision = of_bits(bits)
    if stored < 0:
        work = gemm(n, f, k, precision)
    else:
        filled = 1 - math.exp(-stored / max(n, 1))  # rows that store anything, if positions are independent
        work = sparse_product(stored, k, precision) + arithmetic((1 + filled) * n * k, DOUBLE)
    if moves:
        work += arithmetic(2 * _stored(n, f, stored) + n + k * (5 * f + 6), precision)
    return work


def _unused(f: int, bits: int) -> int:
    """Lanes that hold nothing when a distance is compiled for single precision: features go by four, four such groups
    at a time; two or three that are left over of groups take two half-filled registers (22 operations on nothing), and
    of features one (4)."""
    return 22 * (f // 4 % 4 >= 2) + 4 * (f % 4 >= 2) if bits == 32 else 0


def _meeting(bits: int) -> int:
    """A stored element and its centre: (x - c)² - c² is added; in single precision a lane more is filled."""
    return 6 if bits == 32 else 5


def inertia(n: int, f: int, k: int, bits: int, stored: int, moves: bool = False) -> Work:
    """The squared distance of each row to its centre (3 per element), times its weight."""
    if stored < 0:
        return arithmetic(n * (3 * f + _unused(f, bits) + 2), of_bits(bits))
    return arithmetic(_meeting(bits) * stored + 3 * n, of_bits(bits))


def elkan_bounds(n: int, f: int, k: int, bits: int, stored: int, tenths: int = -1) -> Work:
    """Elkan's first assignment: a distance to each centre unless half of the distance between centres rules it out,
    which it seldom does before the centres have moved apart: `tenths` of distances for each row where they were
    seen."""
    return replace(_distances(n * (k if tenths < 0 else tenths / 10), n, f, bits, stored), estimated=True)


def _distances(count: float, n: int, f: int, bits: int, stored: int) -> Work:
    """So many distances, one by one; the root is in double whatever comes in."""
    each = 3 * f + _unused(f, bits) if stored < 0 else _meeting(bits) * stored / max(n, 1) + 1
    return arithmetic(count * each, of_bits(bits)) + Work.of(DOUBLE, sqrt=round(count))


def elkan(n: int, f: int, k: int, bits: int, stored: int, moves: bool, tenths: int = 10) -> Work:
    """One iteration with bounds that rule out most distances: `tenths` of them are left for each row, about ten if
    nobody saw (that depends on the data). The bounds are moved by how far the centres went (nk + n), and the centres as
    in `lloyd`."""
    work = _distances(n * tenths / 10, n, f, bits, stored)
    if moves:
        moved = n * k + n + 2 * _stored(n, f, stored) + n + k * (5 * f + 6)
        work += arithmetic(moved, of_bits(bits))
    return replace(work, estimated=True)


def minibatch(n: int, f: int, k: int, bits: int, stored: int, moves: bool = True) -> Work:
    """The rows of a batch into their centres: the old centre times its weight, each row times its own added, and the
    division by the new weight."""
    return arithmetic(2 * _stored(n, f, stored) + n + k * (2 * f + 2), of_bits(bits))


def plus_plus(n: int, f: int, k: int, candidates: int, bits: int) -> Work:
    """k-means++ beyond its distances: for each further centre the weighted distances and their running sum (2n), and
    the potential of each candidate (2n, and the registers of each dot product); the weights' sum in the beginning."""
    return arithmetic(2 * n + 17 + (k - 1) * (2 * n + candidates * (2 * n + 17)), DOUBLE)


def tolerance(n: int, f: int, bits: int, stored: int) -> Work:
    """The mean of the features' variances."""
    if stored < 0:
        return column_variances(n, f, of_bits(bits))
    return arithmetic(9 * stored + 29 * f, DOUBLE)


def ward_pairs(pairs: int, f: int) -> Work:
    """What merging two clusters costs: their means' squared distance (5 for each feature) times their common weight."""
    return arithmetic(pairs * (5 * f + 4), DOUBLE)


#: One merger changes the distance to every other cluster; operations on each (Lance and Williams).
#: ward: sqrt(((i + x)·a² + (i + y)·b² - i·c²) / (x + y + i)); average: (x·a + y·b) / (x + y).
LINKAGE = {"ward": 13, "average": 4, "complete": 0, "single": 0}


def linked(n: int, linkage: str) -> Work:
    """n - 1 mergers, each of which leaves one cluster less: half of n² distances are changed."""
    return arithmetic(LINKAGE.get(linkage, 0) * n * n / 2, DOUBLE)


def birch_inserted(n: int, f: int, held_by_level: tuple[float, ...], bits: int) -> Work:
    """Each row goes down the tree: at every node the product with its subclusters' centroids, two operations on each;
    the subcluster it ends in, and those on the way, take it up (6f). Nodes had fewer subclusters before: taken as three
    quarters of what they hold now."""
    each = sum(0.75 * held * (2 * f + 8) + 6 * f + 17 for held in held_by_level)
    return replace(arithmetic(n * each, of_bits(bits)), estimated=True)


def scaled_both_ways(n: int, f: int, bits: int, stored: int) -> Work:
    """Rows and columns divided by the roots of their sums: two sums, two products."""
    return arithmetic(4 * _stored(n, f, stored) + 3 * (n + f), of_bits(bits))


def spanned(n: int, f: int, each: float) -> Work:
    """A spanning tree by Prim's algorithm: every pair's distance once, n²/2."""
    return arithmetic(n * n / 2 * each, DOUBLE)


def affinity_messages(n: int, iterations: int) -> Work:
    """Responsibilities and availabilities: ten operations on each pair and iteration; noise before (25)."""
    return arithmetic(n * n * (10 * iterations + 25), DOUBLE)


def weighted_choice(n: int, chosen: int) -> Work:
    """numpy's choice with probabilities: their sum with compensation (4), the running sum, a division by its end."""
    return arithmetic(6 * n + 3 * chosen, DOUBLE)
