"""Trees that scikit-learn grew on binned values: which bins of which features were walked through, from node tables."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bitwatt.backends.sklearn.facts import Facts, facts, whole
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.readers.nodes import joined

_BASE = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.BaseHistGradientBoosting"
#: Cells (nodes times features) whose ranges of bins are read at once: what is made of them should stay in a cache.
_CELLS = 60_000

whole(_BASE, "fit")
probe("sklearn.ensemble._hist_gradient_boosting.grower:TreeGrower.__init__", "grower",
      lambda args, kwargs, result: (_gapped(kwargs.get("has_missing_values")),))  # fmt: skip


def _gapped(flags: Any) -> int:
    """Features with missing values."""
    return int(flags.sum()) if hasattr(flags, "sum") else int(bool(flags))


@facts(_BASE)
def histograms(estimator: Any) -> Facts:
    """Sums over the node tables of all rounds."""
    rounds = getattr(estimator, "_predictors", None)
    if not rounds:
        return {}
    import numpy as np

    bins = np.asarray(estimator._bin_mapper.n_bins_non_missing_, dtype=np.int32)
    tables = [predictor.nodes for trees in rounds for predictor in trees]
    totals = np.zeros(len(_NAMES), dtype=np.float64)
    chunk: list[Any] = []
    held = 0
    for table in tables:
        chunk.append(table)
        held += len(table) * len(bins)
        if held > _CELLS:
            totals += _sums(chunk, bins, estimator)
            chunk, held = [], 0
    if chunk:
        totals += _sums(chunk, bins, estimator)
    found = {name: round(float(value)) for name, value in zip(_NAMES, totals, strict=True)}
    return found | {"hist_trees": len(tables), "hist_bins": int(bins.sum())}


_NAMES = (
    "hist_searched", "hist_width", "hist_walked", "hist_judged", "hist_built", "hist_subtracted", "hist_descents",
    "hist_leaves",
)  # fmt: skip


def _sums(tables: list[Any], bins: Any, estimator: Any) -> Any:
    import numpy as np

    nodes = joined(tables)
    lengths = np.array([len(table) for table in tables])
    roots = np.cumsum(lengths) - lengths
    size, depth = nodes["count"].astype(np.int64), nodes["depth"]
    split = nodes["is_leaf"] == 0
    every = np.flatnonzero(split)
    offsets = np.repeat(roots, lengths)[every]
    left, right = nodes["left"][every] + offsets, nodes["right"][every] + offsets
    deepest = estimator.max_depth if estimator.max_depth is not None else 1 << 30
    searched = split | ((size >= 2 * estimator.min_samples_leaf) & (depth < deepest))
    if estimator.max_leaf_nodes is not None:
        gains = np.full(len(nodes), np.inf)
        gains[every] = np.where(split[left] | split[right], np.inf, nodes["gain"][every])
        last = _last_splits(gains, roots, lengths, estimator.max_leaf_nodes)
        last = np.searchsorted(every, last)
        searched[left[last]] = searched[right[last]] = False
    opened = searched[left] | searched[right]
    rows = np.flatnonzero(searched)
    back, high = _ranges(nodes, every, np.stack([left, right], axis=1), roots, bins, rows)
    share, last_bin = estimator.min_samples_leaf / (size[rows][:, None] + 1), bins - 1.0
    judged = high + back
    judged += 1
    width, walked = judged.sum(), judged * np.maximum(1 - share, 0)
    walked -= back
    judged *= np.maximum(1 - 2 * share, 0)
    bounded = [np.minimum(bins_seen, last_bin, out=bins_seen).sum() for bins_seen in (walked, judged)]
    built = size[roots].sum() + np.minimum(size[left], size[right])[opened].sum()
    inner = size[every].sum()
    return np.array(
        [len(rows), width, *bounded, built, np.count_nonzero(opened), inner, size.sum() - inner], dtype=np.float64
    )


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
    the trees are small; the bins of a node are moved as one item."""
    import numpy as np

    width = len(bins)
    bounds = np.empty((len(nodes), 2 * width))
    flat, items = bounds.reshape(-1), bounds.view(np.dtype((np.void, 16 * width))).reshape(-1)
    bounds[0, :width], bounds[0, width:] = 0, bins - 1
    items[roots] = items[0]
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
