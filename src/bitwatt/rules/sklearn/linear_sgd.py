"""sklearn.linear_model: stochastic gradient descent, the perceptron and passive-aggressive models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.linear import Design
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.sklearn._linear import Probes, calls, checked_targets, names

#: Operations of a loss and of its derivative for one sample.
_LOSSES = {
    "hinge": (2, 1), "perceptron": (1, 1), "log_loss": (45, 25), "modified_huber": (3, 3), "squared_hinge": (3, 3),
    "squared_error": (3, 1), "huber": (3, 2), "epsilon_insensitive": (2, 1), "squared_epsilon_insensitive": (3, 3),
}  # fmt: skip
#: Losses whose derivative is zero for some samples: how many is read from the final model.
_BOUNDED = ("hinge", "perceptron", "modified_huber", "squared_hinge", "epsilon_insensitive")


def sgd_epoch_cost(
    design: Design, share: float, loss: str, penalty: Any, rate: str, average: bool, early: float,
    known: float = 0.0, nearly: float = 0.0,
) -> Work:  # fmt: skip
    """One pass over all samples. Each: the dot product (2 per element) and its scale; the step size (`optimal` 4,
    `invscaling` a power: 62); the loss and the objective (1) with its penalty (9), unless a validation set decides,
    an `early` share of the samples, whose score is counted as itself; the derivative and the update's factors (5);
    with an l2 penalty the scale of the weights and of their norms (8). Samples that move the weights: 5 per element
    (with both norms) and 6. Averaging: 3 per element and 11; an l1 penalty: 6 per element and 3. Passive-aggressive
    steps need the norm of the sample (2 per element) and the loss again. Sums and weights' updates run in double even
    where the data are single: of them only the products are. A logistic loss that is known (far on the right) takes
    2, one that is an exponential away 23."""
    n, stored = design.rows, design.elements
    worth, slope = _LOSSES.get(loss, (3, 2))
    value = worth - 43 * known - 22 * nearly
    each = 2.0 + slope + 5 + {"optimal": 4, "invscaling": 62}.get(rate, 0)
    each += 0 if early else value + 1
    if penalty in ("l2", "l1", "elasticnet"):
        each += (0 if penalty == "l1" else 8) + (0 if early else 9)
    work, factor = float(n * each + 2 * stored), 1.0
    work += share * (5 * stored + 6 * n)
    if average:
        work += 3 * stored + 11 * n
    if penalty in ("l1", "elasticnet"):
        work += 6 * stored + 3 * n
    if rate.startswith("pa"):
        work += 2 * stored + (value + 2) * n
    if early:
        factor = 1 - early
    single = (1 + share) * stored if design.precision.bits == 32 else 0.0
    return arithmetic(factor * (work - single), DOUBLE) + arithmetic(factor * single, design.precision)


def _epochs(probes: Probes, loss: str, penalty: Any, rate: str, average: Any, early: float) -> Work:
    work = Work()
    moving = True
    for *sizes, passes, share, known, nearly, times in calls(probes, "linear_sgd"):
        design = Design.probed(*sizes)
        moving = moving and share == 1000 and known + nearly == 0
        one = sgd_epoch_cost(
            design, share / 1000, loss, penalty, rate, bool(average), early, known / 1000, nearly / 1000
        )
        work += one * (passes * times)
    return replace(work, estimated=loss in _BOUNDED or not moving)


@rule(
    *names("fit", "SGDClassifier", "SGDRegressor"),
    *names("partial_fit", "SGDClassifier", "SGDRegressor"),
    family="linear",
)
def stochastic_gradient(
    X: TensorSpec,
    y: Any = None,
    loss: str = "hinge",
    penalty: Any = "l2",
    learning_rate: str = "optimal",
    average: Any = False,
    early_stopping: bool = False,
    validation_fraction: float = 0.1,
    probes: Probes = (),
    **_: Any,
) -> Work:
    """The finiteness check, then passes over the samples for each class, as many as ran. The share of samples that
    move the weights is that of the final model where the loss has a margin."""
    checked = Design.of(X).checked() + checked_targets(y)
    return checked + _epochs(probes, loss, penalty, learning_rate, average, early_stopping * validation_fraction)


@rule(*names("fit", "Perceptron"), *names("partial_fit", "Perceptron"), family="linear")
def perceptron(
    X: TensorSpec,
    penalty: Any = None,
    early_stopping: bool = False,
    validation_fraction: float = 0.1,
    probes: Probes = (),
    **_: Any,
) -> Work:
    """As SGDClassifier, with a constant step; samples on the wrong side move the weights."""
    early = early_stopping * validation_fraction
    return Design.of(X).checked() + _epochs(probes, "perceptron", penalty, "constant", False, early)


@rule(
    *names("fit", "PassiveAggressiveClassifier", "PassiveAggressiveRegressor"),
    *names("partial_fit", "PassiveAggressiveClassifier", "PassiveAggressiveRegressor"),
    family="linear",
)
def passive_aggressive(
    X: TensorSpec,
    y: Any = None,
    loss: str = "hinge",
    average: Any = False,
    early_stopping: bool = False,
    validation_fraction: float = 0.1,
    probes: Probes = (),
    **_: Any,
) -> Work:
    """As SGDClassifier, with the step that just meets the margin."""
    base = "epsilon_insensitive" if "epsilon" in loss else "hinge"
    checked = Design.of(X).checked() + checked_targets(y)
    return checked + _epochs(probes, base, None, "pa1", average, early_stopping * validation_fraction)


@rule(*names("fit", "SGDOneClassSVM"), *names("partial_fit", "SGDOneClassSVM"), family="linear")
def one_class(
    X: TensorSpec, learning_rate: str = "optimal", average: Any = False, probes: Probes = (), **_: Any
) -> Work:
    """As SGDClassifier with a hinge loss and an offset that moves with every sample."""
    design = Design.of(X)
    moved = sum(
        sizes[0] * passes * times for *sizes, passes, _share, _known, _nearly, times in calls(probes, "linear_sgd")
    )
    passes = _epochs(probes, "hinge", "l2", learning_rate, average, 0.0)
    return design.checked() + passes + arithmetic(6 * moved, DOUBLE)
