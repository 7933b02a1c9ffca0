"""XGBoost, LightGBM and CatBoost: native calls beside what they executed, and what is named where it is not counted."""

from __future__ import annotations

import json
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bitwatt
from bitwatt.backends.sklearn.standins import stood_for

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "accuracy"))

import booster_calls

ROOT = Path(__file__).parents[2]
_ROWS = [json.loads(line) for line in (ROOT / "tests" / "data" / "boosters_executed.jsonl").read_text().splitlines()]
#: Amounts that other settings than the trees decide: which columns are categories, where leaves end, what is drawn.
_ROUGH = {"categories", "two targets", "linear", "extra", "depthwise", "refit", "staged", "score", "goss", "importance"}


@cache
def _calls(library: str, size: tuple[int, int, int] = booster_calls.FIRST) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return booster_calls.LIBRARIES[library](size)


def _run(call: Any) -> tuple[Any, bitwatt.Run]:
    with warnings.catch_warnings(), bitwatt.measure(keep=False) as session:
        warnings.simplefilter("ignore")
        result = call()
    assert session.run is not None
    return result, session.run


@pytest.mark.parametrize("row", _ROWS, ids=lambda row: f"{row['library']} {row['name']} {row['size'][0]}")
def test_calls_count_what_they_execute(row: dict[str, Any]) -> None:
    pytest.importorskip(row["library"])
    _, run = _run(_calls(row["library"], tuple(row["size"]))[row["name"]])
    totals, executed = bitwatt.totals(run), row["f64"] + row["f32"]
    assert not totals.missing
    assert not run.notes
    bound = 1.5 if row["name"] in _ROUGH else 1.13
    if executed < 200:  # leaves are found by comparisons
        assert totals.total == 0
    else:
        assert 1 / bound <= totals.total / executed <= bound
        bops = bitwatt.totals(run, "bops").total / (64 * row["f64"] + 32 * row["f32"])
        assert 1 / bound <= bops <= bound


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_updates_in_a_loop_are_one_training(library: str) -> None:
    pytest.importorskip(library)
    booster, run = _run(_calls(library)["update"])
    assert [(row.op.name, row.calls) for row in run.ledger] == [(f"{library}.Booster.train", 1)]
    assert dict(next(iter(run.ledger)).op.args)["boost_rounds"] == 5
    assert stood_for(type(booster).update) is None


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_a_cross_validation_is_a_training_for_each_fold(library: str) -> None:
    pytest.importorskip(library)
    _, run = _run(_calls(library)["cv"])
    assert sum(row.calls for row in run.ledger) == 3
    assert {row.scope for row in run.ledger} == {"cv"}


def test_a_continued_training_counts_new_trees_only() -> None:
    xgboost = pytest.importorskip("xgboost")
    known = booster_calls.data()
    first = xgboost.XGBRegressor(n_estimators=10, n_jobs=1).fit(known["R"], known["y"])
    _, run = _run(lambda: xgboost.XGBRegressor(n_estimators=3, n_jobs=1).fit(known["R"], known["y"], xgb_model=first))
    facts = dict(next(iter(run.ledger)).op.args)
    assert (facts["boost_rounds"], facts["boost_new"]) == (13, 3)


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.parametrize("rounds", [60, 97])
def test_long_trainings_are_read_in_whole_steps(booster: str, rounds: int) -> None:
    """XGBoost writes beyond the end of a slice whose last step is not whole, and may take the program with it."""
    xgboost = pytest.importorskip("xgboost")
    known = booster_calls.data()
    model = xgboost.XGBRegressor(n_estimators=rounds, booster=booster, max_depth=2, n_jobs=1)
    _, run = _run(lambda: model.fit(known["R"], known["y"]).predict(known["R"]))
    assert run.notes == ()
    facts = {row.op.name.rpartition(".")[2]: dict(row.op.args) for row in run.ledger}
    assert facts["fit"]["boost_trees"] == facts["predict"]["boost_trees"] == rounds
    assert facts["fit"]["boost_sampled"]


