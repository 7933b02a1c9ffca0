"""Factorisations counted inside a call, and eigenvalue iterations by the steps they took."""

from __future__ import annotations

from dataclasses import replace

from bitwatt.formulas import lapack
from bitwatt.formulas.distances import of_bits
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm
from bitwatt.records import Work


def cholesky(n: int, bits: int) -> Work:
    return lapack.cholesky(n, of_bits(bits))


def pinvh(n: int, bits: int) -> Work:
    return lapack.pseudo_inverse_symmetric(n, of_bits(bits))


def inv(n: int, bits: int) -> Work:
    return lapack.inverse_checked(n, of_bits(bits))


def solve(n: int, columns: int, bits: int, assumed: str) -> Work:
    precision = of_bits(bits)
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
    """One step of the implicitly restarted Lanczos process, without the product: the new vector is made orthogonal to
    those before it, half of `ncv` on average of a restart, twice (8n each), and its norm taken."""
    return arithmetic(n * (8 * (ncv + k) / 2 + 8), of_bits(bits))


def operated(n: int, bits: int, stored: int, mode: int, factors: int) -> Work:
    """The product of one step: with the matrix itself (mode 1), or with the inverse of the shifted one by its factors,
    which are dense where the matrix was (-1)."""
    held = stored if mode == 1 else factors
    return arithmetic(2 * n * n if held < 0 else 2 * held, of_bits(bits))


def random_range(m: int, n: int, size: int, iterations: int, bits: int, stored: int) -> Work:
    """Halko's range finder without its last QR, which is counted: 2·iterations + 1 products, normalised by LU
    (m·l² - l³/3 each) if there are more than two iterations; normal numbers to begin with (22 each)."""
    precision = of_bits(bits)
    one = gemm(m, n, size, precision) if stored < 0 else arithmetic(2 * stored * size, precision)
    lu = sum(rows * size**2 - size**3 / 3 + 1.5 * rows * size for rows in (m, n)) if iterations > 2 else 0.0
    rest = gemm(size, m, n, precision) if stored < 0 else arithmetic(2 * stored * size, precision)
    last = gemm(m, size, size, precision)
    products = one * (2 * iterations + 1) + rest + last
    return products + arithmetic(iterations * lu, precision) + arithmetic(22 * n * size, DOUBLE)


def arpack_vectors(n: int, k: int, ncv: int, mode: int, bits: int) -> Work:
    """The wanted vectors from the basis: 2·n·ncv·k; the small eigenproblem 10·ncv³."""
    return arithmetic(2 * n * ncv * k + 10 * ncv**3, of_bits(bits))


def lobpcg_step(n: int, size: int, bits: int) -> Work:
    """One iteration on a dense matrix, by the size of its small eigenproblem: the block (a third of it) through the
    matrix, two Gram matrices of the three blocks, and the new blocks from the old."""
    block = max(size // 3, 1)
    return replace(arithmetic(2 * n * n * block + n * size * (4 * size + 12 * block), of_bits(bits)), estimated=True)
