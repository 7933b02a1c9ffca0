"""sklearn.dummy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import floats
from bitwatt.formulas.inside import Probes, logarithms_of
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn._linear import classes_of

_CLASSIFIER, _REGRESSOR = "sklearn.dummy.DummyClassifier", "sklearn.dummy.DummyRegressor"

free(f"{_REGRESSOR}.predict", reason="repeats a constant")


@rule(f"{_CLASSIFIER}.predict", family="dummy")
def classifier_predict(X: TensorSpec, strategy: str = "prior", **_: Any) -> Work:
    """A constant, repeated; uniform draws a class for each sample, stratified does so in predict_proba, which is
    counted."""
    return Work.of(DOUBLE, random=X.shape[0]) if strategy == "uniform" else Work()


@rule(f"{_CLASSIFIER}.predict_proba", family="dummy")
def classifier_shares(
    X: TensorSpec, classes_: Any = None, strategy: str = "prior", shares: tuple[int, ...] = (), **_: Any
) -> Work:
    """A constant, repeated: shares by a product, equal ones by a division. Stratified draws by numpy's multinomial:
    class after class it asks a binomial of one try, until one is drawn, with 8 operations, and 53 (a logarithm, an
    exponential and a root among them) to prepare it, unless it was the last that was asked. Classes are equally likely
    where their shares per thousand are not told."""
    rows, classes = X.shape[0], classes_of(classes_)
    if strategy != "stratified":
        return arithmetic(rows * classes * (strategy in ("prior", "uniform")), DOUBLE)
    asked, prepared = _asked(shares or (1000 // classes,) * classes)
    draws = arithmetic(53 + rows * (8 * asked + 53 * prepared) / 1000, DOUBLE) + Work.of(DOUBLE, random=rows)
    return replace(draws, estimated=True)


def _asked(shares: tuple[int, ...]) -> tuple[int, int]:
    """Of a thousand samples: each but the last class is asked where none before it was drawn, and prepared but for a
    first one after a first one; of two classes the first is all."""
    asked = sum(max(1000 - sum(shares[:j]), 0) for j in range(len(shares) - 1))
    return asked, max(asked - shares[0], 0) if len(shares) > 2 else 0


@rule(f"{_CLASSIFIER}.fit", family="dummy")
def classifier_fit(classes_: Any = None, sample_weight: Any = None, y: Any = None, **_: Any) -> Work:
    """Counts of the classes divided by the number of samples; weights are summed up by class. Finding the classes takes
    27 operations of bookkeeping."""
    weighted = sample_weight.numel if isinstance(sample_weight, TensorSpec) else 0
    return arithmetic(27 + classes_of(classes_) + 2 * weighted, DOUBLE)


@rule(f"{_CLASSIFIER}.predict_log_proba", family="dummy")
def classifier_log(X: TensorSpec, classes_: Any = None, probes: Probes = (), **_: Any) -> Work:
    """Logarithms of the constant probabilities of each sample."""
    return logarithms_of(X.shape[0] * classes_of(classes_), DOUBLE, probes)


@rule(f"{_REGRESSOR}.fit", family="dummy")
def regressor_fit(y: Any = None, strategy: str = "mean", **_: Any) -> Work:
    """The check of the target, and its mean; medians and quantiles compare."""
    if not isinstance(y, TensorSpec):
        return Work()
    return arithmetic(y.numel * (2 if strategy == "mean" else 1) + 2, floats(y))
