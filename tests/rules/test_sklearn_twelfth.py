"""What the twelfth draw showed and what was mended after it: rows of tests/data/sklearn_executed_twelfth.jsonl."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")


import bitwatt
from bitwatt.backends.sklearn.readers import densities
from bitwatt.backends.sklearn.readers.interactions import allowed, groups
from bitwatt.formulas import distances, smo, trees
from bitwatt.formulas.embeddings import tsne_tree
from executed import amount, counted, estimators, flops

_FILE = Path(__file__).parents[1] / "data" / "sklearn_executed_twelfth.jsonl"
_ROWS = {row["name"]: row for row in map(json.loads, _FILE.read_text().splitlines())}


@pytest.mark.parametrize(
    ("name", "method", "most"),
    [
        ("KNeighborsClassifier.twelfth300", "fit", 1.03),  # Jaccard: a quotient of two whole numbers
        ("KNeighborsClassifier.twelfth300", "predict", 1.03),
        ("KNeighborsClassifier.twelfth299", "predict", 1.03),  # Hamming
        ("KNeighborsRegressor.twelfth297", "predict", 1.03),  # Mahalanobis
        ("KNeighborsClassifier.twelfth301", "predict", 1.03),  # values are missing
        ("RadiusNeighborsRegressor.twelfth303", "predict", 1.1),  # averages of those that were found
        ("OAS.twelfth419", "mahalanobis", 1.05),
        ("HDBSCAN.twelfth310", "fit", 1.05),  # medoids are no brute force
        ("DBSCAN.twelfth308", "fit", 1.05),  # boxes by their longest side
        ("OneClassSVM.twelfth290", "fit", 1.1),  # exponentials of rows far from each other are lost
        ("OneClassSVM.twelfth290", "predict", 1.03),
        ("SVC.twelfth69", "decision_function", 1.03),  # tangents of small arguments
        ("NuSVR.twelfth289", "predict", 1.03),
        ("IterativeImputer.twelfth379", "fit", 1.03),  # values are drawn
        ("IterativeImputer.twelfth379", "transform", 1.03),
        ("HistGradientBoostingClassifier.twelfth335", "fit", 1.05),  # features that may not meet, weights in binning
        ("LinearDiscriminantAnalysis.twelfth412", "fit", 1.03),  # covariances are kept
        ("CalibratedClassifierCV.twelfth424", "predict_proba", 1.05),  # the largest exponential is known
        ("LogisticRegression.twelfth45", "fit", 1.05),  # weights within the penalty go in one step
        ("DecisionTreeClassifier.twelfth330", "fit", 1.1),  # half of the positions are rejected unjudged
        ("SGDRegressor.twelfth275", "fit", 1.05),  # the share that is held out
        ("SGDClassifier.twelfth55", "fit", 1.05),
        ("TheilSenRegressor.twelfth35", "fit", 1.05),
        ("Nystroem.twelfth383", "transform", 1.03),
    ],
)
def test_what_was_mended_stays_right(name: str, method: str, most: float) -> None:
    case = _case(name, method)
    assert case.error <= most
    assert case.bops_error <= most + 0.05


@pytest.mark.parametrize("name", ["TSNE.twelfth213", pytest.param("TSNE.twelfth403", marks=pytest.mark.slow)])
def test_points_are_asked_which_cells_they_look_at(name: str) -> None:
    assert _case(name, "fit").error <= 1.1


def test_a_machine_of_all_classes_is_estimated() -> None:
    """It had gone by Newton steps, which it does not take: sixteen times too much."""
    case = _case("LinearSVC.twelfth292", "fit")
    assert case.estimated
    assert case.error <= 2


def _case(name: str, method: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return next(case for case in estimators.cases(_ROWS[name]) if case.method == method)


@pytest.mark.parametrize(
    ("metric", "each"), [("jaccard", 1), ("RogersTanimotoDistance", 2), ("DiceDistance", 3), ("mahalanobis", 7 * 17)]
)
def test_metrics_of_counts_and_of_a_matrix(metric: str, each: float) -> None:
    """Of seven features: counts are whole numbers; 7 differences, 2·49 + 2·7 for both products."""
    assert distances.per_pair(metric, 7) == each


def test_mahalanobis_by_scipy() -> None:
    """As the instrument read it for rows of 2, 6, 7 and 12 features."""
    each = [amount(distances.one_by_one(10, 10, f, "mahalanobis")) / 100 for f in (2, 6, 7, 12)]
    assert each == [21, 105, 136, 351]


@pytest.mark.parametrize(
    ("kernel", "known", "executed"),
    [("rbf", (), 20), ("rbf", (1000,), 1), ("sigmoid", (1000, 1000, 1000), 27), ("sigmoid", (0, 0, 1000), 39),
     ("sigmoid", (0, 0, 0), 1), ("sigmoid", (), 33)],
)  # fmt: skip
def test_exponentials_and_tangents_by_their_arguments(kernel: str, known: tuple[int, ...], executed: float) -> None:
    assert smo.transcendental(kernel, known) == executed


def test_exponentials_of_rows_far_apart_are_lost() -> None:
    """A prediction for 100 rows a thousand apart: of each exponential (20) a product is left, but of a row with itself,
    which is one in 50."""
    from sklearn.svm import SVC

    X = np.arange(100)[:, None] * np.full((1, 4), 1000.0)
    model = SVC(gamma=1.0).fit(X, np.arange(100) % 2)
    assert len(model.support_) == 100
    far = flops(lambda: model.predict(X))
    model._gamma = 1e-12
    near = flops(lambda: model.predict(X))
    assert near - far == pytest.approx(100 * 100 * 19, rel=0.03)


@pytest.mark.parametrize(
    ("together", "shares"),
    [(None, None), ("pairwise", [4, 4, 4, 2, 2]), ("no_interactions", [4, 1, 1, 2, 2]),
     ([{0, 1}, {2}], [4, 2, 2, 2, 2])],
)  # fmt: skip
def test_features_that_may_meet(together: Any, shares: list[int] | None) -> None:
    """A root split by feature 0, its left child by feature 1; the third and fourth feature are left."""
    nodes = np.array([(0,), (1,), (0,), (0,), (0,)], dtype=[("feature_idx", int)])
    every, children = np.array([0, 1]), np.array([[1, 2], [3, 4]])
    found = groups(together, 4)
    if shares is None:
        assert found is None
        return
    assert allowed(nodes, children, every, 4, found).sum(axis=1).tolist() == shares


@pytest.mark.parametrize("name", ["KernelDensity.twelfth93", "KernelDensity.twelfth94"])
def test_densities_are_right_where_enough_queries_are_looked_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of hundreds that takes too long, and none is: then it is an estimate."""
    assert _case(name, "score_samples").estimated
    monkeypatch.setattr(densities, "_ONE_OF", 24)
    assert _case(name, "score_samples").error <= 1.1


