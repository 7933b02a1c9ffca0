"""Distances and kernels between rows, as scikit-learn executes them: by matrix products, by trees, one by one.

Sizes: n queries, m points, f features. Counted with the valgrind tool against sklearn.metrics.pairwise, the reductions
of sklearn.metrics._pairwise_distances_reduction, and kd- and ball trees.
"""

from __future__ import annotations

import math
from dataclasses import replace

from bitwatt.dtypes import Precision
from bitwatt.formulas.lapack import gemv, syrk
from bitwatt.formulas.vector import DOUBLE, EXP, SINGLE, TANH, arithmetic, function, gemm, multiplied
from bitwatt.records import Work

#: One power by the C library; raising zero costs nothing. numpy's own runs on whole registers: 61.
POWER, POWERS = 63, (61, 27)
#: log2 of a length, once for each list that is sorted.
SORTING = 27
#: Operations on one pair of values: their difference, what becomes of it, and its sum.
_METRIC = {"sqeuclidean": 3, "euclidean": 3, "manhattan": 2, "cityblock": 2, "l1": 2, "chebyshev": 1, "infinity": 1,
           "canberra": 4, "braycurtis": 4, "cosine": 6, "correlation": 8, "seuclidean": 4,
           "jensenshannon": 75}  # fmt: skip
#: The C library's sine and cosine of angles within a turn, by tables; its arcsine.
SINE, ARCSINE = 23, 22
#: sin²(a/2) + cos·cos·sin²(b/2), of latitudes and longitudes.
_HAVERSINE = 4 * SINE + 9
#: scikit-learn's own metrics that count equal or common features as integers: operations on the counts of a pair.
_COUNTED = {"hamming": 1, "matching": 1, "jaccard": 1, "russellrao": 1, "rogerstanimoto": 2, "sokalmichener": 2,
            "dice": 3, "sokalsneath": 3}  # fmt: skip


def of_bits(bits: int) -> Precision:
    return SINGLE if bits == 32 else DOUBLE


#: scipy's own, for each feature and each pair: (2, 5) are products with norms that were taken before. What is the same
#: for all rows (the number of features as a sum of ones) it does once for four.
_SCIPY = {"hamming": (1.27, 1), "matching": (1.27, 1), "canberra": (5, 0), "braycurtis": (4.05, 1), "cosine": (2, 5),
          "correlation": (2, 5), "jensenshannon": (59, 2), "jaccard": (2, 3), "dice": (8, 3), "yule": (4, 6),
          "russellrao": (1.27, 2), "rogerstanimoto": (2, 3), "sokalsneath": (2, 3)}  # fmt: skip


def per_pair(metric: str, f: int, p: float = 2.0) -> float:
    """Operations of one distance between rows of f features, without a last root. Trees name theirs with the exponent,
    `MinkowskiDistance:3.0`."""
    name, _, power = metric.lower().partition(":")
    name, p = name.removesuffix("distance"), float(power or p)
    if name in _COUNTED:
        return _COUNTED[name]
    if name == "haversine":
        return _HAVERSINE
    if name == "mahalanobis":  # the difference, its products with a square matrix, and with them again
        return f * (2.0 * f + 3)
    if name == "minkowski" and p not in (1.0, 2.0):
        return f * (2.0 + POWER)
    return f * float(_METRIC.get({1.0: "manhattan"}.get(p, "euclidean") if name == "minkowski" else name, 3))


def has_root(metric: str) -> bool:
    return "euclidean" in metric.lower() and not metric.lower().startswith("sq")


def is_euclidean(metric: str, p: float) -> bool:
    """Whether the distance goes by products; `seuclidean` does not."""
    return metric in ("euclidean", "sqeuclidean", "EuclideanDistance") or (metric == "minkowski" and p == 2.0)


def _last_step(metric: str, found: int, precision: Precision) -> Work:
    """What makes distances of what was compared: a root, and the arcsine of it doubled."""
    is_round = metric.lower().startswith("haversine")
    roots = found if is_round or has_root(metric) else 0
    return arithmetic((ARCSINE + 1) * found * is_round, DOUBLE) + arithmetic(0, precision, sqrt=roots)


