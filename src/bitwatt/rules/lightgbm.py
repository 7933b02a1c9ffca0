"""LightGBM: its estimators, `train`, and boosters."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.boosting import lightgbm_histograms
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._boosters import answered, binned, bins, shape

_MODELS = tuple(f"lightgbm.LGBM{kind}" for kind in ("Classifier", "Regressor", "Ranker"))
_LOGISTIC = ("binary", "cross_entropy", "xentropy", "poisson", "gamma", "tweedie", "lambdarank", "rank_xendcg")


@rule(*(f"{model}.fit" for model in _MODELS), "lightgbm.LGBMModel.fit", "lightgbm.Booster.train", family="boosting")
def fit(**facts: Any) -> Work:
    """Gradients of each round (30 operations where they take an exponential, 27 for each of many classes, else one) and
    2 for scores; for each node of each tree histograms of gradient and hessian, and every bin of every feature judged
    that leaves enough samples on both sides."""
    rows, features = shape(facts)
    most = bins(rows // max(facts.get("min_data_in_bin", 3), 1), facts.get("max_bin") or 255, facts)
    share = facts.get("feature_fraction", 1.0)
    drawn = facts.get("bagging_fraction", 1.0) if facts.get("boosting") != "goss" else 1.0
    found = binned(facts)
    found = replace(found, walked=found.walked * share, judged=found.judged * share)
    total = lightgbm_histograms(found, rows * drawn, features * share, most)
    groups, name = facts.get("boost_groups", 1), facts.get("objective", "")
    gradient = 27 if groups > 1 else 30 if name.startswith(_LOGISTIC) else 1
    total += (gradient + 2) * rows * facts.get("boost_trees", 0)
    return replace(arithmetic(total, DOUBLE), estimated=True)


@rule(
    *(f"{model}.predict" for model in _MODELS),
    "lightgbm.LGBMClassifier.predict_proba",
    "lightgbm.LGBMClassifier.decision_function",
    "lightgbm.Booster.predict",
    family="boosting",
)
def predict(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """One addition for each tree; a logistic function of 24 operations, or a softmax of 23 for each class less 19."""
    rows, groups, name = answered(out, facts), facts.get("boost_groups", 1), facts.get("objective", "")
    each = float(facts.get("boost_trees", 0))
    if groups > 1:
        each += 23 * groups - 19
    elif name.startswith(("binary", "cross_entropy", "xentropy")):
        each += 24
    elif name.startswith(("poisson", "gamma", "tweedie")):
        each += 20
    return arithmetic(each * rows, DOUBLE)
