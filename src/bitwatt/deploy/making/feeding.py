"""From rows as users have them to the inputs of an ONNX graph, and from its output to the shape of the native one.

Part of every prediction and timed with it, so it does no more than it must. A feed is plain data: it is kept with the
artefact and read by a process that has onnxruntime and numpy, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bitwatt.deploy.given import rows as rows_of

#: numpy's names for what feeds say.
KINDS = {"float": "float32", "double": "float64", "half": "float16", "int64": "int64", "bool": "bool", "text": "object"}


def fed(feeds: Sequence[Mapping[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    """What makes the inputs out of rows."""
    import numpy as np

    if len(feeds) == 1 and feeds[0]["of"] == "matrix":
        name, dtype = feeds[0]["name"], np.dtype(KINDS[feeds[0]["kind"]])
        return lambda rows: {name: matrix(rows, dtype)}
    if len(feeds) == 1 and feeds[0]["of"] == "texts":
        name = feeds[0]["name"]
        return lambda rows: {name: np.array(rows, dtype=object).reshape(-1, 1)}
    if feeds[0]["of"] == "column":
        columns = [(feed["name"], feed["column"], np.dtype(KINDS[feed["kind"]])) for feed in feeds]
        return lambda rows: {name: rows[column].to_numpy(kind).reshape(-1, 1) for name, column, kind in columns}
    parts = [(feed["name"], np.dtype(KINDS[feed["kind"]])) for feed in feeds]

    def tensors(rows: Any) -> dict[str, Any]:
        given = rows if isinstance(rows, tuple) else (rows,)
        return {name: matrix(part, kind) for (name, kind), part in zip(parts, given, strict=True)}

    return tensors


def matrix(rows: Any, dtype: Any) -> Any:
    import numpy as np

    if rows_of.is_sparse(rows):
        rows = rows.toarray()
    elif rows_of.is_tensor(rows):
        rows = rows_of.on_host(rows)
    elif rows_of.is_frame(rows):
        rows = rows.to_numpy(dtype)
    return np.ascontiguousarray(rows, dtype=dtype)


def shaped(found: Any, tail: Sequence[int] | None) -> Any:
    """As the native model gives it: one value for a row stands in no column of its own."""
    if tail is None or list(found.shape[1:]) == list(tail):
        return found
    if not tail and found.ndim == 2 and found.shape[1] == 2:  # both sides of a decision: the second is scikit-learn's
        return found[:, 1]
    return found.reshape((found.shape[0], *tail))
