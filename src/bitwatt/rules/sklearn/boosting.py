"""sklearn.ensemble's gradient boosting, on sorted values and on histograms."""

import math
from dataclasses import replace
from typing import Any

from bitwatt.formulas.boosting import Histograms, binning, histogram_splits, loss
from bitwatt.formulas.inside import Probes, logarithms_of, seen
from bitwatt.formulas.vector import DOUBLE, EXP, arithmetic, function
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn.tree import checked, descended, grown, part_of, targets

_GRADIENT = ("sklearn.ensemble.GradientBoostingClassifier", "sklearn.ensemble.GradientBoostingRegressor")
_HISTOGRAM = ("sklearn.ensemble.HistGradientBoostingClassifier", "sklearn.ensemble.HistGradientBoostingRegressor")


def _classes(facts: dict[str, Any]) -> int:
    """Trees of one round: as many as classes if there are more than two."""
    return facts.get("n_trees_per_iteration_") or 1


def _link(rows: int, trees: int, classifier: bool, facts: dict[str, Any]) -> Work:
    """Initial predictions: the log-odds of the prior, two logarithms for shares between 0.3 and 0.65 (53) and one
    outside (24); for more classes a logarithm of each, their geometric mean, and one of the ratio, which takes 15
    more operations near 1."""
    told = list(seen(facts.get("probes", ()), "initial"))
    if told:
        return _links(told, facts, rows / sum(one[0] * one[-1] for one in told))
    prior = facts.get("prior") or ()
    if not classifier or not prior:
        return Work()
    if trees == 1:
        each = 24 if not 0.3 <= prior[-1] <= 0.65 else 7 if prior[-1] == 0.5 else 53
        return arithmetic((each + (facts.get("loss") == "exponential")) * rows, DOUBLE)
    mean = math.exp(sum(math.log(max(share, 1e-16)) for share in prior) / len(prior))
    near = sum(0.9375 < share / mean < 1.0647 for share in prior)
    return arithmetic((48 * trees + 21 + 15 * near) * rows, DOUBLE)


def _links(told: list[tuple[Any, ...]], facts: dict[str, Any], share: float) -> Work:
    """The same of what an estimator predicts that boosting was told to begin with: for a share of all these rows."""
    total = 0.0
    for rows, trees, near, even, times in told:
        odds = 24 * rows + 29 * near - 46 * even + (facts.get("loss") == "exponential") * rows
        total += (odds if trees == 1 else (48 * trees + 21) * rows + 15 * near) * times
    return arithmetic(total * share, DOUBLE)


def _leaf(name: str, trees: int) -> float:
    """A Newton step in each leaf: probabilities (1), gradients and hessians as weighted means (3 each) of p(1 - p)
    (2); medians of residuals for losses without one."""
    return {"squared_error": 0.0, "log_loss": 9.0, "exponential": 6.5}.get(name, 2.0)


def _fresh(facts: dict[str, Any], probe: str, count: int) -> int:
    """How many of so many rounds or trees this fit grew: a warm start goes on from those that are there."""
    built = sum(times for name, *_, times in facts.get("probes", ()) if name == probe)
    return built if facts.get("warm_start") and 0 < built < count else count


@rule(*(f"{kind}.fit" for kind in _GRADIENT), family="boosting")
def gradient_boosting_fit(X: TensorSpec, y: Any = None, subsample: float = 1.0, **facts: Any) -> Work:
    """For each round the gradients, the trees over them (with three sums of weights), a step in each leaf, 2 operations
    a sample for the new predictions, and the loss. Parts of the samples are drawn, or kept to decide when to stop. A
    warm start predicts with the trees that are there, which the new ones are taken to be like. An estimator to begin
    with is counted as its own."""
    stages, trees = _fresh(facts, "trees", facts["stages"]), _classes(facts)
    old = facts["stages"] - stages
    classifier = isinstance(y, tuple) or (isinstance(y, TensorSpec) and "n_classes_" in facts)
    name = facts.get("loss", "squared_error")
    price = loss(name, trees if trees > 1 else 2)
    kept = facts.get("validation_fraction", 0.1) if facts.get("n_iter_no_change") is not None else 0.0
    rows = round(X.shape[0] * (1 - kept))
    each = price.gradient + price.mean + (2 if name == "huber" else 0)
    each += trees * (3 + 2 + _leaf(name, trees) * subsample + (subsample < 1))
    work = checked(X) + targets(y) + arithmetic(0, DOUBLE, add=X.shape[0])
    work += part_of(grown(X, facts), stages, facts["stages"]) + arithmetic(each * rows * stages, DOUBLE)
    work += _link(rows, trees, classifier, facts) + arithmetic(2 * rows * trees * old, DOUBLE)
    if kept:
        held = X.shape[0] - rows
        work += arithmetic(held * stages * (price.mean + 2 * trees), DOUBLE) + _link(held, trees, classifier, facts)
    elif not classifier and name == "squared_error":
        work += arithmetic(2 * rows, DOUBLE)
    return replace(work, estimated=True) if old else work


