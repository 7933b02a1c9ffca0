"""Trees that scikit-learn grew on binned values: which bins of which features were walked through, from node tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bitwatt.backends.sklearn.facts import Facts, facts, whole
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.readers.batches import Batches, Held, Piece, joined
from bitwatt.backends.sklearn.readers.interactions import allowed, groups

_BASE = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.BaseHistGradientBoosting"
#: Cells (nodes times features) whose ranges of bins are read at once: what is made of them should stay in a cache.
_CELLS = 60_000

whole(_BASE, "fit")
probe("sklearn.ensemble._hist_gradient_boosting.grower:TreeGrower.__init__", "grower",
      lambda args, kwargs, result: (_gapped(kwargs.get("has_missing_values")),))  # fmt: skip


def _gapped(flags: Any) -> int:
    """Features with missing values."""
    return flags.tobytes().count(1) if hasattr(flags, "tobytes") else int(bool(flags))  # asked for each tree


NAMES = (
    "hist_searched", "hist_width", "hist_walked", "hist_judged", "hist_built", "hist_subtracted", "hist_descents",
    "hist_leaves",
)  # fmt: skip


class Binned(Held):
    """The node tables of all rounds of a fit, and what decides how they were grown."""

    __slots__ = ("bins", "grown", "totals")

    def __init__(self, tables: list[Any], bins: Any, estimator: Any) -> None:
        super().__init__([(table, len(table) * len(bins)) for table in tables])
        deepest = estimator.max_depth if estimator.max_depth is not None else 1 << 30
        together = groups(estimator.interaction_cst, len(bins))
        self.bins = bins
        self.grown = estimator.min_samples_leaf, deepest, estimator.max_leaf_nodes, len(bins), together
        self.totals: Any = 0

    def settle(self) -> Facts:
        found: Facts = {name: round(float(value)) for name, value in zip(NAMES, self.totals, strict=True)}
        return found | {"hist_trees": len(self.tables), "hist_bins": int(self.bins.sum())}


@facts(_BASE)
def histograms(estimator: Any) -> Facts:
    """Sums over the node tables of all rounds."""
    rounds = getattr(estimator, "_predictors", None)
    if not rounds:
        return {}
    import numpy as np

    bins = np.asarray(estimator._bin_mapper.n_bins_non_missing_, dtype=np.int32)
    tables = [predictor.nodes for trees in rounds for predictor in trees]
    return {"histograms": _batches.later(Binned(tables, bins, estimator))}


def _read(batch: list[Piece]) -> None:
    alike: dict[Any, list[Piece]] = {}
    for piece in batch:
        alike.setdefault(piece[0].grown, []).append(piece)
    for pieces in alike.values():
        for (held, _), totals in zip(pieces, sums(pieces), strict=True):
            held.totals = held.totals + totals


def sums(pieces: list[Piece]) -> Any:
    """A row of `NAMES` for each piece; all were grown alike, on columns of their own."""
    import numpy as np

    count = len(pieces)
    least, deepest, most, features, together = pieces[0][0].grown
    tables = [table for _, some in pieces for table in some]
    nodes, bins = joined(tables), np.stack([held.bins for held, _ in pieces])
    lengths = np.array([len(table) for table in tables])
    roots = np.cumsum(lengths) - lengths
    tree = np.repeat(np.arange(count), [len(some) for _, some in pieces])  # whose piece it is of
    whose = np.repeat(tree, lengths)
    size, depth = nodes["count"].astype(np.int64), nodes["depth"]
    split = nodes["is_leaf"] == 0
    every = np.flatnonzero(split)
    offsets = np.repeat(roots, lengths)[every]
    left, right = nodes["left"][every] + offsets, nodes["right"][every] + offsets
    searched = split | ((size >= 2 * least) & (depth < deepest))
    if most is not None:
        gains = np.full(len(nodes), np.inf)
        gains[every] = np.where(split[left] | split[right], np.inf, nodes["gain"][every])
        last = _last_splits(gains, roots, lengths, most)
        last = np.searchsorted(every, last)
        searched[left[last]] = searched[right[last]] = False
    opened = searched[left] | searched[right]
    rows, splits = np.flatnonzero(searched), whose[every]
    children = np.stack([left, right], axis=1)
    back, high = _ranges(nodes, every, children, roots, bins[tree], rows)
    share, last_bin = least / (size[rows][:, None] + 1), (bins - 1.0)[whose[rows] if count > 1 else [0]]
    judged = high + back
    judged += 1
    widths, walked = judged.sum(axis=1), judged * np.maximum(1 - share, 0)
    walked -= back
    judged *= np.maximum(1 - 2 * share, 0)
    bounded = [np.minimum(seen, last_bin, out=seen).sum(axis=1) for seen in (walked, judged)]
    looks, adds = None, np.ones(len(left))  # shares of all features, of nodes searched and of children
    if together is not None:
        may = allowed(nodes, children, every, features, together)
        looks, adds = may[rows].mean(axis=1), may[left].mean(axis=1)
        widths, *bounded = ((seen * may[rows]).sum(axis=1) for seen in (high + back + 1, walked, judged))

    def by_piece(owners: Any, values: Any = None) -> Any:
        return np.bincount(owners, values, count)

    smaller, inner = np.minimum(size[left], size[right])[opened], by_piece(splits, size[every])
    searches = [by_piece(whose[rows], values) for values in (looks, widths, *bounded)]
    built = by_piece(tree, size[roots]) + by_piece(splits[opened], smaller * adds[opened])
    leaves = by_piece(whose, size) - inner
    return np.stack([*searches, built, by_piece(splits[opened], adds[opened]), inner, leaves], axis=1)


def _last_splits(gains: Any, roots: Any, lengths: Any, most: int) -> Any:
    """The split that filled a tree with all its leaves: nobody looks at its children. It is the first one of least gain
    among those above leaves alone; others have an infinite one."""
    import numpy as np

    least = np.flatnonzero(gains == np.repeat(np.minimum.reduceat(gains, roots), lengths))
    full = ((lengths + 1) // 2 == most) & (lengths > 1)
    return least[np.searchsorted(least, roots)][full]


def _ranges(nodes: Any, every: Any, children: Any, roots: Any, bins: Any, rows: Any) -> tuple[Any, Any]:
    """Minus the first and the last bin of each feature in some nodes, as the splits above leave them: a child takes
    over its parent's, and one of them becomes less. Level by level, with as few calls of numpy as there can be, since
    the trees are small; the bins of a node are moved as one item. `bins` are those of each root."""
    import numpy as np

    width = bins.shape[1]
    bounds = np.empty((len(nodes), 2 * width))
    flat, items = bounds.reshape(-1), bounds.view(np.dtype((np.void, 16 * width))).reshape(-1)
    bounds[roots, :width], bounds[roots, width:] = 0, bins - 1
    depth = nodes["depth"][every]
    order = np.argsort(depth, kind="stable")
    every, depth = every[order], depth[order]
    feature, last = nodes["feature_idx"][every].astype(np.int64), nodes["bin_threshold"][every].astype(np.float64)
    edges = np.stack([last, -1 - last], axis=1)
    if (named := nodes["is_categorical"][every] != 0).any():  # they leave all bins on both sides
        edges[named] = np.inf
    parents, children, edges = np.repeat(every, 2), children.take(order, axis=0), edges.reshape(-1)
    cells = (children * (2 * width) + np.stack([feature + width, feature], axis=1)).reshape(-1)
    children = children.reshape(-1)
    levels = 2 * np.flatnonzero(depth[1:] != depth[:-1]) + 2
    for begin, end in pairwise([0, *levels.tolist(), len(cells)]):
        at = cells[begin:end]
        items[children[begin:end]] = items[parents[begin:end]]
        flat[at] = np.minimum(flat[at], edges[begin:end])
    found = items[rows].view(np.float64).reshape(len(rows), 2 * width)
    return found[:, :width], found[:, width:]


_batches = Batches(_CELLS, _read)
