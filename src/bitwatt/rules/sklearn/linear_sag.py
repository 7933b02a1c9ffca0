"""Stochastic average gradient (SAG, SAGA), which Ridge and LogisticRegression use."""

from __future__ import annotations

from dataclasses import replace

from bitwatt.formulas.linear import Design
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import Work
from bitwatt.rules.sklearn._linear import Probes, calls


def sag_passes(probes: Probes) -> Work:
    work = Work()
    for *sizes, loss, classes, passes, saga, prox, intercept, knows, beyond, times in calls(probes, "linear_sag"):
        design, stepwise = Design.probed(*sizes), beyond / 1000 if prox else None
        one = sag(design, loss, classes, passes, saga=bool(saga), stepwise=stepwise, intercept=bool(intercept))
        work += (one + (Work() if knows else design.row_norms())) * times
    return work


def sag(
    design: Design, loss: str, classes: int, passes: int, *, saga: bool, stepwise: float | None, intercept: bool
) -> Work:
    """For each sample and each of its features: the update that lagged behind (1, and 2 for each class), the prediction
    (2 for each), the correction of the gradient's sum (3 for each): 7K + 1. SAGA moves the weight at once: 4K + 2 more,
    in double, as the step is. Single weights of two or three classes that are left over from registers of four fill
    one: 10 more for each feature, 4 with SAGA, whose steps in double are widened register by register: 8 or 10. A
    proximal step makes the lagged update 5K + 2, with a soft threshold; where the gradient is beyond the penalty, for
    the `stepwise` share of weights, 8K + 2, of which 7K for every step that was missed on sparse data. The loss is a
    gradient of 1 (squares), 25 (logistic) or 23K - 18 (softmax, which also takes 3K for weights and sums); scales are 9
    and the intercept 5K, 2K + 4 more for SAGA."""
    n, k, p = design.rows, classes, design.precision
    single = p.bits == 32
    lagged = 1 + 2 * k if stepwise is None else 2 + (5 + 3 * stepwise) * k
    if single and k % 4 >= 2 and stepwise is None:
        lagged += 4 if saga else 10
    touched = (lagged + 5 * k) * design.elements
    if stepwise is not None and design.is_sparse:
        touched += 7 * stepwise * k * (n * design.columns - design.elements)
    move = 4 * k + (2 if not single or k < 4 else 10 if k % 4 else 8)
    moved = move * design.elements if saga else 0
    gradient = {"squared": 1, "log": 25}.get(loss, 26 * k - 18)
    sample = gradient + 9 + intercept * (5 * k + saga * (2 * k + 4))
    closing = design.columns * (5 * k + 1)
    work = (arithmetic(touched, p) + arithmetic(moved + sample * n, DOUBLE) + arithmetic(closing, p)) * passes
    return replace(work, estimated=stepwise is not None)