def _of_ball(metric: str) -> float:
    """How far a ball is, beside the distance of its centre: its root, the radius off, and what is compared of it."""
    if metric.lower().startswith("haversine"):
        return 2 + ARCSINE + 3 + SINE
    return 3 if has_root(metric) else 1


def product(m: int, k: int, n: int, precision: Precision, *, same: bool = False) -> Work:
    """X·Yᵀ; with itself OpenBLAS computes half."""
    if n == 1 or m == 1:
        return gemv(max(m, n), k, precision)
    return syrk(m, k, precision) if same else multiplied(m, k, n, precision)


def sparse_product(stored: int, n: int, precision: Precision) -> Work:
    """A sparse matrix times n columns: each stored element meets each column."""
    return arithmetic(2 * stored * n, precision)


def row_norms(n: int, f: int, precision: Precision, *, stored: int = -1, squared: bool = True) -> Work:
    """xᵀx of each row: 2 per element (a register of partial sums is added up at the end of each row), and a root."""
    elements = n * (2 * f + (13 if precision.bits == 32 else 3 + 2 * (f % 2))) if stored < 0 else 2 * stored
    return arithmetic(elements, precision, sqrt=0 if squared else n)


def euclidean(n: int, m: int, f: int, bits: int, *, squared: bool, same: bool) -> Work:
    """What |x|² - 2xᵀy + |y|² takes beyond the product and the norms: 3 for each pair, in double, and the root in the
    precision of the data. Single precision goes block by block, and takes only half of the blocks of X with itself."""
    share = 1.0
    if bits == 32 and same:
        limit = max((2 * n * f + n * m) / 10, 10 * 2**17)
        blocks = math.ceil(n / max(int((-2 * f + math.sqrt(4 * f * f + 4 * limit)) / 2), 1))
        share = (blocks + 1) / (2 * blocks)
    return arithmetic(3 * n * m * share, DOUBLE) + arithmetic(0, of_bits(bits), sqrt=0 if squared else n * m)


def reduction(
    n: int, f: int, m: int, *, metric: str, p: float, found: int, wanted: bool, bits: int, lists: int
) -> Work:
    """Distances of which only the nearest are kept. Euclidean: norms by dot products, -2xᵀy by blocks of 256 rows, two
    additions for each pair; always in double. Others one by one, the difference in the precision of the data. The
    distances that are wanted get their root; lists of more than one are sorted."""
    data = of_bits(bits)
    roots = _last_step(metric, found * wanted, data)
    sorting = arithmetic(SORTING * lists, DOUBLE)
    if is_euclidean(metric, p):
        norms = (n + m) * (2 * f + (16 if f >= 16 else 0))
        odd = 4 * m if n % 2 else 0  # the last of an odd number of rows goes through a kernel of its own
        return gemm(n, f, m, DOUBLE) + arithmetic(2 * n * m + norms + odd, DOUBLE) + roots + sorting
    each = per_pair(metric, f, p)
    first = n * m * f if bits == 32 else 0
    powers = POWER * found if wanted and metric == "minkowski" and p not in (1.0, 2.0) else 0
    return arithmetic(n * m * each - first + powers, DOUBLE) + arithmetic(first, data) + roots + sorting


def sparse_reduction(
    n: int, f: int, m: int, *, metric: str, p: float, found: int, wanted: bool, bits: int, lists: int,
    stored: tuple[int, int], meeting: int,
) -> Work:  # fmt: skip
    """As `reduction` where one or both sides are sparse (others -1). Euclidean: three operations wherever two elements
    meet, in double; others go along the elements that either row has, with no difference to take where only one has
    it, in the precision of the data."""
    own, other = (n * f if stored[0] < 0 else stored[0]), (m * f if stored[1] < 0 else stored[1])
    if min(stored) < 0:
        meeting = own * m if stored[0] >= 0 else other * n
    rest = _last_step(metric, found * wanted, of_bits(bits)) + arithmetic(SORTING * lists, DOUBLE)
    if is_euclidean(metric, p):
        dense = (n if stored[0] < 0 else 0) + (m if stored[1] < 0 else 0)
        norms = 2 * (own + other) + dense * (16 if f >= 16 else 0)
        return arithmetic(3 * meeting + 2 * n * m + norms, DOUBLE) + rest
    either = own * m + other * n - meeting
    return arithmetic(per_pair(metric, 1, p) * either - (either - meeting), of_bits(bits)) + rest


