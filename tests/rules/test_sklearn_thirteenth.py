"""What a tester found beside the instrument, and what it executed there: 64-bit and 32-bit operations together, on AVX2
with one thread."""

from __future__ import annotations

import pickle
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import catboost
import joblib
import lightgbm
import xgboost
from scipy.spatial.distance import cdist
from sklearn.cluster import DBSCAN, HDBSCAN
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ElasticNet, Lasso, LinearRegression, LogisticRegression, MultiTaskLasso
from sklearn.manifold import Isomap
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, LocalOutlierFactor, NearestNeighbors
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import PowerTransformer
from sklearn.semi_supervised import LabelPropagation
from sklearn.svm import SVC

import bitwatt

X = np.random.RandomState(0).randn(300, 8)
y = X[:, 0]
Y2, Y3 = (y > 0).astype(int), np.digitize(y, [-0.5, 0.5])


def measured(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings(), bitwatt.measure("executed", keep=False, meter=False) as session:
        warnings.simplefilter("ignore")
        call()
    return session.run


def by_scope(run: Any) -> dict[str, int]:
    return {f"{row.scope}: {row.op.name.rpartition('.')[2]}": row.calls for row in run.ledger}


@pytest.mark.parametrize(
    ("init", "target", "fitted", "method", "said", "most"),
    [
        (KernelRidge(kernel="rbf"), y, 19611162, "predict", 4263017, 1.01),
        (KNeighborsRegressor(algorithm="brute", metric="manhattan"), y, 2005899, "predict", 1460102, 1.01),
        (GaussianNB(), Y2, 761481, "predict_proba", 95647, 1.1),  # logits of what is nearly sure take a shorter way
        (GaussianNB(), Y3, 1998694, "predict_proba", 178136, 1.02),
        (LogisticRegression(), Y2, 1013662, "predict_proba", 39524, 1.01),
        (LogisticRegression(), Y3, 2926542, "predict_proba", 122609, 1.02),
        (RandomForestClassifier(10, random_state=0), Y2, 934623, "predict_proba", 30903, 1.04),
        (RandomForestClassifier(10, random_state=0), Y3, 2546559, "predict_proba", 91597, 1.02),
    ],
)
def test_boosting_begins_with_an_estimator_whose_work_is_counted(init, target, fitted, method, said, most):
    kind = GradientBoostingClassifier if target is not y else GradientBoostingRegressor
    boosting = kind(n_estimators=5, init=init, random_state=0)
    for call, executed in ((lambda: boosting.fit(X, target), fitted), (lambda: getattr(boosting, method)(X), said)):
        run = measured(call)
        total = bitwatt.totals(run)
        assert not total.missing
        assert max(total.total / executed, executed / total.total) < most
        assert any(scope.startswith(f"{kind.__name__}.init") for scope in by_scope(run))
        assert not any("DecisionTree" in row.scope and "RandomForest" not in row.scope for row in run.ledger)


def _pruned(model, _):
    model.estimators_ = model.estimators_[:2]


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (lambda: RandomForestClassifier(20, random_state=0).fit(X, Y2), _pruned),
        (lambda: RandomForestClassifier(20, random_state=0).fit(X, Y2), lambda m, _: m.estimators_.__delitem__(0)),
        (lambda: LinearRegression().fit(X, y),
         lambda m, _: vars(m).update(coef_=np.ones((7, 8)), intercept_=np.ones(7))),
        (lambda: MLPRegressor(hidden_layer_sizes=(50,), max_iter=2).fit(X, y), lambda m, _: vars(m).update(
            coefs_=[m.coefs_[0][:, :5], m.coefs_[1][:5]], intercepts_=[m.intercepts_[0][:5], m.intercepts_[1]])),
        (lambda: xgboost.XGBClassifier(n_estimators=5, **_XGB).fit(X, Y2), lambda m, path: m.load_model(path)),
        (lambda: lightgbm.train(_LGB, lightgbm.Dataset(X, y), 10, keep_training_booster=True),
         lambda m, _: [m.rollback_one_iter() for _ in range(8)]),
        (lambda: lightgbm.train(_LGB, lightgbm.Dataset(X, y), 10),
         lambda m, _: m.model_from_string(m.model_to_string(num_iteration=2))),
        (lambda: catboost.CatBoostRegressor(iterations=50, **_CAT).fit(X, y), lambda m, _: m.shrink(5)),
    ],
)  # fmt: skip
def test_a_model_that_changed_outside_of_a_fit_is_read_anew(make, change, tmp_path):
    xgboost.XGBClassifier(n_estimators=60, **_XGB).fit(X, Y2).save_model(tmp_path / "model.json")
    model = make()

    def twice():
        model.predict(X)
        change(model, tmp_path / "model.json")
        model.predict(X)

    before, both, after = (bitwatt.totals(measured(f)).total for f in (
        lambda: model.predict(X), twice, lambda: model.predict(X)))  # fmt: skip
    assert both == pytest.approx(before + after, rel=1e-9)
    assert after != before


