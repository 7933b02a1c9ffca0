"""scikit-learn's trees and the ensembles that grow them: node tables summed, columns looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bitwatt.backends.sklearn.facts import Facts, facts, whole
from bitwatt.backends.sklearn.probes import probe

#: Nodes that are read at once.
_BATCH = 1_000_000
#: Below this a node counts as pure; scikit-learn's own tolerance.
_PURE = 2.220446049250313e-16
_NAMES = (
    "tree_count", "tree_fitted", "tree_nodes", "tree_samples", "tree_splits", "tree_descents", "tree_left",
    "tree_smaller", "tree_present",
)  # fmt: skip
#: Rows and columns of which distinct and missing values are counted.
_ROWS, _COLUMNS = 256, 16

whole("sklearn.ensemble._forest.BaseForest", "fit", "apply", "decision_path")
whole("sklearn.ensemble._forest.RandomTreesEmbedding", "fit_transform", "transform")
whole("sklearn.ensemble._forest.ForestClassifier", "predict_proba")
whole("sklearn.ensemble._forest.ForestRegressor", "predict")
whole("sklearn.ensemble._gb.BaseGradientBoosting", "fit", "apply")
whole("sklearn.ensemble._iforest.IsolationForest", "fit", "score_samples")


def columns(X: Any) -> tuple[int, ...]:
    """What the values of some rows and columns are like, in thousandths: the share of columns with missing values and
    how many are missing there, then for each block size the rows, their distinct values, and the share of columns with
    at least two. Nothing for sparse matrices."""
    if not hasattr(X, "strides") or X.ndim != 2 or not X.size:
        return ()
    import numpy as np

    rows, width = X.shape
    sample = X[:: max(rows // _ROWS, 1), :: max(width // _COLUMNS, 1)][:_ROWS]
    missing = np.isnan(sample).mean(axis=0) if sample.dtype.kind == "f" else np.zeros(1)
    gapped = missing > 0
    found = [1000 * gapped.mean(), 1000 * missing[gapped].mean() if gapped.any() else 0]
    size = len(sample)
    while size >= 4:
        blocks = sample[: len(sample) // size * size].reshape(-1, size, sample.shape[1])
        values = (np.diff(np.sort(blocks, axis=1), axis=1) > 1e-7).sum(axis=1) + 1
        found += [size, 1000 * values.mean(), 1000 * (values > 1).mean()]
        if size == len(sample) and values.mean() > 0.99 * size:
            break  # no ties
        size //= 4
    return tuple(round(float(value)) for value in found)


probe("sklearn.tree._classes:BaseDecisionTree._compute_missing_values_in_feature_mask", "columns",
      lambda args, kwargs, result: columns(args[1]))  # fmt: skip
probe("sklearn.ensemble._gb:BaseGradientBoosting._fit_stages", "columns",
      lambda args, kwargs, result: columns(args[1]))  # fmt: skip


probe("sklearn.ensemble._forest:_parallel_build_trees", "trees")


def _unpruned(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums of a tree that is about to be cut back."""
    tree = args[0]
    return tuple(grown([tree]).items()) if tree.ccp_alpha else ()


probe("sklearn.tree._classes:BaseDecisionTree._prune_tree", "pruned",
      lambda args, kwargs, result: kwargs["before"], before=_unpruned)  # fmt: skip


