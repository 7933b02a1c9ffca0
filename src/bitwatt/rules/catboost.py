"""CatBoost: its estimators, `train` and `cv`."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.boosting import (
    catboost_borders,
    catboost_levels,
    catboost_nodes,
    catboost_samples,
    catboost_segments,
)
from bitwatt.formulas.vector import DOUBLE, LOG, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules._boosters import answered, bins, on_processor, shape

_MODELS = tuple(f"catboost.CatBoost{kind}" for kind in ("", "Classifier", "Regressor", "Ranker"))
#: Each class against all others: logistic functions.
_ALONE = "MultiClassOneVsAll"
#: Losses that begin with a mean or a quantile, which predictions add.
_MEANS = ("RMSE", "MAE", "Quantile", "MAPE", "MultiRMSE")
#: What a prediction executes before it looks at rows.
_BOOKS = 146
_CLASSIFIER = "catboost.CatBoostClassifier"
_STAGED = ("staged_predict", "eval_metrics")
#: A column of categories becomes four statistics of the target (three priors, and a counter), of 15 borders each.
_CATEGORY = 4 * 15
_EXPONENTIAL = ("Logloss", "CrossEntropy", "Multi", "Poisson", "Tweedie")


def _training(rows: float, columns: float, kinds: float, trees: float, facts: dict[str, Any]) -> float:
    depth, groups = facts.get("depth", 6), facts.get("boost_groups", 1)
    borders = bins(round(rows), facts.get("border_count", 254), facts)
    looked = facts.get("rsm", 1.0) * ((columns - kinds) * borders + kinds * _CATEGORY)
    segments = catboost_segments(rows) if facts.get("boosting_type") == "Ordered" else 1
    policy, score = facts.get("grow_policy", "SymmetricTree"), facts.get("score_function", "Cosine")
    if policy == "SymmetricTree":
        each = catboost_levels(depth, looked, groups, segments, score)
    else:
        leaves = facts.get("boost_leaves") or (2.0**depth if policy == "Depthwise" else facts.get("max_leaves", 31))
        shallow = leaves * max(1 - leaves / 2.0**depth, 0)  # leaves that could have been split, and were looked at
        each = catboost_nodes(leaves - 1 + shallow, looked, groups, segments, score)
    exponential = str(facts.get("loss_function", "")).startswith(_EXPONENTIAL)
    steps = facts.get("leaf_estimation_iterations", 1)
    seen = columns * facts.get("rsm", 1.0)
    each += catboost_samples(rows, seen, depth, groups, steps, segments > 1, exponential)
    return trees * each + catboost_borders(rows, columns - kinds, borders)


def _trained(facts: dict[str, Any]) -> tuple[float, float, float, float, float, float]:
    """Rows, columns, those of categories, rows of evaluation sets, rounds, and trees that there were before."""
    for name, *sizes, _ in facts.get("probes", ()):
        if name == "trained":
            return tuple(sizes)
    rows, columns = shape(facts)
    return rows, columns, 0, 0, facts.get("boost_trees", 0), 0


@rule(*(f"{model}.{method}" for model in _MODELS for method in ("fit", "train")), family="boosting")
def fit(**facts: Any) -> Work:
    """Every border of every feature scored for every leaf of every level of symmetric trees. Other trees are scored
    node by node. Ordered boosting scores once for each of the prefixes, which double in length, that a permutation
    has. Sets that are evaluated go through each new tree, with 4 operations for the metric; a model that is trained on
    predicts first."""
    on_processor(facts)
    rows, columns, kinds, held, trees, old = _trained(facts)
    groups = facts.get("boost_groups", 1)
    total = _training(rows, columns, kinds, trees, facts)
    total += groups * (rows * old + held * (trees + old)) + 4 * held * trees
    return replace(arithmetic(total, DOUBLE), estimated=True)


@rule("catboost.Pool.quantize", family="boosting")
def quantize(rows: int = 0, columns: int = 0, border_count: int | None = None, **_: Any) -> Work:
    """The borders of every feature."""
    borders = min(border_count or 254, rows)
    return replace(arithmetic(catboost_borders(rows, columns, borders), DOUBLE), estimated=True)


@rule("catboost.cv", family="boosting")
def cv(rows: int, columns: int, folds: int, trees: int, inverted: bool = False, **facts: Any) -> Work:
    """A training for each fold on the others, and their evaluation."""
    on_processor(facts)
    part = rows / folds if inverted else rows * (folds - 1) / folds
    total = _training(part, columns, facts.get("kinds", 0), trees, facts) + 5 * (rows - part) * trees
    return replace(arithmetic(folds * total, DOUBLE), estimated=True)


@rule(*(f"{model}.{method}" for model in _MODELS for method in ("predict", "predict_proba")),
      "catboost.CatBoost.score", family="boosting")  # fmt: skip
def predict(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """One addition for each tree that is asked for and group; the mean that regressions begin with; probabilities where
    they are asked for, 23 operations for two classes and 15 for each of more (a shorter exponential)."""
    rows, groups, kept = answered(out, facts), facts.get("boost_groups", 1), facts.get("boost_trees", 0)
    asked = (facts.get("ntree_end") or kept) - (facts.get("ntree_start") or 0)
    work = arithmetic(_BOOKS, DOUBLE, add=rows * groups * max(min(asked, kept), 0))
    loss = str(facts.get("loss_function", ""))
    if not loss or loss.startswith(_MEANS):
        work += arithmetic(0, DOUBLE, add=rows * groups)
    if loss.startswith("Poisson") and facts.get("prediction_type") is None:
        work += arithmetic(11 * rows, DOUBLE)  # the short exponential
    if (
        out
        and len(out[0].shape) == 2
        and out[0].shape[1] > 1
        and facts.get("prediction_type") != "RawFormulaVal"
        and not loss.startswith("MultiRMSE")
    ):
        each = 22 * groups if loss.startswith(_ALONE) else 15 * groups if groups > 1 else 23
        work += arithmetic(each * rows, DOUBLE)
    if kinds := facts.get("boost_kinds", 0):  # each of four statistics is looked up and made a number, where trees ask
        work = replace(work + arithmetic(4 * 10 * kinds * rows, DOUBLE), estimated=True)
    return work


@rule("catboost.CatBoostClassifier.score", family="boosting")
def accuracy(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """A prediction, and the mean of what is right."""
    return predict(out, **facts) + arithmetic(0, DOUBLE, add=shape(facts)[0])


@rule("catboost.CatBoostRegressor.score", family="boosting")
def score(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """A prediction, and the coefficient of determination: two sums of squares and a mean, 7 operations a value."""
    loss = str(facts.get("loss_function", ""))
    targets = facts.get("boost_groups", 1) if loss.startswith("MultiRMSE") else 1
    return predict(out, **facts) + arithmetic(7 * shape(facts)[0] * targets, DOUBLE)


@rule("catboost.CatBoostRanker.score", family="boosting")
def rank(**_: Any) -> Work:
    """Discounted gains of groups; which rows are a group is not told."""
    raise ValueError("the groups that it ranks are not told")


@rule("catboost.CatBoostClassifier.predict_log_proba", family="boosting")
def predict_log_proba(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """The trees; of two classes, or of each against all others, log(1 + exp(∓x)), 43 operations each; of more the
    exponentials (15 each), the
    logarithm of their sum, and a difference."""
    rows, groups = answered(out, facts), facts.get("boost_groups", 1)
    raw = predict(out, **facts | {"prediction_type": "RawFormulaVal"})
    if groups > 1 and not str(facts.get("loss_function", "")).startswith(_ALONE):
        return raw + arithmetic((15 * groups + LOG[0] + 1) * rows, DOUBLE)
    return raw + arithmetic(43 * max(groups, 2) * rows, DOUBLE)


@rule(*(f"{model}.{method}" for model in _MODELS if model != _CLASSIFIER for method in _STAGED), family="boosting")
def staged(**facts: Any) -> Work:
    """Each tree adds to each row and group, and each stage makes an answer of it: one addition, or 5 operations for
    each metric; where all stages are asked for."""
    return _stages(facts, 1.0, 52 if facts.get("boost_groups", 1) > 1 else 264)


@rule(*(f"{_CLASSIFIER}.{method}" for method in (*_STAGED, "staged_predict_proba", "staged_predict_log_proba")),
      family="boosting")  # fmt: skip
def staged_classes(**facts: Any) -> Work:
    """As numbers; scores begin with those of the first tree."""
    trees = facts.get("boost_trees", 0)
    return _stages(facts, (trees - 1) / max(trees, 1), 88)


def _stages(facts: dict[str, Any], added: float, books: int) -> Work:
    rows, groups, trees = shape(facts)[0], facts.get("boost_groups", 1), facts.get("boost_trees", 0)
    metrics = facts.get("metrics")
    told = len(metrics) if isinstance(metrics, tuple) else 1
    answers = 5 * told if metrics is not None else added * groups
    return replace(arithmetic(0, DOUBLE, add=trees * (rows * (groups + answers) + books)), estimated=True)


@rule(*(f"{model}.get_feature_importance" for model in _MODELS), family="boosting")
def importance(**facts: Any) -> Work:
    """How much predictions change: for each level of each tree the pairs of leaves that it tells apart, their weighted
    mean and its distances (11 operations), of which about half are empty. Other kinds of importance are missing."""
    kind = facts.get("type", "FeatureImportance")
    if kind not in ("FeatureImportance", "PredictionValuesChange") or facts.get("data") is not None:
        raise ValueError(f"{kind} depends on all paths of all trees, or on a metric")
    depth = facts.get("depth", 6)
    pairs = facts.get("boost_trees", 0) * depth * 2.0 ** (depth - 1) * facts.get("boost_groups", 1)
    return replace(arithmetic(5.5 * pairs, DOUBLE), estimated=True)


free(*(f"{model}.calc_leaf_indexes" for model in _MODELS), reason="leaves are found by comparisons alone")
