"""estimate() of estimators: nothing is fitted, assumptions are said, and what is known is counted as if it had run."""

from __future__ import annotations

import time
import warnings
from typing import Any

import pytest

import bitwatt

np = pytest.importorskip("numpy")
pytest.importorskip("sklearn")

from sklearn import cluster, decomposition, ensemble, linear_model, naive_bayes, neighbors, neural_network  # noqa: E402
from sklearn import preprocessing as pre  # noqa: E402
from sklearn.calibration import CalibratedClassifierCV  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: E402, F401
from sklearn.mixture import GaussianMixture  # noqa: E402
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV  # noqa: E402
from sklearn.multiclass import OneVsRestClassifier  # noqa: E402
from sklearn.multioutput import MultiOutputRegressor  # noqa: E402
from sklearn.pipeline import Pipeline  # noqa: E402
from sklearn.svm import SVC, LinearSVC  # noqa: E402
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: E402

N, F = 400, 12


def classes(n: int = N, f: int = F, many: int = 2, seed: int = 3) -> tuple[Any, Any]:
    from sklearn.datasets import make_classification

    return make_classification(
        n, f, n_informative=f // 2, n_redundant=0, n_classes=many, flip_y=0.05, class_sep=0.7, random_state=seed
    )


def numbers(n: int = N, f: int = F, targets: int = 1, seed: int = 3) -> tuple[Any, Any]:
    from sklearn.datasets import make_regression

    return make_regression(n, f, n_informative=f // 2, noise=10.0, n_targets=targets, random_state=seed)


def measured(estimator: Any, X: Any, y: Any = None, *methods: str) -> tuple[int, Any]:
    with warnings.catch_warnings(), bitwatt.measure(keep=False) as session:
        warnings.simplefilter("ignore")
        estimator.fit(X, y)
        for method in methods:
            getattr(estimator, method)(X)
    return bitwatt.totals(session.run).total, session.run


def estimated(estimator: Any, X: Any, y: Any = None, *methods: str, **options: Any) -> int:
    run = bitwatt.estimate(estimator, X, y, methods=("fit", *methods), **options)
    priced = bitwatt.totals(run)
    assert priced.missing == {}
    return priced.total


CLOSED = [
    (linear_model.LinearRegression(), numbers(), ("predict",)),
    (linear_model.LinearRegression(), numbers(targets=3), ("predict",)),
    (linear_model.Ridge(), numbers(), ("predict",)),
    (linear_model.RidgeClassifier(), classes(many=3), ("predict",)),
    (linear_model.RidgeCV(), numbers(), ()),
    (naive_bayes.GaussianNB(), classes(many=3), ("predict", "predict_proba")),
    (decomposition.PCA(4), classes(), ("transform",)),
    (decomposition.PCA(4, svd_solver="full"), classes(n=90, f=30), ("transform",)),
    (decomposition.TruncatedSVD(3), classes(), ("transform",)),
    (decomposition.KernelPCA(3, kernel="rbf", eigen_solver="dense"), classes(n=150), ("transform",)),
    (pre.StandardScaler(), classes(), ("transform",)),
    (pre.PolynomialFeatures(3), classes(), ("transform",)),
    (neighbors.KNeighborsClassifier(algorithm="brute"), classes(), ("predict",)),
    (neighbors.NearestCentroid(), classes(many=3), ("predict",)),
    (cluster.AgglomerativeClustering(4), classes(), ()),
    (Pipeline([("s", pre.StandardScaler()), ("p", decomposition.PCA(4)), ("m", naive_bayes.GaussianNB())]), classes(),
     ("predict",)),
    (GridSearchCV(naive_bayes.GaussianNB(), {"var_smoothing": [1e-9, 1e-6, 1e-3]}, cv=3), classes(), ("predict",)),
    (OneVsRestClassifier(naive_bayes.GaussianNB()), classes(many=4), ("predict",)),
    (MultiOutputRegressor(linear_model.Ridge()), numbers(targets=3), ("predict",)),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "data", "methods"), CLOSED, ids=lambda value: type(value).__name__)
def test_where_shapes_tell_everything_it_is_the_count_of_the_fit(estimator: Any, data: Any, methods: Any) -> None:
    X, y = data
    assert estimated(estimator, X, y, *methods) == pytest.approx(measured(estimator, X, y, *methods)[0], rel=0.005)


