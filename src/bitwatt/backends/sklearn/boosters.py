"""XGBoost, LightGBM and CatBoost beyond scikit-learn's classes: their `train` functions, boosters, and CatBoost, whose
estimators are nobody's children."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from bitwatt.backends.sklearn import methods
from bitwatt.backends.sklearn.frames import STACK, Frame
from bitwatt.context import current
from bitwatt.imports import when_imported

if TYPE_CHECKING:
    from bitwatt.backends.sklearn.watch import EstimatorWatch

#: Library -> modules that hold its `train` under that name, and classes whose methods are wrapped by name.
_TRAIN = {
    "xgboost": ("xgboost", "xgboost.training", "xgboost.sklearn"),
    "lightgbm": ("lightgbm", "lightgbm.engine", "lightgbm.sklearn"),
    "catboost": ("catboost", "catboost.core"),
}
_CLASSES = {
    "xgboost": ("Booster",),
    "lightgbm": ("Booster",),
    "catboost": ("CatBoost", "CatBoostClassifier", "CatBoostRegressor", "CatBoostRanker"),
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
            undo += methods.wrap(watch, kind)
    for name in _TRAIN[library]:
        module = sys.modules.get(name)
        original = getattr(module, "train", None)
        if module is None or original is None or hasattr(original, "__bitwatt_original__"):
            continue
        ours = _watched(watch, original)
        module.train = ours  # type: ignore[attr-defined]
        undo.append(functools.partial(_put_back, module, ours, original))


def _put_back(module: Any, ours: Any, original: Any) -> None:
    if module.train is ours:
        module.train = original


def _watched(watch: EstimatorWatch, function: Any) -> Any:
    @functools.wraps(function)
    def train(*args: Any, **kwargs: Any) -> Any:
        context = current() if watch.on else None
        frames = STACK.get()
        above = frames[-1] if frames else None
        if context is None or (above is not None and above.silent):
            return function(*args, **kwargs)
        scope = f"{above.scope}.train" if above is not None else "train"
        frame = Frame(None, "train", above.phase if above is not None else "fit", scope, silent=True)
        reset = STACK.set((*frames, frame))
        try:
            booster = function(*args, **kwargs)
        finally:
            STACK.reset(reset)
        frame.estimator = booster
        watch.record(frame, function, (), _shape(args, kwargs), booster, context)
        return booster

    train.__bitwatt_original__ = function  # type: ignore[attr-defined]
    return train


def _shape(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, int]:
    """Rows and columns of the data set among the arguments, which every library calls differently."""
    for value in (*args, *kwargs.values()):
        for rows, columns in (("num_row", "num_col"), ("num_data", "num_feature")):
            if hasattr(value, rows) and hasattr(value, columns):
                return {"rows": int(getattr(value, rows)()), "columns": int(getattr(value, columns)())}
    return {}
