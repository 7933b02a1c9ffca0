"""XGBoost, LightGBM and CatBoost beyond scikit-learn's classes: their `train` functions, boosters, and CatBoost, whose
estimators are nobody's children."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn import datasets, methods, rounds
from bitwatt.backends.sklearn.frames import TOP, framed
from bitwatt.backends.sklearn.standins import is_at_work, put_back, standing_in, stood_for
from bitwatt.context import current, phase_path
from bitwatt.imports import when_imported
from bitwatt.ledger import Row
from bitwatt.records import Op

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

#: Library -> modules that hold its `train` and `cv` under these names, and classes whose methods are wrapped by name.
_TRAIN = {
    "xgboost": ("xgboost", "xgboost.training", "xgboost.sklearn"),
    "lightgbm": ("lightgbm", "lightgbm.engine", "lightgbm.sklearn"),
    "catboost": ("catboost", "catboost.core"),
}
_CLASSES = {
    "xgboost": ("Booster",),
    "lightgbm": ("Booster",),
    "catboost": ("CatBoost", "CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker", "Pool"),
}


def install(watch: EstimatorWatch, libraries: Iterable[str] = tuple(_TRAIN)) -> list[Callable[[], None]]:
    """Wrap what is imported, and what will be."""
    undo: list[Callable[[], None]] = []
    stops = [when_imported(library, functools.partial(_attach, watch, library, undo)) for library in libraries]

    def restore() -> None:
        while undo:
            undo.pop()()

    return [*stops, restore]


def _attach(watch: EstimatorWatch, library: str, undo: list[Callable[[], None]]) -> None:
    for name in _CLASSES[library]:
        kind = getattr(sys.modules[library], name, None)
        if isinstance(kind, type):
            undo += methods.wrap(watch, kind) + rounds.install(watch, library, kind)
    for name in datasets.CLASSES[library]:
        kind = getattr(sys.modules[library], name, None)
        if isinstance(kind, type):
            undo.append(datasets.install(watch, kind))
    for name in _TRAIN[library]:
        module = sys.modules.get(name)
        for called, watched in (("train", _watched), ("cv", _validated)):
            original = getattr(module, called, None)
            if original is None or is_at_work(original):
                continue
            original = stood_for(original) or original
            ours = standing_in(original, watched(watch, original), module, called, watch)
            setattr(module, called, ours)
            undo.append(functools.partial(put_back, module, called, ours, original))


def _watched(watch: EstimatorWatch, function: Any) -> Any:
    def train(*args: Any, **kwargs: Any) -> Any:
        context = current() if watch.on else None
        above = TOP.get()
        if context is None or (above is not None and above.silent):
            return function(*args, **kwargs)
        scope = f"{above.scope}.train" if above is not None else "train"
        frame = framed(None, "train", above.phase if above is not None else "fit", scope, silent=True)
        reset = TOP.set(frame)
        try:
            booster = function(*args, **kwargs)
        finally:
            TOP.reset(reset)
        frame.estimator = booster
        about: dict[str, Any] = {}
        try:
            about, seen = datasets.told(datasets.among(args, kwargs))
            frame.probes.update(dict.fromkeys(seen, 1))
        except Exception as error:  # the training comes first
            watch.lost("train", error)
        watch.record(frame, watch.plan(type(booster), "train", function), (), about, booster, context)
        return booster

    return train


def _validated(watch: EstimatorWatch, function: Any) -> Any:
    """The folds of a cross-validation are boosters that are updated in turn; CatBoost's are nowhere to be seen."""

    def cv(*args: Any, **kwargs: Any) -> Any:
        context = current() if watch.on else None
        above = TOP.get()
        if context is None or (above is not None and above.silent):
            return function(*args, **kwargs)
        scope = f"{above.scope}.cv" if above is not None else "cv"
        frame = framed(None, "cv", above.phase if above is not None else "fit", scope)
        reset = TOP.set(frame)
        try:
            result = function(*args, **kwargs)
        finally:
            TOP.reset(reset)
            rounds.settle(watch, context.token)
        if function.__module__.startswith("catboost"):
            known = _folds(function, args, kwargs, result)
            phase = phase_path(frame.phase, context.phases, context.phases)
            watch.add(context, [Row(phase, scope, Op("catboost.cv", known), 1)], {scope: "cv"}, ())
        return result

    return cv


def _folds(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> tuple[tuple[str, Any], ...]:
    """What CatBoost was asked to validate: its folds are trained where nobody sees them."""
    given = inspect.signature(function).bind(*args, **kwargs).arguments
    options = given.get("params") or {}
    found: dict[str, Any] = {name: value for name, value in options.items() if isinstance(value, (str, int, float))}
    data: Any = given.get("pool") or given.get("dtrain")
    scores = result[0] if isinstance(result, tuple) else result
    found |= datasets.told(data)[0]
    folds = given.get("folds")
    found["folds"] = (
        len(folds) if isinstance(folds, (list, tuple)) else given.get("fold_count", given.get("nfold")) or 3
    )
    found["trees"] = int(max(scores["iterations"])) + 1 if "iterations" in scores else len(next(iter(scores.values())))
    found["kinds"] = len(data.get_cat_feature_indices()) if hasattr(data, "get_cat_feature_indices") else 0
    return (*found.items(), ("inverted", bool(given.get("inverted"))))
