"""scikit-learn's trees and the ensembles that grow them: their node tables, columns looked at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bitwatt.backends.sklearn.around import spoken_for
from bitwatt.backends.sklearn.facts import Facts, facts, whole
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.readers.nodes import later, sums

#: Rows and columns of which distinct and missing values are counted.
_ROWS, _COLUMNS = 256, 16
#: What so many samples of data were like is remembered.
_DATA = 16
_known: list[tuple[Any, bytes, tuple[Any, ...]]] = []

whole("sklearn.ensemble._forest.BaseForest", "fit", "apply", "decision_path")
whole("sklearn.ensemble._forest.RandomTreesEmbedding", "fit_transform", "transform")
whole("sklearn.ensemble._forest.ForestClassifier", "predict_proba")
whole("sklearn.ensemble._forest.ForestRegressor", "predict")
whole("sklearn.ensemble._gb.BaseGradientBoosting", "apply")
whole("sklearn.ensemble._gb.BaseGradientBoosting", "fit", where=lambda one: one.init is None or one.init == "zero")
whole("sklearn.ensemble._iforest.IsolationForest", "fit", "score_samples")


def columns(X: Any) -> tuple[Any, ...]:
    """What the values of some rows and columns are like, in thousandths: the share of columns with missing values and
    how many are missing there, then for each block size the rows, their distinct values, and the share of columns with
    at least two. In the end, where there are ties, the same for kinds of columns: how many are of a kind, then rows,
    values and share. Nothing for sparse matrices."""
    if not hasattr(X, "strides") or X.ndim != 2 or not X.size:
        return ()
    rows, width = X.shape
    sample = X[:: max(rows // _ROWS, 1), :: max(width // _COLUMNS, 1)][:_ROWS]
    if sample.dtype.kind not in "fiub":
        try:
            return _looked_at(sample)
        except TypeError:  # texts beside numbers are in no order
            return ()
    kind, content = (sample.shape, sample.dtype), sample.tobytes()
    for known in _known:  # ensembles look at the same data again and again; to compare takes less than to hash
        if known[1] == content and known[0] == kind:
            return known[2]
    if len(_known) >= _DATA:
        _known.clear()
    found = _looked_at(sample)
    _known.append((kind, content, found))
    return found


def _looked_at(sample: Any) -> tuple[Any, ...]:
    import numpy as np

    missing = np.isnan(sample).mean(axis=0) if sample.dtype.kind == "f" else np.zeros(1)
    gapped = missing > 0
    found = [1000 * gapped.mean(), 1000 * missing[gapped].mean() if gapped.any() else 0]
    size = len(sample)
    each: list[tuple[int, Any, Any]] = []
    while size >= 4:
        blocks = sample[: len(sample) // size * size].reshape(-1, size, sample.shape[1])
        values = (np.diff(np.sort(blocks, axis=1), axis=1) > 1e-7).sum(axis=1) + 1
        found += [size, 1000 * values.mean(), 1000 * (values > 1).mean()]
        if size == len(sample) and values.mean() > 0.99 * size:
            break  # no ties
        each.append((size, values.mean(axis=0), (values > 1).mean(axis=0)))
        size //= 4
    plain = tuple(round(float(value)) for value in found)
    return (*plain, _kinds(each)) if each else plain


def _kinds(each: list[tuple[int, Any, Any]]) -> tuple[tuple[int, ...], ...]:
    """Columns together whose numbers of distinct values have the same power of two."""
    import numpy as np

    power = np.frexp(each[0][1] - 0.5)[1]
    kinds = []
    for one in np.unique(power):
        same = power == one
        sizes = [(rows, 1000 * values[same].mean(), 1000 * share[same].mean()) for rows, values, share in each]
        kinds.append((int(same.sum()), *(round(float(value)) for size in sizes for value in size)))
    return tuple(kinds)


probe("sklearn.tree._classes:BaseDecisionTree._compute_missing_values_in_feature_mask", "columns",
      lambda args, kwargs, result: columns(args[1]))  # fmt: skip
probe("sklearn.ensemble._gb:BaseGradientBoosting._fit_stages", "columns",
      lambda args, kwargs, result: columns(args[1]))  # fmt: skip


probe("sklearn.ensemble._forest:_parallel_build_trees", "trees")
probe("sklearn.ensemble._gb:BaseGradientBoosting._fit_stage", "trees", around=spoken_for)


def _said(args: Any, kwargs: Any, result: Any) -> tuple[int, ...]:
    """Raw predictions of the estimator that boosting begins with, trees of a round, and how many come by a longer way:
    log-odds near to even, those that are even (for more classes, ratios near to one)."""
    low, high = (-0.8473, 0.6191) if result.shape[1] == 1 else (-0.0646, 0.0627)
    scale = 2 if type(args[2]).__name__ == "ExponentialLoss" else 1  # half of the log-odds
    return (*result.shape, int(((scale * result >= low) & (scale * result <= high)).sum()), int((result == 0).sum()))


probe("sklearn.ensemble._gb:_init_raw_predictions", "initial", _said,
      before=lambda args: True if args[3] and not hasattr(args[1], "class_prior_") else None)  # fmt: skip


def _unpruned(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The sums of a tree that is about to be cut back."""
    tree = args[0]
    return tuple(sums(tree, tree.tree_).items()) if tree.ccp_alpha else None


probe("sklearn.tree._classes:BaseDecisionTree._prune_tree", "pruned",
      lambda args, kwargs, result: kwargs["before"], before=_unpruned)  # fmt: skip


@facts("sklearn.tree._classes.BaseDecisionTree")
def _tree(estimator: Any) -> Facts:
    tree = getattr(estimator, "tree_", None)
    return later(estimator, [tree], hasattr(estimator, "classes_")) if tree is not None else {}


def _grown(trees: Iterable[Any]) -> Facts:
    listed = list(trees)
    return later(listed[0], [one.tree_ for one in listed]) if listed else {"tree_count": 0}


@facts("sklearn.ensemble._forest.BaseForest", "sklearn.ensemble._iforest.IsolationForest")
def _forest(estimator: Any) -> Facts:
    return _grown(estimator.estimators_) if hasattr(estimator, "estimators_") else {}


@facts("sklearn.ensemble._gb.BaseGradientBoosting")
def _boosting(estimator: Any) -> Facts:
    if not hasattr(estimator, "estimators_"):
        return {}
    prior = getattr(estimator.init_, "class_prior_", ())  # of the classifier that knows nothing
    shares = tuple(round(float(share), 4) for share in prior)
    return _grown(estimator.estimators_.ravel()) | {"stages": len(estimator.estimators_), "prior": shares}