def test_a_booster_that_learns_more_between_predictions_is_read_again() -> None:
    xgboost = pytest.importorskip("xgboost")
    known = booster_calls.data()
    matrix = xgboost.DMatrix(known["R"], known["y"])

    def grow() -> None:
        booster = xgboost.Booster({"nthread": 1}, [matrix])
        for i in range(3):
            booster.update(matrix, i)
            booster.predict(xgboost.DMatrix(known["R"]))

    _, run = _run(grow)
    predictions = [row for row in run.ledger if row.op.name.endswith("predict")]
    assert sorted(dict(row.op.args)["boost_trees"] for row in predictions) == [1, 2, 3]


@pytest.mark.parametrize(("library", "called"), [("xgboost", "mine"), ("lightgbm", "mine"), ("catboost", "Mine")])
def test_an_objective_of_ones_own_is_named(library: str, called: str) -> None:
    name = f"{library}.objective.{called}"
    module = pytest.importorskip(library)
    X, y = np.random.RandomState(0).rand(60, 3), np.random.RandomState(1).rand(60)

    def mine(first: Any, second: Any) -> tuple[Any, Any]:
        predicted, truth = (second, first) if library == "lightgbm" else (first, y)
        return predicted - truth, np.ones(60)

    class Mine:
        def calc_ders_range(self, approxes: Any, targets: Any, weights: Any) -> list[tuple[float, float]]:
            return [(truth - one, -1.0) for one, truth in zip(approxes, targets, strict=True)]

    calls = {
        "xgboost": lambda: module.train({"nthread": 1}, module.DMatrix(X, y), 3, obj=mine),
        "lightgbm": lambda: module.LGBMRegressor(n_estimators=3, n_jobs=1, verbose=-1, objective=mine).fit(X, y),
        "catboost": lambda: module.CatBoostRegressor(
            iterations=3, verbose=0, allow_writing_files=False, loss_function=Mine(), eval_metric="RMSE"
        ).fit(X, y),
    }
    _, run = _run(calls[library])
    totals = bitwatt.totals(run)
    assert totals.missing == {name: 1 if library == "catboost" else 3}
    assert totals.total > 0


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "catboost"])
def test_contributions_of_features_are_missing_with_a_reason(library: str) -> None:
    module = pytest.importorskip(library)
    X, y = np.random.RandomState(0).rand(60, 3), np.random.RandomState(1).rand(60)
    calls = {
        "xgboost": lambda: module.train({"nthread": 1}, module.DMatrix(X, y), 3).predict(
            module.DMatrix(X), pred_contribs=True
        ),
        "lightgbm": lambda: module.LGBMRegressor(n_estimators=3, verbose=-1).fit(X, y).predict(X, pred_contrib=True),
        "catboost": lambda: (
            module.CatBoostRegressor(iterations=3, verbose=0, allow_writing_files=False)
            .fit(X, y)
            .get_feature_importance(module.Pool(X, y), type="ShapValues")
        ),
    }
    _, run = _run(calls[library])
    entries = [entry for entry in bitwatt.totals(run).entries if entry.status == "missing"]
    assert [entry.row.calls for entry in entries] == [1]
    assert "depend" in entries[0].reason


def test_training_on_a_gpu_is_missing_with_a_reason() -> None:
    from bitwatt import Op
    from bitwatt.rules.xgboost import fit

    with pytest.raises(ValueError, match="cuda"):
        fit(boost_device="cuda:0", boost_rounds=1)
    _, run = _run(_calls("xgboost")["train"])
    row = next(iter(run.ledger))
    moved = Op(row.op.name, (*row.op.args, ("boost_device", "cuda")), row.op.out)
    ledger = type(run.ledger)()
    ledger.add("fit", "train", moved, 1)
    assert bitwatt.totals(ledger).missing == {"xgboost.Booster.train": 1}
