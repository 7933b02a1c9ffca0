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
def isotonic_fit(X: TensorSpec, y: Any = None, increasing: Any = True, sample_weight: Any = None, **_: Any) -> Work:
    """The checks of X, y (twice), weights if there are any, and means of equal X (2 each), then pools of adjacent
    violators: about 5 operations for each sample that joins one; the search for them compares. Whether Y grows with X
    is told by the correlation of their ranks: checks (2), ranks (3 each), means and deviations (4), their matrix of two
    by two (8), and a distribution function, some 2,600."""
    n = X.numel
    work = arithmetic((5 + (sample_weight is not None)) * n, floats(X)) + arithmetic(5 * n, DOUBLE, compare=80 * n)
    ranks = arithmetic(20 * n + 2600 if increasing == "auto" else 0, DOUBLE)
    return replace(work + ranks, estimated=True)


@rule(f"{_NAME}.predict", f"{_NAME}.transform", family="isotonic")
def isotonic_transform(X: Any = None, T: Any = None, X_thresholds_: Any = None, **_: Any) -> Work:
    """The check, and a linear interpolation: slope·(x - x0) + y0."""
    given = T if isinstance(T, TensorSpec) else X
    n = given.numel if isinstance(given, TensorSpec) else 0
    return arithmetic(4 * n, floats(given)) if n else Work()
