"""What the eleventh draw showed and what was mended after it: rows of tests/data/sklearn_executed_eleventh.jsonl."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

import bitwatt
from bitwatt.formulas.factors import solve
from executed import amount, counted, estimators, flops

_FILE = Path(__file__).parents[1] / "data" / "sklearn_executed_eleventh.jsonl"
_ROWS = {row["name"]: row for row in map(json.loads, _FILE.read_text().splitlines())}


@pytest.mark.parametrize(
    ("name", "method", "most"),
    [
        ("ComplementNB.eleventh147", "partial_fit", 1.03),  # labels of a batch are real numbers
        ("MultinomialNB.eleventh146", "partial_fit", 1.03),
        ("MultinomialNB.eleventh146", "predict_log_proba", 1.03),  # classes that are sure
        ("CategoricalNB.eleventh151", "fit", 1.03),  # weights are checked, multiplied and added up
        ("BayesianRidge.eleventh31", "fit", 1.05),
        ("Ridge.eleventh3", "fit", 1.03),  # columns of a frame lie together
        ("TweedieRegressor.eleventh41", "fit", 1.05),
        ("SGDRegressor.eleventh53", "fit", 1.05),  # no penalty
        ("LarsCV.eleventh25", "predict", 1.03),  # truth values times single precision stay single
        ("SelectKBest.eleventh266", "fit", 1.03),
        ("Normalizer.eleventh242", "transform", 1.03),  # the extremes of sparse rows
        ("TfidfVectorizer.eleventh298", "transform", 1.03),  # counts of one that were written over
        ("OneHotEncoder.eleventh256", "fit", 1.03),  # rare categories
        ("OneHotEncoder.eleventh256", "inverse_transform", 1.03),
        ("OneHotEncoder.eleventh257", "fit", 1.03),  # numbers of eight bits are sorted by counting
        ("TargetEncoder.eleventh259", "fit", 1.03),
        ("TargetEncoder.eleventh259", "fit_transform", 1.03),
        ("DummyClassifier.eleventh300", "predict", 1.08),  # a multinomial of five classes
        ("SVC.eleventh61", "predict", 1.03),  # sparse rows without any element
        ("SVC.eleventh61", "fit", 1.1),
        ("OneVsRestClassifier.eleventh283", "predict", 1.05),
        ("GaussianProcessClassifier.eleventh210", "predict_proba", 1.05),  # a factor that is diagonal
        ("BaggingClassifier.eleventh95", "predict_log_proba", 1.1),  # trees that are sure
        ("RandomTreesEmbedding.eleventh99", "transform", 1.03),  # ones are added to zeros
        ("ClassifierChain.eleventh286", "predict", 1.03),
        ("NearestCentroid.eleventh138", "predict", 1.03),
        ("KNeighborsRegressor.eleventh129", "kneighbors", 1.1),  # whole numbers lie on the sides of boxes
    ],
)
def test_what_was_mended_stays_right(name: str, method: str, most: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = next(case for case in estimators.cases(_ROWS[name]) if case.method == method)
    assert case.error <= most
    assert case.bops_error <= most + 0.05


@pytest.mark.parametrize(
    ("name", "method", "library"),
    [
        ("LGBMClassifier.eleventh115", "predict", "lightgbm"),  # each class has a logistic function
        ("CatBoostClassifier.eleventh119", "staged_predict", "catboost"),  # stages are added to those before
        ("CatBoostClassifier.eleventh120", "staged_predict", "catboost"),
    ],
)
def test_scores_of_boosted_classes(name: str, method: str, library: str) -> None:
    pytest.importorskip(library)
    case = next(case for case in estimators.cases(_ROWS[name]) if case.method == method)
    assert case.error <= 1.05


@pytest.mark.parametrize(
    ("shares", "executed"),
    [((0.5, 0.5), 7971), ((1 / 3,) * 3, 83112), ((0.2,) * 5, 161317), ((0.6, *(0.1,) * 4), 91670),
     ((*(0.1,) * 4, 0.6), 198019)],
)  # fmt: skip
def test_a_class_is_drawn_by_binomials(shares: tuple[float, ...], executed: int) -> None:
    """Of a thousand samples, as the instrument read them of numpy's multinomial."""
    from sklearn.dummy import DummyClassifier

    X, y = np.zeros((1000, 1)), np.repeat(np.arange(len(shares)), np.round(np.array(shares) * 1000).astype(int))
    y = np.resize(y, 1000)
    model = DummyClassifier(strategy="stratified").fit(X, y)
    assert flops(lambda: model.predict_proba(X)) == pytest.approx(executed, rel=0.1)


@pytest.mark.parametrize(("size", "columns", "executed"), [(87, 87, 7657), (87, 1, 175), (40, 40, 1641)])
def test_a_diagonal_matrix_is_divided_by(size: int, columns: int, executed: int) -> None:
    """scipy's `solve` looks what it is given."""
    assert amount(solve(size, columns, 64, "diagonal")) == pytest.approx(executed, rel=0.01)


@pytest.mark.parametrize(
    ("penalty", "early", "executed"),
    [(None, False, 18), ("l2", False, 35), (None, True, 15.9), ("l2", True, 23.1)],
)
def test_a_perceptron_that_makes_no_mistake(penalty: str | None, early: bool, executed: float) -> None:
    """One pass, for one sample of four features, as the instrument read it."""
    from sklearn.linear_model import Perceptron

    random = np.random.RandomState(0)
    X = random.randn(500, 4)
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += np.where(y, 5, -5)

    def passes(count: int) -> int:
        options = {"early_stopping": True, "n_iter_no_change": 99} if early else {"tol": None}
        return flops(lambda: Perceptron(penalty=penalty, max_iter=count, random_state=0, **options).fit(X, y))

    assert (passes(40) - passes(30)) / 10 / 500 == pytest.approx(executed, rel=0.07)


def test_components_of_neighbourhoods_are_estimated() -> None:
    """Exponentials of far points vanish, and nobody looks how many do."""
    from sklearn.neighbors import NeighborhoodComponentsAnalysis

    X = np.random.RandomState(0).randn(60, 4)
    _, run = counted(lambda: NeighborhoodComponentsAnalysis(2, max_iter=3).fit(X, np.arange(60) % 2))
    assert bitwatt.totals(run).coverage.estimated == 1