def _raw(X: TensorSpec, facts: dict[str, Any], classifier: bool) -> Work:
    """The finiteness check of X, twice; initial predictions; 2 operations for each tree."""
    rows, trees = X.shape[0], _classes(facts)
    total = arithmetic(2 * rows * facts["tree_count"], DOUBLE) + descended(X, facts)
    return checked(X) * 2 + total + _link(rows, trees, classifier, facts)


@rule("sklearn.ensemble.GradientBoostingClassifier.decision_function", family="boosting")
def gradient_boosting_decision(X: TensorSpec, **facts: Any) -> Work:
    """The finiteness checks, the log-odds of the prior, 2 operations for each tree. Descending them compares."""
    return _raw(X, facts, True)


@rule("sklearn.ensemble.GradientBoostingRegressor.predict", family="boosting")
def gradient_boosting_predict(X: TensorSpec, **facts: Any) -> Work:
    """The finiteness checks, 2 operations for each tree. Descending them compares."""
    return _raw(X, facts, False)


def _shares(rows: int, trees: int) -> Work:
    """Probabilities of raw predictions: the logistic function and its complement, or a softmax of 3 operations beside
    the exponentials, of which the largest is 1."""
    if trees == 1:
        return arithmetic(23 * rows, DOUBLE)
    return arithmetic((23 * trees - 19) * rows, DOUBLE)


@rule(
    "sklearn.ensemble.GradientBoostingClassifier.predict_proba",
    family="boosting",
)
def gradient_boosting_proba(X: TensorSpec, **facts: Any) -> Work:
    """The logistic function or softmax of decision_function, which is counted."""
    return _shares(X.shape[0], _classes(facts))


@rule("sklearn.ensemble.GradientBoostingRegressor.staged_predict", family="boosting")
def gradient_boosting_staged(X: TensorSpec, **facts: Any) -> Work:
    """Raw predictions, copied after each round: as much as predicting once, where all are asked for."""
    return replace(_raw(X, facts, False), estimated=True)


@rule(*(f"sklearn.ensemble.GradientBoostingClassifier.{method}"
        for method in ("staged_predict", "staged_decision_function")), family="boosting")  # fmt: skip
def gradient_boosting_staged_decision(X: TensorSpec, **facts: Any) -> Work:
    """Raw predictions, copied after each round: as much as deciding once, where all are asked for."""
    return replace(_raw(X, facts, True), estimated=True)


@rule("sklearn.ensemble.GradientBoostingClassifier.staged_predict_proba", family="boosting")
def gradient_boosting_staged_proba(X: TensorSpec, **facts: Any) -> Work:
    """Raw predictions, and after each round their logistic function or softmax, where all are asked for."""
    shares = _shares(X.shape[0], _classes(facts)) * int(facts["stages"])
    return replace(_raw(X, facts, True) + shares, estimated=True)


@rule(*(f"{kind}.apply" for kind in _GRADIENT), family="boosting")
def gradient_boosting_apply(X: TensorSpec, **facts: Any) -> Work:
    """The finiteness check; descending trees compares."""
    return checked(X) + descended(X, facts)


free(
    "sklearn.ensemble.GradientBoostingClassifier.predict",
    reason="the sign or the largest of decision_function, which is counted",
)


@rule("sklearn.ensemble.GradientBoostingClassifier.predict_log_proba", family="boosting")
def gradient_boosting_log_proba(out: tuple[TensorSpec, ...] = (), probes: Probes = (), **_: Any) -> Work:
    """The logarithm of predict_proba, which is counted."""
    return logarithms_of(sum(spec.numel for spec in out), DOUBLE, probes)


