"""Trees, forests, boosting: small cases by hand, and every measured fit beside what is counted for it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import bitwatt
from bitwatt.backends.sklearn.standins import stood_for
from bitwatt.formulas.boosting import binning
from bitwatt.formulas.trees import Columns, Criterion, Growth, best_splits, criterion, distinct_values, kinds_of_values
from executed import counted, estimators

pytest.importorskip("sklearn")
_LIBRARIES = ("sklearn.tree.", "sklearn.ensemble.", "xgboost.", "lightgbm.", "catboost.")
_ROWS = [row for row in estimators.rows() if row["cls"].startswith(_LIBRARIES) and not row.get("kept")]
#: Amounts that nobody can know exactly: how many values columns share, where sparse values lie, other trees' borders.
_ROUGH = ("rounded", "sparse", "gaps", "exact", "gblinear", "lossguide", "depthwise", "cat", "dart", "mae")


def _id(row: dict[str, Any]) -> str:
    return f"{row['name']}-{row['n']}x{row['f']}"


def _parameter(row: dict[str, Any]) -> Any:
    return pytest.param(row, id=_id(row), marks=[pytest.mark.slow] if row["n"] * row["f"] > 40_000 else [])


@pytest.mark.parametrize("row", [_parameter(row) for row in _ROWS])
def test_counts_what_was_executed(row: dict[str, Any]) -> None:
    pytest.importorskip(row["cls"].partition(".")[0])
    bound = 1.4 if any(word in row["name"].lower() for word in _ROUGH) else 1.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in estimators.cases(row):
            assert case.error <= bound or (case.method == "fit" and case.error <= 1.5 and case.estimated), case
            assert case.bops_error <= bound * 1.05, case


def test_one_split_by_hand() -> None:
    """Four samples, one feature, two classes, one split into two pure leaves."""
    from sklearn.tree import DecisionTreeClassifier

    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    _, run = counted(lambda: DecisionTreeClassifier().fit(X, [0, 0, 1, 1]))
    gini = 1 + 2 + 4 * 2 + 8 + 2
    search = 27 + 3 * (gini + 3) + 3 * 2 + 4  # the sort's logarithm, three positions, samples moved, differences
    split = gini + 8 + 2 * 2
    nodes = 2 * (4 + 2 + 2) + 3 * (2 + 2)
    assert bitwatt.totals(run).total == search + split + nodes + 4 + 4  # the sum of weights, the finiteness check


def test_min_samples_leaf_leaves_out_positions() -> None:
    growth = Growth(1, 3, 20, 1, 10, 5, 5, 0, ((1, 10),))
    one = Criterion(0, 0, 1, 0, value=0)
    counts = [sum(n for _, p, _, n in best_splits(growth, one, 1, Columns(), k).ops if p.bits == 64) for k in (1, 3)]
    assert counts == [27 + 9, 27 + 5]


def test_criteria_grow_with_classes_and_outputs() -> None:
    assert criterion("gini", 1, 4).judge - criterion("gini", 1, 2).judge == 10
    assert criterion("squared_error", 2, 0).move == 5


def test_distinct_values_invert() -> None:
    assert kinds_of_values(round(distinct_values(256, 40)), 256) == pytest.approx(40, rel=0.05)
    assert kinds_of_values(256, 256) == float("inf")


def test_a_forest_speaks_for_its_trees() -> None:
    from sklearn.ensemble import RandomForestClassifier

    X, y = np.random.RandomState(0).rand(60, 4), np.arange(60) % 2
    forest, run = counted(lambda: RandomForestClassifier(5, random_state=0).fit(X, y))
    assert [row.op.name for row in run.ledger] == ["sklearn.ensemble.RandomForestClassifier.fit"]
    _, run = counted(lambda: forest.predict(X))
    assert bitwatt.totals(run).total == 60 * 4 + 5 * 60 * 2 + 60 * 2


def test_a_warm_start_counts_new_trees_only() -> None:
    from sklearn.ensemble import RandomForestRegressor

    X = np.random.RandomState(0).rand(80, 4)
    y = X[:, 0] + np.random.RandomState(1).rand(80)
    forest = RandomForestRegressor(5, warm_start=True, random_state=0)
    _, first = counted(lambda: forest.fit(X, y))
    forest.set_params(n_estimators=10)
    _, second = counted(lambda: forest.fit(X, y))
    assert bitwatt.totals(second).total == pytest.approx(bitwatt.totals(first).total, rel=0.05)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_native_training_is_counted_like_the_estimator(library: str) -> None:
    module = pytest.importorskip(library)
    X, y = np.random.RandomState(0).rand(200, 5), np.random.RandomState(1).rand(200)
    native, estimator = {
        "xgboost": lambda: (
            lambda: module.train({"nthread": 1}, module.DMatrix(X, y), num_boost_round=4),
            module.XGBRegressor(n_estimators=4, n_jobs=1),
        ),
        "lightgbm": lambda: (
            lambda: module.train({"verbose": -1, "num_threads": 1}, module.Dataset(X, y), num_boost_round=4),
            module.LGBMRegressor(n_estimators=4, n_jobs=1, verbose=-1),
        ),
        "catboost": lambda: (
            lambda: module.train(module.Pool(X, y), {"iterations": 4, "verbose": 0, "allow_writing_files": False}),
            module.CatBoostRegressor(iterations=4, verbose=0, allow_writing_files=False),
        ),
    }[library]()
    _, trained = counted(native)
    _, fitted = counted(lambda: estimator.fit(X, y))
    assert [row.op.name.rpartition(".")[2] for row in trained.ledger] == ["train"]
    assert bitwatt.totals(trained).total == pytest.approx(bitwatt.totals(fitted).total, rel=0.02)
    assert not trained.notes
    assert stood_for(module.train) is None


@pytest.mark.parametrize("name", ["GradientBoostingRegressor", "HistGradientBoostingRegressor"])
def test_all_stages_cost_as_much_as_the_last(name: str) -> None:
    """Raw predictions go on from round to round; they are copied, not made anew."""
    import sklearn.ensemble

    X = np.random.default_rng(0).normal(size=(80, 4))
    model = getattr(sklearn.ensemble, name)(random_state=0).set_params(**_ROUNDS[name]).fit(X, X[:, 0])
    _, staged = counted(lambda: list(model.staged_predict(X)))
    _, last = counted(lambda: model.predict(X))
    assert bitwatt.totals(staged).total == bitwatt.totals(last).total


_ROUNDS = {"GradientBoostingRegressor": {"n_estimators": 6}, "HistGradientBoostingRegressor": {"max_iter": 6}}


def test_decisions_of_lightgbm_are_raw() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    X = np.random.default_rng(0).normal(size=(200, 4))
    model = lightgbm.LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(X, X[:, 0] > 0)
    _, run = counted(lambda: model.decision_function(X))
    assert bitwatt.totals(run).total == 200 * 5


def test_quantiles_of_weights_are_added_up_for_every_threshold() -> None:
    """32 bins have 31 thresholds between them, each from the sum of all weights."""
    plain, weighted = (binning(4, 4 * 32, 32, rows) for rows in (0.0, 400.0))
    assert weighted - plain == 4 * 31 * 400
    assert binning(4, 4 * 20, 255, 20.0) == 4 * (3 * 20 + 81)  # few values: the middle between them
