"""Calls of XGBoost, LightGBM and CatBoost that an estimator and its data do not describe: native training, evaluation
sets, continued training, options of predictions.

    FPCOUNT_OUT=BUILD DIR/fpcount python benchmarks/accuracy/booster_calls.py OUT      # counts what each executes

What was executed is kept in tests/data/boosters_executed.jsonl; tests/rules/test_boosters.py holds rules against it.
"""

from __future__ import annotations

import itertools
import json
import sys
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from estimator_data import classification, regression

Call = Callable[[], Any]
#: Rows, columns and seed: what the calls were written with, and a second draw of data.
FIRST, SECOND = (400, 8, 0), (1130, 13, 5)
Size = tuple[int, int, int]
XGB = {"n_estimators": 10, "n_jobs": 1}
LGB = {"n_estimators": 10, "n_jobs": 1, "verbose": -1}
CAT = {"iterations": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}
NATIVE = {"xgb": {"nthread": 1, "max_depth": 4}, "lgb": {"verbose": -1, "num_threads": 1}}


@cache
def data(size: Size = FIRST) -> dict[str, Any]:
    n, f, seed = size
    X, two = classification(n, f, seed=seed)
    R, y = regression(n, f, seed=seed)
    random = np.random.RandomState(seed)
    return {
        "X": X, "two": two, "three": classification(n, f, classes=3, seed=seed)[1], "R": R, "y": y,
        "held": classification(300, f, seed=seed + 1), "held_y": regression(300, f, seed=seed + 1),
        "queries": np.repeat(np.arange(n // 10), 10), "labels": random.randint(0, 3, n),
        "kinds": random.randint(0, 12, n), "weights": np.linspace(0.5, 1, n),
    }  # fmt: skip


def _frame(known: dict[str, Any]) -> Any:
    import pandas as pd

    return pd.DataFrame(known["R"]).assign(kind=pd.Categorical(known["kinds"]))


def _rows(known: dict[str, Any]) -> list[list[Any]]:
    return [[*row, str(kind)] for row, kind in zip(known["R"].tolist(), known["kinds"], strict=True)]


def xgboost_calls(size: Size = FIRST) -> dict[str, Call]:
    import xgboost as xgb

    d = data(size)
    X, R, y, two, three = d["X"], d["R"], d["y"], d["two"], d["three"]
    numbers, classes = partial(xgb.XGBRegressor, **XGB), partial(xgb.XGBClassifier, **XGB)
    fitted = numbers().fit(R, y)
    booster, matrix = fitted.get_booster(), xgb.DMatrix(R, y)
    stopped = numbers(early_stopping_rounds=2, learning_rate=1.0).fit(R, y, eval_set=[d["held_y"]], verbose=False)
    ranker = xgb.XGBRanker(**XGB).fit(X, d["labels"], qid=d["queries"])
    quiet = {"verbose": False}

    def loop() -> Any:
        made = xgb.Booster(NATIVE["xgb"], [matrix])
        for i in range(5):
            made.update(matrix, i)
        return made

    return {
        "eval": lambda: numbers().fit(R, y, eval_set=[d["held_y"]], **quiet),
        "eval classes": lambda: classes().fit(X, two, eval_set=[d["held"]], **quiet),
        "eval auc": lambda: classes(eval_metric="auc").fit(X, two, eval_set=[d["held"]], **quiet),
        "eval three": lambda: classes().fit(X, three, eval_set=[(d["held"][0], three[:300])], **quiet),
        "early stopping": lambda: numbers(early_stopping_rounds=2, learning_rate=1.0).fit(
            R, y, eval_set=[d["held_y"]], **quiet),
        "continued": lambda: numbers().fit(R, y, xgb_model=booster),
        "weights": lambda: numbers().fit(R, y, sample_weight=d["weights"]),
        "categories": lambda: numbers(enable_categorical=True).fit(_frame(d), y),
        "two targets": lambda: numbers().fit(R, np.c_[y, 2 * y]),
        "vector leaves": lambda: numbers(multi_strategy="multi_output_tree").fit(R, np.c_[y, 2 * y]),
        "monotone": lambda: numbers(monotone_constraints=(1,) * size[1]).fit(R, y),
        "poisson": lambda: numbers(objective="count:poisson").fit(R, np.abs(y) / 100),
        "hinge": lambda: numbers(objective="binary:hinge").fit(R, two),
        "linear": lambda: numbers(booster="gblinear").fit(R, y),
        "rank": lambda: xgb.XGBRanker(**XGB).fit(X, d["labels"], qid=d["queries"]),
        "rank predict": lambda: ranker.predict(X),
        "train": lambda: xgb.train(NATIVE["xgb"], matrix, 5),
        "cv": lambda: xgb.cv(NATIVE["xgb"], matrix, 3, nfold=3),
        "update": loop,
        "forest": lambda: xgb.XGBRFRegressor(**XGB).fit(R, y),
        "predict": lambda: booster.predict(matrix),
        "predict some": lambda: booster.predict(matrix, iteration_range=(0, 4)),
        "predict in place": lambda: booster.inplace_predict(R),
        "predict leaves": lambda: booster.predict(matrix, pred_leaf=True),
        "predict best": lambda: stopped.predict(R),
        "predict margin": lambda: classes().fit(X, two).get_booster().predict(xgb.DMatrix(X), output_margin=True),
    }  # fmt: skip


def lightgbm_calls(size: Size = FIRST) -> dict[str, Call]:
    import lightgbm as lgb

    d = data(size)
    X, R, y, two, three = d["X"], d["R"], d["y"], d["two"], d["three"]
    numbers, classes = partial(lgb.LGBMRegressor, **LGB), partial(lgb.LGBMClassifier, **LGB)
    fitted, told = numbers().fit(R, y), classes().fit(X, two)
    options = NATIVE["lgb"]
    dataset = partial(lgb.Dataset, R, y)
    queries = [10] * (size[0] // 10)

    def loop() -> Any:
        made = lgb.Booster(options, dataset())
        for _ in range(5):
            made.update()
        return made

    return {
        "eval": lambda: numbers().fit(R, y, eval_set=[d["held_y"]]),
        "eval classes": lambda: classes().fit(X, two, eval_set=[d["held"]]),
        "eval three": lambda: classes().fit(X, three, eval_set=[(d["held"][0], three[:300])]),
        "continued": lambda: numbers().fit(R, y, init_model=fitted),
        "weights": lambda: numbers().fit(R, y, sample_weight=d["weights"]),
        "categories": lambda: numbers().fit(_frame(d), y),
        "rank": lambda: lgb.LGBMRanker(**LGB).fit(X, d["labels"], group=queries),
        "rank xendcg": lambda: lgb.LGBMRanker(**LGB, objective="rank_xendcg").fit(X, d["labels"], group=queries),
        "goss": lambda: numbers(data_sample_strategy="goss", learning_rate=0.5).fit(R, y),
        "dart": lambda: numbers(boosting_type="dart").fit(R, y),
        "forest": lambda: numbers(boosting_type="rf", subsample=0.6, subsample_freq=1).fit(R, y),
        "quantised": lambda: numbers(use_quantized_grad=True).fit(R, y),
        "linear": lambda: numbers(linear_tree=True).fit(R, y),
        "extra": lambda: numbers(extra_trees=True).fit(R, y),
        "tweedie": lambda: numbers(objective="tweedie").fit(R, np.abs(y) / 100 + 0.1),
        "train": lambda: lgb.train(options, dataset(), 5, valid_sets=[lgb.Dataset(*d["held_y"])]),
        "cv": lambda: lgb.cv(options, dataset(), 3, nfold=3, stratified=False),
        "update": loop,
        "refit": lambda: fitted.booster_.refit(R, y),
        "predict": lambda: fitted.booster_.predict(R),
        "predict some": lambda: fitted.predict(R, num_iteration=4),
        "predict raw": lambda: told.predict(X, raw_score=True),
        "predict leaves": lambda: fitted.predict(R, pred_leaf=True),
    }


def catboost_calls(size: Size = FIRST) -> dict[str, Call]:
    import catboost as cat

    d = data(size)
    X, R, y, two, three = d["X"], d["R"], d["y"], d["two"], d["three"]
    numbers, classes = partial(cat.CatBoostRegressor, **CAT), partial(cat.CatBoostClassifier, **CAT)
    fitted, pool = numbers().fit(R, y), cat.Pool(R, y)
    trees = {
        "plain": {}, "shallow": {"depth": 2}, "deep": {"depth": 8}, "few borders": {"border_count": 32},
        "ordered": {"boosting_type": "Ordered"}, "ordered shallow": {"boosting_type": "Ordered", "depth": 2},
        "l2": {"score_function": "L2"}, "some features": {"rsm": 0.5}, "depthwise": {"grow_policy": "Depthwise"},
        "lossguide": {"grow_policy": "Lossguide", "max_leaves": 8}, "mae": {"loss_function": "MAE"},
    }  # fmt: skip
    calls: dict[str, Call] = {
        name: (lambda options=options: numbers(**options).fit(R, y)) for name, options in trees.items()
    }
    return calls | {
        "pool": lambda: numbers().fit(pool),
        "more rows": lambda: numbers(boosting_type="Ordered").fit(*regression(5 * size[0], size[1])),
        "eval": lambda: numbers().fit(R, y, eval_set=d["held_y"]),
        "continued": lambda: numbers().fit(R, y, init_model=fitted),
        "classes": lambda: classes().fit(X, two),
        "three": lambda: classes().fit(X, three),
        "two targets": lambda: numbers(loss_function="MultiRMSE").fit(R, np.c_[y, 2 * y]),
        "rank": lambda: cat.CatBoostRanker(**CAT).fit(X, d["labels"], group_id=d["queries"]),
        "categories": lambda: numbers(cat_features=[size[1]]).fit(_rows(d), y),
        "train": lambda: cat.train(pool, CAT | {"loss_function": "RMSE"}),
        "cv": lambda: cat.cv(cat.Pool(R, y), CAT | {"loss_function": "RMSE"}, fold_count=3, logging_level="Silent"),
        "quantise": lambda: cat.Pool(R, y).quantize(),
        "importance": lambda: fitted.get_feature_importance(),
        "leaves": lambda: fitted.calc_leaf_indexes(R),
        "staged": lambda: list(fitted.staged_predict(R)),
        "predict some": lambda: fitted.predict(R, ntree_end=2),
        "score": lambda: fitted.score(R, y),
    }


LIBRARIES: dict[str, Callable[[Size], dict[str, Call]]] = {
    "xgboost": xgboost_calls, "lightgbm": lightgbm_calls, "catboost": catboost_calls,
}  # fmt: skip


def main() -> None:
    import fpcount  # the instrument puts it on the path

    warnings.simplefilter("ignore")
    with Path(sys.argv[1]).open("a") as file:
        for (library, calls), size in itertools.product(LIBRARIES.items(), (FIRST, SECOND)):
            for name, call in calls(size).items():
                _, count = fpcount.measure(call)
                row = {"library": library, "name": name, "size": size, "f64": count.f64, "f32": count.f32}
                file.write(json.dumps(row) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
