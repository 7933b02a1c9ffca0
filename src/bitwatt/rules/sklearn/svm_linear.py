"""sklearn.svm.LinearSVC and LinearSVR, and liblinear, which they and LogisticRegression call."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bitwatt.formulas.linear import Design
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.sklearn._linear import Probes, calls, checked_targets


def liblinear_runs(probes: Probes) -> Work:
    """Each class of each call, in double: by trust-region Newton steps (primal, l2), or by passes over coordinates. How
    many coordinates a pass visits depends on the data: all are estimated."""
    work = Work()
    for n, f, stored, bias, penalty, dual, loss, runs, times in calls(probes, "linear_liblinear"):
        columns, elements = f + bias, stored + n * bias
        for passes, inside, kept, way in runs:
            if loss == "crammer_singer":
                one = all_classes(n, columns, elements, passes, inside, way / 1000)
            elif dual:
                one = dual_descent(n, columns, elements, passes, loss, inside / 1000, way / 1000)
            elif penalty != "l1":
                one = trust_region(n, columns, elements, passes, loss, inside / 1000)
            elif loss == "logistic_regression":
                one = logistic_columns(n, elements, passes, kept / 1000)
            else:
                one = hinge_columns(elements, passes, inside / 1000, kept / 1000)
            work += replace(one, estimated=True) * times
    return work


def trust_region(n: int, columns: int, stored: int, passes: int, loss: str, inside: float) -> Work:
    """TRON: for each Newton step the loss and gradient (4 per stored element and the loss of each sample) and steps of
    conjugate gradients (4 per stored element, 10 per column), with the samples whose loss is not zero only, unless it
    is logistic. How many of these a step takes is not told: it goes with the root of the condition number, and was
    about 0.95·√columns (0.55 for a squared error, which is almost quadratic)."""
    quadratic = loss == "squared_epsilon_insensitive"
    steps = max(1.0, (0.55 if quadratic else 0.95) * math.sqrt(columns)) * passes
    sample = 60 if loss == "logistic_regression" else 8
    work = arithmetic((passes + 1) * (2 * (1 + inside) * stored + sample * n + 8 * columns), DOUBLE)
    return work + arithmetic(steps * (4 * inside * stored + 2 * n + 10 * columns), DOUBLE)


def dual_descent(n: int, columns: int, stored: int, passes: int, loss: str, inside: float, way: float) -> Work:
    """Passes over the samples' dual variables: a dot product with each that is visited, an update of the weights for
    each that moves, 2 per stored element each, and some 8 operations beside (14 for errors on both sides, 56 for the
    logarithms of the logistic loss). Before it, the square of each row (2), and weights of nothing (2)."""
    visits, updates = _visited(n, columns, passes, loss, inside, way)
    each = 56 if loss == "logistic_regression" else 8 if loss.endswith("hinge") else 14
    return arithmetic((2 * visits + 2 * updates + 4 * n) * stored / max(n, 1) + each * visits, DOUBLE)


def all_classes(n: int, columns: int, stored: int, passes: int, classes: int, way: float) -> Work:
    """Crammer's and Singer's machine of all classes at once: passes over samples, each with a gradient for every class
    (2 per stored element), a step of all its variables (10 each), and an update of the weights of those that move, the
    class of the sample and another one. Samples are left out as they settle, until those remain that are between
    bounds, of which there are no more than weights that are free: columns times classes less one."""
    loose = float(passes * min(columns * (classes - 1), n))
    visits = min(n * _unsettled(passes, way) + loose, float(passes * n))
    return arithmetic(visits * ((2 * classes + 4) * stored / max(n, 1) + 10 * classes), DOUBLE)


def _unsettled(passes: int, way: float) -> float:
    """Passes in which samples that end at a bound are still visited. A step moves a variable by its error over the
    square of its row: `way`, C times that square over the error, is how many it takes to come from one bound to the
    other. Then a few more until it is left out."""
    needed = 8 + 1.4 * way
    return passes / math.pow(1 + math.pow(passes / needed, 1.3), 1 / 1.3)


def _visited(n: int, columns: int, passes: int, loss: str, inside: float, way: float) -> tuple[float, float]:
    """Samples that all passes visit, and those they move. Squared hinge: those inside the margin, and others at first.
    Squared error: all, and of those without a loss half are moved. Errors with a bound: all of them at first, of which
    most only stand at their bounds, then those between the bounds, of which there are no more than columns."""
    every = float(passes * n)
    if loss == "logistic_regression":
        return every, every
    if loss == "squared_hinge":
        seen = every * inside + n * (1 - inside) * _unsettled(passes, way / 3)
        return seen, seen
    if loss == "squared_epsilon_insensitive":
        return every * (0.9 + 0.1 * inside), every * (1 + inside) / 2
    first, loose = _unsettled(passes, way), float(passes * min(columns, n))
    return min(n * first + loose, every), min(n * max(0.8 * (first - 7), 1.0) + loose, every)


def hinge_columns(stored: int, passes: int, inside: float, kept: float) -> Work:
    """l1 penalty and squared hinge, by columns: derivatives from samples inside the margin (5 per stored element), and
    new margins where a weight moves (2); with the losses before and after (6 more inside) where the quadratic bound is
    too rough, which happens when many samples are outside. Weights that stay zero are left out half of the time, not
    the first. Before and after it 7."""
    visited = 1 + max(passes - 1, 0) * (1 + kept) / 2
    searched = min(2 * max(0.75 - inside, 0.0), 1.0)
    moved = passes * kept * (2 + searched * 6 * inside)
    return arithmetic((visited * 5 * inside + moved + 7) * stored, DOUBLE)


def logistic_columns(n: int, stored: int, passes: int, kept: float) -> Work:
    """l1 penalty and logistic loss: for each step, and once more to see the end, a quadratic model (5 per stored
    element); passes over it with the weights that are not zero (5), more of them the more steps there were; and a line
    search, whose exponential and logarithm make some 58 for each sample."""
    inner = kept * (1 + 0.07 * passes) + 0.3 * (1 - kept)
    return arithmetic((5 * (passes + 1) + 5 * inner * passes + 3) * stored + (58 * passes + 35) * n, DOUBLE)


@rule("sklearn.svm.LinearSVC.fit", "sklearn.svm.LinearSVR.fit", family="linear")
def linear_support_vectors(X: TensorSpec, y: Any = None, probes: Probes = (), **_: Any) -> Work:
    """The finiteness check in double (whatever comes in), then liblinear for each class."""
    return Design.of(X).in_precision(DOUBLE).checked() + checked_targets(y) + liblinear_runs(probes)
