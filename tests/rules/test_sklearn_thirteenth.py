"""What a tester found beside the instrument, and what it executed there: 64-bit and 32-bit operations together, on AVX2
with one thread."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor

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
