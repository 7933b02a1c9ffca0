"""Models that find clusters: their numbers are chance, and no classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import studies
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bitwatt.deploy.given import loading
from bitwatt.deploy.judging import drifting
from bitwatt.deploy.telling.findings import found
from bitwatt.deploy.telling.tables import about

ROWS = np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture(params=[KMeans, lambda **known: make_pipeline(StandardScaler(), KMeans(**known))])
def model(request: pytest.FixtureRequest) -> Any:
    return request.param(n_clusters=4, n_init=1, random_state=0).fit(ROWS)


@pytest.mark.parametrize("labels", [np.arange(60) % 10, np.array(["cat", "dog"] * 30)])
def test_labels_may_be_others_than_the_clusters(model: Any, labels: Any) -> None:
    case = loading.case(model, ROWS, labels, metric="adjusted_rand_score")
    assert case.classes == (0, 1, 2, 3)


def test_the_report_counts_clusters(model: Any) -> None:
    case = loading.described(loading.case(model, ROWS, np.zeros(60, int)))
    told = about(found(studies.study(case=case), []))
    assert " · 60 rows · 3 features · 4 clusters · " in told
    assert " · 4 classes · " in about(found(studies.study(case={**case, "clusters": False}), []))


def test_clusters_are_not_judged_as_classes(model: Any) -> None:
    """All labels are 0: as classes, three of four would be missing."""
    checked = drifting.balance(loading.case(model, ROWS, np.zeros(60, int)))
    assert checked.passed is None
    assert "clusters" in checked.told
