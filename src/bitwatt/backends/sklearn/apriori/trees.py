"""Trees that grow to purity or to their limits: mean depths of samples, from the number of leaves.

A tree of L leaves puts a sample g·log2(L) splits deep. g is 1 where all splits are into halves; measured on learnable
data (500 to 30,000 rows) it is 1.3 for classes and 1.18 for numbers, and 1.55 and 1.35 where thresholds are drawn.
Grown to purity, a tree has a leaf for 15 of 100 samples of two classes (20 where columns are drawn, 40 where thresholds
are too), more with more classes, and one for each number. Noise instead of a signal makes trees up to twice as deep.
"""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call, is_classifier
from bitwatt.backends.sklearn.apriori.registry import SAYS, assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec

_TREE = "tree.BaseDecisionTree"
_FOREST = "ensemble.BaseForest ensemble.IsolationForest"
told_by_shapes(f"{_TREE} {_FOREST} ensemble.BaseGradientBoosting", *SAYS, "decision_path")
told_by_shapes("ensemble.RandomTreesEmbedding", "transform")
calls("ensemble.ForestClassifier", "predict", "predict_proba")
calls("tree.DecisionTreeClassifier ensemble.ForestClassifier", "predict_log_proba", "predict_proba")
calls("ensemble.IsolationForest", "decision_function", "score_samples")
calls("ensemble.IsolationForest", "predict", "decision_function")


def _samples(value: Any, rows: float) -> float:
    """A limit given as a number of samples or as a share."""
    return float(value) if isinstance(value, int) else max(math.ceil(value * rows), 1.0)


def features_looked_at(value: Any, columns: int) -> int:
    if value is None:
        return columns
    if value in ("sqrt", "auto"):
        return max(int(math.sqrt(columns)), 1)
    if value == "log2":
        return max(int(math.log2(columns)), 1)
    return int(value) if isinstance(value, int) else max(int(value * columns), 1)


def leaves_of(call: Call, rows: float, share: float, *, least: float, split: float, most: Any, deepest: Any) -> float:
    """Leaves of one tree, as far as its limits allow: one of at least m samples has 1.6·m on average, and nodes that
    are split only from s on end at 0.6·s."""
    grown = max(rows * share, 1.0)
    limits = [grown, rows / (1.6 * least) if least > 1 else grown, rows / (0.6 * split) if split > 2 else grown]
    if most is not None:
        limits.append(float(most))
    leaves = max(min(limits), 1.0)
    if deepest is not None and deepest < 60:  # branches end before, so a limit is felt before it is reached
        leaves = (leaves**-0.6 + 2.0 ** (-0.6 * deepest)) ** (-1 / 0.6)
    return max(leaves, 1.0)


def grow(
    call: Call,
    *,
    trees: int,
    rows: float,
    features: int,
    splitter: str,
    criterion: str,
    classes: int = 0,
    get: Any = None,
) -> dict[str, Any]:
    """What the node tables of trees would add up to."""
    get = get or call.get
    drawn, few = splitter == "random", features < call.columns
    if classes:
        share = (0.4 if drawn else 0.2 if few else 0.15) * (1 + math.log2(max(classes, 2))) / 2
        lean = 1.55 if drawn else 1.3
    else:
        share, lean = 1.0, 1.35 if drawn else 1.18
    deepest, most = get("max_depth"), get("max_leaf_nodes")
    least = _samples(get("min_samples_leaf", 1), rows)
    least = max(least, float(get("min_weight_fraction_leaf", 0.0)) * rows, 1.0)
    split = max(_samples(get("min_samples_split", 2), rows), 2 * least)
    share = float(call.assume("leaves", round(min(share, 1.0), 3), "for each sample, where no limit comes first"))
    free = leaves_of(call, rows, share, least=least, split=split, most=most, deepest=None)
    leaves = leaves_of(call, rows, share, least=least, split=split, most=most, deepest=deepest)
    depth = lean * math.log2(free) if free > 1 else 0.0
    if deepest is not None and depth:  # samples end at different depths, so the limit is felt before the mean is there
        depth = depth * deepest / (depth**4 + deepest**4) ** 0.25
    depth = float(call.assume("depth", round(depth, 2), "splits above a leaf, the mean over samples"))
    small = 0.2 if classes or drawn else 0.3
    return _sums(trees, rows, leaves, depth, small, present=classes) | {
        "tree_features": features, "tree_splitter": splitter, "tree_criterion": criterion,
        "tree_min_leaf": round(least),
    }  # fmt: skip


def _sums(trees: int, rows: float, leaves: float, depth: float, small: float, *, present: int) -> dict[str, Any]:
    splits, descents = max(leaves - 1, 0.0), rows * depth
    levels = max(math.ceil(math.log2(leaves)), 1) if leaves > 1 else 0
    counts = [2.0**level for level in range(levels)]
    scale = splits / sum(counts) if counts else 0.0
    searched = tuple((max(round(trees * n * scale), 1), round(trees * descents / levels)) for n in counts)
    return {
        "tree_count": trees, "tree_fitted": round(trees * rows), "tree_nodes": round(trees * (2 * leaves - 1)),
        "tree_samples": round(trees * (rows + descents)), "tree_splits": round(trees * splits),
        "tree_descents": round(trees * descents), "tree_left": round(trees * descents / 2),
        "tree_smaller": round(trees * descents * small), "tree_present": round(trees * descents * 0.8 * present),
        "tree_searched": searched,
    }  # fmt: skip


