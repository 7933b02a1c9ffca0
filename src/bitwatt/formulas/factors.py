"""Factorisations counted inside a call, and eigenvalue iterations by the steps they took."""

from __future__ import annotations

from dataclasses import replace

from bitwatt.formulas import lapack
from bitwatt.formulas.decompose import lanczos_step, lanczos_vectors, range_width
from bitwatt.formulas.distances import of_bits
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm
from bitwatt.records import Work


def cholesky(n: int, bits: int) -> Work:
    return lapack.cholesky(n, of_bits(bits))


def pinvh(n: int, bits: int, rank: int = -1) -> Work:
    return lapack.pseudo_inverse_symmetric(n, of_bits(bits), rank)


def inv(n: int, bits: int) -> Work:
    return lapack.inverse_checked(n, of_bits(bits))


def solve(n: int, columns: int, bits: int, assumed: str) -> Work:
    precision = of_bits(bits)
    if assumed == "diagonal":  # divided by its elements, of which the least and the largest are found
        return Work.of(precision, div=n * columns + n)
    if assumed == "triangular":
        return lapack.triangular_solve(n, columns, precision) + arithmetic(7 * n * n, precision)
    if assumed == "pos":
        return lapack.solve_positive(n, columns, precision)
    return (lapack.solve_symmetric if assumed == "sym" else lapack.solve_checked)(n, columns, precision)


def cho_solve(n: int, columns: int, bits: int) -> Work:
    """Two triangular solves; many right-hand sides run as matrix products."""
    if columns > 1:
        return arithmetic((2 * n**2 + 2 * n) * columns, of_bits(bits))
    return lapack.cholesky_solve(n, columns, of_bits(bits))


def solve_triangular(n: int, columns: int, bits: int) -> Work:
    return lapack.triangular_solve(n, columns, of_bits(bits))


def lstsq(m: int, n: int, columns: int, bits: int) -> Work:
    return lapack.least_squares(m, n, columns, of_bits(bits))


def eigh(n: int, bits: int, driver: str, generalised: bool, wanted: int) -> Work:
    """Some of the vectors: the way back from the tridiagonal form, 2n² for each, is all that is saved. `ev` is what
    the pseudo-inverse calls, which is counted as a whole."""
    if driver == "ev":
        return Work()
    if generalised:
        return lapack.eigh_generalised(n, of_bits(bits))
    if wanted < n:
        return arithmetic(4 / 3 * n**3 + 64 * n**2 + wanted * (2 * n**2 + 60 * n), of_bits(bits))
    return lapack.eigh(n, of_bits(bits))


def svd(m: int, n: int, bits: int, full: bool, vectors: bool) -> Work:
    if not vectors:
        return lapack.singular_values(m, n, of_bits(bits))
    return lapack.svd(m, n, of_bits(bits), full=full)


def qr(m: int, n: int, bits: int, mode: str, pivoting: bool) -> Work:
    return lapack.qr(m, n, of_bits(bits), form_q=mode != "r", pivoting=pivoting)


def logdet(n: int, bits: int) -> Work:
    return lapack.determinant(n)


def lu(n: int, bits: int) -> Work:
    return lapack.lu(n, of_bits(bits))


def sparse_lu(n: int, stored_l: int, stored_u: int) -> Work:
    """Elimination column by column: each column of L meets a row of U. With the stored elements alone, their mean
    product: 2·|L|·|U| / n; the pattern of the fill is not looked at."""
    return replace(arithmetic(2 * stored_l * stored_u / max(n, 1), DOUBLE), estimated=True)


def arpack_step(n: int, k: int, ncv: int, mode: int, bits: int) -> Work:
    """One step of the implicitly restarted Lanczos process, without the product."""
    return lanczos_step(n, k, ncv, of_bits(bits))


def operated(n: int, bits: int, stored: int, mode: int, factors: int) -> Work:
    """The product of one step: with the matrix itself (mode 1), or with the inverse of the shifted one by its factors,
    which are dense where the matrix was (-1)."""
    held = stored if mode == 1 else factors
    return arithmetic(2 * n * n if held < 0 else 2 * held, of_bits(bits))


def random_range(m: int, n: int, size: int, iterations: int, bits: int, stored: int) -> Work:
    """Halko's range finder without its last QR, which is counted: 2·iterations + 1 products, normalised by LU
    (m·l² - l³/3 each) if there are more than two iterations, which leaves no more vectors than there are rows or
    columns; normal numbers to begin with (22 each)."""
    precision, kept = of_bits(bits), range_width(m, n, size, iterations, "auto")
    normalised = iterations > 2

    def product(width: int) -> Work:
        return gemm(m, n, width, precision) if stored < 0 else arithmetic(2 * stored * width, precision)

    def lu(width: int) -> float:
        few = [(max(rows, width), min(rows, width)) for rows in (m, n)]
        return sum(rows * w**2 - w**3 / 3 + 1.5 * rows * w for rows, w in few) if normalised else 0.0

    first = product(size) + product(kept) if iterations else Work()
    again = max(iterations - 1, 0)
    rest = gemm(kept, m, n, precision) if stored < 0 else arithmetic(2 * stored * kept, precision)
    last = gemm(m, kept, kept, precision)
    products = first + product(kept) * (2 * again + 1) + rest + last
    ways = (lu(size) if iterations else 0.0) + lu(kept) * again
    return products + arithmetic(ways, precision) + arithmetic(22 * n * size, DOUBLE)


def arpack_vectors(n: int, k: int, ncv: int, mode: int, bits: int) -> Work:
    """The small eigenproblem, and the wanted vectors from the basis."""
    return lanczos_vectors(n, k, ncv, of_bits(bits))


def lobpcg_step(n: int, size: int, bits: int) -> Work:
    """One iteration on a dense matrix, by the size of its small eigenproblem: the block (a third of it) through the
    matrix, two Gram matrices of the three blocks, and the new blocks from the old."""
    block = max(size // 3, 1)
    return replace(arithmetic(2 * n * n * block + n * size * (4 * size + 12 * block), of_bits(bits)), estimated=True)
