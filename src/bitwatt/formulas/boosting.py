"""Boosting: gradients and losses by sample, and splits found in histograms of gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Operations of scikit-learn's losses on one sample: gradient, gradient and hessian, and the mean of the loss over
#: weighted samples (3 of them). Exponentials are 20, logarithms 22; multinomial ones depend on the classes.
_LOSSES = {
    "squared_error": (1, 1, 6), "absolute_error": (0, 0, 4), "quantile": (0.3, 0.3, 5.3), "huber": (1, 1, 6.4),
    "poisson": (21, 21, 25), "gamma": (22, 22, 25), "exponential": (24, 25, 27), "log_loss": (25, 27, 48),
}  # fmt: skip


@dataclass(frozen=True)
class Loss:
    """What one sample costs."""

    gradient: float
    both: float
    mean: float


def loss(name: str, classes: int = 2) -> Loss:
    """For more than two classes: exponentials of all, less the largest, their sum, and shares."""
    if name == "log_loss" and classes > 2:
        return Loss(23 * classes - 18, 25 * classes - 18, 22 * classes + 8)
    return Loss(*_LOSSES.get(name, (1, 1, 6)))


@dataclass(frozen=True)
class Histograms:
    """Trees grown on binned values, summed over all of them.

    `searched` nodes were looked at for a split; in all features together `walked` bins were passed and `judged` ones
    left enough samples on both sides. `built` are the samples that were added into histograms, `subtracted` the nodes
    whose histogram is their parent's less their sibling's.
    """

    searched: float
    walked: float
    judged: float
    built: float
    subtracted: float


def histogram_splits(found: Histograms, features: int, share: float, constant: bool, bins: int) -> float:
    """Float64 operations of all histograms and searches; `share` of the features is looked at.

    A sample adds its gradient, and its hessian unless that is constant, for each feature; a subtraction takes two
    operations for each bin there is room for. A search adds to both sums at each bin (2); where a bin leaves enough
    samples on both sides, it subtracts them from the totals (2) and judges it by the values (3 operations each) and
    losses (2 each) of both. The best bin of each feature gets its sums and values again (8).
    """
    total = found.built * features * (1 if constant else 2) + found.subtracted * features * bins * 2
    return total + share * (2 * found.walked + 12 * found.judged + 8 * features * found.searched)


def binning(features: int, bins: float, most: int, weighted_rows: float = 0.0) -> float:
    """Thresholds of all features by quantiles: 15 operations for each and 152 around them; by the middle between
    distinct values, 3 for each, where there are no more of them than bins. Quantiles of samples with weights add all of
    these up, for each threshold anew, and some thresholds coincide."""
    each = bins / max(features, 1)
    if each <= (0.8 if weighted_rows > most else 0.95) * most:
        return features * (3 * each + 81)
    return features * (15 * each + 152 + weighted_rows * (most - 1))


@dataclass(frozen=True)
class Binned:
    """Trees of other libraries, summed: nodes `searched`; bins `walked` through and `judged` there, in units of all
    bins of one feature; samples `built` into histograms in units of all samples; histograms `subtracted`; samples of
    searched nodes that leave enough on both sides (`passed`), in units of all samples."""

    searched: float
    walked: float
    judged: float
    built: float
    subtracted: float
    passed: float


def xgboost_histograms(
    found: Binned, rows: float, features: float, bins: float, limited: bool, targets: int = 1
) -> tuple[float, float]:
    """(float64, float32) operations of XGBoost's `hist`.

    A sample adds gradient and hessian for each feature, a subtraction two sums for each bin. The walk goes through all
    bins with two sums; a bin with enough hessian on both sides subtracts them from the totals (2) and takes, for each
    side, the gradient beyond alpha (twice), hessian plus lambda, the weight, a square and a division (6); gains are
    added and compared in float32 (4).

    Where weights are limited (`max_delta_step`, monotone constraints) the weight of each side comes first (3 each), and
    the gain -(2gw + (h + lambda)w^2) follows in float32: 6 each, and 2 to compare them. Trees of several `targets` do
    all of that in float64, for each of them.
    """
    double = 2 * features * (rows * found.built + bins * found.subtracted) + 2 * bins * features * found.searched
    judged = bins * found.judged
    if targets > 1:
        return (double + 20 * judged) * targets, 0.0
    return double + judged * (8 if limited else 14), judged * (14 if limited else 4)


def xgboost_exact(found: Binned, rows: float, features: float, values: float) -> tuple[float, float]:
    """(float64, float32) operations of XGBoost's `exact`: every sample of a searched node is a position in each
    feature, with two sums; where the value changes, which it does not more often than a feature has `values`, it is
    judged by the 14 operations of a histogram's bin, and the middle of two values is 2 more in float32."""
    positions = rows * features * found.passed
    judged = min(positions, features * found.searched * values)
    return 2 * positions + 14 * judged, 6 * judged


