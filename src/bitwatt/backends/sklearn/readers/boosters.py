"""What the models of XGBoost, LightGBM and CatBoost tell of their training: node tables from their own text formats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from bitwatt.backends.sklearn.facts import Facts, facts, whole
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.readers.trees import columns
from bitwatt.backends.sklearn.rounds import begun, rows_of

#: Rounds that are read; of longer trainings so many are taken evenly.
_ROUNDS = 24
#: Arrays that are read of each of XGBoost's trees, in the order in which they are stored, and UBJSON's types.
_XGBOOST_NODES = (b"left_children", b"right_children", b"split_indices", b"sum_hessian")
_UBJSON = {b"d": ">f4", b"D": ">f8", b"l": ">i4", b"L": ">i8", b"I": ">i2", b"i": "i1", b"U": "u1"}
#: Cells (nodes times features) whose ranges of bins are held at once.
_CELLS = 4_000_000

_PREDICTIONS = ("predict", "predict_proba", "decision_function", "apply")
whole("xgboost.sklearn.XGBModel", "fit", *_PREDICTIONS)
whole("lightgbm.sklearn.LGBMModel", "fit", *_PREDICTIONS)
whole("catboost.core.CatBoost", "fit", *_PREDICTIONS, "score", "select_features", "eval_metrics",
      "get_feature_importance", "get_object_importance", "staged_predict_log_proba")  # fmt: skip
whole("xgboost.core.Booster", "predict", "inplace_predict")
whole("lightgbm.basic.Booster", "predict", "refit")
whole("xgboost.sklearn.XGBRanker", "score")
probe("xgboost.sklearn:XGBModel._create_dmatrix", "columns",
      lambda args, kwargs, result: columns(kwargs.get("data")))  # fmt: skip

for _data_set in ("lightgbm.basic:Dataset.__init__", "catboost.core:Pool.__init__"):
    probe(_data_set, "columns", lambda args, kwargs, result: columns(args[1] if len(args) > 1 else kwargs.get("data")))


def binned(
    trees: Iterable[tuple[Any, Any, Any, Any]], features: int, least: float, deepest: int, samples: float, always: bool
) -> Facts:
    """Sums over trees given as (left, right, feature, weight) of their nodes, -1 for no child: nodes searched; shares
    of all bins walked through and judged there, in units of features; samples added into histograms in units of the
    root's; histograms subtracted. `least` is the weight that a child needs; `samples` are those of a root, 0 where
    weights are counts of them; `always` tells that nodes too small to be split are searched all the same.

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
                x + y for x, y in zip(totals, _sums(waiting, features, least, deepest, samples, always), strict=True)
            ]
            waiting, held = [], 0
    if waiting:
        totals = [x + y for x, y in zip(totals, _sums(waiting, features, least, deepest, samples, always), strict=True)]
    names = ("searched", "walked", "judged", "built", "subtracted", "passed")
    return {f"boost_{name}": round(value, 3) for name, value in zip(names, totals, strict=True)}


