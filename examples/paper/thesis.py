"""Are bit-operations the more faithful view of hardware effort? What predicts measured joules and seconds better."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Any

from examples.paper.tables import table

RESAMPLES = 1000


def ranks(values: Sequence[float]) -> list[float]:
    """From 1; equal values share the mean of their places."""
    order = sorted(values)
    return [(2 * order.index(value) + order.count(value) + 1) / 2 for value in values]


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Spearman's, with ties; None where one of them is constant, since that ranks nothing."""
    x, y = ranks(a), ranks(b)
    mean = (len(x) + 1) / 2
    spread = math.sqrt(sum((v - mean) ** 2 for v in x) * sum((v - mean) ** 2 for v in y))
    return sum((v - mean) * (w - mean) for v, w in zip(x, y, strict=True)) / spread if spread else None


def typical_factor(predicted: Sequence[float], true: Sequence[float]) -> float:
    """The median factor between truth and prediction, after the one scale that suits the median point best."""
    logs = [math.log(t / p) for t, p in zip(true, predicted, strict=True)]
    middle = median(logs)
    return math.exp(median(abs(one - middle) for one in logs))


def pairs_right(groups: Sequence[tuple[Sequence[float], Sequence[float]]], least: float = 1.05) -> tuple[float, int]:
    """Within each group of predictions and truths: the share of pairs that are put in the right order, and how many
    pairs there are. A pair whose truths are within 5 % is left out; one predicted as equal is half right."""
    right, count = 0.0, 0
    for predicted, true in groups:
        for i, j in combinations(range(len(true)), 2):
            if max(true[i], true[j]) < least * min(true[i], true[j]):
                continue
            count += 1
            said = (predicted[i] > predicted[j]) - (predicted[i] < predicted[j])
            really = 1 if true[i] > true[j] else -1
            right += 0.5 if not said else float(said == really)
    return (right / count if count else 0.0), count


def in_order(points: Sequence[dict[str, Any]], predictor: str, target: str) -> tuple[float, int]:
    """Of pairs of precisions of one network in one mode."""
    kinds = sorted({point["kind"] for point in points})
    groups = [
        (
            [point["counts"][predictor] for point in points if point["kind"] == kind],
            [point[target] for point in points if point["kind"] == kind],
        )
        for kind in kinds
    ]
    return pairs_right(groups)


def judged(points: Sequence[dict[str, Any]], predictor: str, target: str) -> list[str]:
    """Cells of a table: rank correlation over all points, typical factor, pairs of precisions in the right order."""
    predicted, true = [point["counts"][predictor] for point in points], [point[target] for point in points]
    correlation = rank_correlation(predicted, true)
    share, count = in_order(points, predictor, target)
    return [
        "-" if correlation is None else f"{correlation:.2f}",
        f"x{typical_factor(predicted, true):.2f}",
        f"{100 * share:.0f} % of {count}",
    ]


def judgement(points: Sequence[dict[str, Any]], names: dict[str, str]) -> str:
    rows = [
        [names[predictor], *judged(points, predictor, "joules"), *judged(points, predictor, "seconds")]
        for predictor in points[0]["counts"]
    ]
    head = [
        "predictor",
        "joules: rank",
        "error",
        "precisions in order",
        "seconds: rank",
        "error",
        "precisions in order",
    ]
    return table(head, rows, "lrrrrrr")


def rank(points: Sequence[dict[str, Any]], predictor: str, target: str = "joules") -> float:
    """Of one predictor with what was measured."""
    return rank_correlation([p["counts"][predictor] for p in points], [p[target] for p in points]) or 0.0


def lead(points: Sequence[dict[str, Any]], one: str, other: str, target: str = "joules") -> tuple[float, float]:
    """By how much one predictor's rank correlation exceeds another's: a 95 % interval, by drawing points anew."""
    drawn, leads = random.Random(0), []
    for _ in range(RESAMPLES):
        some = drawn.choices(points, k=len(points))
        leads.append(rank(some, one, target) - rank(some, other, target))
    leads.sort()
    return leads[RESAMPLES // 40], leads[-1 - RESAMPLES // 40]


def verdict(points: Sequence[dict[str, Any]]) -> str:
    """`bops`, named before anything was measured, against FLOPs: not the best of many models."""
    said = []
    for target in ("joules", "seconds"):
        bops, flops = rank(points, "bops", target), rank(points, "flops", target)
        low, high = lead(points, "bops", "flops", target)
        shown = "shown" if low > 0 else "refuted" if high < 0 else "not shown"
        said.append(f"{target}: {shown}, {bops:.2f} against {flops:.2f} (lead {low:+.2f} to {high:+.2f})")
    return "; ".join(said)
