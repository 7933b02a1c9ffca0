"""Matrices as products of few parts: non-negative factors, independent components, topics, dictionaries."""

from __future__ import annotations

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import logarithms, power
from bitwatt.formulas.decompose import product
from bitwatt.formulas.lapack import dot, eigh, gemv, syrk
from bitwatt.formulas.vector import DOUBLE, EXP, TANH, arithmetic, function, gemm
from bitwatt.records import Work


def factor_sweep(n: int, f: int, k: int, stored: int, precision: Precision) -> Work:
    """One factor of a non-negative factorisation by coordinate descent: the other's Gram matrix, its product with X,
    and for each of n·k elements a gradient (2k) and a Newton step (3)."""
    return syrk(k, f, precision) + product(n, f, k, precision, stored) + arithmetic(n * k * (2 * k + 3), precision)


def _powered(elements: float, exponent: float, precision: Precision) -> Work:
    """x ** e: squares, roots and reciprocals are one operation."""
    if exponent in (0.0, 1.0):
        return Work()
    if exponent in (2.0, 0.5, -1.0):
        return arithmetic(elements, precision)
    return power(elements, precision)


def _reconstructed(n: int, f: int, k: int, stored: int, precision: Precision) -> Work:
    """W·H, or only where X stores an element (2k - 1 each)."""
    return gemm(n, k, f, precision) if stored < 0 else arithmetic(2 * stored * k, precision)


def _ratios(n: int, f: int, stored: int, beta: float, precision: Precision) -> Work:
    """X · (W·H) ** (beta - 2) for each stored element."""
    kept = n * f if stored < 0 else stored
    if beta == 1.0:
        return arithmetic(kept, precision)
    return (arithmetic(2 * kept, precision) if beta == 0.0 else _powered(kept, beta - 2, precision)) + arithmetic(
        kept, precision
    )


def multiplicative_w(
    n: int, f: int, k: int, stored: int, beta: float, precision: Precision, *, known: bool = False
) -> Work:
    """One update of W. Squared loss: X·Hᵀ and H·Hᵀ (unless known) and W·(H·Hᵀ). Kullback-Leibler: W·H, X over it, times
    Hᵀ. Other losses: that and a power of W·H times Hᵀ. Then a quotient (to a power, where the loss asks) and a
    product for each element of W."""
    end = arithmetic(2 * n * k, precision)
    if beta == 2.0:
        made = Work() if known else product(n, f, k, precision, stored) + syrk(k, f, precision)
        return made + gemm(n, k, k, precision) + end
    work = _reconstructed(n, f, k, stored, precision) + _ratios(n, f, stored, beta, precision)
    work += product(n, f, k, precision, stored) + end
    if beta == 1.0:
        return work + arithmetic(f * k, precision)
    if stored >= 0:  # row by row, all of W·H
        work += gemm(n, k, f, precision)
    gamma = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0
    work += _powered(n * f, beta - 1, precision) + gemm(n, f, k, precision)
    return work + _powered(n * k, gamma, precision)


def multiplicative_h(
    n: int, f: int, k: int, stored: int, beta: float, precision: Precision, *, averaged: bool = False
) -> Work:
    """One update of H, as for W; running averages of numerator and denominator take 5 more for each element."""
    end = arithmetic((6 if averaged else 2) * f * k, precision)
    if beta == 2.0:
        return product(f, n, k, precision, stored) + syrk(k, n, precision) + gemm(k, k, f, precision) + end
    work = _reconstructed(n, f, k, stored, precision) + _ratios(n, f, stored, beta, precision)
    work += product(f, n, k, precision, stored) + end
    if beta == 1.0:
        return work + arithmetic(n * k, precision)
    if stored >= 0:
        work += gemm(n, k, f, precision)
    gamma = 1 / (2 - beta) if beta < 1 else 1 / (beta - 1) if beta > 2 else 1.0
    work += _powered(n * f, beta - 1, precision) + gemm(k, n, f, precision)
    return work + _powered(f * k, gamma, precision) * (2 if averaged else 1)


def divergence(n: int, f: int, k: int, stored: int, beta: float, precision: Precision) -> Work:
    """How far W·H is from X. Squared: X - W·H and its norm; of a sparse X the norms of both and their product. Else a
    quotient, its logarithm or powers, and sums, for each element of X that is not zero."""
    kept = n * f if stored < 0 else stored
    if beta == 2.0:
        if stored < 0:
            return gemm(n, k, f, precision) + arithmetic(3 * n * f, precision)
        norms = dot(stored, precision) + syrk(k, n, precision) + gemm(k, k, f, precision) + dot(k * f, precision)
        return norms + product(n, f, k, precision, stored) + dot(n * k, precision)
    work = _reconstructed(n, f, k, stored, precision)
    if beta == 1.0:
        return work + logarithms(kept, precision) + arithmetic(4 * kept + (n + f) * k, precision)
    if beta == 0.0:
        return work + logarithms(kept, precision) + arithmetic(3 * kept, precision)
    rest = gemm(n, k, f, precision) if stored >= 0 else Work()
    return work + rest + power(2 * kept + n * f, precision) + arithmetic(4 * kept + n * f, precision)


def decorrelated(k: int, precision: Precision) -> Work:
    """(W·Wᵀ) ** -½ · W: a Gram matrix, its eigenvectors, and two products."""
    small = syrk(k, k, precision) + eigh(k, precision) + gemm(k, k, k, precision) * 2
    return small + arithmetic(k * k + 2 * k, precision)


def contrast(kind: str, n: int, k: int, precision: Precision) -> Work:
    """A nonlinearity of n·k values and the mean of its derivative. log cosh: tanh and 5. exp: an exponential and 8.
    cube: a power and 3."""
    size = n * k
    if kind == "exp":
        return function(EXP, size, precision) + arithmetic(8 * size, precision)
    if kind == "cube":
        return power(size, precision) + arithmetic(3 * size, precision)
    return function(TANH, size, precision) + arithmetic(5 * size, precision)


def topics_of_word(k: int, words: float, precision: Precision) -> Work:
    """One step for one document: the probability of its words (2k each, and the sum of a register, which less than four
    do not fill), counts over it, their topics (2¼k each; of less than four 2k, and 4 more in single precision); for
    each topic the exponential of a digamma, some 70 operations of which 60 are in double whatever comes in; and how far
    the topics moved."""
    single = precision.bits == 32
    both = 4 * k + 4 * (single and k > 1) if k < 4 else 4.25 * k + (14 if single else 6)
    products = arithmetic((both + 2) * words + k, precision)
    special = arithmetic(60 * k + 30, DOUBLE) + arithmetic(10 * k + 5, precision)
    return products + special + arithmetic(k, DOUBLE) + arithmetic(k, precision)


def expected_logarithms(rows: int, columns: int, precision: Precision) -> Work:
    """Digammas of all elements and of the sum of each row: a logarithm, a series, and three operations for each whole
    number below 6: some 49, of which 40 are in double whatever comes in."""
    values = rows * (columns + 1)
    return arithmetic(40 * values, DOUBLE) + arithmetic(9 * values, precision)


def atoms_updated(n: int, f: int, k: int, precision: Precision, *, known: bool = False) -> Work:
    """A dictionary from a code: the code's Gram matrix and its product with the data (unless known), then for each atom
    a product with the dictionary and a norm."""
    grams = Work() if known else syrk(k, n, precision) + gemm(f, n, k, precision)
    each = gemv(f, k, precision, columns=True) + arithmetic(6 * f, precision)
    return grams + each * k