_XGB = {"max_depth": 3, "n_jobs": 1}
_LGB = {"verbose": -1, "num_threads": 1}
_CAT = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}


def test_attributes_of_estimators_that_are_gone_are_not_kept():
    with bitwatt.measure("gone", keep=False, meter=False):
        model = LinearRegression().fit(X, y)
        model.predict(X)
        kept = weakref.ref(model.coef_)
        assert kept() is not None
        del model
        assert kept() is None


Z = np.random.RandomState(7).randn(431, 9)
_ROUND = {"n_neighbors": 7, "radius": 0.4, "metric": "haversine"}
_SEVEN = {"n_neighbors": 7, "algorithm": "brute", "metric": "seuclidean", "metric_params": {"V": np.ones(9)}}
_PROCESS = GaussianProcessRegressor(Matern(nu=np.inf), alpha=1e-2, random_state=0).fit(Z[:80], Z[:80] @ np.arange(9.0))
_CLASSES = GaussianProcessClassifier(max_iter_predict=5).fit(Z[:100], Z[:100, 0] > 0.2)


@pytest.mark.parametrize(
    ("call", "executed", "most"),
    [
        (lambda: NearestNeighbors(algorithm="brute", **_ROUND).fit(Z[:, :2]).kneighbors(Z[:, :2]),
         18964911 + 942, 1.01),
        (lambda: NearestNeighbors(algorithm="ball_tree", **_ROUND).fit(Z[:, :2]).kneighbors(Z[:, :2]),
         15405835 + 173534, 1.02),
        (lambda: DBSCAN(eps=0.3, metric="haversine").fit(Z[:, :2]), 14405310, 1.02),
        (lambda: HDBSCAN(metric="haversine").fit(Z[:, :2]), 26773855, 1.1),
        (lambda: LocalOutlierFactor(metric="haversine").fit(Z[:, :2]), 16682047, 1.02),
        (lambda: NearestNeighbors(**_SEVEN).fit(Z).kneighbors(Z), 6705929 + 3879, 1.001),
        (lambda: GaussianProcessRegressor(Matern(nu=np.inf), alpha=1e-2, random_state=0).fit(
            Z[:80], Z[:80] @ np.arange(9.0)), 19321119, 1.01),
        (lambda: _PROCESS.predict(Z[:80], return_cov=True), 1591166, 1.01),
        (lambda: _PROCESS.sample_y(Z[:40], 3, random_state=0), 1921458, 1.1),
        (lambda: _PROCESS.sample_y(Z[:80], 1, random_state=0), 9467958, 1.03),
        (lambda: _CLASSES.latent_mean_and_variance(Z[:60]), 1045891, 1.05),
        (lambda: _CLASSES.predict_proba(Z[:60]), 1055217, 1.05),
    ],
)  # fmt: skip
def test_what_was_wrong_without_a_mark_is_what_runs(call, executed, most):
    total = bitwatt.totals(measured(call))
    assert not total.missing
    assert max(total.total / executed, executed / total.total) < most


@pytest.mark.parametrize(
    ("model", "executed"),
    [
        (GaussianMixture(3, covariance_type="diag", random_state=0), 11321),
        (GaussianMixture(3, covariance_type="full", random_state=0), 86360),
        (GaussianMixture(3, covariance_type="tied", random_state=0), 89135),
        (BayesianGaussianMixture(n_components=3, covariance_type="spherical", random_state=0), 11126),
    ],
)
def test_samples_of_mixtures_are_drawn_through_the_root_of_covariances(model, executed):
    model.fit(Z)
    assert bitwatt.totals(measured(lambda: model.sample(50))).total == pytest.approx(executed, rel=0.1)


@pytest.mark.parametrize(("objective", "shares", "said"), [("logitraw", 2596, 2166), ("hinge", 2594, 2166)])
def test_shares_of_the_other_class_are_what_is_left(objective, shares, said):
    model = xgboost.XGBClassifier(n_estimators=5, objective=f"binary:{objective}", n_jobs=1).fit(Z, Z[:, 0] > 0.2)
    for call, executed in ((lambda: model.predict_proba(Z), shares), (lambda: model.predict(Z), said)):
        assert bitwatt.totals(measured(call)).total == pytest.approx(executed, rel=0.01)


