"""Trees that scikit-learn grew on binned values: which bins of which features were walked through, from node tables."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.facts import Facts, facts, whole
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.readers.nodes import joined

_BASE = "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.BaseHistGradientBoosting"
#: Cells (nodes times features) whose ranges of bins are held at once.
_CELLS = 4_000_000

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
    if estimator.max_leaf_nodes is not None:
        last = _last_splits(nodes, split, children, roots, estimator.max_leaf_nodes)
        searched[children[last]] = False
    opened = split & searched[np.where(split[:, None], children, 0)].any(axis=1)
    sizes = size[np.where(split[:, None], children, 0)]
    low, high = _ranges(nodes, split, children, bins)
    width, start = (high - low + 1)[searched], low[searched]
    share = estimator.min_samples_leaf / (size[searched][:, None] + 1)
    walked = np.minimum(start + width * np.maximum(1 - share, 0), bins - 1).sum()
    judged = np.minimum(width * np.maximum(1 - 2 * share, 0), bins - 1).sum()
    built = size[roots].sum() + sizes.min(axis=1)[opened].sum()
    return np.array(
        [searched.sum(), width.sum(), walked, judged, built, opened.sum(), size[split].sum(), size[~split].sum()],
        dtype=np.float64,
    )


def _last_splits(nodes: Any, split: Any, children: Any, roots: Any, most: int) -> Any:
    """The split that filled a tree with all its leaves: nobody looks at its children. It is the one of least gain."""
    import numpy as np

    ends = np.append(roots[1:], len(nodes))
    both = split & ~split[np.where(split[:, None], children, 0)].any(axis=1)
    gains = np.where(both, nodes["gain"], np.inf)
    full = [(a, b) for a, b in zip(roots, ends, strict=True) if (b - a + 1) // 2 == most and b - a > 1]
    return np.array([a + int(np.argmin(gains[a:b])) for a, b in full], dtype=np.int64)


def _ranges(nodes: Any, split: Any, children: Any, bins: Any) -> tuple[Any, Any]:
    """First and last bin of each feature in each node, as the splits above leave them."""
    import numpy as np

    low = np.zeros((len(nodes), len(bins)), dtype=np.int32)
    high = np.broadcast_to(bins - 1, low.shape).copy()
    depths = nodes["depth"]
    for depth in range(int(depths.max(initial=0))):
        above = np.nonzero(split & (depths == depth))[0]
        left, right = children[above].T
        for child in (left, right):
            low[child], high[child] = low[above], high[above]
        numeric = nodes["is_categorical"][above] == 0
        feature, bound = nodes["feature_idx"][above][numeric], nodes["bin_threshold"][above][numeric].astype(np.int32)
        high[left[numeric], feature] = np.minimum(high[left[numeric], feature], bound)
        low[right[numeric], feature] = np.maximum(low[right[numeric], feature], bound + 1)
    return low, high
