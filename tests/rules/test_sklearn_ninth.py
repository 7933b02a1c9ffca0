"""What the ninth draw showed and what was mended after it: rows of tests/data/sklearn_executed_ninth.jsonl."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

import bitwatt
from executed import amount, counted, estimators

_FILE = Path(__file__).parents[1] / "data" / "sklearn_executed_ninth.jsonl"
_ROWS = {row["name"]: row for row in map(json.loads, _FILE.read_text().splitlines())}


@pytest.mark.parametrize(
    ("name", "method", "most"),
    [
        ("SGDClassifier.ninth12", "predict_log_proba", 1.03),  # probabilities of two classes are double
        ("QuantileTransformer.ninth186", "inverse_transform", 1.03),  # ties stand for quantiles
        ("PCA.ninth85", "transform", 1.03),  # one column
        ("PCA.ninth85", "fit", 1.03),
        ("PCA.ninth76", "fit", 1.05),  # more columns than rows
        ("NMF.ninth96", "fit", 1.03),  # a Gram matrix of three columns in single precision
        ("SequentialFeatureSelector.ninth203", "fit", 1.06),
        ("ExtraTreesClassifier.ninth127", "fit", 1.05),  # bags that are drawn by weights, twice
        ("ExtraTreeClassifier.ninth122", "fit", 1.2),  # logarithms of random splits
        ("IsotonicRegression.ninth222", "fit", 1.06),  # the correlation of ranks
    ],
)
def test_what_was_mended_stays_right(name: str, method: str, most: float) -> None:
    row = _ROWS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = next(case for case in estimators.cases(row) if case.method == method)
    assert case.error <= most
    assert case.bops_error <= most + 0.05


def test_a_linear_booster_of_classes_ends_in_a_logistic_function() -> None:
    pytest.importorskip("xgboost")
    case = next(c for c in estimators.cases(_ROWS["XGBClassifier.ninth152"]) if c.method == "predict")
    assert case.error <= 1.01
    assert case.bops_error <= 1.01


def _marked(call: object) -> int:
    _, run = counted(call)  # type: ignore[arg-type]
    return bitwatt.totals(run).coverage.estimated


def test_mixtures_say_where_their_exponentials_matter() -> None:
    """Of few features they are most of the work, and vanish where components are sure."""
    from sklearn.mixture import GaussianMixture

    X = np.random.RandomState(0).randn(200, 24)
    few = GaussianMixture(3, covariance_type="diag", random_state=0).fit(X[:, :3])
    many = GaussianMixture(3, covariance_type="full", random_state=0).fit(X)
    assert _marked(lambda: few.score_samples(X[:, :3])) == 1
    assert _marked(lambda: many.score_samples(X)) == 0
    assert _marked(lambda: few.predict(X[:, :3])) == 0


def test_logistic_functions_of_unscaled_decisions_are_estimated() -> None:
    from sklearn.linear_model import SGDClassifier

    X, y = np.random.RandomState(0).randn(80, 4), np.arange(80) % 2
    model = SGDClassifier(loss="log_loss", max_iter=5, tol=None, random_state=0).fit(X, y)
    assert _marked(lambda: model.predict_proba(X)) == 1
    assert _marked(lambda: model.decision_function(X)) == 0


def test_a_tree_that_lies_within_the_radius_is_not_opened() -> None:
    """Of a ball tree the distance to its root's centre is all that was computed; where more was, nodes were opened."""
    from bitwatt.formulas.distances import tree_radius

    tree = ("BallTree", "BrayCurtisDistance", 181, 6, 15, 181)
    root = amount(tree_radius(*tree, 181, 181 * 181, False))
    opened = amount(tree_radius(*tree, 182, 181 * 181, False))
    assert root == 181 * (4 * 6 + 3)
    assert opened > 10 * 181 * 3
