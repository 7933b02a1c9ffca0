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
    lengths = [len(table) for table in tables]
    roots = np.cumsum([0, *lengths[:-1]])
    offsets = np.repeat(roots, lengths)
    size = nodes["count"].astype(np.int64)
    split = nodes["is_leaf"] == 0
    children = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64) + offsets[:, None]
    smallest = 2 * estimator.min_samples_leaf
    deepest = estimator.max_depth if estimator.max_depth is not None else 1 << 30
    searched = split | ((size >= smallest) & (nodes["depth"] < deepest))
    inside = np.where(split[:, None], children, 0)
    if estimator.max_leaf_nodes is not None:
        final = split & ~split[inside].any(axis=1)
        last = _last_splits(nodes, final, roots, np.array(lengths), estimator.max_leaf_nodes)
        searched[children[last]] = False
    opened = split & searched[inside].any(axis=1)
    low, high = _ranges(nodes, split, children, bins)
    rows = np.flatnonzero(searched)
    judged, walked = (high[rows] - low[rows] + 1).astype(np.float64), low[rows].astype(np.float64)
    width, share, last_bin = judged.sum(), estimator.min_samples_leaf / (size[rows][:, None] + 1), bins - 1.0
    walked += judged * np.maximum(1 - share, 0)
    judged *= np.maximum(1 - 2 * share, 0)
    bounded = [np.minimum(bins_seen, last_bin, out=bins_seen).sum() for bins_seen in (walked, judged)]
    built = size[roots].sum() + size[inside].min(axis=1)[opened].sum()
    return np.array(
        [len(rows), width, *bounded, built, opened.sum(), size[split].sum(), size[~split].sum()], dtype=np.float64
    )


def _last_splits(nodes: Any, final: Any, roots: Any, lengths: Any, most: int) -> Any:
    """The split that filled a tree with all its leaves: nobody looks at its children. It is the first one of least gain
    among those above leaves alone."""
    import numpy as np

    gains = np.where(final, nodes["gain"], np.inf)
    full = ((lengths + 1) // 2 == most) & (lengths > 1)
    least = np.flatnonzero(gains == np.repeat(np.minimum.reduceat(gains, roots), lengths))
    tree = np.searchsorted(roots, least, side="right") - 1
    first = np.flatnonzero(np.diff(tree, prepend=-1))
    return least[first][full[tree[first]]]


def _ranges(nodes: Any, split: Any, children: Any, bins: Any) -> tuple[Any, Any]:
    """First and last bin of each feature in each node, as the splits above leave them: level by level, with as few
    calls of numpy as there can be, since the trees are small."""
    import numpy as np

    width = len(bins)
    bounds = np.zeros((len(nodes), 2 * width), dtype=np.int32)  # first bins, then last ones
    bounds[:, width:] = bins - 1
    every = np.flatnonzero(split)
    every = every[np.argsort(nodes["depth"][every], kind="stable")]
    left, right = children[every].T
    feature, last = nodes["feature_idx"][every].astype(np.int64), nodes["bin_threshold"][every].astype(np.int32)
    first = last + 1
    if (named := nodes["is_categorical"][every] != 0).any():  # they leave all bins on both sides
        last[named], first[named] = np.iinfo(np.int32).max, 0
    flat, on_left, on_right = bounds.reshape(-1), (2 * left + 1) * width + feature, 2 * right * width + feature
    levels = np.flatnonzero(np.diff(nodes["depth"][every])) + 1
    for begin, end in pairwise([0, *levels.tolist(), len(every)]):
        level = slice(begin, end)
        bounds[left[level]] = bounds[right[level]] = bounds[every[level]]
        high, low = on_left[level], on_right[level]
        flat[high] = np.minimum(flat[high], last[level])
        flat[low] = np.maximum(flat[low], first[level])
    return bounds[:, :width], bounds[:, width:]
