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
    """Each class of each call, in double: by trust-region Newton steps (primal, l2), or by passes over coordinates."""
    work = Work()
    for n, f, stored, bias, penalty, dual, loss, runs, times in calls(probes, "linear_liblinear"):
        columns, elements = f + bias, stored + n * bias
        for passes, share in runs:
            if dual:
                one = dual_descent(n, columns, elements, passes, loss)
            elif penalty == "l1":
                one = newton_descent(n, elements, passes, loss)
            else:
                one = trust_region(n, columns, elements, passes, loss, share / 1000)
            work += one * times
    return work


def trust_region(n: int, columns: int, stored: int, passes: int, loss: str, share: float) -> Work:
    """TRON: for each Newton step the loss and gradient (4 per stored element and the loss of each sample) and steps of
    conjugate gradients (4 per stored element, 10 per column), with the samples inside the margin only where the loss is
    a squared hinge. How many of these a step takes is not told: it goes with the root of the condition number, and was
    about 0.9·√columns (0.55 for a squared error, which is almost quadratic)."""
    quadratic = loss == "squared_epsilon_insensitive"
    steps = max(1.0, (0.55 if quadratic else 0.9) * math.sqrt(columns)) * passes
    sample = 60 if loss == "logistic_regression" else 8
    work = arithmetic((passes + 1) * (2 * (1 + share) * stored + sample * n + 8 * columns), DOUBLE)
    work += arithmetic(steps * (4 * share * stored + 2 * n + 10 * columns), DOUBLE)
    return replace(work, estimated=True)


#: Share of all samples that a pass visits: those at a bound are left out soon, where the loss has one.
_VISITED = {"hinge": 0.3, "epsilon_insensitive": 0.12, "logistic_regression": 1.0}


def dual_descent(n: int, columns: int, stored: int, passes: int, loss: str) -> Work:
    """Passes over the samples' dual variables: a dot product with each and an update of the weights, 2 per stored
    element each, and some 8 operations beside (56 for the logarithms of the logistic loss). Samples at a bound are left
    out, which depends on the data: hardly any for squared losses, most where errors have a bound: then about as many
    stay as there are columns."""
    bounded = loss in ("hinge", "epsilon_insensitive")
    visits = passes * min(_VISITED.get(loss, 0.93) + (columns / max(n, 1) if bounded else 0.0), 1.0)
    each = 56 if loss == "logistic_regression" else 8
    return replace(arithmetic(visits * (4 * stored + each * n) + 3 * stored, DOUBLE), estimated=True)


def newton_descent(n: int, stored: int, passes: int, loss: str) -> Work:
    """l1 penalty, by columns. Squared hinge: derivatives, and a line search where a weight moves: about 7 per stored
    element and pass. Logistic: a quadratic model (60 per sample, 4 per stored element), then inner passes over it,
    about 9 per stored element."""
    each, sample = (13, 60) if loss == "logistic_regression" else (7, 0)
    return replace(arithmetic(passes * (each * stored + sample * n), DOUBLE), estimated=True)


@rule("sklearn.svm.LinearSVC.fit", "sklearn.svm.LinearSVR.fit", family="linear")
def linear_support_vectors(X: TensorSpec, y: Any = None, probes: Probes = (), **_: Any) -> Work:
    """The finiteness check in double (whatever comes in), then liblinear for each class."""
    return Design.of(X).in_precision(DOUBLE).checked() + checked_targets(y) + liblinear_runs(probes)
