"""What the lab asks of a fitted estimator, whoever wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bitwatt.deploy.given import rows as rows_of


def parts(model: Any) -> Iterator[Any]:
    """It, and the estimators in it: steps of pipelines, transformers of columns, members of ensembles by name."""
    yield model
    children: list[Any] = []
    for name in ("steps", "transformers_", "transformer_list", "named_estimators_"):
        held = getattr(model, name, None)
        if isinstance(held, dict):
            children += held.values()
        elif isinstance(held, list):
            children += [entry[1] for entry in held if isinstance(entry, tuple) and len(entry) > 1]
    children += [getattr(model, name, None) for name in ("best_estimator_", "regressor_", "transformer_")]
    for child in children:
        if hasattr(child, "get_params"):
            yield from parts(child)


def last(model: Any) -> Any:
    """The step that predicts."""
    steps = getattr(model, "steps", None)
    if isinstance(steps, list) and steps:
        return last(steps[-1][1])
    best = getattr(model, "best_estimator_", None)
    return model if best is None else last(best)


def clusters(model: Any) -> bool:
    """Whether its labels are clusters: which number one has is chance, and says nothing of any class."""
    return hasattr(last(model), "cluster_centers_")


def is_a(model: Any, *names: str) -> bool:
    return bool({kind.__name__ for kind in type(model).__mro__} & set(names))


def limit(model: Any, threads: int) -> None:
    """So many threads, and no processes, whatever it was trained with."""
    for part in parts(model):
        if "n_jobs" in part.get_params(deep=False):
            part.set_params(n_jobs=threads)
        if hasattr(part, "get_booster"):
            part.get_booster().set_param("nthread", threads)
        if is_a(part, "CatBoost"):  # it predicts with as many as there are cores, whatever it was set to
            for method in ("predict", "predict_proba"):
                if hasattr(part, method):
                    setattr(part, method, _threaded(part, method, threads))
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)


def _threaded(part: Any, method: str, threads: int) -> Any:
    """The method of its class, looked up when it is called, so that who watches the class sees the call."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return getattr(type(part), method)(part, *args, **{"thread_count": threads, **kwargs})

    return call


def answer(model: Any, method: str, rows: Any) -> Any:
    """What the model says, on the host, in one array."""
    import numpy as np

    found = np.asarray(getattr(model, method)(rows))
    if method == "predict" and found.ndim == 2 and found.shape[1] == 1:  # CatBoost's labels stand in a column
        return found[:, 0]
    return found


def as_float32(rows: Any) -> Any:
    """Every number with a fraction in 32 bits."""
    if isinstance(rows, tuple):
        return tuple(as_float32(part) for part in rows)
    if rows_of.is_frame(rows):
        return rows.astype({name: "float32" for name, kind in rows.dtypes.items() if str(kind) == "float64"})
    return rows.astype("float32") if getattr(getattr(rows, "dtype", None), "kind", "") == "f" else rows