ITERATED = [
    (linear_model.LogisticRegression(), classes(), "n_iter_", 1.1),
    (linear_model.LogisticRegression(solver="saga", max_iter=300), classes(many=3), "n_iter_", 1.01),
    (linear_model.LogisticRegression(solver="newton-cholesky"), classes(), "n_iter_", 1.05),
    (linear_model.Lasso(0.5), numbers(), "n_iter_", 1.15),
    (linear_model.SGDRegressor(random_state=0), numbers(), "n_iter_", 1.01),
    (linear_model.BayesianRidge(), numbers(), "n_iter_", 1.01),
    (LinearSVC(penalty="l1"), classes(), "n_iter_", 1.03),
    (neural_network.MLPClassifier((16,), max_iter=10, random_state=0), classes(many=3), "n_iter_", 1.02),
    (cluster.KMeans(4, n_init=1, random_state=0), classes(), "n_iter_", 1.02),
    (decomposition.FactorAnalysis(3), classes(), "n_iter_", 1.01),
    (decomposition.NMF(3, init="nndsvda", max_iter=60), (abs(classes()[0]), None), "n_iter_", 1.02),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "data", "name", "factor"), ITERATED, ids=lambda value: type(value).__name__)
def test_with_the_iterations_that_ran_it_is_close_to_the_fit(estimator: Any, data: Any, name: str, factor: Any) -> None:
    X, y = data
    real, _ = measured(estimator, X, y)
    taken = getattr(estimator, name)
    steps = int(np.max(taken))
    ratio = estimated(estimator, X, y, assume={"n_iter": steps}) / real
    assert 1 / factor <= ratio <= factor


GROWN = [
    (DecisionTreeClassifier(random_state=0), classes(n=2000)),
    (DecisionTreeClassifier(max_depth=5, random_state=0), classes(n=2000)),
    (DecisionTreeRegressor(min_samples_leaf=10, random_state=0), numbers(n=2000)),
    (ensemble.RandomForestClassifier(8, random_state=0), classes(n=1500, many=3)),
    (ensemble.RandomForestRegressor(4, random_state=0), numbers(n=1500)),
    (ensemble.GradientBoostingRegressor(n_estimators=10), numbers(n=1500)),
    (ensemble.HistGradientBoostingClassifier(max_iter=10), classes(n=3000)),
    (ensemble.AdaBoostClassifier(n_estimators=5), classes(n=1000)),
    (ensemble.BaggingRegressor(n_estimators=4, random_state=0), numbers(n=1000)),
]  # fmt: skip


@pytest.mark.parametrize(("estimator", "data"), GROWN, ids=lambda value: type(value).__name__)
def test_trees_on_learnable_data_are_within_a_third(estimator: Any, data: Any) -> None:
    X, y = data
    ratio = estimated(estimator, X.shape, y) / measured(estimator, X, y)[0]
    assert 1 / 1.35 < ratio < 1.35


def test_boosters_of_other_libraries_are_within_a_third() -> None:
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    for estimator, (X, y) in (
        (xgboost.XGBRegressor(n_estimators=6, n_jobs=1), numbers(n=2000)),
        (xgboost.XGBClassifier(n_estimators=6, max_depth=4, n_jobs=1), classes(n=3000, many=3)),
        (lightgbm.LGBMRegressor(n_estimators=6, n_jobs=1, verbose=-1), numbers(n=2000)),
    ):
        assert 1 / 1.35 < estimated(estimator, X, y) / measured(estimator, X, y)[0] < 1.35


def test_catboost_is_told_by_its_parameters() -> None:
    catboost = pytest.importorskip("catboost")
    X, y = numbers(n=600)
    model = catboost.CatBoostRegressor(iterations=5, depth=4, verbose=0, thread_count=1, allow_writing_files=False)
    assert estimated(model, X, y) == pytest.approx(measured(model, X, y)[0], rel=0.01)


