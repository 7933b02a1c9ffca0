"""Are bit-operations the more faithful view of hardware effort? What predicts measured joules and seconds better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Any

from examples.paper.tables import table


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


def judged(points: Sequence[dict[str, Any]], predictor: str, target: str) -> list[str]:
    """Cells of a table: rank correlation over all points, typical factor, pairs of precisions in the right order."""
    predicted, true = [point["counts"][predictor] for point in points], [point[target] for point in points]
    correlation = rank_correlation(predicted, true)
    kinds = sorted({point["kind"] for point in points})
    groups = [
        (
            [point["counts"][predictor] for point in points if point["kind"] == kind],
            [point[target] for point in points if point["kind"] == kind],
        )
        for kind in kinds
    ]
    share, count = pairs_right(groups)
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


def verdict(points: Sequence[dict[str, Any]]) -> str:
    """The rank correlations of FLOPs and of the best model of bit-operations with joules and with seconds."""
    said = []
    for target in ("joules", "seconds"):
        true = [point[target] for point in points]
        found = {
            name: rank_correlation([point["counts"][name] for point in points], true) or 0.0
            for name in points[0]["counts"]
            if name != "bytes"
        }
        flops = found.pop("flops")
        best = max(found, key=lambda name: found[name])
        said.append(f"{target}: {found[best]:.2f} (`{best}`) against {flops:.2f}")
    return "; ".join(said)
