"""XGBoost: its estimators, `train`, and boosters."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.boosting import xgboost_exact, xgboost_histograms
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._boosters import answered, binned, bins, shape

_MODELS = tuple(f"xgboost.XGB{kind}" for kind in ("Classifier", "Regressor", "Ranker", "RFClassifier", "RFRegressor"))
#: A logistic function in float64, whatever surrounds it.
_EXP = 13


def _objective(facts: dict[str, Any]) -> tuple[float, float]:
    """(float64, float32) operations of the gradients of one sample and tree."""
    name = facts.get("objective") or ""
    if name.startswith(("binary", "multi", "reg:logistic", "count", "reg:gamma", "reg:tweedie", "rank")):
        return _EXP, 8
    return 0, 7


@rule(*(f"{model}.fit" for model in _MODELS), "xgboost.XGBModel.fit", "xgboost.Booster.train", family="boosting")
def fit(**facts: Any) -> Work:
    """Gradients of each round; a sketch of the quantiles of each feature (11 operations a value, float32); for each
    node of each tree histograms of gradient and hessian, and every bin of every feature judged. `exact` judges every
    sample instead; `gblinear` sums gradient and hessian of each feature and sample."""
    rows, features = shape(facts)
    rounds, trees = facts.get("boost_rounds", 0), facts.get("boost_trees", 0)
    if facts.get("booster") == "gblinear":
        passes = rows * features * rounds * facts.get("boost_groups", 1)
        work = arithmetic(2 * passes, DOUBLE) + arithmetic(9 * passes, SINGLE)
        return replace(work, estimated=True)
    drawn, updater = facts.get("subsample", 1.0), facts.get("updater", "")
    looked = features * facts.get("colsample_bytree", 1.0) * facts.get("colsample_bylevel", 1.0)
    per_node = facts.get("colsample_bynode", 1.0)
    found, sketches = binned(facts), 1
    found = replace(
        found, searched=found.searched * per_node, judged=found.judged * per_node * looked / max(features, 1)
    )
    if "colmaker" in updater:
        double, single = xgboost_exact(found, rows * drawn, looked)
        sketches = 0
    else:
        most = bins(rows, facts.get("max_bin") or 256, facts)
        limited = bool(facts.get("max_delta_step")) or facts.get("objective") == "count:poisson"
        double, single = xgboost_histograms(found, rows * drawn, looked, most, limited)
        sketches = rounds if "grow_histmaker" in updater else 1
    gradient = _objective(facts)
    double += gradient[0] * rows * trees
    single += gradient[1] * rows * trees + 11 * rows * features * sketches
    return replace(arithmetic(double, DOUBLE) + arithmetic(single, SINGLE), estimated=True)


@rule(
    *(f"{model}.{method}" for model in _MODELS for method in ("predict", "apply")),
    *(f"xgboost.XGB{kind}.predict_proba" for kind in ("Classifier", "RFClassifier")),
    "xgboost.Booster.predict",
    family="boosting",
)
def predict(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """One addition for each tree in float32, four where trees have weights (`dart`); a logistic function of 13
    operations in float64 and 3 in float32, or a softmax of 14 and 2 for each class. A linear booster takes a product
    and a sum for each feature."""
    rows, groups = answered(out, facts), facts.get("boost_groups", 1)
    name = facts.get("objective") or ""
    if facts.get("booster") == "gblinear":
        return arithmetic((2 * facts.get("boost_features", 0) + 1) * groups * rows, SINGLE)
    single, double = float(facts.get("boost_trees", 0)) * (4 if facts.get("booster") == "dart" else 1), 0.0
    if groups > 1:
        single, double = single + 2 * groups, double + 14 * groups
    elif name.startswith(("binary:logistic", "reg:logistic")):
        single, double = single + 3 + (len(out[0].shape) == 2 if out else 0), _EXP
    elif name.startswith(("count", "reg:gamma", "reg:tweedie")):
        double = _EXP
    return arithmetic(0, SINGLE, add=single * rows) + arithmetic(double * rows, DOUBLE)