def test_the_error_of_an_embedding_is_counted():
    model = Isomap(n_neighbors=8).fit(Z[:120])
    run = measured(lambda: model.reconstruction_error())
    assert bitwatt.totals(run).total == pytest.approx(158777, rel=0.001)
    assert {row.phase for row in run.ledger} == {"score"}


def test_models_put_together_are_counted_as_what_they_hold():
    model = catboost.CatBoostClassifier(iterations=5, **_CAT).fit(Z, Z[:, 0] > 0.2)
    both = catboost.sum_models([model, model])
    one = bitwatt.totals(measured(lambda: model.predict(Z, "RawFormulaVal")))
    two = bitwatt.totals(measured(lambda: both.predict(Z, "RawFormulaVal")))
    assert not two.missing
    assert two.total == pytest.approx(2 * one.total, rel=0.1)  # of twice the trees


def test_columns_of_texts_beside_numbers_are_no_trouble():
    texts = np.array([["a b", 1.0], ["c", 2.0], ["a c", 0.5], ["b", 3.0]] * 20, dtype=object)
    pool = catboost.Pool(texts, [0, 1, 1, 0] * 20, text_features=[0])
    run = measured(lambda: (catboost.Pool(texts, text_features=[0]),
                            catboost.CatBoostClassifier(iterations=3, **_CAT).fit(pool)))  # fmt: skip
    assert not run.notes


def own_kernel(a, b):
    return a @ b.T


def own_distance(a, b):
    return float(np.abs(a - b).sum())


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (KernelRidge(kernel=lambda a, b: float(a @ b)), "sklearn.kernel.<lambda>"),
        (SVC(kernel=own_kernel), "sklearn.kernel.own_kernel"),
        (LabelPropagation(kernel=lambda a, b: np.exp(-cdist(a, b))), "sklearn.kernel.<lambda>"),
        (KNeighborsClassifier(metric=own_distance, algorithm="brute"), "sklearn.metric.own_distance"),
        (KNeighborsClassifier(metric=own_distance, algorithm="ball_tree"), "sklearn.metric.own_distance"),
    ],
)
def test_kernels_and_distances_of_the_programs_own_are_missing_by_name(model, named):
    model.fit(Z[:40], Z[:40, 0] > 0)
    for call in (lambda: model.fit(Z[:40], Z[:40, 0] > 0), lambda: model.predict(Z[:10])):
        assert named in {row.op.name for row in measured(call).ledger}
    assert named in bitwatt.totals(measured(lambda: model.predict(Z[:10]))).missing


def test_functions_of_libraries_as_kernels_are_not_missing():
    assert not bitwatt.totals(measured(lambda: SVC(kernel=rbf_kernel).fit(Z, Z[:, 0] > 0))).missing


@pytest.mark.parametrize("kind", [Lasso, ElasticNet, MultiTaskLasso])
def test_a_path_that_is_asked_of_the_class_is_missing_by_name(kind):
    targets = np.c_[Z[:, 0], Z[:, 1]] if kind is MultiTaskLasso else Z[:, 0]
    asked = measured(lambda: kind.path(Z, targets))
    assert [name.rpartition(".")[2] for name in bitwatt.totals(asked).missing] == ["path"]
    assert not bitwatt.totals(measured(lambda: kind().fit(Z, targets))).missing
    with bitwatt.measure("pickled", keep=False, meter=False):
        assert pickle.loads(pickle.dumps(kind.path)) is pickle.loads(pickle.dumps(kind.path))
        assert joblib.Parallel(2)(joblib.delayed(kind.path)(Z, targets) for _ in range(2))


def test_trees_with_linear_leaves_are_marked_where_they_predict():
    models = [lightgbm.LGBMRegressor(n_estimators=3, linear_tree=linear, **_LGB).fit(X, y) for linear in (False, True)]
    assert [bitwatt.totals(measured(lambda: m.predict(X))).coverage.estimated for m in models] == [0, 1]  # noqa: B023


def test_powers_of_missing_values_take_nothing():
    draws = np.random.RandomState(0)
    some = draws.randn(400, 4)
    some[draws.rand(400, 4) < 0.2] = np.nan
    model = PowerTransformer()
    for call, executed in ((lambda: model.fit(some), 2003023), (lambda: model.transform(some), 89614),
                           (lambda: model.inverse_transform(some), 90496)):  # fmt: skip
        assert bitwatt.totals(measured(call)).total == pytest.approx(executed, rel=0.05)
