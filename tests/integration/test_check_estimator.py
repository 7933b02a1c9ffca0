"""scikit-learn's own checks of its estimators give the same results with measuring on as off."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from sklearn.utils import all_estimators
from sklearn.utils._test_common.instance_generator import _construct_instances
from sklearn.utils.estimator_checks import estimator_checks_generator

import bitwatt

#: Enough to run with every change; all others are in make test-all.
SOME = {"ColumnTransformer", "GridSearchCV", "KMeans", "LogisticRegression", "Pipeline", "RandomForestClassifier"}


def outcomes(kind: type) -> dict[str, str]:
    found: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for estimator, check in estimator_checks_generator(next(iter(_construct_instances(kind))), mark=None):
            inner: Any = getattr(check, "func", check)
            name = f"{inner.__name__} {getattr(check, 'keywords', '')} {getattr(check, 'args', '')}"
            try:
                check(estimator)
                found[name] = "ok"
            except Exception as error:  # what is compared is whether and how a check fails
                found[name] = type(error).__name__
    return found


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in SOME else pytest.mark.slow) for n, _ in all_estimators()]
)
def test_checks_end_alike(name: str) -> None:
    kind = dict(all_estimators())[name]
    plain = outcomes(kind)
    with bitwatt.measure(keep=False):
        watched = outcomes(kind)
    assert watched == plain
