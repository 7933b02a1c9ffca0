"""Rows in the forms users have them: arrays, DataFrames, sparse matrices, texts, tensors, tuples of these."""

from __future__ import annotations

import hashlib
from typing import Any

from bitwatt.errors import BitwattError


def is_frame(rows: Any) -> bool:
    """A DataFrame of pandas, or what is built like one."""
    return hasattr(rows, "columns") and hasattr(rows, "iloc")


def is_texts(rows: Any) -> bool:
    """Documents: a list of texts, or one column of them without a header."""
    if isinstance(rows, list):
        return bool(rows) and all(isinstance(row, str) for row in rows)
    if is_frame(rows) or getattr(rows, "ndim", 0) != 1:
        return False
    kind = getattr(getattr(rows, "dtype", None), "kind", "")
    return kind in "UT" or (kind == "O" and len(rows) > 0 and all(isinstance(row, str) for row in rows))


def is_tensor(rows: Any) -> bool:
    return type(rows).__module__.partition(".")[0] == "torch" and hasattr(rows, "detach")


def is_sparse(rows: Any) -> bool:
    return hasattr(rows, "tocsr") and hasattr(rows, "nnz")


def count(rows: Any) -> int:
    if isinstance(rows, tuple):
        return min(map(count, rows), default=0)
    shape = getattr(rows, "shape", None)
    return int(shape[0]) if shape else len(rows)


def features(rows: Any) -> int | None:
    """Columns, where rows have such."""
    shape: Any = getattr(rows, "shape", ())
    return int(shape[1]) if len(shape) == 2 else None


def take(rows: Any, index: Any) -> Any:
    """Some of the rows, in the form they came in: by a slice, or by an array of positions."""
    if isinstance(rows, tuple):
        return tuple(take(part, index) for part in rows)
    if hasattr(rows, "iloc"):
        return rows.iloc[index]
    if isinstance(rows, list):
        return rows[index] if isinstance(index, slice) else [rows[int(at)] for at in index]
    if is_tensor(rows) and not isinstance(index, slice):
        import torch

        return rows[torch.as_tensor(index, device=rows.device)]
    return (rows.tocsr() if is_sparse(rows) else rows)[index]


def digest(rows: Any) -> str:
    """sha256 of what the rows hold and how, the same in every process."""
    found = hashlib.sha256()
    _feed(found, rows)
    return found.hexdigest()


def _feed(found: Any, rows: Any) -> None:
    import numpy as np

    if rows is None:
        found.update(b"none")
    elif isinstance(rows, tuple):
        for part in rows:
            _feed(found, part)
    elif is_frame(rows):
        for name in rows.columns:
            found.update(str(name).encode())
            _feed(found, rows[name].to_numpy())
    elif is_sparse(rows):
        matrix = rows.tocsr()
        for part in (matrix.data, matrix.indices, matrix.indptr):
            _feed(found, part)
    else:
        array = np.asarray(on_host(rows))
        found.update(f"{array.dtype.kind}{array.shape}".encode())
        if array.dtype.kind in "OUT":
            for value in array.ravel():
                found.update(f"{type(value).__name__}:{value}\0".encode())
        else:
            found.update(np.ascontiguousarray(array).tobytes())


def on_host(rows: Any) -> Any:
    """Tensors as arrays; anything else as it is."""
    if is_tensor(rows):
        rows = rows.detach().cpu()
        return rows.float().numpy() if str(rows.dtype) == "torch.bfloat16" else rows.numpy()
    return rows


def one_kind(rows: Any) -> Any:
    """Rows as the lab keeps them: lists of numbers become arrays, columns of texts become lists."""
    import numpy as np

    if is_texts(rows):
        return [str(row) for row in rows]
    if isinstance(rows, list):
        try:
            array = np.asarray(rows)
        except ValueError as error:
            raise BitwattError(f"the rows have no common shape: {error}") from error
        return array
    return rows


def column(y: Any) -> Any:
    """Targets of one column as a row of them; a lone target is a row of one."""
    flat = y.ndim == 0 or (y.ndim == 2 and y.shape[1] == 1)
    return y.reshape(-1) if flat else y