def test_the_papers_example() -> None:
    # 200 trees · 500,000 rows · 40 columns · log2(500,000) = 7.57e10, and 100 passes · 500,000 · 40 = 2e9
    shape = (500_000, 40)
    forest = bitwatt.estimate(ensemble.RandomForestClassifier(200), shape)
    assert bitwatt.totals(forest, "flops:paper").total == pytest.approx(7.57e10, rel=1e-3)
    logistic = bitwatt.estimate(linear_model.LogisticRegression(solver="sag", max_iter=100), shape)
    assert bitwatt.totals(logistic, "flops:paper").total == 2_000_000_000
    assert "LogisticRegression.fit: n_iter_ assumed 100 (max_iter)" in logistic.notes
    assert bitwatt.totals(logistic, "bops:paper").total == 64 * 2_000_000_000


def test_assumptions_are_said_and_marked_and_a_closed_form_is_neither() -> None:
    run = bitwatt.estimate(SVC(), (1000, 10))
    assert any("support assumed" in note for note in run.notes)
    assert bitwatt.totals(run).coverage.estimated == 1
    exact = bitwatt.estimate(linear_model.LinearRegression(), (1000, 10))
    assert exact.notes == ()
    assert bitwatt.totals(exact).coverage.estimated == 0


def test_a_word_of_the_user_replaces_an_assumption() -> None:
    shape = (10_000, 20)
    ten, twenty = (
        estimated(linear_model.SGDRegressor(), shape, assume={"n_iter": steps}) for steps in (10, 20)
    )  # a check beside the passes
    assert twenty == pytest.approx(2 * ten, rel=0.01)
    run = bitwatt.estimate(linear_model.SGDRegressor(), shape, assume={"SGDRegressor.n_iter": 10})
    assert "SGDRegressor.fit: n_iter_ given as 10" in run.notes
    with pytest.raises(bitwatt.BitwattError, match="nobody asked for 'n_itre'"):
        bitwatt.estimate(linear_model.SGDRegressor(), shape, assume={"n_itre": 10})


def test_a_plain_name_is_for_the_outermost_that_asks() -> None:
    notes = bitwatt.estimate(GaussianMixture(3), (500, 8), assume={"n_iter": 3}).notes
    assert "GaussianMixture.fit_predict: n_iter_ given as 3" in notes
    assert any(note.startswith("KMeans.fit: n_iter_ assumed") for note in notes)


def test_counterfactuals_scale() -> None:
    shape = (100_000, 30)
    few, many = (estimated(ensemble.RandomForestClassifier(trees), shape) for trees in (100, 1000))
    assert many == pytest.approx(10 * few, rel=0.01)
    doubled = estimated(ensemble.RandomForestClassifier(100), (200_000, 30))
    assert 2.0 < doubled / few < 2.3  # n·log n


def test_nothing_is_fitted_and_nothing_drawn() -> None:
    model = GridSearchCV(ensemble.RandomForestClassifier(), {"n_estimators": [10, 20]})
    before = np.random.get_state()[1].copy()
    bitwatt.estimate(model, (1000, 10))
    assert not hasattr(model, "best_estimator_")
    assert not hasattr(model.estimator, "estimators_")
    assert (np.random.get_state()[1] == before).all()


def test_candidates_of_a_search_are_priced_as_they_are_set() -> None:
    one = GridSearchCV(ensemble.RandomForestRegressor(), {"n_estimators": [10]}, cv=2, refit=False)
    two = GridSearchCV(ensemble.RandomForestRegressor(), {"n_estimators": [10, 30]}, cv=2, refit=False)
    assert estimated(two, (2000, 10)) == pytest.approx(4 * estimated(one, (2000, 10)), rel=0.02)
    halving = HalvingGridSearchCV(ensemble.RandomForestRegressor(), {"n_estimators": [10, 11, 12]}, cv=2)
    assert 2 < estimated(halving, (2000, 10)) / estimated(one, (2000, 10)) < 4


def test_shapes_flow_through_pipelines_and_columns() -> None:
    encode = ColumnTransformer([("n", pre.StandardScaler(), [0, 1, 2]), ("c", pre.OneHotEncoder(), [3, 4])])
    pipe = Pipeline(
        [("prepare", encode), ("reduce", decomposition.TruncatedSVD(5)), ("model", DecisionTreeRegressor())]
    )
    run = bitwatt.estimate(pipe, (1000, 5), assume={"categories": 20})
    seen = {
        row.scope: dict(row.op.args)["X"].shape for row in run.ledger if row.op.name.endswith((".fit", "_transform"))
    }
    assert seen["Pipeline.prepare.c"] == (1000, 2)
    assert seen["Pipeline.reduce"] == (1000, 3 + 2 * 20)
    assert seen["Pipeline.model"] == (1000, 5)


