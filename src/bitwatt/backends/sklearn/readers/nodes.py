"""Node tables of scikit-learn's trees, summed. They never change: cutting a tree back makes another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bitwatt.backends.sklearn.facts import Facts
from bitwatt.backends.sklearn.readers.batches import Batches, Held, Piece, joined

#: Nodes that are held, and read at once. A column of 16,384 is memory that the C library asks the system for each time,
#: and to touch it first takes four times as long as all the rest; a fit may come on top of this.
_NODES = 7_000
#: Below this a node counts as pure; scikit-learn's own tolerance.
_PURE = 2.220446049250313e-16
_NAMES = (
    "tree_count", "tree_fitted", "tree_nodes", "tree_samples", "tree_splits", "tree_descents", "tree_left",
    "tree_smaller", "tree_present",
)  # fmt: skip


class Grown(Held):
    """Sums over the nodes of fitted trees (BaseDecisionTree), the first of them as an example of their parameters;
    `unsure` asks for the share of probabilities that are neither 0 nor 1, of samples like those of the fit."""

    __slots__ = ("about", "criterion", "deepest", "least", "searched", "totals", "unsure")

    def __init__(self, example: Any, trees: list[Any], unsure: bool = False) -> None:
        nodes = [tree.__getstate__()["nodes"] for tree in trees]
        super().__init__([((tree, table), len(table)) for tree, table in zip(trees, nodes, strict=True)])
        self.deepest, self.criterion, self.unsure = example.max_depth, str(example.criterion), unsure
        root = nodes[0][0]
        self.least = _least(example, int(root["n_node_samples"]), float(root["weighted_n_node_samples"]))
        self.about = {
            "tree_features": int(example.max_features_), "tree_splitter": str(example.splitter),
            "tree_criterion": self.criterion, "tree_min_leaf": self.least[2],
        }  # fmt: skip
        self.totals: Any = 0
        self.searched: Any = 0

    def settle(self) -> Facts:
        pairs = tuple(zip(*self.searched[:, self.searched[0].nonzero()[0]].tolist(), strict=True))
        share = {"tree_unsure": _unsure(*self.tables[0][0])} if self.unsure else {}
        sums = dict(zip(_NAMES, self.totals.tolist(), strict=True))
        return sums | {"tree_searched": pairs} | self.about | share


def later(example: Any, trees: Iterable[Any], unsure: bool = False) -> Facts:
    """The sums, to be read with others."""
    return {"trees": _batches.later(Grown(example, list(trees), unsure))}


def sums(example: Any, tree: Any) -> Facts:
    """Those of one tree, at once."""
    return _batches.told(Grown(example, [tree]))


def _read(batch: list[Piece]) -> None:
    import numpy as np

    tables = [table for _, trees in batch for _, table in trees]
    nodes = joined(tables)
    lengths = np.array([len(table) for table in tables])
    roots = lengths.cumsum() - lengths
    trees = np.array([len(trees) for _, trees in batch])
    first = trees.cumsum() - trees  # tree of each
    start, counts = roots[first], np.add.reduceat(lengths, first)
    size, left = nodes["n_node_samples"].copy(), nodes["left_child"]
    split = left >= 0
    every = np.flatnonzero(split)
    above, on_left = np.where(split, size, 0), np.zeros_like(size)
    on_left[every] = size[left[every] + np.repeat(roots, lengths)[every]]
    smaller = np.minimum(on_left, above - on_left)
    sums = np.add.reduceat(np.stack([size, split, above, on_left, smaller]), start, axis=1)
    least, weight = (np.repeat([one.least[place] for one, _ in batch], counts) for place in (0, 1))
    worth = (nodes["impurity"] > _PURE) & (size >= least) & (nodes["weighted_n_node_samples"] >= weight)
    tried = split | worth
    present = np.zeros(len(batch), dtype=np.int64)
    for place, (one, grown) in enumerate(batch):
        here = slice(start[place], start[place] + counts[place])
        if one.deepest is not None:
            depths = np.concatenate([tree.compute_node_depths() for tree, _ in grown]) - 1
            tried[here] &= split[here] | (depths < one.deepest)
        if one.criterion in ("entropy", "log_loss"):
            present[place] = _present(grown, size[here], tried[here])
    places = np.flatnonzero(tried)  # to pick by place takes less than by a mask
    sizes, which = size[places], np.repeat(np.arange(0, 64 * len(batch), 64), counts)[places]
    which += np.frexp(sizes.astype(np.float64))[1]
    number = np.bincount(which, minlength=64 * len(batch))
    amount = np.bincount(which, weights=sizes, minlength=64 * len(batch)).astype(np.int64)
    totals = np.vstack([trees, np.add.reduceat(size[roots], first), counts, sums, present])
    searched = np.stack([number, amount]).reshape(2, len(batch), 64)
    for place, (one, _) in enumerate(batch):
        one.totals, one.searched = one.totals + totals[:, place], one.searched + searched[:, place]


def _present(trees: list[Any], size: Any, tried: Any) -> int:
    """Classes that are there among the first 1 to n - 1 samples of nodes, added up, if they came in random order: one
    that has k of n samples is missing from (n - k) / (k + 1) of the beginnings."""
    import numpy as np

    shares = np.concatenate([tree.value for tree, _ in trees])[tried]
    samples = size[tried][:, None, None]
    there = np.round(shares * samples)
    missing = np.minimum((samples - there) / (there + 1), samples - 1)
    return int((samples - 1 - missing).sum())


def _unsure(tree: Any, table: Any) -> float:
    leaves = table["left_child"] < 0
    values, samples = tree.value[leaves], table["n_node_samples"][leaves]
    between = ((values > 0) & (values < 1)).reshape(len(values), -1).mean(axis=1)
    return round(float(between @ samples) / max(int(samples.sum()), 1), 4)


def _least(tree: Any, samples: int, weight: float) -> tuple[int, float, int]:
    """Samples and weight below which no split is looked for, and the samples that a leaf must have."""

    def absolute(value: Any) -> int:
        return int(value) if isinstance(value, int) else max(int(-(-value * samples // 1)), 1)

    leaf = absolute(tree.min_samples_leaf)
    return max(absolute(tree.min_samples_split), 2 * leaf, 2), 2 * float(tree.min_weight_fraction_leaf) * weight, leaf


_batches = Batches(_NODES, _read)
