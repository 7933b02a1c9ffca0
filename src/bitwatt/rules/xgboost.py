"""XGBoost: its estimators, `train`, and boosters."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.boosting import xgboost_exact, xgboost_histograms
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._boosters import (
    answered,
    binned,
    bins,
    explained,
    gapped,
    on_processor,
    rounds,
    samples,
    seen,
    shape,
    used,
)

_MODELS = tuple(f"xgboost.XGB{kind}" for kind in ("Classifier", "Regressor", "Ranker", "RFClassifier", "RFRegressor"))
#: A logistic function in float64, whatever surrounds it; glibc's log1pf, of more than √2 - 1.
_EXP, _LOG1P = 13, 31


def _objective(facts: dict[str, Any]) -> tuple[float, float]:
    """(float64, float32) operations of the gradients of one sample and tree."""
    name = facts.get("objective") or ""
    if seen(facts, "given gradients"):
        return 0, 0
    if name.startswith(("binary:log", "multi", "reg:logistic", "count", "reg:gamma", "reg:tweedie", "rank")):
        return _EXP, 8
    if name == "reg:squaredlogerror":  # of prediction and target, for the gradient and again for the hessian
        return 0, 4 * _LOG1P + 6
    return 0, 17 if name == "reg:pseudohubererror" else 7


def _evaluation(facts: dict[str, Any], trees: float) -> tuple[float, float]:
    """(float64, float32) operations of one sample of an evaluation: it goes through the new trees, and each metric
    takes 3, and two sums (of values and weights) in float64; one with a logarithm 12 more, as glibc's logf has."""
    name, groups = facts.get("objective") or "", facts.get("boost_groups", 1)
    double, single = 0.0, trees
    if groups > 1:
        double, single = 14.0 * groups, single + 2 * groups
    elif name.startswith(("binary:log", "reg:logistic")):
        double, single = float(_EXP), single + 3
    metrics = facts.get("boost_metrics") or ("logloss" if double else "rmse",)
    for metric in metrics:
        double += 2 + (12 if "log" in metric else 0)
        single += 3 + (2 * _LOG1P if metric == "rmsle" else 0)
    return double, single


@rule(*(f"{model}.fit" for model in _MODELS), "xgboost.XGBModel.fit", "xgboost.Booster.train", family="boosting")
def fit(**facts: Any) -> Work:
    """Gradients of each new round; a sketch of the quantiles of each feature (11 operations a value, float32); for each
    node of each new tree histograms of gradient and hessian, and every bin of every feature judged. `exact` judges
    every sample instead; `gblinear` sums gradient and hessian of each feature and sample. A model that is trained on
    predicts first. Sets that are evaluated go through the new trees."""
    on_processor(facts)
    rows, features = shape(facts)
    new, old = rounds(facts)
    each = facts.get("boost_trees", 0) / max(facts.get("boost_rounds", 0), 1)
    gradient, evaluation = _objective(facts), _evaluation(facts, each)
    double, single = (evaluation[i] * samples(facts, "evaluated") for i in (0, 1))
    if facts.get("booster") == "gblinear":
        groups = facts.get("boost_groups", 1)
        passes = rows * features * new * groups
        double += 2 * passes + (gradient[0] + 2) * rows * new * groups
        single += 9 * passes + gradient[1] * rows * new * groups
        return replace(arithmetic(double, DOUBLE) + arithmetic(single, SINGLE), estimated=True)
    drawn, updater = facts.get("subsample", 1.0), facts.get("updater", "")
    X = facts.get("X")
    stored = X.nnz / max(X.numel, 1) if isinstance(X, TensorSpec) and X.nnz is not None else 1.0
    looked = features * facts.get("colsample_bytree", 1.0) * facts.get("colsample_bylevel", 1.0)
    per_node = facts.get("colsample_bynode", 1.0)
    found, sketches = binned(facts), 1.0
    # From both ends where values are missing; of few stored ones few leave enough weight on their side.
    ways = per_node * (1 + (stored if stored < 1 else gapped(facts)))
    walks = per_node * (2 if stored < 1 and "colmaker" not in updater else 1 + gapped(facts))
    found = replace(found, searched=found.searched * walks, judged=found.judged * ways * looked / max(features, 1))
    if "colmaker" in updater:
        grown = xgboost_exact(found, rows * drawn, looked, bins(rows, rows, facts))
        sketches = 0
    else:
        is_approximate = "grow_histmaker" in updater  # bins from the samples that were drawn, and their hessians
        most = bins(round(rows * drawn) if is_approximate else rows, facts.get("max_bin") or 256, facts)
        limited = bool(facts.get("max_delta_step") or facts.get("boost_limited"))
        limited |= facts.get("objective") == "count:poisson"
        grown = xgboost_histograms(found, rows * drawn * stored, looked, most, limited, facts.get("boost_vector", 1))
        is_constant = facts.get("objective") in (None, "reg:squarederror")
        sketches = new if is_approximate and not is_constant else 1
    double += grown[0] + gradient[0] * rows * each * new
    single += grown[1] + gradient[1] * rows * each * new + rows * each * old + 11 * rows * features * sketches
    return replace(arithmetic(double, DOUBLE) + arithmetic(single, SINGLE), estimated=True)