def lightgbm_histograms(found: Binned, rows: float, features: float, bins: float, integers: bool = False) -> float:
    """Float64 operations of LightGBM: a sample adds two sums for each feature; for each bin of a split node three
    passes of two sums (merging, fixing the most frequent bin, subtracting). The walk adds two sums and rounds a count
    (2); a judged bin subtracts them from the totals (2) and takes two gains of 3 and their sum. Histograms of gradients
    that were rounded to integers cost nothing here, but two products for each bin that is walked through."""
    if integers:
        return bins * (6 * found.walked + 9 * found.judged)
    double = 2 * features * rows * found.built + 6 * features * bins * found.subtracted
    return double + bins * (4 * found.walked + 9 * found.judged)


#: CatBoost, for one border of one feature in one leaf of a level: four sums of it (gradients, weights, and both without
#: weights) into the total, into one side and off the other (12); the score of both sides (14): hessian plus
#: regularisation, mean, mean times gradients, its square times weights, and their sums; and a bin that is merged or
#: taken off its parent's, as one of two leaves is (4). The score L2 goes without squares and half of the sums.
_LEAF = {"Cosine": 30, "L2": 22}
#: For one border of one feature on a level: its score from two sums (a root, a division), and a normal deviate that is
#: always drawn for it (a logarithm, a root, 1.3 draws of two numbers).
_BORDER = 43


def catboost_segments(rows: float) -> int:
    """Ordered boosting learns on prefixes of a permutation that double in length, from a 50th of the samples, at most
    100; from a single one where there are up to 500."""
    first = min(100.0, rows // 50) if rows > 500 else 1.0
    return max(math.ceil(math.log2(max(rows, 2) / max(first, 1))), 1)


def catboost_levels(depth: float, candidates: float, groups: float, segments: float, score: str = "Cosine") -> float:
    """Float64 operations of one symmetric tree: a level scores every border (`candidates`, over all features) in each
    of its leaves, which double from level to level, for each group of outputs and segment of the samples."""
    leaves = 2.0**depth - 1.0
    return float(candidates * (_LEAF.get(score, 30) * leaves * groups * segments + _BORDER * depth))


def catboost_nodes(nodes: float, candidates: float, groups: float, segments: float, score: str = "Cosine") -> float:
    """Float64 operations of trees that are not symmetric: each node is scored by itself."""
    return candidates * nodes * (_LEAF.get(score, 30) * groups * segments + _BORDER)


def catboost_samples(
    rows: float, features: float, depth: float, groups: float, steps: float, ordered: bool, exponential: bool
) -> float:
    """Float64 operations of the samples in one tree: two sums for each feature at the root, and on each other level for
    the smaller half of them; each of the `steps` that the values of leaves take, 10 for gradient, hessian, sums and the
    new approximation. Ordered boosting keeps three permutations, whose prefixes are twice the samples together: six
    times a gradient, of 10 operations or, with an exponential, 20."""
    kept = 6 * (20 if exponential else 10) if ordered else 0
    return groups * rows * (features * (depth + 1) + 10 * steps + kept)


def catboost_borders(rows: float, features: float, borders: float) -> float:
    """Float64 operations of choosing borders: each splits a bin whose halves are weighed by four logarithms and what is
    between them (180); counting distinct values takes 20 a sample."""
    return features * (180 * borders + 20 * rows)
