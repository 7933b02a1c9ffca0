"""LightGBM: its estimators, `train`, and boosters."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.boosting import lightgbm_histograms
from bitwatt.formulas.vector import DOUBLE, EXP, arithmetic
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

_MODELS = tuple(f"lightgbm.LGBM{kind}" for kind in ("Classifier", "Regressor", "Ranker"))
_LOGISTIC = ("binary", "cross_entropy", "xentropy", "poisson", "gamma", "tweedie")
_BY_ITSELF = ("multiclassova", "multiclass_ova", "ova", "ovr")
#: LambdaRank looks its logistic function up in a table of 2^20 values, each an exponential and 5 operations.
_TABLE = 2**20 * (EXP[0] + 5)


def _objective(facts: dict[str, Any]) -> float:
    """Operations of the gradients of one sample and tree."""
    groups, name = facts.get("boost_groups", 1), facts.get("objective", "")
    if seen(facts, "given gradients"):
        return 0
    if name.startswith("rank_xendcg"):  # a softmax, a power of two for the label, and three corrections
        return 120
    if name.startswith("lambdarank"):
        return 60 * _pairs(facts)
    return 27 if groups > 1 else 30 if name.startswith(_LOGISTIC) else 1


def _pairs(facts: dict[str, Any]) -> float:
    """Pairs of a query that have different labels, for each sample: two of three, of the 30 that lead the ranking."""
    group = facts.get("group")
    queries = (
        group.shape[0] if isinstance(group, TensorSpec) else len(group) if isinstance(group, tuple) else group or 1
    )
    size = shape(facts)[0] / max(queries, 1)
    return min(size, 30) / 3


def _link(facts: dict[str, Any]) -> float:
    """Operations that make a probability or a rate of the scores of one row."""
    groups, name = facts.get("boost_groups", 1), facts.get("objective", "")
    if groups > 1:  # each class by itself has a logistic function
        return float(23 * groups if name.startswith(_BY_ITSELF) else 23 * groups - 19)
    if name.startswith(("binary", "cross_entropy", "xentropy")):
        return 24
    return EXP[0] if name.startswith(("poisson", "gamma", "tweedie")) else 0


def _evaluation(facts: dict[str, Any]) -> float:
    """Operations of one sample of an evaluation: its link, and for each metric 3, or a logarithm."""
    metrics = [name for one in facts.get("boost_metrics", ()) for name in str(one).split(",") if name]
    return _link(facts) + sum(23 if "log" in name or "entropy" in name else 3 for name in metrics or ("l2",))


@rule(*(f"{model}.fit" for model in _MODELS), "lightgbm.LGBMModel.fit", "lightgbm.Booster.train", family="boosting")
def fit(**facts: Any) -> Work:
    """Gradients of each new round (30 operations where they take an exponential, 27 for each of many classes, else one)
    and 2 for scores; for each node of each new tree histograms of gradient and hessian, and every bin of every feature
    judged that leaves enough samples on both sides, or one at random (`extra_trees`). GOSS leaves out samples after
    1 / learning_rate rounds. A model that is trained on predicts first; sets that are evaluated go through new
    trees."""
    on_processor(facts)
    rows, features = shape(facts)
    new, old = rounds(facts)
    seen_by = max((sizes[2] for name, *sizes, _ in facts.get("probes", ()) if name == "round"), default=rows)
    most = bins(seen_by // max(facts.get("min_data_in_bin", 3), 1), facts.get("max_bin") or 255, facts)
    share = facts.get("feature_fraction", 1.0)
    drawn = facts.get("bagging_fraction", 1.0)
    if "goss" in (facts.get("boosting"), facts.get("data_sample_strategy")):
        whole = min(1 / max(facts.get("learning_rate", 0.1), 1e-9), new) / max(new, 1)
        drawn = whole + (1 - whole) * min(facts.get("top_rate", 0.2) + facts.get("other_rate", 0.1), 1)
    found = binned(facts)
    walked, judged = found.walked, found.judged
    if facts.get("extra_trees"):  # what is not drawn costs next to nothing
        walked, judged = 0.0, found.searched * features / max(most, 1)
    ways = share * (1 + gapped(facts))
    found = replace(found, walked=walked * ways, judged=judged * ways)
    total = lightgbm_histograms(found, rows * drawn, features * share, most, bool(facts.get("use_quantized_grad")))
    groups = facts.get("boost_groups", 1)
    total += (_objective(facts) + 2) * rows * new * groups + rows * old * groups
    total += samples(facts, "held out") * groups + samples(facts, "evaluated") * _evaluation(facts)
    if facts.get("objective", "").startswith("lambdarank"):
        total += _TABLE
    return replace(arithmetic(total, DOUBLE), estimated=True)


@rule("lightgbm.Booster.eval_set", family="boosting")
def evaluate(**facts: Any) -> Work:
    """Every tree adds to every row, and each metric is taken."""
    each = facts.get("boost_trees", 0) + _evaluation(facts)
    return replace(arithmetic(each * samples(facts, "evaluated"), DOUBLE), estimated=True)


@rule("lightgbm.Booster.refit", family="boosting")
def refit(**facts: Any) -> Work:
    """Each tree anew for other data: its gradients, two sums for each sample, 2 for the value of its leaf, and 2 for
    scores."""
    rows, _ = shape(facts)
    return replace(arithmetic((_objective(facts) + 6) * rows * facts.get("boost_trees", 0), DOUBLE), estimated=True)


@rule(
    *(f"{model}.predict" for model in _MODELS),
    "lightgbm.LGBMClassifier.predict_proba",
    "lightgbm.Booster.predict",
    family="boosting",
)
def predict(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """One addition for each tree that is asked for; a logistic function of 24 operations, or a softmax of 23 for each
    class less 19, unless raw scores are asked for. Leaves alone take comparisons; linear ones are taken as plain."""
    explained(facts.get("pred_contrib"))
    rows = answered(out, facts)
    if facts.get("pred_leaf"):
        return Work()
    begin, asked = facts.get("start_iteration") or 0, facts.get("num_iteration") or 0
    each = used(facts, begin, begin + asked if asked > 0 else 0 if asked == 0 else facts.get("boost_rounds", 0))
    work = arithmetic((each + (0 if facts.get("raw_score") else _link(facts))) * rows, DOUBLE)
    return replace(work, estimated=True) if facts.get("linear_tree") else work


@rule("lightgbm.LGBMClassifier.decision_function", family="boosting")
def decision_function(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """Raw scores: one addition for each tree."""
    return predict(out, **facts | {"raw_score": True})