def one_by_one(n: int, m: int, f: int, metric: str, p: float = 2.0) -> Work:
    """scipy's cdist: each pair on its own, in double."""
    if metric in _SCIPY:
        each, pair = _SCIPY[metric]
        rows = {"cosine": 2, "correlation": 4}.get(metric, 0) * f * (n + m if m > 1 else math.sqrt(2 * n))
        return arithmetic(n * m * (each * f + pair) + rows, DOUBLE)
    if metric == "mahalanobis":  # f + 1 dot products, of which each adds two sums up
        return arithmetic(n * m * (f + (f + 1) * (2 * f + 2)), DOUBLE, sqrt=n * m)
    roots = n * m if has_root(metric) or (metric == "minkowski" and p == 2.0) else 0
    return arithmetic(n * m * per_pair(metric, f, p), DOUBLE, sqrt=roots)


def missing(n: int, m: int, f: int, precision: Precision) -> Work:
    """What distances between rows of which some values are missing take beyond those with zeros in their place: squares
    of all values, two products that take off what is missing, and for each pair two differences, the share of what is
    there (2) and the root."""
    squares = arithmetic((n + m) * f, precision)
    return squares + gemm(n, f, m, precision) * 2 + arithmetic(4 * n * m, precision, sqrt=n * m)


def kernel(name: str, n: int, m: int, bits: int, degree: float = 3.0, f: int = 0, vanished: int = 0) -> Work:
    """What a kernel does to each product or distance: exp(-gamma·d), (gamma·d + c)^degree, tanh(gamma·d + c). Groups of
    exponentials in double that all vanish (sixteenths) are left out, and quotients of zeros (per thousand)."""
    pairs, precision = n * m, of_bits(bits)
    if name in ("rbf", "laplacian"):
        left_out = vanished / 16 if bits == 64 else 0
        return arithmetic(pairs, precision) + function(EXP, pairs * (1 - left_out), precision)
    if name == "sigmoid":
        return arithmetic(2 * pairs, precision) + function(TANH, pairs, precision)
    if name == "polynomial":
        power = arithmetic(pairs * (degree == 2), precision)
        if degree not in (1, 2):  # single precision is raised in double
            power = arithmetic(pairs * POWERS[bits == 32], DOUBLE)
        return arithmetic(2 * pairs, precision) + power
    if name == "chi2":
        return arithmetic(pairs, precision) + function(EXP, pairs, precision)
    if name == "additive_chi2":  # sums and differences as the data are; squares, quotients and their sums in double
        return arithmetic(2 * f * pairs, precision) + arithmetic(3 * f * pairs * (1 - vanished / 1000), DOUBLE)
    raise ValueError(f"unknown kernel {name}")


def levels_of(nodes: int) -> int:
    return max(int(math.log2(nodes + 1)), 1)


def _beyond(visited: list[float], n: int, f: int) -> list[float]:
    """In how many features a query lies beyond a node's box, by level. Of the features that were split, half, where all
    of the nodes are visited, less where the near ones are; of the others 2 of n + 1 points."""
    found = []
    for level, count in enumerate(visited):
        halvings = math.log2(max(min(count, 2.0**level), 1.0))
        split = halvings / 2 if halvings <= f else f * (1 - 2 ** (-halvings / f))
        found.append(split + max(f - halvings, 0) * 2 / (n / 2.0**level + 1))
    return found


def _spread(total: float, levels: int) -> list[float]:
    """So many visits of nodes, over the levels of the tree: an equal number at each, as far as it has nodes."""
    visited, left = [], total
    for level in range(levels):
        visited.append(min(2.0**level, left / (levels - level)))
        left -= visited[-1]
    return visited


