"""What the models of XGBoost, LightGBM and CatBoost tell of their training: node tables from their own text formats."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from bitwatt.backends.sklearn.facts import Facts, facts, whole
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.readers.trees import columns

#: Rounds that are read; of longer trainings so many are taken evenly.
_ROUNDS = 24
#: Cells (nodes times features) whose ranges of bins are held at once.
_CELLS = 4_000_000

_PREDICTIONS = ("predict", "predict_proba", "decision_function", "apply")
whole("xgboost.sklearn.XGBModel", "fit", *_PREDICTIONS)
whole("lightgbm.sklearn.LGBMModel", "fit", *_PREDICTIONS)
whole("catboost.core.CatBoost", "fit", *_PREDICTIONS, "score")
whole("xgboost.core.Booster", "predict")
whole("lightgbm.basic.Booster", "predict")
probe("xgboost.sklearn:XGBModel._create_dmatrix", "columns",
      lambda args, kwargs, result: columns(kwargs.get("data")))  # fmt: skip
for _data_set in ("lightgbm.basic:Dataset.__init__", "catboost.core:Pool.__init__"):
    probe(_data_set, "columns", lambda args, kwargs, result: columns(args[1] if len(args) > 1 else kwargs.get("data")))


def binned(
    trees: Iterable[tuple[Any, Any, Any, Any]], features: int, least: float, deepest: int, counts: bool, always: bool
) -> Facts:
    """Sums over trees given as (left, right, feature, weight) of their nodes, -1 for no child: nodes searched; shares
    of all bins walked through and judged there, in units of features; samples added into histograms in units of the
    root's; histograms subtracted. `least` is the weight that a child needs; `counts` tells that weights are samples,
    `always` that nodes too small to be split are searched all the same.

    A split leaves each child the share of the feature's bins that it has of the weight: bins are quantiles.
    """
    totals = [0.0] * 6
    waiting: list[tuple[Any, ...]] = []
    held = 0
    for tree in trees:
        waiting.append(tree)
        held += len(tree[0]) * features
        if held > _CELLS:
            totals = [
                x + y for x, y in zip(totals, _sums(waiting, features, least, deepest, counts, always), strict=True)
            ]
            waiting, held = [], 0
    if waiting:
        totals = [x + y for x, y in zip(totals, _sums(waiting, features, least, deepest, counts, always), strict=True)]
    names = ("searched", "walked", "judged", "built", "subtracted", "passed")
    return {f"boost_{name}": round(value, 3) for name, value in zip(names, totals, strict=True)}


def _sums(
    trees: list[tuple[Any, ...]], features: int, least: float, deepest: int, counts: bool, always: bool
) -> list[float]:
    """All trees at once, one level after the other."""
    import numpy as np

    lengths = [len(tree[0]) for tree in trees]
    roots = np.cumsum([0, *lengths[:-1]])
    offsets = np.repeat(roots, lengths)
    left, right, feature, weight = (np.concatenate(arrays) for arrays in zip(*trees, strict=True))
    split = left >= 0
    left, right = (np.where(split, side + offsets, 0) for side in (left, right))
    depth, number = np.zeros(len(left), dtype=np.int64), 0
    low, high = np.zeros((len(left), features)), np.ones((len(left), features))
    level = roots
    while len(level):
        depth[level] = number
        above = level[split[level]]
        a, b, f = left[above], right[above], feature[above]
        low[a] = low[b] = low[above]
        high[a] = high[b] = high[above]
        cut = low[above, f] + (high[above, f] - low[above, f]) * weight[a] / np.maximum(weight[above], 1e-12)
        high[a, f] = low[b, f] = cut
        level = np.concatenate([a, b])
        number += 1
    searched = split | ((always | (weight >= 2 * least)) & (depth < deepest))
    width, end = (high - low)[searched].sum(axis=1), (1 - high)[searched].sum(axis=1)
    scale = 1 if counts else 4  # a hessian of p(1 - p) is at most a quarter of a sample
    spare = least * scale / (weight[searched] * scale + 1)
    opened = split & (searched[left] | searched[right])
    root = np.maximum(weight[offsets], 1e-12)
    return [
        float(searched.sum()),
        float((end + width * np.maximum(1 - spare, 0)).sum()),
        float((width * np.maximum(1 - 2 * spare, 0)).sum()),
        len(trees) + float((np.minimum(weight[left], weight[right]) / root)[opened].sum()),
        float(opened.sum()),
        float((np.maximum(weight - 2 * least, 0) / root)[searched].sum()),
    ]


def _scaled(found: Facts, factor: float) -> Facts:
    return {name: value * factor if isinstance(value, float) else value for name, value in found.items()}


@facts("xgboost.core.Booster")
def xgboost_booster(booster: Any) -> Facts:
    import numpy as np

    learner = json.loads(booster.save_config())["learner"]
    grower = learner["gradient_booster"]
    inner = grower.get("gbtree", grower)  # dart holds its trees inside
    known: Facts = {
        "booster": grower["name"], "objective": learner["objective"]["name"],
        "boost_groups": max(int(learner["learner_model_param"]["num_class"]), 1),
        "boost_features": int(learner["learner_model_param"]["num_feature"]),
        "boost_rounds": int(booster.num_boosted_rounds()),
    }  # fmt: skip
    options = inner.get("tree_train_param", {})
    for name in ("max_bin", "max_depth", "max_leaves"):
        known[name] = int(options.get(name, 0))
    for name in ("min_child_weight", "subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode",
                 "max_delta_step"):  # fmt: skip
        known[name] = float(options.get(name, 1))
    known["updater"] = inner.get("gbtree_train_param", {}).get("updater", "")
    rounds = known["boost_rounds"]
    if not rounds or "tree_train_param" not in inner:
        return known
    step = -(-rounds // (2 * _ROUNDS))
    model = json.loads((booster[step // 2 :: step] if step > 1 else booster).save_raw("json"))
    held = model["learner"]["gradient_booster"]
    trees = held.get("gbtree", held)["model"]["trees"]
    tables = (
        tuple(np.array(tree[key]) for key in ("left_children", "right_children", "split_indices", "sum_hessian"))
        for tree in trees
    )
    counts = known["objective"] in ("reg:squarederror", "reg:absoluteerror", "reg:quantileerror")
    deepest = known["max_depth"] or 1 << 30
    found = binned(tables, known["boost_features"], known["min_child_weight"], deepest, counts, True)  # type: ignore[arg-type]
    known["boost_trees"] = len(trees) * rounds // max(len(range(step // 2, rounds, step)), 1)
    return known | _scaled(found, known["boost_trees"] / max(len(trees), 1)) | {"boost_sampled": step > 1}


@facts("xgboost.sklearn.XGBModel")
def xgboost_model(estimator: Any) -> Facts:
    return xgboost_booster(estimator.get_booster()) if "_Booster" in estimator.__dict__ else {}


@facts("lightgbm.basic.Booster")
def lightgbm_booster(booster: Any) -> Facts:
    trees, groups = booster.num_trees(), booster.num_model_per_iteration()
    rounds, features = trees // max(groups, 1), booster.num_feature()
    if not rounds:
        return {}
    starts = range(-(-rounds // _ROUNDS) // 2, rounds, -(-rounds // _ROUNDS)) if rounds > _ROUNDS else ()
    texts = [booster.model_to_string(num_iteration=1, start_iteration=start) for start in starts]
    texts = texts or [booster.model_to_string()]
    options = dict(line[1:-1].split(": ", 1) for line in texts[0].splitlines() if line.startswith("[") and ": " in line)
    least, depth = float(options.get("min_data_in_leaf", 20)), int(options.get("max_depth", -1))
    full = int(options.get("num_leaves", 31))
    read = [table for text in texts for table in _lightgbm_tables(text, full)]
    found = binned(read, features, least, depth if depth > 0 else 1 << 30, True, False)
    objective = next((line[10:].split()[0] for line in texts[0].splitlines() if line.startswith("objective=")), "")
    return _scaled(found, trees / max(len(read), 1)) | {
        "objective": objective, "boost_groups": groups, "boost_features": features, "boost_rounds": rounds,
        "boost_trees": trees, "max_bin": int(options.get("max_bin", 255)), "boost_sampled": bool(starts),
        "min_data_in_bin": int(options.get("min_data_in_bin", 3)), "boosting": options.get("boosting", "gbdt"),
        "feature_fraction": float(options.get("feature_fraction", 1)),
        "bagging_fraction": float(options.get("bagging_fraction", 1)),
    }  # fmt: skip


def _lightgbm_tables(text: str, full: int) -> Iterable[tuple[Any, Any, Any, Any]]:
    """Internal nodes first, then leaves. The last split of a full tree leaves two that nobody looks at: they keep next
    to no weight, so that no search is counted for them."""
    import numpy as np

    for part in text.split("\nTree=")[1:]:
        held = dict(line.split("=", 1) for line in part.splitlines() if "=" in line)
        leaves = int(held["num_leaves"])
        if leaves < 2:
            continue
        wanted = ("left_child", "right_child", "split_feature", "internal_count", "leaf_count")
        left, right, feature, inside, outside = (np.array(held[key].split(), dtype=np.int64) for key in wanted)
        inner, none = leaves - 1, np.full(leaves, -1)
        sides = [np.where(side >= 0, side, inner + ~side) for side in (left, right)]
        weight = np.concatenate([inside, outside]).astype(np.float64)
        if leaves == full:
            ends = [side[-1] for side in sides if side[-1] >= inner]
            weight[ends] = 1e-9
        yield (
            np.concatenate([sides[0], none]),
            np.concatenate([sides[1], none]),
            np.concatenate([feature, none]),
            weight,
        )


@facts("lightgbm.sklearn.LGBMModel")
def lightgbm_model(estimator: Any) -> Facts:
    booster = estimator.__dict__.get("_Booster")
    return lightgbm_booster(booster) if booster is not None else {}


@facts("catboost.core.CatBoost")
def catboost_model(model: Any) -> Facts:
    if not model.is_fitted():
        return {}
    options = model.get_all_params()
    names = ("depth", "border_count", "boosting_type", "grow_policy", "max_leaves", "loss_function", "rsm",
             "leaf_estimation_iterations")  # fmt: skip
    known = {name: options[name] for name in names if name in options}
    classes = getattr(model, "classes_", ())
    known["boost_groups"] = len(classes) if "Multi" in str(options.get("loss_function", "")) else 1
    return known | {"boost_trees": int(model.tree_count_), "boost_features": len(model.feature_names_)}
