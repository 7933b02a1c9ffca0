"""What the tenth draw showed and what was mended after it: rows of tests/data/sklearn_executed_tenth.jsonl."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from bitwatt.formulas.arrays import normal_quantiles, normal_shares
from bitwatt.formulas.lapack import least_squares
from bitwatt.formulas.vector import DOUBLE
from executed import amount, estimators, flops

_FILE = Path(__file__).parents[1] / "data" / "sklearn_executed_tenth.jsonl"
_ROWS = {row["name"]: row for row in map(json.loads, _FILE.read_text().splitlines())}


@pytest.mark.parametrize(
    ("name", "method", "most"),
    [
        ("LinearRegression.tenth0", "fit", 1.03),  # reflectors by blocks, of 56 columns
        ("QuantileTransformer.tenth156", "transform", 1.03),  # ties at the ends of a normal distribution
        ("QuantileTransformer.tenth156", "inverse_transform", 1.03),
        ("MLPRegressor.tenth184", "fit", 1.03),  # data in single precision, targets in double
        ("MLPRegressor.tenth251", "fit", 1.03),
        ("RadiusNeighborsClassifier.tenth114", "predict", 1.06),  # everything lies within the radius
        ("LinearDiscriminantAnalysis.tenth276", "predict", 1.02),  # whole numbers are not checked
        ("SGDClassifier.tenth260", "predict", 1.02),
        ("SelectKBest.tenth278", "fit", 1.05),
        ("SelectKBest.tenth350", "fit", 1.05),
        ("MultinomialNB.tenth339", "predict", 1.03),
        ("TruncatedSVD.tenth309", "transform", 1.02),
        ("SelectFromModel.tenth174", "transform", 1.02),  # trees are asked what features are worth
        ("LinearSVC.tenth265", "predict", 1.02),  # a frame lies column by column
        ("LinearSVC.tenth331", "predict", 1.02),  # but not after it was converted
    ],
)
def test_what_was_mended_stays_right(name: str, method: str, most: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = next(case for case in estimators.cases(_ROWS[name]) if case.method == method)
    assert case.error <= most
    assert case.bops_error <= most + 0.02


@pytest.mark.parametrize("name", ["XGBClassifier.tenth209", "XGBRegressor.tenth213"])
def test_objectives_and_ties_of_boosters(name: str) -> None:
    """`exact` judges no value twice; a logarithmic error takes four logarithms."""
    pytest.importorskip("xgboost")
    case = next(case for case in estimators.cases(_ROWS[name]) if case.method == "fit")
    assert case.error <= 1.1
    assert case.bops_error <= 1.1


def test_whole_numbers_are_counted_without_arithmetic() -> None:
    """Only logarithms of shares are left of a naive Bayes classifier; weights make its counts numbers."""
    from sklearn.naive_bayes import MultinomialNB

    X, y = np.random.RandomState(0).poisson(1.0, (600, 9)), np.arange(600) % 3
    few = flops(lambda: MultinomialNB().fit(X, y))
    assert few < X.size
    assert flops(lambda: MultinomialNB().fit(X.astype(float), y)) > few + 2 * 3 * X.size
    assert flops(lambda: MultinomialNB().fit(X, y, sample_weight=np.ones(600))) > few + 2 * 3 * X.size


@pytest.mark.parametrize(
    ("features", "targets", "executed"),
    [(48, 1, 10606842), (50, 1, 13008557), (51, 1, 14699553), (64, 1, 22582911), (140, 1, 101580250),
     (30, 3, 4684067), (49, 3, 13130697)],
)  # fmt: skip
def test_reflectors_are_gathered_where_there_is_room(features: int, targets: int, executed: int) -> None:
    """LAPACK applies them to the targets by blocks from about 50 columns on. Read of scipy's `lstsq`, 2000 rows."""
    counted = amount(least_squares(2000, features, targets, DOUBLE)) + 2000 * (features + targets)
    assert counted == pytest.approx(executed, rel=0.02)


def test_normal_distributions_have_tails() -> None:
    """As the instrument read them from `scipy.stats.norm`, of one value each."""
    assert (amount(normal_quantiles(1, 0)), amount(normal_quantiles(0, 1))) == (32, 85)
    assert (amount(normal_shares(1, 0)), amount(normal_shares(0, 1))) == (25, 59)


def test_values_are_looked_at_in_all_columns() -> None:
    """A step through all values that divides the number of columns meets the same columns again and again."""
    from bitwatt.backends.sklearn.readers.values import _some

    values = np.tile(np.arange(12), (2400, 1))
    assert set(_some(values)) == set(range(12))