def tree_built(kind: str, metric: str, n: int, f: int, nodes: int, weighted: bool = False, flat: int = 0) -> Work:
    """Every level looks at all points. kd-tree: the spread of each feature (f) where it splits, and the radius of
    each node, f powers (half of the box, squared; of `flat` sides known) and a root. Ball tree: the centre (f
    additions a point, f products and a sum more where it has a weight), the distance of each point to it, and the
    spread."""
    levels = levels_of(nodes)
    inner = nodes // 2
    if kind == "KDTree":
        powers = (nodes * (f + 1) - flat) * box_power(metric)
        return arithmetic(nodes * 3 * f + powers + inner * f, DOUBLE)
    points = n * levels
    centre = 2 * f + 1 if weighted else f
    return arithmetic(points * (centre + per_pair(metric, f)) + nodes * (f + 1) + inner * f, DOUBLE)


def tree_query(
    kind: str, metric: str, n: int, f: int, nodes: int, queries: int, computed: int, splits: int, neighbours: int,
    *met: int,
) -> Work:  # fmt: skip
    """The distances it computed, and for every node it looked at (the root and both children of each that it split) how
    far its box is: 7 for each feature, and a power where the query lies beyond it (of many queries taken from some:
    hundredths of sides that one box has, `met`). A ball is one distance and its root, less the radius, squared again.
    Lists are sorted, roots taken at the end."""
    looked = queries + 2 * splits
    sorting = SORTING * queries if neighbours > queries else 0
    powers = POWER * neighbours if ":" in metric else 0
    work = arithmetic(computed * per_pair(metric, f) + sorting + powers, DOUBLE)
    work += _last_step(metric, neighbours, DOUBLE)
    if kind != "KDTree":
        return work + arithmetic(looked * _of_ball(metric), DOUBLE)
    visited = _spread(looked / max(queries, 1), levels_of(nodes))
    beyond = sum(v * b for v, b in zip(visited, _beyond(visited, n, f), strict=True)) / sum(visited)
    beyond = met[0] / 100 if met else beyond
    power = box_power(metric)
    each = f * (7 if power else 6) + power * beyond
    return replace(work + arithmetic(looked * each, DOUBLE), estimated=True)


def tree_radius(
    kind: str, metric: str, n: int, f: int, nodes: int, queries: int, computed: int, found: int, wanted: bool,
    *met: int,
) -> Work:  # fmt: skip
    """As `tree_query`; a node's nearest and farthest point are both taken, which is a power for each feature more. The
    tree does not tell how many nodes it looked at: taken from some queries of many (hundredths for one of them: nodes
    `met`, sides of boxes it is beyond, boxes it is outside of), else from the share of points it came to, level by
    level."""
    work = arithmetic(computed * per_pair(metric, f), DOUBLE) + _last_step(metric, found * wanted, DOUBLE)
    share = max(computed, found) / max(n * queries, 1)
    # All of the tree lies within the radius: nothing was computed but how far a ball's centre is.
    inside = found >= n * queries and computed <= queries
    looked = [1.0] if inside else _nodes_looked_at(nodes, share)
    if kind != "KDTree":
        return work + arithmetic(max(_of_ball(metric), 3) * sum(looked) * queries, DOUBLE)
    power = box_power(metric)
    if met:
        boxes, sides, outside = met
        each = boxes * (f * (8 + power if power else 6) + power) + power * (sides + outside)
        return work + arithmetic(queries * each / 100, DOUBLE)
    return replace(work + _boxes(looked, n, f, power) * queries, estimated=True)


def _nodes_looked_at(nodes: int, share: float) -> list[float]:
    """By level and query: both children of each node that was opened."""
    levels = levels_of(nodes)
    share = min(max(share, 0.0), 1.0)
    opened = [max(2.0**level * share ** (level / max(levels - 1, 1)), 1.0) for level in range(levels)]
    return [1.0, *(2 * opened[level] for level in range(levels - 1))]


def box_power(metric: str) -> int:
    """A power for each coordinate of a box's distance; the largest coordinate (Chebyshev) needs none, and no sums."""
    return 0 if metric.lower().startswith("chebyshev") else POWER