def _sums(
    trees: list[tuple[Any, ...]], features: int, least: float, deepest: int, samples: float, always: bool
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
    share = weight[left] / np.maximum(weight, 1e-12)
    ranges = np.zeros((len(left), 2, features))
    ranges[:, 1] = 1
    level = roots
    while len(level):
        depth[level] = number
        above = level[split[level]]
        a, b, f = left[above], right[above], feature[above]
        ranges[a] = ranges[b] = ranges[above]
        start = ranges[above, 0, f]
        ranges[a, 1, f] = ranges[b, 0, f] = start + (ranges[above, 1, f] - start) * share[above]
        level = np.concatenate([a, b])
        number += 1
    low, high = ranges[:, 0], ranges[:, 1]
    searched = split | ((always | (weight >= 2 * least)) & (depth < deepest))
    width, end = (high - low)[searched].sum(axis=1), (1 - high)[searched].sum(axis=1)
    root = np.maximum(weight[offsets], 1e-12)
    scale = samples / root[searched] if samples else 1.0  # samples for a weight that is a sum of hessians
    spare = np.maximum(least * scale, 1) / (weight[searched] * scale + 1)
    opened = split & (searched[left] | searched[right])
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


def _xgboost_tables(model: bytes) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Out of UBJSON, which holds an array as its name, `[$`, the letter of its type, `#L`, its length and its numbers:
    reading these four as they lie there takes a tenth of the time of reading all of the model."""
    import numpy as np

    at, arrays = 0, list[Any]()
    while True:
        name = _XGBOOST_NODES[len(arrays)] + b"[$"
        at = model.find(name, at) + len(name)
        if at < len(name):
            return
        length = int.from_bytes(model[at + 3 : at + 11], "big")
        array = np.frombuffer(model, _UBJSON[model[at : at + 1]], length, at + 11)
        arrays.append(array.astype(array.dtype.newbyteorder("=")))
        at += 11 + array.nbytes
        if len(arrays) == len(_XGBOOST_NODES):
            yield tuple(arrays)
            arrays = []


@facts("xgboost.core.Booster")
def xgboost_booster(booster: Any) -> Facts:
    learner = json.loads(booster.save_config())["learner"]
    grower = learner["gradient_booster"]
    inner = grower.get("gbtree", grower)  # dart holds its trees inside
    known: Facts = {
        "booster": grower["name"], "objective": learner["objective"]["name"],
        "boost_groups": max(int(learner["learner_model_param"]["num_class"]), 1),
        "boost_features": int(learner["learner_model_param"]["num_feature"]),
        "boost_rounds": int(booster.num_boosted_rounds()),
        "boost_device": learner["generic_param"].get("device", "cpu"),
        "boost_metrics": tuple(metric["name"] for metric in learner.get("metrics", ())),
    }  # fmt: skip
    options = inner.get("tree_train_param", {})
    for name in ("max_bin", "max_depth", "max_leaves"):
        known[name] = int(options.get(name, 0))
    for name in ("min_child_weight", "subsample", "colsample_bytree", "colsample_bylevel", "colsample_bynode",
                 "max_delta_step"):  # fmt: skip
        known[name] = float(options.get(name, 1))
    model_options = learner["learner_model_param"]
    if learner.get("learner_train_param", {}).get("multi_strategy") == "multi_output_tree":
        known["boost_vector"] = int(model_options.get("num_target", 1))
    known["boost_limited"] = options.get("monotone_constraints", "()") not in ("()", "")
    known["updater"] = inner.get("gbtree_train_param", {}).get("updater", "")
    rounds, first = known["boost_rounds"], begun(booster)
    if rounds <= first or "tree_train_param" not in inner:
        return known
    step = -(-(rounds - first) // (2 * _ROUNDS))
    start = first + step // 2
    taken = (rounds - start) // step  # whole steps only: of a part of one XGBoost's slices write beyond their end
    model = (booster[start : start + taken * step : step] if first or step > 1 else booster).save_raw("ubj")
    trees = list(_xgboost_tables(bytes(model)))
    deepest = known["max_depth"] or 1 << 30
    samples = rows_of(booster) * known["subsample"]
    found = binned(trees, known["boost_features"], known["min_child_weight"], deepest, samples, True)
    each = len(trees) // taken
    known |= {"boost_trees": each * rounds, "boost_new": each * (rounds - first), "boost_sampled": step > 1}
    return known | _scaled(found, known["boost_new"] / max(len(trees), 1))


@facts("xgboost.sklearn.XGBModel")
def xgboost_model(estimator: Any) -> Facts:
    if "_Booster" not in estimator.__dict__:
        return {}
    booster = estimator.get_booster()
    best = booster.attr("best_iteration")  # what predictions of the estimator, though not of the booster, stop at
    return xgboost_booster(booster) | ({"boost_best": int(best) + 1} if best is not None else {})


@facts("lightgbm.basic.Booster")
def lightgbm_booster(booster: Any) -> Facts:
    trees, groups = booster.num_trees(), booster.num_model_per_iteration()
    rounds, features = trees // max(groups, 1), booster.num_feature()
    first = min(begun(booster), rounds)
    if rounds <= first:
        return {"boost_trees": trees, "boost_groups": groups, "boost_features": features, "boost_rounds": rounds}
    step = -(-(rounds - first) // _ROUNDS)
    starts = range(first + step // 2, rounds, step) if first or step > 1 else ()
    texts = [booster.model_to_string(num_iteration=1, start_iteration=start) for start in starts]
    texts = texts or [booster.model_to_string()]
    told = texts[0][texts[0].rfind("\nparameters:") :].splitlines()
    options = dict(line[1:-1].split(": ", 1) for line in told if line.startswith("[") and ": " in line)
    least, depth = float(options.get("min_data_in_leaf", 20)), int(options.get("max_depth", -1))
    full = int(options.get("num_leaves", 31))
    read = _lightgbm_tables(texts, full)
    found = binned(read, features, least, depth if depth > 0 else 1 << 30, 0.0, False)
    objective = _line(texts[0], "objective").partition(" ")[0]
    if booster.best_iteration > 0:
        found["boost_best"] = booster.best_iteration
    found["boost_new"] = trees - first * groups
    return _scaled(found, (trees - first * groups) / max(len(read), 1)) | {
        "objective": objective, "boost_groups": groups, "boost_features": features, "boost_rounds": rounds,
        "boost_trees": trees, "max_bin": int(options.get("max_bin", 255)), "boost_sampled": bool(starts),
        "min_data_in_bin": int(options.get("min_data_in_bin", 3)), "boosting": options.get("boosting", "gbdt"),
        "feature_fraction": float(options.get("feature_fraction", 1)),
        "bagging_fraction": float(options.get("bagging_fraction", 1)), "boost_metrics": (options.get("metric", ""),),
        "boost_device": options.get("device_type", "cpu"), "linear_tree": options.get("linear_tree") == "1",
        "data_sample_strategy": options.get("data_sample_strategy", ""),
        "top_rate": float(options.get("top_rate", 0.2)), "other_rate": float(options.get("other_rate", 0.1)),
        "learning_rate": float(options.get("learning_rate", 0.1)), "extra_trees": options.get("extra_trees") == "1",
        "use_quantized_grad": options.get("use_quantized_grad") == "1",
    }  # fmt: skip


def _lightgbm_tables(texts: Iterable[str], full: int) -> list[tuple[Any, Any, Any, Any]]:
    """Internal nodes first, then leaves, of all trees at once. The last split of a full tree leaves two that nobody
    looks at: they keep next to no weight, so that no search is counted for them."""
    import numpy as np

    parts = [part for text in texts for part in text.split("\nTree=")[1:]]
    grown = [(part, count) for part in parts if (count := int(_line(part, "num_leaves"))) > 1]
    if not grown:
        return []

    def numbers(name: str) -> Any:
        return np.fromstring(" ".join([_line(part, name) for part, _ in grown]), np.int64, sep=" ")

    leaves = np.array([count for _, count in grown])
    inner = leaves - 1
    roots, inners = (np.cumsum(each) - each for each in (leaves + inner, inner))
    nodes = np.arange(inner.sum()) + np.repeat(roots - inners, inner)
    ends = np.arange(leaves.sum()) + np.repeat(roots + inner - np.cumsum(leaves) + leaves, leaves)
    tree, weight = np.full((3, len(nodes) + len(ends)), -1), np.empty(len(nodes) + len(ends))
    for row, name in enumerate(("left_child", "right_child")):
        side = numbers(name)
        tree[row, nodes] = np.where(side >= 0, side, np.repeat(inner, inner) + ~side)
    tree[2, nodes] = numbers("split_feature")
    weight[nodes], weight[ends] = numbers("internal_count"), numbers("leaf_count")
    is_full = leaves == full
    last = tree[:2, (roots + inner - 1)[is_full]]
    weight[(last + roots[is_full])[last >= full - 1]] = 1e-9
    return list(zip(*(np.split(row, roots[1:]) for row in (*tree, weight)), strict=True))


def _line(text: str, name: str) -> str:
    """What follows a name and "=" in its line."""
    at = text.find(f"\n{name}=") + len(name) + 2
    return text[at : text.find("\n", at)] if at > len(name) + 1 else ""


@facts("lightgbm.sklearn.LGBMModel")
def lightgbm_model(estimator: Any) -> Facts:
    booster = estimator.__dict__.get("_Booster")
    return lightgbm_booster(booster) if booster is not None else {}


@facts("catboost.core.CatBoost")
def catboost_model(model: Any) -> Facts:
    if not model.is_fitted():
        return {}
    trained = "params" in model.get_metadata()  # else it was put together of others
    options = model.get_all_params() if trained else {}
    names = ("depth", "border_count", "boosting_type", "grow_policy", "max_leaves", "loss_function", "rsm",
             "leaf_estimation_iterations", "score_function", "task_type")  # fmt: skip
    known = {name: options[name] for name in names if name in options}
    classes = getattr(model, "classes_", ())
    known["boost_groups"] = len(classes) if "Multi" in str(options.get("loss_function", "")) else 1
    known["boost_trees"] = int(model.tree_count_)
    if known.get("grow_policy", "SymmetricTree") != "SymmetricTree" and model.tree_count_:
        known["boost_leaves"] = round(float(model.get_tree_leaf_counts().mean()), 3)
    if not trained or ("Multi" in str(known.get("loss_function", "")) and not len(classes)):  # several targets
        known["boost_groups"] = int(model.get_leaf_values().size // max(sum(model.get_tree_leaf_counts()), 1))
    known["boost_kinds"] = len(model.get_cat_feature_indices())
    return known | {"boost_features": len(model.feature_names_)}


@facts("catboost.core.Pool")
def catboost_pool(pool: Any) -> Facts:
    return {"rows": pool.num_row(), "columns": pool.num_col()}