def test_a_density_walks_its_way_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every query looked at: the walk computes the distances that the tree says it computed."""
    from sklearn.neighbors import KDTree

    monkeypatch.setattr(densities, "_ONE_OF", 1)
    X = np.random.RandomState(0).randn(8, 3)
    tree = KDTree(np.random.RandomState(1).randn(300, 3), leaf_size=10)
    before = tree.get_n_calls()
    tree.kernel_density(X, 0.3, rtol=1e-4)
    told = densities.met(tree, "EuclideanDistance", X, 0.3, "gaussian", (-np.inf, np.log(1e-4), 0.0))
    number, _, _, _, points, kernels, *_ = told
    assert number == len(X)
    assert points == tree.get_n_calls() - before
    assert kernels > points


def test_a_density_with_a_norm_that_is_no_number_goes_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.neighbors import BallTree

    monkeypatch.setattr(densities, "_ONE_OF", 1)

    X = np.random.RandomState(0).randn(60, 4)
    tree = BallTree(X, leaf_size=8)
    logs = (-np.inf, np.log(1e-8))
    told = [densities.met(tree, "EuclideanDistance", X[:8], 0.2, "cosine", (*logs, norm)) for norm in (0.0, np.nan)]
    assert told[1][4] == 8 * 60 > told[0][4]
    assert densities.met(tree, "CanberraDistance", X[:8], 0.2, "cosine", (*logs, 0.0)) == ()


def test_monotonic_features_are_rejected_unjudged_half_of_the_time() -> None:
    plain = trees.criterion("gini", 1, 2)
    signed = trees.constrained(plain, 1.0, 1, 2)
    assert signed.judge == plain.judge + 4 - (plain.judge - 3) / 2
    assert trees.constrained(plain, 0.0, 1, 2) == plain


@pytest.mark.parametrize(("share", "executed"), [(0.1, 1760824), (0.4, 1198775)])
def test_missing_values_leave_the_others_distinct(share: float, executed: int) -> None:
    """Trees of depth three on 800 rows of which values are missing, as the instrument read them: what is missing was
    taken off twice, and what is left for ties."""
    from estimator_data import holes  # `executed` put it on the path
    from sklearn.tree import DecisionTreeClassifier

    X, y = holes(800, 15, share=share, seed=3)
    model = DecisionTreeClassifier(max_depth=3, random_state=1)
    assert flops(lambda: model.fit(X, (y > 0).astype(int))) == pytest.approx(executed, rel=0.06)


def test_cells_of_a_plane_and_of_space() -> None:
    """100 points that look at 50 cells each, 600 neighbours, as the instrument read it: 23.5 for a cell of a plane; in
    space Student's kernel is a power."""
    plane, space = (
        amount(tsne_tree(100, parts, 0, False, 500)) - 100 * np.log2(100) * (4 * parts + 4) for parts in (2, 3)
    )
    assert plane / 5000 == pytest.approx(23.5, rel=0.03)
    assert space / 5000 == pytest.approx(24.5 + 64.3, rel=0.03)


def test_sums_of_squares_over_zeros_have_no_quotients() -> None:
    """Two differences and sums for each pair of values, and three more unless both are zero."""
    from sklearn.kernel_ridge import KernelRidge

    X = np.ones((40, 6))
    model = KernelRidge(kernel="additive_chi2").fit(X, X[:, 0])
    full = flops(lambda: model.predict(X * 0))  # nothing is zero on the other side
    model.X_fit_ = X * 0
    assert flops(lambda: model.predict(X * 0)) == full - 3 * 40 * 40 * 6


def test_imputed_values_that_are_drawn_are_counted() -> None:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    X = np.random.RandomState(0).randn(80, 4)
    X[::4, 1] = np.nan

    def imputed(**more: Any) -> int:
        model = IterativeImputer(max_iter=1, sample_posterior=True, random_state=0, **more).fit(X)
        _, run = counted(lambda: model.transform(X))
        return bitwatt.totals(run).by("op")["sklearn.impute.IterativeImputer.transform"]

    assert imputed() == 80 * 4 + 20 * 200
    assert imputed(min_value=-9.0) == 80 * 4 + 20 * 390
