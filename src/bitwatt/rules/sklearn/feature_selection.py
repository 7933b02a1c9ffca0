"""sklearn.feature_selection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import (
    DIGAMMA,
    checked,
    column_means,
    column_sums,
    column_variances,
    floats,
    sparse_mean_variance,
    stored,
)
from bitwatt.formulas.inside import Probes, inside, looked_at
from bitwatt.formulas.lapack import gemv
from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn.preprocessing_encoders import length

_NAME = "sklearn.feature_selection."
_FILTERS = ("SelectKBest", "SelectPercentile", "SelectFpr", "SelectFdr", "SelectFwe", "GenericUnivariateSelect")
_WRAPPERS = ("RFE", "RFECV", "SelectFromModel", "SequentialFeatureSelector")

free(
    f"{_NAME}RFE.fit", f"{_NAME}RFECV.fit", f"{_NAME}SelectFromModel.fit", f"{_NAME}SelectFromModel.partial_fit",
    f"{_NAME}SequentialFeatureSelector.fit",
    *(f"{_NAME}{kind}.{method}" for kind in ("RFE", "RFECV") for method in (
        "predict", "predict_proba", "predict_log_proba", "decision_function", "score")),
    reason="fits and asks its estimator, which is counted; ranking compares",
)  # fmt: skip


def _classes(y: Any) -> int:
    return len(set(y)) if isinstance(y, tuple) else 0


#: Operations of the tail of an F distribution below and above one, by degrees of freedom between groups.
_TAILS = {1: (500, 735), 2: (52, 52), 3: (470, 980)}


def beta_tail(groups: int, features: int, below: int = 300) -> Work:
    """The tail of an F distribution by continued fractions or series of the incomplete beta function, which are other
    ones below one (`below`, per thousand); between three groups it is a power, and between an odd number of more a
    short sum above one."""
    freedom = groups - 1
    low, high = _TAILS.get(freedom, (480, 85) if freedom % 2 == 0 else _TAILS[3])
    return arithmetic((low * below + high * (1000 - below)) / 1000 * features, DOUBLE)


def gamma_tail(groups: int, features: int) -> Work:
    """The tail of a chi-squared distribution. With one degree of freedom values near 1 take a series of 15,700
    operations, others some 200: 4,000 on average where features and classes are independent."""
    return arithmetic({2: 4000, 3: 120}.get(groups, 230) * features, DOUBLE)


def _variance_between(X: TensorSpec, groups: int, *below: int) -> Work:
    """f_classif: two more checks, squares, and sums of values and squares for each class, then 12 for each column.
    Whole numbers of up to 32 bits become single."""
    p, (rows, columns) = SINGLE if X.precision.bits <= 32 else DOUBLE, X.shape
    if X.nnz is not None:
        sums = arithmetic((1 + 2 * 2) * stored(X), p)
    else:
        each = -(-rows // max(groups, 1))
        sums = Work.of(p, mul=X.numel) + column_sums(each, columns, p) * (2 * groups)
    return (
        Work.of(p, add=stored(X))
        + validated(X)
        + sums
        + arithmetic((12 + 6 * groups) * columns, p)
        + beta_tail(groups, columns, *below)
    )


def _regression(X: TensorSpec, y: Any, *below: int, tail: bool) -> Work:
    """r_regression: in double another check, the mean and norm of each column, and a product with the target."""
    rows, columns = X.shape
    kept = stored(X)
    check = Work.of(DOUBLE, add=kept) + arithmetic(6 * length(y), DOUBLE)
    if X.nnz is not None:
        moments = arithmetic(5 * kept, DOUBLE) + arithmetic(2 * kept, DOUBLE)
    else:
        moments = column_means(rows, columns, DOUBLE) + arithmetic(2 * kept, DOUBLE)
        moments += gemv(columns, rows, DOUBLE, columns=True)
    return check + moments + arithmetic(8 * columns, DOUBLE) + (beta_tail(2, columns, *below) if tail else Work())


def _chi2(X: TensorSpec, groups: int) -> Work:
    """chi2: another check, sums of each class (a product with sparse labels), of all, and 4 for each class and column;
    labels are counted as their own."""
    p, columns = floats(X), X.shape[1]
    kept = stored(X)
    dense_labels = groups == 2  # two classes are one column, made dense and doubled
    observed = arithmetic((4 if dense_labels else 2) * kept, DOUBLE)
    totals = column_sums(X.shape[0], columns, p) if X.nnz is None else arithmetic(2 * kept, p)
    work = checked(X) + observed + totals + arithmetic(6 * groups * columns, DOUBLE) + gamma_tail(groups, columns)
    return replace(work, estimated=groups != 3)  # how far series go hangs on the values


def _mutual_information(X: TensorSpec, probes: Probes) -> Work:
    """The trees that were built and searched here; columns scaled by their deviation (10 an element) and stirred by a
    little noise (normal numbers: 24), and three digammas for each element."""
    return inside(probes) + arithmetic((10 + 24 + 4 + 3 * DIGAMMA) * X.numel, DOUBLE)


@rule(*(f"{_NAME}{kind}.fit" for kind in _FILTERS), family="selection")
def univariate(
    X: TensorSpec, y: Any = None, score_func: str = "<f_classif>", probes: tuple[Any, ...] = (), **_: Any
) -> Work:
    """The finiteness check and a test of each column: f_classif (variance between classes), f_regression and
    r_regression (correlation with the target), chi2. Mutual information counts neighbours: its searches with
    NearestNeighbors are counted as themselves, those in trees of one column here."""
    groups = next((found[1] for found in probes if found[0] == "groups"), 0) or _classes(y) or 2
    floating = validated(y) if isinstance(y, TensorSpec) else Work()
    start = validated(X) + floating
    if score_func == "<f_classif>":
        return start + _variance_between(X, groups, *looked_at(probes, "scores"))
    if score_func in ("<f_regression>", "<r_regression>"):
        below = looked_at(probes, "scores")
        return start + _regression(X, y, *below, tail=score_func == "<f_regression>")
    if score_func == "<chi2>":
        return start + _chi2(X, groups)
    if score_func in ("<mutual_info_classif>", "<mutual_info_regression>"):
        return _mutual_information(X, probes)
    raise ValueError(f"what {score_func} computes cannot be seen")


@rule(
    *(f"{_NAME}{kind}.transform" for kind in (*_FILTERS, *_WRAPPERS) if kind != "SelectFromModel"), family="selection"
)
def select(X: TensorSpec, allow_nan: bool = False, **_: Any) -> Work:
    """The finiteness check, unless the estimator inside takes missing values; columns are picked by a mask."""
    return Work() if allow_nan else validated(X)


#: What features are worth, by who puts trees together: operations for each tree and feature, and for each feature. A
#: tree divides by its weight, adds up and divides by that; boosting leaves out the latter two. A forest adds the trees
#: up, AdaBoost after a product with their weights; then follow the mean and, but for AdaBoost, the norm.
_WORTH = {"": (3, 0), "BaseForest": (4, 3), "BaseGradientBoosting": (2, 3), "BaseWeightBoosting": (5, 1)}


@rule(f"{_NAME}SelectFromModel.transform", family="selection")
def select_from_model(
    X: TensorSpec,
    allow_nan: bool = False,
    inner_trees: int = 0,
    inner_splits: int = 0,
    inner_kind: str = "",
    **_: Any,
) -> Work:
    """As other selectors. Trees are asked twice what features are worth, which is 6 for each split and what putting
    them together takes; and their mean is the threshold."""
    if not inner_trees:
        return select(X, allow_nan)
    features, (each, all_of_them) = X.shape[1], _WORTH[inner_kind]
    worth = 6 * inner_splits + (inner_trees * each + all_of_them) * features
    return select(X, allow_nan) + arithmetic(2 * worth + features + 1, DOUBLE)


_SELECTORS = (*_FILTERS, *_WRAPPERS, "VarianceThreshold")


@rule(*(f"{_NAME}{kind}.inverse_transform" for kind in _SELECTORS), family="selection")
def select_back(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; columns are put back by a mask."""
    return validated(X) if X.nnz is None else Work()


free(f"{_NAME}VarianceThreshold.transform", reason="picks columns by a mask, without a check: no arithmetic")


@rule(f"{_NAME}VarianceThreshold.fit", family="selection")
def variance_fit(X: TensorSpec, threshold: float = 0.0, **_: Any) -> Work:
    """In double: the finiteness check, the variance of each column, and with a threshold of 0 its range."""
    check = Work.of(DOUBLE, add=stored(X))
    if X.nnz is not None:
        return check + sparse_mean_variance(X)
    ranges = Work.of(DOUBLE, compare=4 * X.numel, add=X.shape[1]) if not threshold else Work()
    return check + column_variances(X.shape[0], X.shape[1], DOUBLE) + ranges