@rule(*(f"{kind}.fit" for kind in _HISTOGRAM), family="boosting")
def histogram_boosting_fit(X: TensorSpec, y: Any = None, **facts: Any) -> Work:
    """For each round the gradients and hessians, then histograms of them: the smaller child of a split is summed
    sample by sample for every feature, the larger one is its parent less that, and every bin is judged. How many bins
    leave enough samples on both sides follows from the splits above, if samples lie evenly in the bins. A warm start
    predicts with the trees that are there, which the new ones are taken to be like."""
    rows, features = X.shape
    trees, grown_now = _classes(facts), _fresh(facts, "grower", facts["hist_trees"])
    share = grown_now / facts["hist_trees"]
    classifier = "n_classes_" in facts or "classes_" in facts
    name = facts.get("loss", "squared_error")
    price = loss(name, trees if trees > 1 else 2)
    weighted = facts.get("sample_weight") is not None or facts.get("class_weight") is not None
    constant = name in ("squared_error", "absolute_error", "quantile") and not weighted
    early = bool(facts.get("do_early_stopping_"))
    held = rows * (facts.get("validation_fraction") or 0.0) if early else 0.0
    used = rows - held
    found = _histograms(facts, _gapped(facts) / features)
    splits = histogram_splits(
        found, features, facts.get("max_features") or 1.0, constant, facts.get("max_bins", 255) + 1
    )
    rounds = grown_now // trees
    each = price.gradient if constant else price.both
    each += trees + (2 if not constant and weighted else 0) + (1 if name in ("absolute_error", "quantile") else 0)
    bins = binning(features, facts["hist_bins"], facts.get("max_bins", 255), used if weighted else 0.0)
    again = used * (facts["hist_trees"] - grown_now)
    work = arithmetic(splits * share + each * used * rounds + bins + again, DOUBLE)
    if early:
        work += arithmetic((rows * price.mean + held * trees) * (rounds + 1), DOUBLE)
    work += arithmetic((1 + trees) * rows, DOUBLE) + (targets(y) if not classifier else Work())
    return replace(work, estimated=True)


def _histograms(facts: dict[str, Any], gapped: float) -> Histograms:
    """Features with missing values are walked through from both ends, with those on the far side, which so has too few
    samples less often: by half, as nobody knows how many are missing in a node."""
    searched, width, walked, judged, built, subtracted = (
        facts[f"hist_{part}"] for part in ("searched", "width", "walked", "judged", "built", "subtracted")
    )
    near = (width + 3 * judged) / 4
    walked += gapped * (walked + 2 * (width - near))
    return Histograms(searched * (1 + gapped), walked, judged + gapped * (2 * near - judged), built, subtracted)


def _gapped(facts: dict[str, Any]) -> int:
    """Features with missing values: these are walked through from both ends."""
    return max((probe[1] for probe in facts.get("probes", ()) if probe[0] == "grower"), default=0)


@rule(
    "sklearn.ensemble.HistGradientBoostingClassifier.decision_function",
    "sklearn.ensemble.HistGradientBoostingRegressor.predict",
    family="boosting",
)
def histogram_raw(X: TensorSpec, **facts: Any) -> Work:
    """One addition for each tree and one for the baseline; the logarithm undone for Poisson and gamma losses."""
    rows, trees = X.shape[0], _classes(facts)
    work = arithmetic(0, DOUBLE, add=rows * (facts["hist_trees"] + trees), compare=rows * _ways(facts))
    return work + function(EXP, rows, DOUBLE) if facts.get("loss") in ("poisson", "gamma") else work


def _rounds(facts: dict[str, Any]) -> int:
    return int(facts["hist_trees"] // _classes(facts))


@rule(
    "sklearn.ensemble.HistGradientBoostingClassifier.staged_predict",
    "sklearn.ensemble.HistGradientBoostingClassifier.staged_decision_function",
    "sklearn.ensemble.HistGradientBoostingRegressor.staged_predict",
    family="boosting",
)
def histogram_staged(X: TensorSpec, **facts: Any) -> Work:
    """Raw predictions, copied after each round, where all are asked for; the logarithm of Poisson and gamma losses is
    undone every time."""
    work = histogram_raw(X, **facts)
    if facts.get("loss") in ("poisson", "gamma"):
        work += function(EXP, X.shape[0] * (_rounds(facts) - 1), DOUBLE)
    return replace(work, estimated=True)


@rule("sklearn.ensemble.HistGradientBoostingClassifier.staged_predict_proba", family="boosting")
def histogram_staged_proba(X: TensorSpec, **facts: Any) -> Work:
    """Raw predictions, and their probabilities after each round, where all are asked for."""
    return replace(histogram_raw(X, **facts) + _shares(X.shape[0], _classes(facts)) * _rounds(facts), estimated=True)


def _ways(facts: dict[str, Any]) -> float:
    return float(facts["hist_trees"] * facts["hist_descents"] / max(facts["hist_leaves"], 1))


@rule(
    "sklearn.ensemble.HistGradientBoostingClassifier.predict",
    "sklearn.ensemble.HistGradientBoostingClassifier.predict_proba",
    family="boosting",
)
def histogram_predict(X: TensorSpec, out: tuple[TensorSpec, ...] = (), **facts: Any) -> Work:
    """One addition for each tree and one for the baseline; probabilities of them where they are asked for."""
    work = histogram_raw(X, **facts)
    asked = any(len(spec.shape) == 2 for spec in out)
    return work + _shares(X.shape[0], _classes(facts)) if asked else work
