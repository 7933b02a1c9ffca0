"""Growing decision trees sample by sample, as scikit-learn's Cython code does it, and descending them.

The search for a split goes through every candidate position of every feature it looks at; what one position and one
step between positions cost depends on the criterion. Sorting and descending compare, they do no arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from bitwatt.dtypes import Precision
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic
from bitwatt.records import Work

#: Operations of one scalar call in the C library: the polynomial of its FMA variant, counted from its source. The
#: trees' own log2 divides the natural logarithm by ln 2.
LOG2, LOG = 27, 22


@dataclass(frozen=True)
class Columns:
    """What columns hold: how many distinct values so many rows have, on average and less than two in what share of
    them; in what share of columns values are missing, and how many there. Nothing was looked at if `distinct` is
    empty. `density` is that of a sparse matrix."""

    distinct: tuple[tuple[int, float, float], ...] = ()  # rows, distinct values among them, share with two or more
    gapped: float = 0.0
    gaps: float = 0.0
    density: float = 1.0
    width: int = 1  # how many columns there are
    kinds: tuple[tuple[int, Columns], ...] = ()  # columns that are alike, and how many of them
    present: float = 1.0  # share of the values that are not missing, which alone can be distinct

    @property
    def is_plain(self) -> bool:
        """No ties to speak of and no gaps: then a feature has as many candidate positions as samples, less one."""
        tied = any(values < 0.99 * rows for rows, values, _ in self.distinct)
        return self.density == 1 and not self.gapped and not tied

    def values(self, rows: float) -> tuple[float, float]:
        """Distinct values among so many rows of which none is missing, and the share of columns with two or more:
        between the sizes that were looked at along a straight line in the logarithms; beyond them as many as equally
        likely values would show."""
        below, seen, alive = 1.0, 1.0, 0.0
        for looked, values, share in self.distinct:
            size, values = max(looked * self.present, 1.01), max(values, 1.0)
            if rows <= size:
                t = math.log(max(rows, 1.0) / below) / math.log(size / below)
                return seen * (values / seen) ** t, alive + t * (share - alive)
            below, seen, alive = size, values, share
        return (distinct_values(rows, kinds_of_values(seen, below)), alive) if self.distinct else (rows, 1.0)


@dataclass(frozen=True)
class Growth:
    """Trees that were grown, summed.

    `searched` holds (nodes, samples) of the nodes whose split was looked for, grouped by powers of two of their size;
    `descents` are the samples of the nodes that were split, which is the length of all their ways to the leaves;
    `left` and `smaller` add up the samples of the left and of the smaller child of each split.
    """

    trees: int
    nodes: int
    samples: int
    splits: int
    descents: int
    left: int
    smaller: int
    present: int  # classes found on the left of the positions of one feature, where the criterion asks
    searched: tuple[tuple[int, int], ...]

    @property
    def samples_at_root(self) -> float:
        """Of one tree: what is not in a child of a split is in a root."""
        return max(self.samples - self.descents, 1) / max(self.trees, 1)


@dataclass(frozen=True)
class Criterion:
    """Float64 operations: for one sample that enters a node, that moves to the left, for one position that is judged,
    for one split that is made, by sample of its left child and of both, and for the value of one node."""

    enter: float
    move: float
    judge: float
    split: float
    left: float = 0
    both: float = 0
    value: float = 1
    present: float = 0  # for one class that is there on one side of a position
    fenwick: int = 0  # outputs whose medians are kept in Fenwick trees


def criterion(name: str, outputs: int, classes: int) -> Criterion:
    """`classes` is their sum over the outputs; regressions have none.

    Gini judges by 4·classes squares and their sums, and for each child a product, a division, a subtraction, the
    addition over outputs and its mean; entropy by a division, a logarithm over ln 2, a product and a subtraction for
    each class that is there. Both subtract the left counts from the totals first. Squared errors keep sums of y: two
    products and two sums for each output, two divisions. 8 more give the improvement of the split made, 2 more keep
    the books of a node.
    """
    k = outputs
    if name in ("gini", "entropy", "log_loss"):
        sides, present = (4 * classes + 8 * k + 2, 0) if name == "gini" else (2, 4 + LOG)
        judge = 1 + classes + sides
        return Criterion(k + 1, k + 1, judge + 3, judge + 8 + present * classes, value=classes + 2, present=present)
    if name == "poisson":
        judge = 1 + k + k * (2 + 2 * (LOG + 1) + 4) + 1
        return Criterion(4 * k + 1, 2 * k + 1, judge, 5 + k + 8, both=(4 + LOG) * k, value=k + 2)
    if name == "absolute_error":
        return Criterion(1, 1, 1 + 6 + 3, 7 + 8, value=2, fenwick=k)
    return Criterion(4 * k + 1, 2 * k + 1, 1 + k + 4 * k + 3, 1 + k + 5 + 6 * k + 8, left=3 * k, value=k + 2)


def constrained(rule: Criterion, share: float, outputs: int, classes: int) -> Criterion:
    """A `share` of the features must be monotonic: a position of theirs is judged only after the values of both sides
    are compared (two divisions, a difference and its sign). Half are rejected by the wrong sign; how many really are,
    and how many by the bounds of nodes above, depends on the data. What moves to the right is known before."""
    judged = rule.judge - (1 + (classes or outputs))
    return replace(rule, judge=rule.judge + share * (4 - judged / 2))


def fenwick(samples: float, nodes: float, outputs: int) -> float:
    """Medians of all prefixes and suffixes of nodes, by a Fenwick tree.

    Each sample is added in two passes: a product, totals (2), the half (1), on average log2(n)/2 + 1 cells of two sums
    each, a search of log2(n) levels half of which move on with three operations, 8 for the absolute error, and 2 for
    the mean of two medians every other time. A sort finds the ranks.
    """
    levels = math.log2(max(samples / nodes, 1.0)) if nodes else 0.0
    return outputs * (2 * samples * (4 + 2 * (levels / 2 + 1) + 3 * levels / 2 + 9) + LOG2 * nodes)


def best_splits(growth: Growth, rule: Criterion, features: int, columns: Columns, min_leaf: int = 1) -> Work:
    """Every candidate position of `features` features in every node searched, then the best split once more.

    A feature costs the logarithm that bounds its sort's depth and, in float32, one addition for each sample: a value
    differs from the one before if it exceeds it by more than a threshold.
    """
    double = rule.enter * growth.samples + rule.value * growth.nodes
    single = judged = 0.0
    for nodes, samples in growth.searched:
        for search in _searches(samples / nodes, growth, columns, min_leaf):
            times = nodes * features * search.share * search.alive
            judged += times * search.positions
            double += times * (search.overhead + rule.judge * search.positions + rule.move * search.moved)
            single += times * search.differences
            if rule.fenwick:
                double += fenwick(times * samples / nodes, times, rule.fenwick)
    each = growth.present / max(sum(samples - nodes for nodes, samples in growth.searched), 1)
    double += _splits_made(growth, rule) + 2 * rule.present * each * judged
    if rule.fenwick:
        double += fenwick(growth.samples + growth.descents, growth.nodes + growth.splits, rule.fenwick)
    return _work(double, single, features * _sorts(growth.searched), not columns.is_plain or bool(rule.present))


def _unsure(samples: float, kinds: float) -> float:
    """Classes among so many samples; where it is one alone its share is one, whose logarithm is known."""
    return max(distinct_values(samples, kinds) - math.pow(kinds, min(1 - samples, 0.0)), 0.0)


def _kinds_of_classes(growth: Growth) -> float:
    """How many equally likely classes would be there on the left of the positions of one feature, as many as were
    found: s samples show k·(1 - (1 - 1/k)**s) of k, which is summed over the positions of every node."""
    low, high = 1.0, 1e3
    for _ in range(40):
        kinds = math.sqrt(low * high)
        rest = 1 - 1 / kinds
        found = 0.0
        for nodes, samples in growth.searched:
            positions = samples / nodes - 1
            found += nodes * kinds * (positions - rest * (1 - rest**positions) * kinds)
        low, high = (kinds, high) if found < growth.present else (low, kinds)
    return low


def _sorts(searched: tuple[tuple[int, int], ...]) -> float:
    """Compares of a quick sort with three parts, about 2·n·log2 n."""
    return sum(2 * samples * math.log2(max(samples / nodes, 1.0)) for nodes, samples in searched)


def random_splits(growth: Growth, rule: Criterion, features: int, columns: Columns) -> Work:
    """One threshold between the smallest and largest value for each of `features` features in every node searched.

    Its draw is four operations; then it is judged once, after the smaller side has been moved. For the splits made
    that side is known; for those that lost it is taken as that of a normal distribution, 0.15·n + 0.7.
    """
    double = rule.enter * growth.samples + rule.value * growth.nodes + rule.move * growth.smaller
    looked, compares = 0.0, 0.0
    kinds = _kinds_of_classes(growth) if rule.present else 1.0
    for nodes, samples in growth.searched:
        searches = list(_searches(samples / nodes, growth, columns, 1))
        times = features * nodes * sum(search.alive * search.share for search in searches)
        smaller = 0.15 * samples / nodes + 0.7
        lost = max(times - nodes, 0.0) * smaller
        double += times * (4 + searches[0].overhead - LOG2 + rule.judge) + rule.move * lost
        double += rule.present * times * (_unsure(smaller, kinds) + _unsure(samples / nodes - smaller, kinds))
        looked += times
        compares += 4 * features * samples
        if rule.fenwick:
            double += fenwick(times * samples / nodes, times, rule.fenwick)
    double += _splits_made(growth, rule)
    if rule.fenwick:
        double += fenwick(growth.samples + growth.descents, growth.nodes + growth.splits, rule.fenwick)
    return _work(double, looked, compares, True)


def _work(double: float, single: float, compares: float, estimated: bool) -> Work:
    work = arithmetic(double, DOUBLE) + arithmetic(0, SINGLE, add=single, compare=compares)
    return replace(work, estimated=estimated)


def _splits_made(growth: Growth, rule: Criterion) -> float:
    inner = growth.descents
    return rule.split * growth.splits + rule.move * growth.smaller + rule.left * growth.left + rule.both * inner


@dataclass(frozen=True)
class _Search:
    """Of one feature in one node: positions judged, samples moved, float32 differences; its share of features, and of
    the nodes it is looked at in: not where it is known to be constant."""

    positions: float
    moved: float
    differences: float
    share: float = 1.0
    alive: float = 1.0
    overhead: float = LOG2


def _searches(samples: float, growth: Growth, columns: Columns, min_leaf: int) -> Iterator[_Search]:
    inside = max(1 - (2 * min_leaf - 2) / samples, 0.0)
    if columns.density < 1:
        yield _sparse_search(samples, growth, columns.width, columns.density, inside)
    elif columns.is_plain:
        yield _Search(max(samples + 1 - 2 * min_leaf, 0.0), max(samples - min_leaf, 0.0), samples)
    else:
        for share, values, alive, varied in _tied(samples, growth, columns):
            positions = max(values - 1, 0.0) / max(alive, 1e-9) * inside
            differ = min(varied / max(alive, 1e-9), 1.0)  # the others turn out to be constant when they are sorted
            moved = differ * samples * (1 - 1 / (1 + positions / max(differ, 1e-9))) * inside
            yield _Search(positions, moved, differ * samples, share * (1 - columns.gapped), alive)
            if columns.gapped:  # missing values once on the right and, where a node has any, once on the left
                there, share = 1 - columns.gaps, share * columns.gapped
                twice = there * (2 - there**samples)
                missing = columns.gaps * samples  # added up before, and moved to the left
                yield _Search(twice * positions, twice * moved + 2 * missing, twice * differ * samples, share, alive)


def _tied(samples: float, growth: Growth, columns: Columns) -> Iterator[tuple[float, float, float, float]]:
    """Kinds of columns: their share, distinct values in a node of so many samples, how often they are looked at and how
    often they have two values or more. Each split above has taken one column and halved its values, so that a column of
    two values is used up by one. All samples with the same value move at once, and those with the last do not."""
    total = sum(count for count, _ in columns.kinds) or 1
    root = growth.samples_at_root
    often = _above(growth, samples) / columns.width  # how often a column was split above
    for count, kind in columns.kinds or ((1, columns),):
        values = alive = varied = 0.0
        for cuts in range(_MOST_CUTS):
            chance = math.exp(-often) * often**cuts / math.factorial(cuts)
            if cuts == _MOST_CUTS - 1:
                chance = 1 - sum(math.exp(-often) * often**m / math.factorial(m) for m in range(cuts))
            found, two = kind.values(min(samples * 2**cuts, root))
            before, there = kind.values(min(2 * samples * 2**cuts, root))
            values += chance * max(found / 2**cuts, 1.0)
            alive += chance * there * (before / 2**cuts > _CONSTANT)
            varied += chance * two * (found / 2**cuts > _CONSTANT)
        yield count / total, values, alive, varied


#: Splits of one column above a node that are told apart; and how few values are one, on average.
_MOST_CUTS, _CONSTANT = 6, 1.3


def _sparse_search(samples: float, growth: Growth, width: int, density: float, inside: float) -> _Search:
    """Only stored values are looked at: those of a node, and once more as many to step over the zeros from the end.

    Finding them decides between two ways by two logarithms, and sorts them. A feature is not looked at again where it
    was constant in the parent, or where a node above has put all its stored values to the other side.
    """
    left = 1 / (1 + 1.25 * _above(growth, samples) / width)
    alive = -math.expm1(2 * samples * math.log1p(-density)) * left
    stored = samples * density * left / max(alive, 1e-9)
    return _Search(stored * inside, 2 * stored * inside, stored + 2, 1.0, alive, 3 * LOG2 + 5)


def _ways(growth: Growth) -> float:
    """Splits between the root and a leaf, on average over the samples."""
    return growth.descents / max(growth.samples - growth.descents, 1)


def _above(growth: Growth, samples: float) -> float:
    """Splits above a node of so many samples: as many as its share of all halvings."""
    root = growth.samples_at_root
    return _ways(growth) * math.log(max(root / samples, 1.0)) / math.log(max(root, 2.0))


def descended(splits: float, precision: Precision) -> Work:
    """So many splits passed on the way to leaves: a feature picked and compared with a threshold at each."""
    return Work.of(precision, compare=round(splits), index=round(splits))


def distinct_values(draws: float, kinds: float) -> float:
    """Expected number of distinct values among `draws` from `kinds` equally likely ones."""
    if kinds <= 1 or math.isinf(kinds):
        return min(draws, kinds)
    return float(kinds * -math.expm1(draws * math.log1p(-1 / kinds)))


@lru_cache(4_096)  # of a search of forests the same few are asked for thousands of times
def kinds_of_values(seen: float, draws: float) -> float:
    """How many equally likely values show `seen` distinct ones in `draws`."""
    if seen >= draws:
        return math.inf
    low, high = float(seen), 1e9
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if distinct_values(draws, middle) < seen else (low, middle)
    return low
