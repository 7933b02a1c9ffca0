"""Mixtures of Gaussians: expectation and maximisation, by kind of covariance."""

from __future__ import annotations

from dataclasses import replace

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import (
    column_sums,
    log_sum_exp,
    logarithms,
    row_squares,
)
from bitwatt.formulas.lapack import cholesky, svd, syrk, triangular_solve
from bitwatt.formulas.vector import DOUBLE, EXP, arithmetic, function, gemm
from bitwatt.records import Work

#: A normal number of numpy's older generator, which draws points until one falls into the circle: 1.27 times two
#: numbers (5 each) and the square of their length (3); a logarithm, a root, a quotient and two products for two.
NORMAL = 23


def normals(n: int, f: int) -> Work:
    """n samples of numpy's `multivariate_normal`: a singular value decomposition of the covariance and a product that
    tells whether it is one (6f² more to compare them); normal numbers through its root, and the mean."""
    factor = svd(f, f, DOUBLE) + gemm(f, f, f, DOUBLE) + arithmetic(7 * f * f, DOUBLE)
    return factor + arithmetic((NORMAL + 1) * n * f, DOUBLE, random=n * f) + gemm(n, f, f, DOUBLE)


def log_densities(n: int, f: int, k: int, covariance: str, precision: Precision, data: Precision | None = None) -> Work:
    """The log-density of each sample in each component. Full and tied: (x - mean) through the Cholesky factor of the
    precision, squared and summed: 2nf² + 3nf for each component. Diagonal: two products of n x f by f x k. Spherical:
    one, and the norms of the rows, in the precision of the data. Then 4 operations for each sample and component."""
    end = arithmetic(4 * n * k, precision)
    if covariance in ("full", "tied"):
        each = gemm(n, f, f, precision) + arithmetic(3 * n * f + 2 * f * f, precision)
        determinants = logarithms(f * (k if covariance == "full" else 1), precision)
        return each * k + determinants + end
    if covariance == "diag":
        squares = arithmetic(n * f, data or precision) + arithmetic(6 * f * k + 3 * n * k, precision)
        return gemm(n, f, k, precision) * 2 + squares + logarithms(f * k, precision) + end
    norms = row_squares(n, f, data or precision) + arithmetic(5 * n * k + 2 * f * k, precision)
    return gemm(n, f, k, precision) + norms + logarithms(k, precision) + end


def expectation(n: int, f: int, k: int, covariance: str, precision: Precision, data: Precision | None = None) -> Work:
    """Log-densities, their logsumexp over components and its mean, and the log-responsibilities."""
    return (
        log_densities(n, f, k, covariance, precision, data)
        + log_sum_exp(n, k, precision)
        + arithmetic(n * k + n, precision)
    )


def told_apart(work: Work, n: int, k: int) -> Work:
    """What sums the densities of k components up, marked where it matters: components that are sure of their samples
    leave next to nothing of the exponentials (20 each, but for the largest) and of log1p (30), and mixtures of few
    features do little else. A tenth of all work is what counts."""
    rest = 2 * work.macs + sum(times for kind, _, _, times in work.ops if kind != "compare")
    return replace(work, estimated=work.estimated or 10 * n * (EXP[0] * (k - 1) + 30) > rest)


def moments(n: int, f: int, k: int, covariance: str, precision: Precision, data: Precision | None = None) -> Work:
    """Weights, means and covariances from responsibilities. Means: a product of k x n by n x f. Full: for each
    component deviations, times responsibilities, and their product: 2nf² + 2nf. Tied: XᵀX. Diagonal, spherical: squares
    and a product."""
    work = column_sums(n, k, precision) + gemm(k, n, f, precision) + arithmetic(3 * f * k, precision)
    if covariance == "full":
        return work + (gemm(f, n, f, precision) + arithmetic(2 * n * f + f * f, precision)) * k
    if covariance == "tied":
        return (
            work + syrk(f, n, data or precision) + gemm(f, k, f, precision) + arithmetic(3 * f * f + f * k, precision)
        )
    squares = arithmetic(n * f, data or precision) + arithmetic(4 * f * k, precision)
    return work + gemm(k, n, f, precision) + squares


def factors(f: int, k: int, covariance: str, precision: Precision) -> Work:
    """The Cholesky factor of each precision: of the covariance, then its inverse by a triangular solve; for diagonals
    a root and a reciprocal."""
    if covariance in ("full", "tied"):
        one = cholesky(f, precision) + triangular_solve(f, f, precision)
        return one * (k if covariance == "full" else 1)
    return arithmetic(2 * (f * k if covariance == "diag" else k), precision)


def maximisation(n: int, f: int, k: int, covariance: str, precision: Precision) -> Work:
    """Responsibilities from their logarithms, then the moments and the factors of the precisions."""
    return (
        function(EXP, n * k, precision) + moments(n, f, k, covariance, precision) + factors(f, k, covariance, precision)
    )


def precisions(f: int, k: int, covariance: str, precision: Precision) -> Work:
    """The precision matrices from their factors: a product for each."""
    if covariance in ("full", "tied"):
        return gemm(f, f, f, precision) * (k if covariance == "full" else 1)
    return arithmetic(f * k if covariance == "diag" else k, precision)