@rule(
    *(f"{model}.predict" for model in _MODELS),
    *(f"xgboost.XGB{kind}.predict_proba" for kind in ("Classifier", "RFClassifier")),
    "xgboost.Booster.predict", "xgboost.Booster.inplace_predict",
    family="boosting",
)  # fmt: skip
def predict(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """One addition for each tree that is asked for in float32, four where trees have weights (`dart`); a logistic
    function of 13 operations in float64 and 3 in float32, or a softmax of 14 and 2 for each class, unless the margin is
    asked for. A linear booster takes a product and a sum for each feature instead of trees. Leaves alone (`pred_leaf`)
    take comparisons."""
    explained(facts.get("pred_contribs"), facts.get("pred_interactions"))
    rows, groups = answered(out, facts), facts.get("boost_groups", 1)
    name = facts.get("objective") or ""
    if facts.get("pred_leaf"):
        return Work()
    begin, end = facts.get("iteration_range") or (0, 0)
    single, double = used(facts, begin, end) * facts.get("boost_vector", 1), 0.0
    if facts.get("booster") == "gblinear":
        single = (2 * facts.get("boost_features", 0) + 1) * groups
    elif facts.get("booster") == "dart":
        single *= 4
    if facts.get("output_margin") or facts.get("predict_type") == "margin":
        return arithmetic(0, SINGLE, add=single * rows)
    if groups > 1 and name.startswith("multi"):
        single, double = single + 2 * groups, double + 14 * groups
    elif name.startswith(("binary:logistic", "reg:logistic")):
        single, double = single + 3, _EXP
    elif name.startswith(("count", "reg:gamma", "reg:tweedie")):
        double = _EXP
    if name.startswith(("binary:", "reg:logistic")):  # the other class has the rest
        single += len(out[0].shape) == 2 if out else 0
    return arithmetic(0, SINGLE, add=single * rows) + arithmetic(double * rows, DOUBLE)


@rule(*(f"{model}.apply" for model in _MODELS), family="boosting")
def apply(**_: Any) -> Work:
    """Leaves are found by comparisons alone."""
    return Work()


@rule("xgboost.Booster.eval_set", family="boosting")
def evaluate(**facts: Any) -> Work:
    """Every tree adds to every row, and each metric is taken; trees whose sums are still there need not be gone through
    again, which is not told."""
    double, single = (one * samples(facts, "evaluated") for one in _evaluation(facts, facts.get("boost_trees", 0)))
    return replace(arithmetic(double, DOUBLE) + arithmetic(single, SINGLE), estimated=True)


@rule("xgboost.XGBRanker.score", family="boosting")
def rank(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """Every tree adds to every row (float32), and its discounted gain is 3 operations there and 6 in float64: gain,
    discount, and sums of what is and of what would be best."""
    rows, _ = shape(facts)
    work = arithmetic((facts.get("boost_trees", 0) + 3) * rows, SINGLE) + arithmetic(6 * rows, DOUBLE)
    return replace(work, estimated=True)