def _boxes(looked: list[float], n: int, f: int, power: int = POWER) -> Work:
    total = 0.0
    for count, beyond in zip(looked, _beyond(looked, n, f), strict=True):
        total += count * (f * (8 + power if power else 6) + power * (beyond + 1 + min(beyond, 1)))
    return arithmetic(total, DOUBLE)


#: Operations of the C library's functions on one number.
_EXP, _LOG, _COS = 16, 17, 30
_LOG_ADD = 2 * _EXP + _LOG + 4
_KERNEL = {"gaussian": 4, "exponential": 1, "tophat": 0, "epanechnikov": 4, "linear": 2, "cosine": 3 + _COS}
#: Those that end at the bandwidth are a logarithm.
_LOG_KERNEL = _KERNEL | {name: _KERNEL[name] + _LOG for name in ("epanechnikov", "linear", "cosine")}

#: The share of points within the bandwidth of a kernel that ends there: what it is good for is a small one.
_WITHIN = 1 / 8


def tree_density(
    kind: str, metric: str, n: int, f: int, nodes: int, queries: int, computed: int, kernel: str,
    weighted: bool = False, *met: int,
) -> Work:  # fmt: skip
    """For each point a distance, the logarithm of the kernel (and of its weight), and log(exp a + exp b); for each
    node the nearest and farthest point, their kernels, and seven such sums and differences to keep the bounds.
    Kernels that end at the bandwidth do this only within it. How often, some queries may tell (`met`: their number, and
    what they met)."""
    if met:
        return _density_met(kind, metric, f, queries, computed, kernel, *met)
    within = 1.0 if kernel in ("gaussian", "exponential") else _WITHIN
    each = per_pair(metric, f) + 1 + within * (_LOG_KERNEL.get(kernel, 4) + _LOG_ADD + (_LOG + 1) * weighted)
    looked = _nodes_looked_at(nodes, computed / max(n * queries, 1))
    bounds = within * sum(looked) * (2 * _LOG_KERNEL.get(kernel, 4) + 2 * _LOG + 7 * _LOG_ADD)
    boxes = _boxes(looked, n, f) if kind == "KDTree" else arithmetic(3 * sum(looked), DOUBLE)
    work = arithmetic(computed * each, DOUBLE) + (arithmetic(bounds, DOUBLE) + boxes) * queries
    return replace(work, estimated=True)


def _density_met(
    kind: str, metric: str, f: int, queries: int, computed: int, kernel: str, looked: int, boxes: int, sides: int,
    outside: int, points: int, kernels: int, sums: int, exponentials: int, logarithms: int, near: int,
) -> Work:  # fmt: skip
    """Of the queries that were `looked` at: bounds of nodes, kernels without their logarithms, and the additions,
    exponentials (20) and logarithms (22; 39 near to one) by which densities are added up and taken off; of all queries
    in proportion to the distances they computed."""
    power = box_power(metric)
    boxed = boxes * (f * (8 + power if power else 6) + power) + power * (sides + outside)
    each = boxed if kind == "KDTree" else 2 * boxes
    each += sums + kernels * _KERNEL.get(kernel, 4) + 20 * exponentials + 22 * logarithms + 39 * near
    theirs = points if kind == "KDTree" else points + boxes + looked
    share = computed / theirs if min(computed, theirs) else queries / looked
    pairs = computed * (per_pair(metric, f) + has_root(metric))
    return replace(arithmetic(share * each + pairs, DOUBLE), estimated=True)


def neighbourhood_loss(n: int, f: int, components: int, bits: int) -> Work:
    """Neighbourhood components analysis, one evaluation beyond its distances: X·Aᵀ, the softmax of all distances (an
    exponential and 3), eight operations on each pair, and the gradient (EᵀW)·X. Exponentials of far points vanish, of
    which there are as many as the scale of the data makes."""
    pairs, precision = n * n, of_bits(bits)
    products = gemm(n, f, components, precision) + gemm(components, n, n, precision) + gemm(components, n, f, precision)
    work = products + arithmetic(10 * pairs, precision) + function(EXP, pairs, precision)
    return replace(work, estimated=True)