def _outputs(call: Call) -> dict[str, Any]:
    if not is_classifier(call.estimator):
        return {"n_outputs_": call.outputs}
    many = call.outputs
    return {"n_outputs_": many, "n_classes_": call.classes if many == 1 else (call.classes,) * many}


def _kinds(call: Call) -> int:
    return call.classes if is_classifier(call.estimator) else 0


@assumes("tree.BaseDecisionTree")
def tree(call: Call) -> dict[str, Any]:
    features = features_looked_at(call.get("max_features"), call.columns)
    rows = call.rows * float(call.also.get("_drawn", 1.0))
    found = grow(call, trees=1, rows=rows, features=features, splitter=call.get("splitter", "best"),
                 criterion=call.get("criterion", "squared_error"), classes=_kinds(call))  # fmt: skip
    return found | _outputs(call) | {"max_features_": features}


@assumes("ensemble.BaseForest")
def forest(call: Call) -> dict[str, Any]:
    trees, rows = int(call.get("n_estimators", 100)), float(call.rows)
    if call.get("bootstrap"):
        most = call.get("max_samples")
        drawn = call.rows if most is None else most if isinstance(most, int) else max(round(most * call.rows), 1)
        rows *= -math.expm1(-drawn / call.rows)  # rows that are drawn at least once
    drawn_cuts = "ExtraTree" in type(call.estimator).__name__
    features = features_looked_at(call.get("max_features"), call.columns)
    found = grow(call, trees=trees, rows=rows, features=features, splitter="random" if drawn_cuts else "best",
                 criterion=call.get("criterion", "squared_error"), classes=_kinds(call))  # fmt: skip
    return found | _outputs(call) | {"estimators_": trees}


@assumes("ensemble.RandomTreesEmbedding", methods=("fit", "fit_transform"))
def embedding(call: Call) -> dict[str, Any]:
    trees = int(call.get("n_estimators", 100))
    found = grow(call, trees=trees, rows=call.rows, features=1, splitter="random", criterion="squared_error")
    width = found["tree_nodes"] - found["tree_splits"]
    return found | {"n_outputs_": 1, "_width": width, "_kept": trees}


@assumes("ensemble.IsolationForest")
def isolation(call: Call) -> dict[str, Any]:
    most = call.get("max_samples", "auto")
    rows = min(256, call.rows) if most == "auto" else most if isinstance(most, int) else round(most * call.rows)
    limits = {"max_depth": max(math.ceil(math.log2(max(rows, 2))), 1)}
    found = grow(call, trees=int(call.get("n_estimators", 100)), rows=rows, features=1, splitter="random",
                 criterion="squared_error", get=lambda name, default=None: limits.get(name, default))  # fmt: skip
    return found | {"n_outputs_": 1}


calls("ensemble.IsolationForest", "fit_predict", "fit", "predict")


@assumes("ensemble.BaseGradientBoosting")
def boosting(call: Call) -> dict[str, Any]:
    raw = _kinds(call) if _kinds(call) > 2 else 1
    stages = int(call.get("n_estimators", 100))
    if call.get("n_iter_no_change") is not None:
        stages = int(call.assume("n_estimators_", stages, "no early stop"))
    rows = call.rows * (1 - (float(call.get("validation_fraction", 0.1)) if call.get("n_iter_no_change") else 0.0))
    features = features_looked_at(call.get("max_features"), call.columns)
    found = grow(call, trees=stages * raw, rows=rows * float(call.get("subsample", 1.0)), features=features,
                 splitter="best", criterion=call.get("criterion", "friedman_mse"))  # fmt: skip
    told: dict[str, Any] = {"stages": stages, "n_estimators_": stages, "n_trees_per_iteration_": raw,
                            "max_features_": features}  # fmt: skip
    if _kinds(call):
        each = [1 + 0.02 * place for place in range(_kinds(call))]  # no two classes are quite as frequent
        told |= {"prior": tuple(round(one / sum(each), 4) for one in each), "n_classes_": _kinds(call)}
    return found | told


def _start(call: Call) -> None:
    """What the model that knows nothing says first."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    if call.get("init") is not None:
        return
    X = TensorSpec(call.X.shape, "float32", call.X.nnz)
    if is_classifier(call.estimator):
        call.ask(DummyClassifier(strategy="prior"), "predict_proba", X, name="init")
    else:
        call.ask(DummyRegressor(), "predict", X, name="init")


@assumes("ensemble.GradientBoostingClassifier", methods=("decision_function",))
@assumes("ensemble.GradientBoostingRegressor", methods=("predict",))
def boosting_says(call: Call) -> dict[str, Any]:
    _start(call)
    return {}


calls("ensemble.GradientBoostingClassifier", "predict", "decision_function")
calls("ensemble.GradientBoostingClassifier", "predict_proba", "decision_function")
calls("ensemble.GradientBoostingClassifier", "predict_log_proba", "predict_proba")
