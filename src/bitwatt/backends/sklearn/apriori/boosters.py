"""Boosted trees over binned values. One tree like those that would grow is drawn up, level by level or largest leaf
first, and read as a fitted one would be.

A split leaves 35 of 100 samples on the smaller side, as measured; a node is worth splitting from 2.6 times the least
weight of a leaf on, since not every cut that is allowed gains something.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call, is_classifier
from bitwatt.backends.sklearn.apriori.registry import SAYS, assumes, calls, told_by_shapes
from bitwatt.backends.sklearn.readers import histograms
from bitwatt.backends.sklearn.readers.boosters import binned

told_by_shapes("xgboost. lightgbm. catboost.", *SAYS)
_HIST = "ensemble.BaseHistGradientBoosting"
told_by_shapes(_HIST, *SAYS)
told_by_shapes("catboost. xgboost.", "score")
calls("xgboost.XGBClassifier xgboost.XGBRegressor lightgbm.LGBMClassifier lightgbm.LGBMRegressor", "score", "predict")

_SMALLER, _WORTH = 0.35, 2.6
#: Leaves of the tree that is drawn up; larger ones are scaled from it, as if they ended where it does.
_LEAVES = 16_384
#: Cells (nodes times features) whose bins are followed. Of more features only some are, all others as one more column:
#: they are cut in turn, so that any of them tell of all.
_CELLS, _FOLLOWED = 1_000_000, 48


class Drawn:
    """Nodes of a tree: children (-1 for a leaf), the feature that is cut, weight and depth."""

    def __init__(
        self, weight: float, features: int, *, least: float, deepest: int, leaves: int, leafwise: bool
    ) -> None:
        self.left, self.right, self.feature, self.weight, self.depth = [-1], [-1], [-1], [weight], [0]
        waiting: list[tuple[float, int]] = [(-weight if leafwise else 0.0, 0)]
        grown, most = 1, min(leaves, _LEAVES)
        while waiting and grown < most:
            _, node = heapq.heappop(waiting)
            size, depth = self.weight[node], self.depth[node]
            if size < _WORTH * least or depth >= deepest:
                continue
            small = max(size * _SMALLER, least)
            self.left[node], self.right[node] = len(self.left), len(self.left) + 1
            self.feature[node] = (5 * node + depth) % features  # all columns in turn
            for part in (small, size - small):
                for held, value in ((self.left, -1), (self.right, -1), (self.feature, -1), (self.depth, depth + 1)):
                    held.append(value)
                self.weight.append(part)
                child = len(self.left) - 1
                heapq.heappush(waiting, (-part if leafwise else float(depth + 1), child))
            grown += 1
        self.leaves = grown
        #: How many times larger the tree would be, had it been drawn to its end.
        can_grow = [size for _, node in waiting if (size := self.weight[node]) >= _WORTH * least]
        rest = sum(size / (1.6 * least) for size in can_grow) if least > 0 else float(leaves)
        wanted = min(float(leaves), grown - len(can_grow) + rest, 2.0 ** min(deepest, 60))
        self.scale = max(wanted / grown, 1.0) if grown >= _LEAVES else 1.0
        many = len(self.left) * features > _CELLS and features > _FOLLOWED
        self.columns = _FOLLOWED if many else features
        self.each = features / self.columns  # features that a column stands for

    @property
    def more_levels(self) -> float:
        """That the whole tree would have: in each, all samples pass and the smaller sides are added up."""
        return math.log2(self.scale)

    def table(self) -> tuple[Any, Any, Any, Any]:
        import numpy as np

        return np.array(self.left), np.array(self.right), self.cuts(), np.array(self.weight)

    def cuts(self) -> Any:
        import numpy as np

        return np.minimum(self.feature, self.columns - 1)


def drawn_sums(
    call: Call, tree: Drawn, trees: int, least: float, deepest: int, *, samples: float, always: bool
) -> dict[str, Any]:
    """What the reader of node tables says of it, for all trees. `samples` as there: 0 where weights are counts."""
    found = binned([tree.table()], tree.columns, least, deepest, samples, always)
    for name in ("boost_walked", "boost_judged"):  # sums over features
        found[name] *= tree.each
    found["boost_built"] += _SMALLER * tree.more_levels
    found["boost_passed"] += tree.more_levels
    grows = ("boost_searched", "boost_walked", "boost_judged", "boost_subtracted")
    return {name: value * trees * (tree.scale if name in grows else 1.0) for name, value in found.items()}


def _rounds(call: Call, default: int, *names: str) -> int:
    wanted = next((int(value) for name in names if (value := call.get(name)) is not None), default)
    early = call.get("early_stopping_rounds") or call.get("early_stopping_round")
    return int(call.assume("n_iter_", wanted, "no early stop")) if early else wanted


def _groups(call: Call) -> int:
    return call.classes if is_classifier(call.estimator) and call.classes > 2 else 1


_UPDATERS = {"exact": "grow_colmaker,prune", "approx": "grow_histmaker"}


@assumes("xgboost.XGBModel")
def xgboost(call: Call) -> dict[str, Any]:
    kind, groups = type(call.estimator).__name__, _groups(call)
    rounds, forest = _rounds(call, 100, "n_estimators"), "XGBRF" in kind
    default = "rank:ndcg" if "Ranker" in kind else "multi:softprob" if groups > 1 else "binary:logistic"
    objective = call.get("objective") or ("reg:squarederror" if "Regressor" in kind else default)
    if objective == "binary:logistic" and groups > 1:
        objective = "multi:softprob"
    booster = call.get("booster", "gbtree")
    share = float(call.get("subsample", 0.8 if forest else 1.0))
    told: dict[str, Any] = {
        "booster": booster, "objective": objective, "boost_groups": groups, "boost_features": call.columns,
        "boost_rounds": 1 if forest else rounds, "max_bin": int(call.get("max_bin", 256)), "subsample": share,
        "colsample_bytree": float(call.get("colsample_bytree", 1.0)),
        "colsample_bylevel": float(call.get("colsample_bylevel", 1.0)),
        "colsample_bynode": float(call.get("colsample_bynode", 0.8 if forest else 1.0)),
        "updater": _UPDATERS.get(str(call.get("tree_method")), "grow_quantile_histmaker"),
        "boost_device": call.get("device", "cpu"),
    }  # fmt: skip
    if booster == "gblinear":
        return told | {"boost_trees": 0}
    curved = objective.startswith(("binary", "multi", "rank"))
    hessian = float(call.assume("hessian", 0.12, "of a sample, at most a quarter")) if curved else 1.0
    least, limit = float(call.get("min_child_weight", 1.0)), call.get("max_depth")
    deepest = 6 if limit is None else int(limit) or 1 << 30
    most = int(call.get("max_leaves", 0)) or 1 << 30
    weight = call.rows * share * hessian
    tree = Drawn(weight, call.columns, least=max(least, 1e-9), deepest=deepest, leaves=most,
                 leafwise=call.get("grow_policy") == "lossguide")  # fmt: skip
    trees = rounds * groups * int(call.get("num_parallel_tree", 1) if not forest else 1)
    _said(call, tree)
    found = drawn_sums(call, tree, trees, least, deepest, samples=call.rows * share, always=True)
    return told | found | {"boost_trees": trees, "boost_new": trees}


def _said(call: Call, tree: Drawn) -> None:
    call.assume("leaves", round(tree.leaves * tree.scale), "of a tree, at a limit or where leaves are small")


@assumes("lightgbm.LGBMModel")
def lightgbm(call: Call) -> dict[str, Any]:
    kind, groups = type(call.estimator).__name__, _groups(call)
    rounds = _rounds(call, 100, "n_estimators", "num_iterations")
    default = "lambdarank" if "Ranker" in kind else "multiclass" if groups > 1 else "binary"
    objective = str(call.get("objective") or ("regression" if "Regressor" in kind else default))
    least, limit = float(call.get("min_child_samples", 20)), int(call.get("max_depth", -1))
    deepest = limit if limit > 0 else 1 << 30
    share = float(call.get("subsample", 1.0)) if call.get("subsample_freq", 0) else 1.0
    most = int(call.get("num_leaves", 31))
    tree = Drawn(call.rows * share, call.columns, least=max(least, 1.0), deepest=deepest, leaves=most, leafwise=True)
    if tree.leaves == most:  # nobody looks at what the last split leaves
        last = tree.left.index(max(tree.left))
        tree.weight[tree.left[last]] = tree.weight[tree.right[last]] = 1e-9
    trees = rounds * groups
    _said(call, tree)
    return drawn_sums(call, tree, trees, least, deepest, samples=0.0, always=False) | {
        "objective": objective, "boost_groups": groups, "boost_features": call.columns, "boost_rounds": rounds,
        "boost_trees": trees, "boost_new": trees, "max_bin": int(call.get("max_bin", 255)),
        "min_data_in_bin": int(call.get("min_data_in_bin", 3)), "boosting": str(call.get("boosting_type", "gbdt")),
        "feature_fraction": float(call.get("colsample_bytree", 1.0)), "bagging_fraction": share,
    }  # fmt: skip


@assumes("catboost.CatBoost")
def catboost(call: Call) -> dict[str, Any]:
    groups = _groups(call)
    trees = _rounds(call, 1000, "iterations", "n_estimators", "num_boost_round", "num_trees")
    depth = int(call.get("depth") or call.get("max_depth") or 6)
    default = "MultiClass" if groups > 1 else "Logloss" if is_classifier(call.estimator) else "RMSE"
    return {
        "depth": depth, "border_count": int(call.get("border_count") or call.get("max_bin") or 254),
        "boosting_type": str(call.get("boosting_type", "Plain")),
        "grow_policy": str(call.get("grow_policy", "SymmetricTree")),
        "max_leaves": int(call.get("max_leaves") or call.get("num_leaves") or 2**depth),
        "loss_function": str(call.get("loss_function") or call.get("objective") or default),
        "rsm": float(call.get("rsm") or call.get("colsample_bylevel") or 1.0),
        "leaf_estimation_iterations": int(call.get("leaf_estimation_iterations", 1)), "boost_groups": groups,
        "boost_trees": trees, "boost_features": call.columns,
    }  # fmt: skip


@assumes("ensemble.BaseHistGradientBoosting")
def histogram_boosting(call: Call) -> dict[str, Any]:
    import numpy as np

    rows, stops = float(call.rows), call.get("early_stopping", "auto")
    early = rows > 10_000 if stops == "auto" else bool(stops)
    rounds = int(call.get("max_iter", 100))
    if early:
        rounds = int(call.assume("n_iter_", rounds, "max_iter; no early stop"))
        share = call.get("validation_fraction", 0.1)
        rows -= 0 if share is None else share if isinstance(share, int) else share * rows
    bins = np.full(call.columns, int(min(call.get("max_bins", 255), call.rows)), dtype=np.int32)
    least, limit = int(call.get("min_samples_leaf", 20)), call.get("max_depth")
    most = call.get("max_leaf_nodes")
    tree = Drawn(rows, call.columns, least=max(least, 1), deepest=1 << 30 if limit is None else int(limit),
                 leaves=1 << 30 if most is None else int(most), leafwise=True)  # fmt: skip
    trees = rounds * _groups(call)
    one = _nodes(tree, int(bins[0]))
    sums = histograms.sums([(histograms.Binned([one], bins[: tree.columns], call.estimator), [one])])[0] * trees
    sums[1:4] *= tree.each  # sums over features
    _said(call, tree)
    found = {name: round(float(value) * tree.scale) for name, value in zip(histograms.NAMES, sums, strict=True)}
    deeper = tree.more_levels * rows * trees
    found |= {"hist_built": round(float(sums[4]) + _SMALLER * deeper), "hist_leaves": round(rows * trees)}
    found["hist_descents"] = round(float(sums[6]) + deeper)
    call.probe("grower", 0, times=trees)
    return found | {
        "hist_trees": trees, "hist_bins": int(bins.sum()), "n_trees_per_iteration_": _groups(call),
        "do_early_stopping_": early, "n_iter_": rounds,
    }  # fmt: skip


def _nodes(tree: Drawn, bins: int) -> Any:
    """As scikit-learn writes them. A cut leaves each side the share of bins that it has of the samples."""
    import numpy as np

    names = ("count", "left", "right", "is_leaf", "depth", "feature_idx", "bin_threshold", "is_categorical", "gain")
    nodes = np.zeros(len(tree.left), dtype=[(name, np.float64 if name == "gain" else np.int64) for name in names])
    inner = np.array(tree.left) >= 0
    nodes["count"] = nodes["gain"] = np.array(tree.weight)
    nodes["left"], nodes["right"] = np.maximum(tree.left, 0), np.maximum(tree.right, 0)
    nodes["is_leaf"], nodes["depth"], nodes["feature_idx"] = ~inner, tree.depth, np.maximum(tree.cuts(), 0)
    spans = {0: {}}  # type: dict[int, dict[int, tuple[int, int]]]
    for node in range(len(tree.left)):
        known = spans.pop(node, {})
        if tree.left[node] < 0:
            continue
        feature = min(tree.feature[node], tree.columns - 1)
        low, high = known.get(feature, (0, bins - 1))
        cut = min(low + int((high - low) * tree.weight[tree.left[node]] / tree.weight[node]), high)
        nodes["bin_threshold"][node] = cut
        spans[tree.left[node]] = {**known, feature: (low, cut)}
        spans[tree.right[node]] = {**known, feature: (min(cut + 1, high), high)}
    return nodes
