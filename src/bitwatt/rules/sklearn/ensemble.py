"""sklearn.ensemble: forests, and what only gathers the votes of other estimators. Boosting is in `boosting`."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import distinct
from bitwatt.formulas.clusters import weighted_choice
from bitwatt.formulas.inside import Probes, logarithms_of, looked_at
from bitwatt.formulas.trees import LOG2
from bitwatt.formulas.vector import DOUBLE, EXP, LOG, arithmetic, function, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn.tree import checked, descended, grown, part_of, targets

#: 2**x by numpy, read from its AVX2 code.
_POWER = 61
_FORESTS = tuple(
    f"sklearn.ensemble.{name}{kind}" for name in ("RandomForest", "ExtraTrees") for kind in ("Classifier", "Regressor")
)
_EMBEDDING = "sklearn.ensemble.RandomTreesEmbedding"


def _outputs(facts: dict[str, Any]) -> int:
    """Numbers that one tree says of one sample."""
    classes = facts.get("n_classes_") or 1
    return sum(classes) if isinstance(classes, tuple) else classes * (facts.get("n_outputs_") or 1)


def _bag(rows: int, max_samples: Any) -> int:
    """Rows that one tree is given."""
    if isinstance(max_samples, float):
        return round(rows * max_samples)
    return max_samples if isinstance(max_samples, int) else rows


def _new(facts: dict[str, Any], work: Work) -> Work:
    """A warm start grows only some of the trees, which are taken to be like all."""
    built = sum(times for name, *_, times in facts.get("probes", ()) if name == "trees")
    count = facts.get("tree_count", 0)
    if not facts.get("warm_start") or not built or built >= count:
        return work
    return replace(part_of(work, built, count), estimated=True)


@rule(*(f"{forest}.fit" for forest in _FORESTS), family="forest")
def forest_fit(X: TensorSpec, y: Any = None, **facts: Any) -> Work:
    """The trees. For each: the sum of weights and, where rows are drawn, their check and their sum once more; by
    weights they are drawn as shares of their sum. Predictions out of the bag are summed for the 37 of 100 samples that
    a tree has not seen, for which it is drawn again."""
    rows, drawn = X.shape[0], bool(facts.get("bootstrap"))
    weighted = drawn or facts.get("sample_weight") is not None or facts.get("class_weight") is not None
    balanced = facts.get("class_weight") == "balanced_subsample"
    each = rows * (1 + 2 * weighted + 2 * balanced)
    work = grown(X, facts) + arithmetic(0, DOUBLE, add=each * facts["tree_count"])
    if drawn and (facts.get("sample_weight") is not None or (facts.get("class_weight") is not None and not balanced)):
        draws = facts["tree_count"] * (2 if facts.get("oob_score") else 1)
        work += (weighted_choice(rows, _bag(rows, facts.get("max_samples"))) + arithmetic(2 * rows, DOUBLE)) * draws
    if facts.get("oob_score"):
        said = rows * _outputs(facts)
        work += arithmetic(0, DOUBLE, add=0.37 * said * facts["tree_count"], div=said)
    return checked(X) + targets(y) + _new(facts, work)


@rule(
    *(f"{forest}.predict_proba" for forest in _FORESTS if "Classifier" in forest),
    *(f"{forest}.predict" for forest in _FORESTS if "Regressor" in forest),
    family="forest",
)
def forest_predict(X: TensorSpec, **facts: Any) -> Work:
    """The finiteness check, the sum of what all trees say, and its mean. Descending trees compares."""
    said = X.shape[0] * _outputs(facts)
    return checked(X) + descended(X, facts) + arithmetic(0, DOUBLE, add=said * facts["tree_count"], div=said)


@rule(
    *(f"{forest}.{method}" for forest in (*_FORESTS, _EMBEDDING) for method in ("apply", "decision_path")),
    family="forest",
)
def forest_apply(X: TensorSpec, **facts: Any) -> Work:
    """The finiteness check; descending trees compares."""
    return checked(X) + descended(X, facts)


@rule(f"{_EMBEDDING}.transform", family="forest")
def embedded(X: TensorSpec, sparse_output: bool = True, **facts: Any) -> Work:
    """The leaves of all samples, looked up as categories; a dense result is made by adding ones to zeros."""
    leaves = X.shape[0] * facts["tree_count"] * (not sparse_output)
    return forest_apply(X, **facts) + distinct(facts["tree_count"]) + Work.of(DOUBLE, add=leaves)


@rule(f"{_EMBEDDING}.fit", f"{_EMBEDDING}.fit_transform", family="forest")
def embedding_fit(X: TensorSpec, sparse_output: bool = True, **facts: Any) -> Work:
    """The trees, then the leaves of all samples, with a check each; the targets are drawn: 5 operations a number."""
    return forest_fit(X, **facts) + embedded(X, sparse_output, **facts) + arithmetic(5 * X.shape[0], DOUBLE)


@rule(
    *(f"{forest}.predict_log_proba" for forest in _FORESTS if "Classifier" in forest),
    "sklearn.ensemble.AdaBoostClassifier.predict_log_proba",
    family="forest",
)
def predict_log_proba(out: tuple[TensorSpec, ...] = (), probes: Probes = (), **_: Any) -> Work:
    """The logarithm of predict_proba, which is counted; less where all trees are sure."""
    known = bool(looked_at(probes, "logarithms"))
    return replace(logarithms_of(sum(spec.numel for spec in out), DOUBLE, probes), estimated=not known)


free(
    *(f"{forest}.predict" for forest in _FORESTS if "Classifier" in forest),
    reason="the largest of predict_proba, which is counted",
)


def _scored(X: TensorSpec, facts: dict[str, Any]) -> Work:
    """Depths of all trees summed (3 operations each), then 2 to the power of their share."""
    each = 3 * facts["tree_count"] + _POWER
    return descended(X, facts) + arithmetic(each * X.shape[0], DOUBLE, div=X.shape[0])


@rule("sklearn.ensemble.IsolationForest.fit", family="forest")
def isolation_fit(X: TensorSpec, contamination: Any = "auto", **facts: Any) -> Work:
    """Trees over random targets (5 operations a number), with three sums of weights for each; the average path below
    each node of more than two samples, a logarithm and 8 operations; the scores if a share of outliers is given."""
    rows, trees = X.shape[0], facts["tree_count"]
    work = grown(X, facts) + arithmetic(5 * rows, DOUBLE, add=3 * rows * trees)
    larger = sum(nodes for nodes, samples in facts["tree_searched"] if samples > 2.5 * nodes)
    work += function(LOG, larger, DOUBLE) + arithmetic(8 * larger, DOUBLE)
    return work if contamination == "auto" else work + _scored(X, facts)


@rule("sklearn.ensemble.IsolationForest.score_samples", family="forest")
def isolation_score(X: TensorSpec, **facts: Any) -> Work:
    """Depths of all trees summed (3 operations each), then 2 to the power of their share. X is not checked."""
    return _scored(X, facts)


@rule("sklearn.ensemble.IsolationForest.decision_function", family="forest")
def isolation_decision(X: TensorSpec, **_: Any) -> Work:
    """score_samples, which is counted, less the offset."""
    return arithmetic(0, DOUBLE, add=X.shape[0])


free("sklearn.ensemble.IsolationForest.predict", reason="the sign of decision_function, which is counted")
free("sklearn.ensemble.IsolationForest.fit_predict", reason="calls fit and predict, which are counted")

_BAGGING = ("sklearn.ensemble.BaggingClassifier", "sklearn.ensemble.BaggingRegressor")


def _members(facts: dict[str, Any]) -> int:
    held = facts.get("estimators_")
    return held if isinstance(held, int) else len(held) if held is not None else facts.get("n_estimators", 0)


@rule(*(f"{bagging}.fit" for bagging in _BAGGING), family="bagging")
def bagging_fit(X: TensorSpec, oob_score: Any = False, **facts: Any) -> Work:
    """Its estimators are counted. Predictions out of the bag are summed for the samples that were not drawn."""
    if not oob_score:
        return Work()
    said = X.shape[0] * (facts.get("n_classes_") or 1)
    return arithmetic(0, DOUBLE, add=0.37 * said * _members(facts), div=said)


@rule(
    "sklearn.ensemble.BaggingClassifier.predict_proba",
    "sklearn.ensemble.BaggingClassifier.decision_function",
    "sklearn.ensemble.BaggingRegressor.predict",
    family="bagging",
)
def bagging_predict(out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """What its estimators say is counted; here it is added up, one sum for each and one over the jobs, and divided."""
    said = sum(spec.numel for spec in out)
    return arithmetic(0, DOUBLE, add=said * (_members(facts) + 1), div=said)


@rule("sklearn.ensemble.BaggingClassifier.predict_log_proba", family="bagging")
def bagging_log_proba(out: tuple[TensorSpec, ...] = (), probes: Probes = (), **facts: Any) -> Work:
    """log(exp(a) + exp(b)) for each estimator after the first: an exponential, log1p (32) and 2 more, in double; then
    the logarithm of their number off. Where one of both is sure that it is not this class, or both that it is, 3 are
    enough, and 1 where both are sure that it is not. Where somebody looked: hundredths of the others, for one number;
    numbers per thousand that all are sure of. What they say themselves is counted."""
    said, sums = sum(spec.numel for spec in out), _members(facts) - 1
    others, never = looked_at(probes, "votes") or (100 * sums, 0)
    whole = min(others / 100, sums)
    short = 3 * (sums - whole) - 2 * sums * never / 1000
    work = function(EXP, said * whole, DOUBLE) + arithmetic(said * (34 * whole + short + 3), DOUBLE)
    return replace(work, estimated=True)


free("sklearn.ensemble.BaggingClassifier.predict", reason="the largest of predict_proba, which is counted")

_WEIGHTED = ("sklearn.ensemble.AdaBoostClassifier", "sklearn.ensemble.AdaBoostRegressor")


@rule("sklearn.ensemble.AdaBoostClassifier.fit", family="boosting")
def adaboost_fit(X: TensorSpec, **facts: Any) -> Work:
    """Its estimators are counted. For each: their error, a weighted mean of three operations a sample; then weights
    become exp(log w + a·wrong), three operations beside the functions, are summed and divided."""
    rows, rounds = X.shape[0], _members(facts)
    work = validated(X) + arithmetic(3 * rows, DOUBLE) + arithmetic(4 * rows * rounds, DOUBLE)
    again = rows * max(rounds - 1, 0)
    return work + function(EXP, again, DOUBLE) + function(LOG, again, DOUBLE) + arithmetic(3 * again, DOUBLE, div=again)


@rule("sklearn.ensemble.AdaBoostRegressor.fit", family="boosting")
def adaboost_regressor_fit(X: TensorSpec, y: Any = None, loss: str = "linear", **facts: Any) -> Work:
    """Its estimators are counted. For each: a draw by weight (a compensated sum of 4, the distribution 2, a number 3),
    errors and their weighted sum (4), and beta to the power of 1 - error with 5 operations around it."""
    rows, rounds = X.shape[0], _members(facts)
    shape = {"linear": 0, "square": 1}.get(loss, 1 + EXP[0])
    work = validated(X) + targets(y) + arithmetic(3 * rows, DOUBLE)
    return (
        work
        + arithmetic(rows * rounds * (9 + 4 + shape), DOUBLE)
        + arithmetic(rows * max(rounds - 1, 0) * (_POWER + 5), DOUBLE)
    )


@rule("sklearn.ensemble.AdaBoostClassifier.decision_function", family="boosting")
def adaboost_decision(X: TensorSpec, n_classes_: int = 2, **facts: Any) -> Work:
    """The check, one weight for each estimator and class added, the mean; for two classes a sign and a sum."""
    said = X.shape[0] * n_classes_
    pair = said if n_classes_ == 2 else 0
    return validated(X) + arithmetic(0, DOUBLE, add=said * _members(facts) + pair, div=said)


@rule("sklearn.ensemble.AdaBoostClassifier.predict_proba", family="boosting")
def adaboost_proba(X: TensorSpec, n_classes_: int = 2, **_: Any) -> Work:
    """The softmax of decision_function, which is counted: a division, the largest off, exp, their sum, the share. The
    exponential of the largest is 1 without a polynomial."""
    rows, said = X.shape[0], X.shape[0] * n_classes_
    return function(EXP, said - rows, DOUBLE) + arithmetic(4 * said + rows, DOUBLE)


@rule("sklearn.ensemble.AdaBoostRegressor.predict", family="boosting")
def adaboost_regressor_predict(X: TensorSpec, **facts: Any) -> Work:
    """The check, and for each sample a sort of the predictions (the logarithm that bounds its depth), the running sum
    of their weights, and its half."""
    return validated(X) + arithmetic((LOG2 + _members(facts)) * X.shape[0], DOUBLE)


free("sklearn.ensemble.AdaBoostClassifier.predict", reason="the largest of decision_function, which is counted")


@rule("sklearn.ensemble.AdaBoostClassifier.staged_decision_function", family="boosting")
def adaboost_staged_decision(X: TensorSpec, n_classes_: int = 2, **facts: Any) -> Work:
    """decision_function after each estimator, where all are asked for: weights added, and the mean; for two classes a
    sign and a sum. Predictions of the estimators are counted as they are asked for."""
    said, stages = X.shape[0] * n_classes_, _members(facts)
    pair = said * stages if n_classes_ == 2 else 0
    work = arithmetic(0, DOUBLE, add=said * (stages - 1) + pair, div=said * stages)
    return replace(validated(X) + work, estimated=True)


@rule("sklearn.ensemble.AdaBoostClassifier.staged_predict", family="boosting")
def adaboost_staged_predict(X: TensorSpec, **_: Any) -> Work:
    """The check, and the largest of staged_decision_function, which is counted."""
    return validated(X)


@rule("sklearn.ensemble.AdaBoostClassifier.staged_predict_proba", family="boosting")
def adaboost_staged_proba(X: TensorSpec, n_classes_: int = 2, **facts: Any) -> Work:
    """The softmax of staged_decision_function, which is counted, after each estimator."""
    return replace(adaboost_proba(X, n_classes_) * _members(facts), estimated=True)


@rule("sklearn.ensemble.AdaBoostRegressor.staged_predict", family="boosting")
def adaboost_staged_median(X: TensorSpec, **facts: Any) -> Work:
    """The check, and the weighted median of the first estimators for every number of them, each of which predicts anew;
    one value needs no sort."""
    each = sum(LOG2 + used for used in range(2, _members(facts) + 1))
    return replace(validated(X) + arithmetic((each + 1) * X.shape[0], DOUBLE), estimated=True)


@rule("sklearn.ensemble.AdaBoostClassifier.staged_score", family="boosting")
def adaboost_staged_score(X: TensorSpec, **facts: Any) -> Work:
    """The check, and the share of right answers after each estimator; staged_predict is counted."""
    return replace(validated(X) + arithmetic((X.shape[0] + 60) * _members(facts), DOUBLE), estimated=True)


@rule("sklearn.ensemble.AdaBoostRegressor.staged_score", family="boosting")
def adaboost_staged_determination(X: TensorSpec, **facts: Any) -> Work:
    """The check, and R² after each estimator: 11 operations a sample; staged_predict is counted."""
    return replace(validated(X) + arithmetic(11 * X.shape[0] * _members(facts), DOUBLE), estimated=True)


_VOTING = ("sklearn.ensemble.VotingClassifier", "sklearn.ensemble.VotingRegressor")
_STACKING = ("sklearn.ensemble.StackingClassifier", "sklearn.ensemble.StackingRegressor")


@rule("sklearn.ensemble.VotingClassifier.predict_proba", "sklearn.ensemble.VotingRegressor.predict", family="voting")
def voting(weights: Any = None, out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """What its estimators say is counted; here is its mean."""
    said = sum(spec.numel for spec in out)
    members = _members(facts)
    extra = 0 if weights is None else members * said
    return arithmetic(0, DOUBLE, add=said * members, mul=extra, div=said)


@rule("sklearn.ensemble.VotingClassifier.predict", family="voting")
def voting_predict(X: TensorSpec, voting: str = "hard", **facts: Any) -> Work:
    """The largest of predict_proba, which is counted, or one addition for each vote."""
    return Work() if voting == "soft" else arithmetic(0, DOUBLE, add=X.shape[0] * _members(facts))


free(
    *(f"{kind}.{method}" for kind in _VOTING for method in ("fit", "transform", "fit_transform")),
    *(f"{kind}.{method}" for kind in _STACKING for method in ("fit", "transform", "fit_transform", "predict")),
    "sklearn.ensemble.StackingClassifier.predict_proba",
    "sklearn.ensemble.StackingClassifier.decision_function",
    reason="calls its estimators, which are counted",
)
