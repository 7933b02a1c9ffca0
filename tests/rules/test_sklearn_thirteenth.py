"""What a tester found beside the instrument, and what it executed there: 64-bit and 32-bit operations together, on AVX2
with one thread."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

import catboost
import lightgbm
import xgboost
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor

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