def test_what_a_prediction_needs_is_learnt_without_a_fit() -> None:
    X, y = classes()
    model = CalibratedClassifierCV(naive_bayes.GaussianNB(), cv=3).fit(X, y)
    with bitwatt.measure(keep=False) as session:
        model.predict_proba(X)
    run = bitwatt.estimate(CalibratedClassifierCV(naive_bayes.GaussianNB(), cv=3), X, y, methods=("predict_proba",))
    assert bitwatt.totals(run).total == pytest.approx(bitwatt.totals(session.run).total, rel=0.01)
    assert set(bitwatt.totals(run).by("phase")) == {"predict"}


def test_a_fit_that_also_predicts_is_no_less_than_the_fit() -> None:
    X, _ = classes()
    whole = bitwatt.totals(bitwatt.estimate(cluster.AgglomerativeClustering(), X, methods=("fit_predict",))).total
    assert whole == estimated(cluster.AgglomerativeClustering(), X) > 0


def test_frames_labels_and_sparse_matrices_tell_their_shapes() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    X = sparse.random(300, 40, 0.05, format="csr", random_state=0)
    y = ["a", "b", "c"] * 100
    run = bitwatt.estimate(naive_bayes.MultinomialNB(), X, y)
    told = dict(next(row.op for row in run.ledger if row.op.name.endswith("MultinomialNB.fit")).args)
    assert (told["X"].nnz, told["classes_"]) == (X.nnz, (0, 1, 2))
    assert estimated(naive_bayes.MultinomialNB(), X, y) == pytest.approx(
        measured(naive_bayes.MultinomialNB(), X, np.array(y))[0], rel=0.05
    )


def test_a_method_may_have_data_of_its_own_and_may_be_sparse() -> None:
    run = bitwatt.estimate(linear_model.Ridge(), (1000, 50), methods=["fit", ("predict", (10, 50))], density=0.1)
    specs = [dict(row.op.args)["X"] for row in run.ledger]
    assert [(spec.shape, spec.nnz) for spec in specs] == [((1000, 50), 5000), ((10, 50), 50)]


def test_float32_is_priced_as_such() -> None:
    run = bitwatt.estimate(linear_model.LinearRegression(), (1000, 20), dtype="float32")
    shares = bitwatt.totals(run).by("precision")
    assert shares["float32"] > 0.9 * sum(shares.values())


class Own:
    """An estimator of the user's."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {}

    def fit(self, X: Any, y: Any = None) -> Own:
        return self


def test_a_class_of_ones_own_is_missing_for_a_reason_and_a_class_is_refused() -> None:
    run = bitwatt.estimate(Own(), (100, 5))
    assert list(bitwatt.totals(run).missing.values()) == [1]
    assert any("a class of your own" in note for note in run.notes)
    with pytest.raises(bitwatt.BitwattError, match="is a class"):
        bitwatt.estimate(linear_model.Ridge, (100, 5))


def test_every_estimator_is_counted_or_says_why_not_in_no_time() -> None:
    from sklearn.utils import all_estimators
    from sklearn.utils._test_common.instance_generator import _construct_instances

    shape, silent, spent = (10**9, 40), [], []
    for name, kind in all_estimators():
        if name == "FrozenEstimator":
            continue
        estimator = next(iter(_construct_instances(kind)))
        began = time.process_time()
        run = bitwatt.estimate(estimator, shape)
        spent.append(time.process_time() - began)
        priced = bitwatt.totals(run)
        reasons = [entry.reason for entry in priced.entries if entry.status == "missing"]
        assert all(reason.startswith("it could not be estimated: ") for reason in reasons), name
        assert not any("Error" in reason for reason in reasons), (name, reasons)
        if not priced.total and not reasons and priced.coverage.counted > priced.coverage.estimated:
            silent.append(name)
    # functions of the user's own, or none
    assert silent == ["FunctionTransformer"]
    assert sorted(spent)[len(spent) // 2] < 0.05
