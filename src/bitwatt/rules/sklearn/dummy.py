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


@rule(f"{_CLASSIFIER}.predict", f"{_CLASSIFIER}.predict_proba", family="dummy")
def classifier_predict(X: TensorSpec, classes_: Any = None, strategy: str = "prior", **_: Any) -> Work:
    """A constant, repeated; uniform and stratified draw a class for each sample, the latter by numpy's multinomial: the
    share that is left, and the chance within it, for each class until one is drawn."""
    rows = X.shape[0]
    if strategy == "stratified":
        drawn = arithmetic(2 * rows * classes_of(classes_), DOUBLE) + Work.of(DOUBLE, random=rows)
        return replace(drawn, estimated=True)
    return Work.of(DOUBLE, random=rows) if strategy == "uniform" else Work()


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