def grown(trees: Iterable[Any]) -> Facts:
    """Sums over the nodes of fitted trees (BaseDecisionTree), the first of them as an example of their parameters."""
    import numpy as np

    listed = iter(trees)
    example = next(listed, None)
    if example is None:
        return {"tree_count": 0}
    totals = np.zeros(len(_NAMES), dtype=np.int64)
    searched = np.zeros((64, 2), dtype=np.int64)
    weighted = float(np.max(example.tree_.weighted_n_node_samples[:1]))
    least = _least(example, weighted)

    def remaining() -> Iterator[Any]:
        yield example
        yield from listed

    for batch in _batches(remaining()):
        nodes = np.concatenate([tree.__getstate__()["nodes"] for tree in batch])
        counts = [tree.node_count for tree in batch]
        offsets = np.repeat(np.cumsum([0, *counts[:-1]]), counts)
        size, left = nodes["n_node_samples"], nodes["left_child"]
        split = left >= 0
        on_left = size[(left + offsets)[split]]
        smaller = np.minimum(on_left, size[split] - on_left)
        roots = size[offsets[np.cumsum(counts) - 1]].sum()
        weights = nodes["weighted_n_node_samples"]
        tried = split | ((nodes["impurity"] > _PURE) & (size >= least[0]) & (weights >= least[1]))
        if example.max_depth is not None:
            depths = np.concatenate([tree.compute_node_depths() for tree in batch]) - 1
            tried &= split | (depths < example.max_depth)
        present = _present(batch, size, tried) if example.criterion in ("entropy", "log_loss") else 0
        amounts = (size.sum(), len(on_left), size[split].sum(), on_left.sum(), smaller.sum(), present)
        totals += (len(batch), roots, len(nodes), *amounts)
        sizes = size[tried]
        power = np.frexp(sizes.astype(np.float64))[1]
        searched[:, 0] += np.bincount(power, minlength=64)
        searched[:, 1] += np.bincount(power, weights=sizes, minlength=64).astype(np.int64)
    pairs = tuple((int(count), int(total)) for count, total in searched if count)
    return dict(zip(_NAMES, map(int, totals), strict=True)) | {
        "tree_searched": pairs, "tree_features": int(example.max_features_), "tree_splitter": str(example.splitter),
        "tree_criterion": str(example.criterion), "tree_min_leaf": least[2],
    }  # fmt: skip


def _present(batch: list[Any], size: Any, tried: Any) -> int:
    """Classes that are there among the first 1 to n - 1 samples of nodes, added up, if they came in random order: one
    that has k of n samples is missing from (n - k) / (k + 1) of the beginnings."""
    import numpy as np

    shares = np.concatenate([tree.value for tree in batch])[tried]
    samples = size[tried][:, None, None]
    there = np.round(shares * samples)
    missing = np.minimum((samples - there) / (there + 1), samples - 1)
    return int((samples - 1 - missing).sum())


def _least(tree: Any, weight: float) -> tuple[int, float, int]:
    """Samples and weight below which no split is looked for, and the samples that a leaf must have."""
    samples = int(tree.tree_.n_node_samples[0])

    def absolute(value: Any) -> int:
        return int(value) if isinstance(value, int) else max(int(-(-value * samples // 1)), 1)

    leaf = absolute(tree.min_samples_leaf)
    return max(absolute(tree.min_samples_split), 2 * leaf, 2), 2 * float(tree.min_weight_fraction_leaf) * weight, leaf


def _batches(trees: Iterator[Any]) -> Iterator[list[Any]]:
    batch: list[Any] = []
    held = 0
    for tree in trees:
        batch.append(tree.tree_)
        held += tree.tree_.node_count
        if held > _BATCH:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


@facts("sklearn.tree._classes.BaseDecisionTree")
def _tree(estimator: Any) -> Facts:
    return grown([estimator]) if hasattr(estimator, "tree_") else {}


@facts("sklearn.ensemble._forest.BaseForest", "sklearn.ensemble._iforest.IsolationForest")
def _forest(estimator: Any) -> Facts:
    return grown(estimator.estimators_) if hasattr(estimator, "estimators_") else {}


@facts("sklearn.ensemble._gb.BaseGradientBoosting")
def _boosting(estimator: Any) -> Facts:
    if not hasattr(estimator, "estimators_"):
        return {}
    prior = getattr(estimator.init_, "class_prior_", ())  # of the classifier that knows nothing
    shares = tuple(round(float(share), 4) for share in prior)
    return grown(estimator.estimators_.ravel()) | {"stages": len(estimator.estimators_), "prior": shares}
