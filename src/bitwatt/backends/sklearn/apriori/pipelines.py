"""Pipelines, unions and column transformers: shapes flow through them."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.registry import SAYS, assumes
from bitwatt.records import TensorSpec

_ALL = (*SAYS, "transform", "score", "inverse_transform")


def _is_step(step: Any) -> bool:
    return step is not None and not isinstance(step, str)


@assumes("pipeline.Pipeline", methods=("fit", "fit_transform", "fit_predict"))
def pipeline_fit(call: Call) -> dict[str, Any]:
    X: TensorSpec = call.X
    *before, (last, model) = call.estimator.steps
    for name, step in before:
        if _is_step(step):
            X = call.ask(step, "fit_transform", X, call.y, name=name) or X
    out: TensorSpec | None = X
    if _is_step(model):
        out = call.ask(model, call.method, X, call.y, name=last)
    call.extra["_out"] = out
    return {}


@assumes("pipeline.Pipeline", methods=_ALL)
def pipeline_says(call: Call) -> dict[str, Any]:
    X: TensorSpec = call.X
    *before, (last, model) = call.estimator.steps
    if call.method == "inverse_transform":
        for name, step in reversed(call.estimator.steps):
            X = call.ask(step, "inverse_transform", X, name=name) or X if _is_step(step) else X
        call.extra["_out"] = X
        return {}
    for name, step in before:
        if _is_step(step):
            X = call.ask(step, "transform", X, name=name) or X
    call.extra["_out"] = call.ask(model, call.method, X, call.y, name=last) if _is_step(model) else X
    return {}


def _joined(rows: int, parts: list[TensorSpec]) -> TensorSpec:
    """Side by side; sparse where any is and they are not dense all in all, as scikit-learn decides by 0.3."""
    width = sum(one.shape[1] if len(one.shape) > 1 else 1 for one in parts)
    stored = sum(one.numel if one.nnz is None else one.nnz for one in parts)
    sparse = any(one.nnz is not None for one in parts) and stored < 0.3 * max(rows * width, 1)
    kind = "float32" if parts and all(one.dtype == "float32" for one in parts) else "float64"
    return TensorSpec((rows, width), kind, stored if sparse else None)


def _method(call: Call) -> str:
    return "transform" if call.method == "transform" else "fit_transform"


@assumes("pipeline.FeatureUnion", methods=("fit", "fit_transform", "transform"))
def union(call: Call) -> dict[str, Any]:
    parts = list[TensorSpec]()
    for name, step in call.estimator.transformer_list:
        if step == "passthrough":
            parts.append(call.X)
        elif _is_step(step):
            out = call.ask(step, "fit" if call.method == "fit" else _method(call), call.X, call.y, name=name)
            parts += [out] if out is not None else []
    joined = _joined(call.rows, parts)
    call.extra["_out"] = joined if call.method != "fit" else None
    return {}


def _width(call: Call, columns: Any) -> int:
    if isinstance(columns, (str, int)):
        return 1
    if isinstance(columns, slice):
        numbers = all(end is None or isinstance(end, int) for end in (columns.start, columns.stop))
        return len(range(*columns.indices(call.columns))) if numbers else _assumed(call)
    if callable(columns):
        return _assumed(call)
    values = list(columns)
    return sum(values) if values and all(isinstance(one, bool) for one in values) else len(values)


def _assumed(call: Call) -> int:
    share = float(call.assume("columns", 0.5, "share of X that a selector picks"))
    return max(round(share * call.columns), 1)


@assumes("compose.ColumnTransformer", methods=("fit", "fit_transform", "transform"))
def columns(call: Call) -> dict[str, Any]:
    parts, left = list[TensorSpec](), call.columns
    listed = list(call.estimator.transformers)
    chosen = [(name, step, _width(call, which), isinstance(which, str)) for name, step, which in listed]
    left -= sum(width for _, _, width, _ in chosen)
    chosen.append(("remainder", call.get("remainder", "drop"), max(left, 0), False))
    for name, step, width, single in chosen:
        stored = None if call.X.nnz is None else round(call.X.nnz * width / max(call.columns, 1))
        inside = TensorSpec((call.rows,) if single else (call.rows, width), call.X.dtype, stored)
        if step == "passthrough":
            parts.append(inside)
        elif _is_step(step) and width:
            out = call.ask(step, _method(call), inside, call.y, name=name)
            parts += [out] if out is not None else []
    call.extra["_out"] = _joined(call.rows, parts)
    return {}
