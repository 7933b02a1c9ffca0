"""CatBoost: its estimators and `train`."""

import math
from dataclasses import replace
from typing import Any

from bitwatt.formulas.boosting import catboost_trees
from bitwatt.formulas.vector import DOUBLE, LOG, arithmetic, function
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._boosters import answered, bins, shape

_MODELS = tuple(f"catboost.CatBoost{kind}" for kind in ("", "Classifier", "Regressor", "Ranker"))
#: Operations for one border of one feature in one node of a tree that is not symmetric; measured.
_NODE = 66


@rule(*(f"{model}.{method}" for model in _MODELS for method in ("fit", "train")), family="boosting")
def fit(**facts: Any) -> Work:
    """Every border of every feature scored for every leaf of every level of symmetric trees. Other trees are scored
    node by node. Ordered boosting scores once for each of the prefixes, which double in length, that a permutation
    has."""
    rows, features = shape(facts)
    trees, depth, groups = facts.get("boost_trees", 0), facts.get("depth", 6), facts.get("boost_groups", 1)
    borders = bins(rows, facts.get("border_count", 254), facts)
    looked = features * facts.get("rsm", 1.0)
    policy = facts.get("grow_policy", "SymmetricTree")
    if policy == "SymmetricTree":
        total = catboost_trees(trees, depth, looked, borders, rows, groups)
        if facts.get("boosting_type") == "Ordered":
            total *= max(math.log2(max(rows, 2) / 25), 1.0)
    else:
        nodes = 2**depth - 1 if policy == "Depthwise" else 2 * facts.get("max_leaves", 31) - 1
        total = (trees * groups * _NODE * nodes + 250) * looked * borders
    return replace(arithmetic(total, DOUBLE), estimated=True)


@rule(*(f"{model}.{method}" for model in _MODELS for method in ("predict", "predict_proba", "score")),
      family="boosting")  # fmt: skip
def predict(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """One addition for each tree and group; the mean that regressions begin with; probabilities where they are asked
    for, 23 operations for two classes and 15 for each of more (a shorter exponential)."""
    rows, groups = answered(out, facts), facts.get("boost_groups", 1)
    work = arithmetic(0, DOUBLE, add=rows * groups * facts.get("boost_trees", 0))
    if not str(facts.get("loss_function", "")).startswith(("Logloss", "CrossEntropy", "Multi")):
        work += arithmetic(0, DOUBLE, add=rows)
    if out and len(out[0].shape) == 2 and out[0].shape[1] > 1:
        work += arithmetic((15 * groups if groups > 1 else 23) * rows, DOUBLE)
    return work


@rule("catboost.CatBoostClassifier.predict_log_proba", family="boosting")
def predict_log_proba(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """The logarithms of probabilities."""
    return predict(out, **facts) + function(LOG, sum(spec.numel for spec in out), DOUBLE)


@rule(*(f"{model}.staged_predict" for model in _MODELS), "catboost.CatBoostClassifier.staged_predict_proba",
      family="boosting")  # fmt: skip
def staged(**facts: Any) -> Work:
    """One addition for each tree and group, where all stages are asked for."""
    total = shape(facts)[0] * facts.get("boost_groups", 1) * facts.get("boost_trees", 0)
    return replace(arithmetic(0, DOUBLE, add=total), estimated=True)
