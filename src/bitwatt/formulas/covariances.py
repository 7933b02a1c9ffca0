"""Covariances and what is made of them: n rows, f features."""

from __future__ import annotations

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import column_means
from bitwatt.formulas.lapack import syrk
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import Work


def covariance(n: int, f: int, *, centred: bool, precision: Precision) -> Work:
    """np.cov: means and deviations (2nf) and their product with themselves, always in double; or XᵀX / n of data that
    are centred already, in their own precision."""
    if centred:
        return syrk(f, n, precision) + arithmetic(f * f, precision)
    return syrk(f, n, DOUBLE) + arithmetic(2 * n * f + f * f, DOUBLE)


def scored(n: int, f: int, precision: Precision) -> Work:
    """The covariance of centred rows (XᵀX), and the trace of its product with the precision; the determinant is
    counted inside."""
    return arithmetic(n * f, precision) + syrk(f, n, precision) + arithmetic(4 * f * f, precision)


def shrinkage(n: int, f: int, precision: Precision) -> Work:
    """Ledoit and Wolf's: XᵀX, (X²)ᵀX² and their sums, X² and the trace (3nf)."""
    return syrk(f, n, precision) * 2 + arithmetic(3 * n * f + 4 * f * f, precision)


def quadratic_forms(n: int, f: int) -> Work:
    """(X - m)·P·(X - m)ᵀ, row by row: f + 2f² + 2f."""
    return arithmetic(n * (2 * f * f + 3 * f + (f if f >= 8 else 2 * f)), DOUBLE)


def supported(f: int, support: int) -> Work:
    """Mean and covariance of the rows that are nearest."""
    return column_means(support, f, DOUBLE) + covariance(support, f, centred=False, precision=DOUBLE)


def concentration(n: int, f: int, support: int) -> Work:
    """One step of the minimum covariance determinant: distances of all rows, mean and covariance of the nearest."""
    return quadratic_forms(n, f) + supported(f, support)


def concentrated(n: int, f: int, support: int) -> Work:
    """What a series of steps does before its first and after its last: a covariance to begin with, and distances."""
    return supported(f, support) + quadratic_forms(n, f) + arithmetic(n * f, DOUBLE)


def graph_column(f: int) -> Work:
    """One column of the graphical lasso beside its regression: a product with the others' covariance (2f²), six
    operations on each of f elements; a share of the dual gap and objective of its sweep (8f)."""
    return arithmetic(2 * f * f + 14 * f, DOUBLE)
