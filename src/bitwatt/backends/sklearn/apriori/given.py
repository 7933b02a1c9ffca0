"""What a user says of his data: shapes, arrays or specs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bitwatt.backends.sklearn import specs
from bitwatt.backends.sklearn.apriori.call import is_classifier, is_regressor
from bitwatt.backends.sklearn.names import PHASES
from bitwatt.errors import BitwattError
from bitwatt.records import TensorSpec


def _is_shape(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(size, int) for size in value)


def spec_of(value: Any, dtype: str) -> TensorSpec:
    if isinstance(value, TensorSpec):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value,)
    if _is_shape(value):
        if min(value) < 0:
            raise BitwattError(f"a shape has no negative sizes: {value}")
        return TensorSpec(value, dtype)
    if isinstance(value, list):
        return specs.listed(value) if value else TensorSpec((0,), dtype)
    found = specs.spec_of(value)
    if isinstance(found, tuple):  # a few integers, told as they are
        return TensorSpec((len(found),), "int64")
    if not isinstance(found, TensorSpec):
        raise BitwattError(f"X and y are shapes, arrays or TensorSpecs, not {type(value).__name__}")
    return found


def format_of(dtype: Any) -> str | None:
    """The name of a number format, given as a name or as numpy's."""
    if dtype is None:
        return None
    import numpy as np  # here already, where there is an estimator

    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if not name.startswith(("float", "int", "uint", "bool", "object")):
        raise BitwattError(f"dtype={dtype!r} is no number format: write 'float32', numpy.int64, ...")
    return name


def data_of(X: Any, dtype: str | None, nnz: int | None, density: float | None) -> TensorSpec:
    spec = spec_of(X, dtype or "float64")
    if density is not None and not 0 <= density <= 1:
        raise BitwattError(f"density={density}: it is the share of X that is stored, 0 to 1")
    stored = round(density * math.prod(spec.shape)) if density is not None else nnz
    if stored is not None and not 0 <= stored <= math.prod(spec.shape):
        raise BitwattError(f"nnz={stored}: X has {math.prod(spec.shape):,} elements")
    return TensorSpec(spec.shape, dtype or spec.dtype, spec.nnz if stored is None else stored)


def check_classes(classes: Any) -> None:
    if classes is not None and (isinstance(classes, bool) or not isinstance(classes, int) or classes < 2):
        raise BitwattError(f"classes={classes!r}: it is the number of labels in y, 2 or more")


def check_fit(estimator: Any, X: TensorSpec, y: TensorSpec | None) -> None:
    """Data that the estimator itself would refuse."""
    dimensions = len(X.shape)
    if (dimensions > 2 or dimensions == 1) and not _takes(estimator, dimensions):
        raise BitwattError(f"{type(estimator).__name__} takes rows and columns, not an X of shape {X.shape}")
    if y is not None and y.shape and X.shape and y.shape[0] != X.shape[0]:
        raise BitwattError(f"X has {X.shape[0]:,} rows and y {y.shape[0]:,}")


def _takes(estimator: Any, dimensions: int) -> bool:
    """Text comes as a list of documents, and some take a column as such: their tags say so, where they have any."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    wanted = tags().input_tags if tags is not None else None
    if wanted is None:
        return True
    return bool(
        wanted.one_d_array or wanted.string or not wanted.two_d_array if dimensions == 1 else wanted.three_d_array
    )


def check_columns(name: str, fitted: TensorSpec, X: TensorSpec) -> None:
    if len(fitted.shape) == len(X.shape) == 2 and fitted.shape[1] != X.shape[1]:
        raise BitwattError(f"{name} on {X.shape[1]:,} columns, after a fit on {fitted.shape[1]:,}")


def check_assumed(assume: Mapping[str, Any]) -> None:
    for name, value in assume.items():
        if isinstance(value, (int, float)) and not value >= 0:
            raise BitwattError(f"assume: {name}={value} is no amount")


def target_of(estimator: Any, y: Any, X: TensorSpec) -> TensorSpec | None:
    """y as given; where it is not, one number or class for each row, if the estimator learns one."""
    kind = "float64" if not is_classifier(estimator) else "int64"
    if y is not None:
        return spec_of(y, kind)
    return TensorSpec((X.shape[0],), kind) if is_classifier(estimator) or is_regressor(estimator) else None


def labels_in(estimator: Any, y: Any) -> int | None:
    """The number of distinct labels, where y holds them."""
    if y is None or not is_classifier(estimator) or isinstance(y, (TensorSpec, int)) or _is_shape(y):
        return None
    import numpy as np  # here already, where there is an estimator

    values = np.asarray(y)
    return len(np.unique(values)) or None if values.ndim == 1 else 2


def methods_of(methods: Any, dtype: str | None, density: float | None) -> Iterator[tuple[str, TensorSpec | None]]:
    """Names of methods, each with the data that it is called with where it is not X."""
    listed: Iterable[Any] = (methods,) if isinstance(methods, str) else methods
    for one in listed.items() if isinstance(listed, Mapping) else listed:
        name, shape = (one, None) if isinstance(one, str) else one
        if name not in PHASES:
            raise BitwattError(f"{name!r} is no method that computes; there are {', '.join(sorted(PHASES))}")
        yield name, None if shape is None else data_of(shape, dtype, None, density)
