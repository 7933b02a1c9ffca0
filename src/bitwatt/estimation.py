"""estimate(): the count before anything is computed: on fake tensors for torch, from shapes for estimators, from the
graph for ONNX models."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bitwatt.errors import BitwattError
from bitwatt.records import Run


def estimate(fn: Callable[..., Any] | Any, /, *args: Any, **kwargs: Any) -> Run:
    """Count what `fn(*args, **kwargs)` would run. Tensors, modules and optimizers among the arguments are replaced by
    fakes; build large models inside `fn`, where they take no memory either. The run is returned, not kept.

    An estimator of scikit-learn, XGBoost, LightGBM or CatBoost is not fitted: `estimate(estimator, X, y)` takes shapes,
    or arrays for their shapes, and states in the run's notes what it had to assume. See `estimate_estimator`.

    An ONNX model (a path to a .onnx file, its bytes or a ModelProto) is counted from its graph:
    `estimate("model.onnx", batch=8)`, `estimate(model, shapes={"input": (8, 3, 224, 224)})`."""
    if _is_onnx(fn):
        return estimate_onnx(fn, *args, **kwargs)
    if hasattr(fn, "get_params") and hasattr(fn, "fit"):
        return estimate_estimator(fn, *args, **kwargs)
    if not callable(fn):
        raise BitwattError(f"estimate takes a function, an estimator or an ONNX model, not {type(fn).__name__}")
    from bitwatt.backends.torch.fake import run_on_fakes
    from bitwatt.session import measure

    name = getattr(fn, "__name__", type(fn).__name__)
    measured = measure(name, keep=False, command=f"estimate({name})", fakes=True)
    with run_on_fakes(fn, args, kwargs) as call, measured as session:
        call()
    run: Run = session.run
    return run


def _is_onnx(model: Any) -> bool:
    """A file, or what onnx makes of it, which need not be imported to tell."""
    if isinstance(model, (str, bytes, bytearray, os.PathLike)):
        return True
    return type(model).__name__ == "ModelProto" and type(model).__module__.partition(".")[0] == "onnx"


def estimate_onnx(
    model: Any, /, *, batch: int | None = None, shapes: Mapping[str, Sequence[int] | int] | None = None
) -> Run:
    """What one call of an ONNX model computes, by its graph as it stands. See docs/guides/onnx.md."""
    if batch is not None and batch < 1:
        raise BitwattError(f"a batch of {batch} computes nothing: it is 1 or more")
    try:
        from bitwatt.backends.onnx import count
    except ImportError as error:
        raise BitwattError(f"counting an ONNX model needs the package onnx: {error}") from error
    return count(model, shapes, batch)


def estimate_estimator(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    methods: Any = ("fit",),
    classes: int | None = None,
    dtype: Any = None,
    nnz: int | None = None,
    density: float | None = None,
    assume: Mapping[str, Any] | None = None,
) -> Run:
    """What an estimator's methods would compute on data of this shape.

    `X` and `y` are shapes, arrays (whose values are not read, but for the number of classes in `y`) or TensorSpecs.
    `methods` are names, or pairs of a name and the shape that it is called with. `nnz` or `density` make `X` sparse.
    `assume` replaces assumptions by name, for one class or step as `"LogisticRegression.n_iter"`.
    """
    from bitwatt.backends.sklearn.apriori import given, load
    from bitwatt.backends.sklearn.apriori.call import Walk
    from bitwatt.backends.sklearn.names import PHASES
    from bitwatt.machine import describe

    if isinstance(estimator, type):
        raise BitwattError(f"{estimator.__name__} is a class; pass an estimator: {estimator.__name__}(...)")
    load()
    started, clock = datetime.now(UTC), time.perf_counter()
    given.check_classes(classes)
    given.check_assumed(assume or {})
    format_ = given.format_of(dtype)
    data = given.data_of(X, format_, nnz, density)
    walk = Walk(classes=classes or given.labels_in(estimator, y), given=dict(assume or {}))
    target = given.target_of(estimator, y, data)
    given.check_fit(estimator, data, target)
    for method, other in given.methods_of(methods, format_, density):
        if other is not None and PHASES[method] != "fit":
            given.check_columns(f"{type(estimator).__name__}.{method}", data, other)
        about = target if other is None else given.target_of(estimator, None, other)
        walk.call(estimator, method, other or data, about)
    if unused := [key for key in walk.given if key not in walk.asked]:
        asked = ", ".join(sorted(walk.asked)) or "nothing"
        raise BitwattError(f"assume: nobody asked for {', '.join(map(repr, unused))}; asked for was {asked}")
    name = type(estimator).__name__
    return Run(
        id=f"{started:%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        name=name,
        started=started.isoformat(timespec="milliseconds"),
        seconds=time.perf_counter() - clock,
        ledger=walk.ledger,
        machine=describe(),
        layers=walk.layers,
        command=f"estimate({name})",
        notes=tuple(walk.notes),
    )
