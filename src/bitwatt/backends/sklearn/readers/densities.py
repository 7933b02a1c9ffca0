"""Kernel densities of trees: some queries take their way through the tree again, and it is told what they met.

A tree says how many distances it computed, and neither how many nodes it looked at nor which way the C library took for
the exponentials and logarithms by which it adds densities up: those depend on the values.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from heapq import heappop, heappush
from typing import Any

#: Of so many queries one is looked at, which takes as long as ten of them: a fiftieth of the call. So many at most.
_ONE_OF, _MOST = 500, 16
_POWERS = {"EuclideanDistance": 2.0, "ManhattanDistance": 1.0, "ChebyshevDistance": math.inf}
#: Logarithms take a longer polynomial between these; sums of exponentials below the last are nothing beside one.
_NEAR, _NOTHING = (1 - 1 / 16, 1.0647), 2.0**-53
_VANISHED, _SMALL = -745.13, math.log(_NEAR[0])
#: Kernels that end at the bandwidth, and are the logarithm of something within it.
_ENDING = ("epanechnikov", "linear", "cosine")


@dataclass
class Met:
    """Of the queries together: nodes whose bounds were taken, sides of boxes they lie beyond, boxes they are outside
    of; points; kernels that do not vanish; additions, exponentials, logarithms, those near to one."""

    ends: bool
    boxes: int = 0
    sides: int = 0
    outside: int = 0
    points: int = 0
    kernels: int = 0
    sums: int = 0
    exponentials: int = 0
    logarithms: int = 0
    near: int = 0

    def take_logarithm(self, value: float) -> None:
        if abs(value - 1) >= _NOTHING:
            is_near = _NEAR[0] < value < _NEAR[1]
            self.near, self.logarithms = self.near + is_near, self.logarithms + (not is_near)

    def take_kernel(self, log: float) -> None:
        """The logarithm of a kernel that does not vanish; those that end at the bandwidth are one of something."""
        self.kernels += log > -math.inf
        if self.ends and -math.inf < log < 0:
            self.near, self.logarithms = self.near + (log > _SMALL), self.logarithms + (log <= _SMALL)

    def take_kernels(self, logs: Any) -> None:
        """The same for many."""
        some = logs > -math.inf
        self.kernels += int(some.sum())
        if self.ends:
            near, far = (logs > _SMALL) & (logs < 0), some & (logs <= _SMALL)
            self.near, self.logarithms = self.near + int(near.sum()), self.logarithms + int(far.sum())

    def add(self, a: float, b: float) -> float:
        """log(exp a + exp b)."""
        if a < b:
            a, b = b, a
        if a == -math.inf:
            return a
        self.sums += 5
        self.exponentials += b != a and b - a > _VANISHED
        total = 1 + math.exp(b - a)
        self.take_logarithm(total)
        return a + math.log(total)

    def take_off(self, a: float, b: float) -> float:
        """log(exp a - exp b)."""
        if a <= b:
            return -math.inf
        self.sums += 3
        self.exponentials += b - a > _VANISHED
        left = 1 - math.exp(b - a)
        self.take_logarithm(left)
        return a + math.log(left) if left > 0 else -math.inf


def met(tree: Any, metric: str, queries: Any, h: float, kernel: str, tolerances: tuple[float, float, float]) -> Any:
    """How many queries were looked at, and what they met; nothing where they are few, or the metric is another one.
    Bounds are compared within the tolerances, absolute and relative, beside a norm that cancels out unless it is no
    number."""
    import numpy as np

    power = _POWERS.get(metric)
    number = min(len(queries) // _ONE_OF, _MOST)
    if power is None or not number or getattr(tree, "sample_weight", None) is not None:
        return ()
    data, index, nodes, bounds = map(np.asarray, tree.get_arrays())
    plain = [nodes[name].tolist() for name in ("idx_start", "idx_end", "is_leaf")]
    found = Met(kernel in _ENDING)
    for query in np.asarray(queries, dtype=float)[:: -(-len(queries) // number)][:number]:
        near, far, beyond = _bounds(query, bounds, nodes["radius"], power)
        logs = _log_kernel(_length(data - query, power), h, kernel)[index]
        low, high = _log_kernel(far, h, kernel), _log_kernel(near, h, kernel)
        _walk(found, plain, near.tolist(), (low.tolist(), high.tolist()), beyond, logs, tolerances)
    return (number, *astuple(found)[1:])


def _length(differences: Any, power: float) -> Any:
    import numpy as np

    sizes = np.abs(differences)
    return sizes.max(axis=-1) if power == math.inf else (sizes**power).sum(axis=-1) ** (1 / power)


def _bounds(query: Any, bounds: Any, radius: Any, power: float) -> tuple[Any, Any, Any]:
    """The nearest and farthest point of each node, and in how many features the query lies beyond it."""
    import numpy as np

    if len(bounds) == 1:  # balls
        centre = _length(bounds[0] - query, power)
        return np.maximum(centre - radius, 0), centre + radius, np.zeros(len(radius), dtype=int)
    below, above = bounds[0] - query, query - bounds[1]
    gaps = np.maximum(np.maximum(below, above), 0)
    widths = np.maximum(np.abs(below), np.abs(above))
    return _length(gaps, power), _length(widths, power), (gaps > 0).sum(axis=1)


def _log_kernel(distance: Any, h: float, kernel: str) -> Any:
    import numpy as np

    d = distance / h
    if kernel == "gaussian":
        return -0.5 * d * d
    if kernel == "exponential":
        return -d
    inside = np.minimum(d, 1)
    with np.errstate(divide="ignore"):
        logs = {
            "tophat": lambda: np.zeros_like(d), "epanechnikov": lambda: np.log(1 - inside * inside),
            "linear": lambda: np.log(1 - inside), "cosine": lambda: np.log(np.cos(0.5 * np.pi * inside)),
        }[kernel]()  # fmt: skip
    return np.where(d < 1, logs, -np.inf)


def _walk(
    found: Met, nodes: Any, near: list[float], kernels: tuple[list[float], list[float]], beyond: Any, logs: Any,
    tolerances: tuple[float, float, float],
) -> None:  # fmt: skip
    """The nearest node first: left alone where its bounds are as near to each other as is asked for, all points of a
    leaf, else both children; until what is left cannot add anything."""
    begins, ends, leaves = nodes
    low, high, (absolute, relative, norm) = *kernels, tolerances

    def look(node: int) -> tuple[float, float]:
        """Bounds on the density of a node's points: their number, and the kernel of its farthest and nearest point."""
        found.boxes, found.sides = found.boxes + 1, found.sides + int(beyond[node])
        found.outside += near[node] > 0
        found.take_kernel(low[node])
        found.take_kernel(high[node])
        number = ends[node] - begins[node]
        found.sums, found.logarithms = found.sums + 2, found.logarithms + 2 * (number > 1)
        return math.log(number) + low[node], math.log(number) + high[node]

    bounds = {0: look(0)}
    least, most = bounds[0]
    most, every = found.take_off(most, least), math.log(len(logs)) + norm
    bounds[0] = least, most
    heap = [(near[0], 0)]
    while heap:
        _, node = heappop(heap)
        number = ends[node] - begins[node]
        found.sums, found.logarithms = found.sums + 5, found.logarithms + 1 + (number > 1)
        if bounds[node][1] - math.log(number) + every <= found.add(absolute, relative + norm + bounds[node][0]):
            continue
        found.sums += 3
        if most + norm <= found.add(absolute, relative + norm + least):
            break
        least, most = found.take_off(least, bounds[node][0]), found.take_off(most, bounds[node][1])
        if leaves[node]:
            least = _add_points(found, least, logs[begins[node] : ends[node]])
            continue
        for child in (2 * node + 1, 2 * node + 2):
            bounds[child] = look(child)
            least, most = found.add(least, bounds[child][0]), found.add(most, bounds[child][1])
            heappush(heap, (near[child], child))
    found.add(least, most - math.log(2))


def _add_points(found: Met, total: float, logs: Any) -> float:
    """Each point's kernel to the sum of those before."""
    import numpy as np

    sums = np.logaddexp.accumulate(np.concatenate([[total], logs]))
    before, after = sums[:-1], sums[1:]
    some = logs > -math.inf
    counted = some | (before > -math.inf)
    larger = np.maximum(before, logs)
    with np.errstate(invalid="ignore"):
        apart, inner = np.abs(before - logs), np.exp(after - larger)
    near = (inner < _NEAR[1]) & (apart < -math.log(_NOTHING))
    found.points += len(logs)
    found.take_kernels(logs)
    found.sums += len(logs) + 5 * int(counted.sum())
    found.exponentials += int((apart < -_VANISHED).sum())
    found.near += int(near.sum())
    found.logarithms += int((inner >= _NEAR[1]).sum())
    return float(sums[-1])
