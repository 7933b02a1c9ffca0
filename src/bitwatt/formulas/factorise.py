"""Dense factorisations and solves, half multiplications and half additions.

Leading terms after LAPACK Working Note 41 (Blackford & Dongarra 1999, appendix C) and Golub & Van Loan, Matrix
Computations (4th ed.). They are no matrix products of the program's own, so `macs` leaves them out.
"""

from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work


def arithmetic(spec: TensorSpec, operations: float, *, estimated: bool = False) -> Work:
    """So many real operations, half of them multiplications; on complex numbers four times as many."""
    half = round(operations / 2)
    work = pointwise(spec, 1, mul=half, add=half)
    return Work(work.ops, estimated=estimated)


def lu(m: int, n: int) -> float:
    """Gaussian elimination with partial pivoting: 2mnk - (m+n)k² + ⅔k³ with k = min(m, n); ⅔n³ for a square."""
    k = min(m, n)
    return 2 * m * n * k - (m + n) * k**2 + 2 / 3 * k**3


def cholesky(n: int) -> float:
    """⅓n³ (Golub & Van Loan 4.2)."""
    return n**3 / 3


def qr(m: int, n: int) -> float:
    """Householder QR, Q left as reflectors: 4mnk - 2(m+n)k² + 4/3·k³; 2mn² - ⅔n³ for m >= n (Golub & Van Loan 5.2)."""
    return 2 * lu(m, n)


def form_q(m: int, columns: int, reflectors: int) -> float:
    """The first columns of Q from its reflectors (orgqr): 4mnk - 2(m+n)k² + 4/3·k³."""
    k = reflectors
    return 4 * m * columns * k - 2 * (m + columns) * k**2 + 4 / 3 * k**3


def apply_q(m: int, columns: int, reflectors: int) -> float:
    """Q times a matrix of m rows (ormqr): 4mnk - 2nk²."""
    return 4 * m * columns * reflectors - 2 * columns * reflectors**2


def triangular_solve(n: int, columns: int) -> float:
    """Back substitution: n² for each right-hand side."""
    return n**2 * columns


def inverse(n: int) -> float:
    """LU (⅔n³), then the inverse of U and the solve with L (4/3·n³): 2n³."""
    return 2 * n**3


def least_squares(m: int, n: int, columns: int) -> float:
    """QR, Qᵀb, back substitution (Golub & Van Loan 5.3). For m < n, of the transpose: the least-norm solution."""
    m, n = max(m, n), min(m, n)
    return qr(m, n) + apply_q(m, columns, n) + triangular_solve(n, columns)


def eigh(n: int, *, vectors: bool) -> float:
    """Tridiagonal form 4/3·n³; with vectors, divide and conquer without deflation 4/3·n³ and the way back 2n³
    (Demmel, Applied Numerical Linear Algebra 5.3.3)."""
    return 14 / 3 * n**3 if vectors else 4 / 3 * n**3


def eig(n: int, *, vectors: bool) -> float:
    """Hessenberg form and QR iteration: 10n³ for the values, 25n³ with vectors (Golub & Van Loan 7.5.6)."""
    return 25.0 * n**3 if vectors else 10.0 * n**3


def svd(m: int, n: int, *, vectors: bool, full: bool = False) -> float:
    """Bidiagonal form 4mn² - 4/3·n³ (m >= n); with vectors, divide and conquer on both sides 2·4/3·n³, then the
    reflectors of the left applied to n (full: m) columns and of the right to n (Golub & Van Loan 8.6)."""
    m, n = max(m, n), min(m, n)
    bidiagonal = 4 * m * n**2 - 4 / 3 * n**3
    if not vectors:
        return bidiagonal
    return bidiagonal + 8 / 3 * n**3 + apply_q(m, m if full else n, n) + apply_q(n, n, n)


def matrix_exp(n: int) -> float:
    """A Taylor polynomial of degree 18 in 5 products (Bader, Blanes & Casas 2019), squarings left out: they depend on
    the norm."""
    return 5 * 2.0 * n**3
