"""sklearn.isotonic."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import floats
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_NAME = "sklearn.isotonic.IsotonicRegression"

free(f"{_NAME}.fit_transform", reason="calls fit and transform, which are counted")


@rule(f"{_NAME}.fit", family="isotonic")
def isotonic_fit(X: TensorSpec, y: Any = None, X_thresholds_: Any = None, **_: Any) -> Work:
    """The checks of X, y (twice) and means of equal X (2 each), then pools of adjacent violators: about 5 operations
    for each sample that joins one; the search for them compares."""
    n = X.numel
    work = arithmetic(5 * n, floats(X)) + arithmetic(5 * n, DOUBLE, compare=80 * n)
    return replace(work, estimated=True)


@rule(f"{_NAME}.predict", f"{_NAME}.transform", family="isotonic")
def isotonic_transform(X: Any = None, T: Any = None, X_thresholds_: Any = None, **_: Any) -> Work:
    """The check, and a linear interpolation: slope·(x - x0) + y0."""
    given = T if isinstance(T, TensorSpec) else X
    n = given.numel if isinstance(given, TensorSpec) else 0
    return arithmetic(4 * n, floats(given)) if n else Work()
