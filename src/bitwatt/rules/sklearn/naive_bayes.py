"""sklearn.naive_bayes: counts and their logarithms, then a sum over features for each class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import (
    column_sums,
    column_variances,
    floats,
    lanes,
    log_sum_exp,
    logarithms,
    sparse_dense,
    stored,
)
from bitwatt.formulas.inside import looked_at
from bitwatt.formulas.vector import DOUBLE, EXP, arithmetic, function, gemm, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.sklearn.preprocessing_encoders import length

_NAME = "sklearn.naive_bayes."
_DISCRETE = ("MultinomialNB", "ComplementNB", "BernoulliNB")
_ALL = ("GaussianNB", *_DISCRETE, "CategoricalNB")


@rule(f"{_NAME}GaussianNB.fit", family="classification")
def gaussian_fit(X: TensorSpec, classes_: Any = (), sample_weight: Any = None, **_: Any) -> Work:
    """The finiteness check; variances of all columns, then means and variances of those of each class: five operations
    per element, and a few for each class and column. Weights: a product and a sum for each of two averages, and squared
    deviations."""
    rows, columns, p, classes = X.shape[0], X.shape[1], floats(X), max(length(classes_), 1)
    work = validated(X) + column_variances(rows, columns, p)
    if sample_weight is None:
        moments = column_sums(rows, columns, p) * 3 + arithmetic(2 * X.numel, p)
    else:
        moments = column_sums(rows, columns, p) * 2 + arithmetic(4 * X.numel + 4 * rows, p)
    return work + moments + arithmetic(4.4 * classes * lanes(columns, p), p)


@rule(f"{_NAME}GaussianNB.partial_fit", family="classification")
def gaussian_partial_fit(X: TensorSpec, classes_: Any = (), sample_weight: Any = None, **_: Any) -> Work:
    """As fit; then moments meet those of earlier batches: 12 for each class and column."""
    met = arithmetic(12 * max(length(classes_), 1) * lanes(X.shape[1], floats(X)), floats(X))
    return gaussian_fit(X, classes_, sample_weight) + met


def _gaussian(X: TensorSpec, classes: int) -> Work:
    """(x - mean)² / variance summed over features for each class, and the logarithms of its variances."""
    p = floats(X)
    each = arithmetic((4 * X.shape[1] + 3) * X.shape[0] + 3 * X.shape[1], p) + logarithms(X.shape[1] + 1, p)
    return validated(X) + each * classes


def _likelihood(X: TensorSpec, classes: int) -> Work:
    """X·log P of each feature and class, in double, and the log prior."""
    features = X.shape[1]
    product = gemm(X.shape[0], features, classes, DOUBLE) if X.nnz is None else sparse_dense(X, classes, DOUBLE)
    return product


def _binary(X: TensorSpec, probes: tuple[Any, ...]) -> TensorSpec:
    """X made of zeros and ones: of a sparse one only the ones stay stored."""
    ones = [found[1] for found in probes if found[0] == "binary" and len(found) == 3]
    return replace(X, nnz=ones[0]) if X.nnz is not None and ones and ones[0] >= 0 else X


def _joint(kind: str, X: TensorSpec, classes_: Any, binarize: Any = 0.0, probes: tuple[Any, ...] = ()) -> Work:
    classes = max(length(classes_), 1)
    cells = classes * X.shape[1]
    if kind == "GaussianNB":
        return _gaussian(X, classes)
    if kind == "CategoricalNB":
        return arithmetic(X.shape[0] * classes * (X.shape[1] + 1), DOUBLE)
    if kind == "ComplementNB":
        return validated(X) + _likelihood(X, classes)
    work = validated(X) + _likelihood(_binary(X, probes), classes) + arithmetic(X.shape[0] * classes, DOUBLE)
    if kind == "BernoulliNB":  # log(1 - P) of each feature, 15 more near 1, and the check of `binarize`
        again = validated(X) if binarize is not None else Work()
        near = 16 * stored(_binary(X, probes)) < X.numel
        work += again + function(EXP, cells, DOUBLE) + logarithms(cells, DOUBLE)
        work += arithmetic((18 if near else 3) * cells, DOUBLE)
    return work


def _register(kind: str) -> None:
    p_of = floats if kind == "GaussianNB" else lambda _: DOUBLE

    @rule(f"{_NAME}{kind}.predict", f"{_NAME}{kind}.predict_joint_log_proba", family="classification")
    def joint(X: TensorSpec, classes_: Any = (), binarize: Any = 0.0, probes: Any = (), **_: Any) -> Work:
        """The joint log-likelihood of each sample and class: for each class, Gaussian (x - mean)² / variance summed
        over features (4 each), categorical a look-up and an addition, else a product of X with the log-probabilities;
        the finiteness check; the largest is found by comparing."""
        return _joint(kind, X, classes_, binarize, probes)

    @rule(f"{_NAME}{kind}.predict_log_proba", family="classification")
    def log_proba(X: TensorSpec, classes_: Any = (), binarize: Any = 0.0, probes: Any = (), **_: Any) -> Work:
        """The joint log-likelihood, its logsumexp over classes, and a subtraction."""
        classes = max(length(classes_), 1)
        normal = log_sum_exp(X.shape[0], classes, p_of(X), *looked_at(probes, "sure"))
        normal += Work.of(p_of(X), add=X.shape[0] * classes)
        return _joint(kind, X, classes_, binarize, probes) + normal

    @rule(f"{_NAME}{kind}.predict_proba", family="classification")
    def proba(X: TensorSpec, classes_: Any = (), probes: Any = (), **_: Any) -> Work:
        """The exponential of predict_log_proba, which is counted as itself; that of zero, and what vanishes, is
        known."""
        known = sum(looked_at(probes, "known")) / 1000
        return function(EXP, X.shape[0] * max(length(classes_), 1) * (1 - known), p_of(X))


for _kind in _ALL:
    _register(_kind)


def _counted(X: TensorSpec, classes: int, real: bool, fit_prior: bool) -> Work:
    """Yᵀ·X, in double as Y is made of integers, and the logarithms of what it counts, twice smoothed and normalised.
    Whole numbers are counted as such, unless labels are `real`: have weights, or come in batches."""
    features, product = X.shape[1], Work()
    if real or X.precision.kind == "float":
        product = gemm(classes, X.shape[0], features, DOUBLE) if X.nnz is None else sparse_dense(X, classes, DOUBLE)
    cells = classes * features
    return product + logarithms(cells + (1 + fit_prior) * classes, DOUBLE) + arithmetic(5 * cells, DOUBLE)


_COUNTED = ("MultinomialNB", "ComplementNB")


@rule(*(f"{_NAME}{kind}.fit" for kind in _COUNTED), family="classification")
def discrete_fit(
    X: TensorSpec, classes_: Any = (), sample_weight: Any = None, fit_prior: bool = True, **_: Any
) -> Work:
    """The finiteness check; how often each feature occurs in each class, a product of the labels (counted as their own:
    LabelBinarizer) with X in double; logarithms of the smoothed shares."""
    return _discrete(X, X, classes_, sample_weight, fit_prior)


def _discrete(
    X: TensorSpec, made: TensorSpec, classes_: Any, sample_weight: Any, fit_prior: bool, batch: bool = False
) -> Work:
    """X is checked, and what was made of it is counted. Weights and batches make labels real numbers."""
    classes, real = max(length(classes_), 1), batch or sample_weight is not None
    labels = _labels(X, classes_, sample_weight is not None) if real else Work()
    return validated(X) + _counted(made, classes, real, fit_prior) + labels


def _labels(X: TensorSpec, classes_: Any, weighted: bool) -> Work:
    """Labels that are real numbers are added up: an addition for each sample and class. Weights are checked, and each
    label is multiplied by its own."""
    classes = max(length(classes_), 1)
    return arithmetic(X.shape[0] * (classes + (classes + 1) * weighted), DOUBLE)


@rule(*(f"{_NAME}{kind}.partial_fit" for kind in _COUNTED), family="classification")
def discrete_batch(
    X: TensorSpec, classes_: Any = (), sample_weight: Any = None, fit_prior: bool = True, **_: Any
) -> Work:
    """As fit, with labels that are real numbers: also whole numbers are counted by a product in double."""
    return _discrete(X, X, classes_, sample_weight, fit_prior, batch=True)


@rule(f"{_NAME}BernoulliNB.partial_fit", family="classification")
def bernoulli_batch(X: TensorSpec, classes_: Any = (), **facts: Any) -> Work:
    """As fit, with labels that are real numbers."""
    return bernoulli_fit(X, classes_, batch=True, **facts)


@rule(f"{_NAME}CategoricalNB.partial_fit", family="classification")
def categorical_batch(X: TensorSpec, classes_: Any = (), **facts: Any) -> Work:
    """As fit, the finiteness check in double, and labels that are real numbers."""
    return categorical_fit(X, classes_, **facts) + Work.of(DOUBLE, add=X.numel) + _labels(X, classes_, False)


@rule(f"{_NAME}BernoulliNB.fit", family="classification")
def bernoulli_fit(
    X: TensorSpec, classes_: Any = (), sample_weight: Any = None, binarize: Any = 0.0, fit_prior: bool = True,
    probes: Any = (), batch: bool = False, **_: Any,
) -> Work:  # fmt: skip
    """As MultinomialNB, with a second finiteness check where X is made binary first."""
    again = validated(X) if binarize is not None else Work()
    return _discrete(X, _binary(X, probes), classes_, sample_weight, fit_prior, batch) + again


@rule(f"{_NAME}CategoricalNB.fit", family="classification")
def categorical_fit(
    X: TensorSpec, classes_: Any = (), n_categories_: Any = (), sample_weight: Any = None, **_: Any
) -> Work:
    """Categories are counted as integers (additions where samples have weights); logarithms of the smoothed shares of
    each category and class, and of each feature's total."""
    classes = max(length(classes_), 1)
    cells = classes * sum(n_categories_) if isinstance(n_categories_, tuple) else classes * X.shape[1] * 5
    weights = _labels(X, classes_, True) + arithmetic(X.numel, DOUBLE) if sample_weight is not None else Work()
    logs = logarithms(cells + classes * X.shape[1], DOUBLE)
    return validated(X) + logs + arithmetic(4 * cells, DOUBLE) + weights
