"""BLAS and LAPACK as OpenBLAS, numpy and scipy execute them on AVX2, in elementary operations, as functions of sizes.

Leading terms are the textbook's (LAPACK Working Note 41; Golub & Van Loan). Lower terms (norms, reflectors, rotations,
the iteration of the bidiagonal and tridiagonal solvers, condition numbers) were read with the valgrind tool on matrices
of 3 to 200 columns; what a matrix of its own values changes (deflation, sweeps) is a few percent. numpy.linalg works in
double whatever it is given; scipy.linalg and BLAS keep single precision, except that norms accumulate in double.
"""

from __future__ import annotations

import math

from bitwatt.dtypes import Precision
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm, left_over
from bitwatt.records import Product, Work

#: Below this many columns the bidiagonal and tridiagonal solvers iterate; above they divide (LAPACK's SMLSIZ).
_LEAF = 25
#: LAPACK's block size: smaller problems run the unblocked code; and what `ormqr` needs of workspace for its own matrix.
_BLOCK, _REFLECTORS = 32, 65 * 64


def dot(n: float, precision: Precision) -> Work:
    """xᵀy: 2n, and 17 to add up the partial sums of the vector registers."""
    return arithmetic(2 * n + 17, precision)


def gemv(m: int, n: int, precision: Precision, *, columns: bool = False) -> Work:
    """A·x. By rows (A in C order): 2mn and the sum of each row's vector registers, 6 (single: 14) per row unless
    it has less than four elements. By columns (A in Fortran order, or Aᵀ·x of one in C order): 2mn and `_gathered`."""
    rest = _gathered(m, n, precision) if columns else m * (0 if n < 4 else 14 if precision.bits == 32 else 6)
    product = Product(1, m, 1, n, precision, precision)
    return Work(products=((product, 1),)) + arithmetic(rest, precision) if m and n else Work()


def _gathered(m: int, n: int, precision: Precision) -> int:
    """What OpenBLAS adds to the m results of a product that goes by columns. In double four columns (or two that are
    left over) make one sum, for results that come in fours; others are made one by one, times alpha and added. In
    single eight columns (or four) make two sums for results that come in sixteens, three for those that come in fours;
    of two others registers are half empty, which is 4 operations for each column and the end. One column alone does
    not go through BLAS."""
    if precision.bits == 64:
        return 4 * (m // 4) * (n // 4 + (n % 4 >= 2)) + 2 * (m % 4)
    groups, pair = (n + 4) // 8, m % 4 >= 2 and n > 1
    return groups * (32 * (m // 16) + 12 * (m % 16 // 4)) + 4 * (n + 1) * pair + 2 * (m % 2)


def syrk(n: int, k: int, precision: Precision) -> Work:
    """XᵀX of a k x n matrix: OpenBLAS computes the upper half in 8 x 8 blocks, diagonal blocks whole, then adds each
    block to the result (in single precision times alpha), once for every 256 rows."""
    full, rest = divmod(n, 8)
    computed = 32 * full * (full + 1) + rest * n
    added = computed * (2 if precision.bits == 32 else 1) + 36 * full + rest * (rest + 1) // 2
    computed += left_over(n, n, precision)
    if not (computed and k):
        return Work()
    product = Product(1, 1, computed, k, precision, precision)
    return Work(products=((product, 1),)) + arithmetic(added * math.ceil(k / 256), precision)


def cholesky(n: int, precision: Precision) -> Work:
    """⅓n³ + n² (Golub & Van Loan 4.2); above 32 columns in blocks, whose diagonals are computed whole: 3.9n²."""
    return arithmetic(n**3 / 3 + (1.1 * n**2 + 1.5 * n if n <= _BLOCK else 3.9 * n**2 + 12 * n), precision)


def triangular_solve(n: int, columns: int, precision: Precision) -> Work:
    """n² for each right-hand side; a matrix goes through blocks: n more each."""
    return arithmetic((n**2 + (1.5 * n if columns > 1 else 0)) * columns, precision)


def cholesky_solve(n: int, columns: int, precision: Precision) -> Work:
    """Two triangular solves after a factorisation."""
    return arithmetic((2 * n**2 + 8 * n) * columns, precision)


def solve_positive(n: int, columns: int, precision: Precision) -> Work:
    """scipy.linalg.solve(assume_a="pos"): Cholesky, two triangular solves, and since 1.15 the reciprocal condition
    number by potrs-like sweeps of Higham's estimator: some 14n²."""
    return cholesky(n, precision) + arithmetic((14 * n**2 + 33 * n) + 2.3 * n**2 * columns, precision)


def solve_symmetric(n: int, columns: int, precision: Precision) -> Work:
    """scipy.linalg.solve(assume_a="sym"): ⅓n³ (sytrf), the solves, the condition number."""
    return arithmetic(n**3 / 3 + 14.5 * n**2 + 5 * n + 2.2 * n**2 * columns, precision)


def lu(n: int, precision: Precision) -> Work:
    """⅔n³ + ½n² and the pivots (getrf)."""
    return arithmetic(0.68 * n**3 + 0.8 * n**2, precision)


def solve_checked(n: int, columns: int, precision: Precision) -> Work:
    """scipy.linalg.solve: LU, two triangular solves, and the reciprocal condition number."""
    return lu(n, precision) + arithmetic((12 * n**2 + 30 * n) + 2.1 * n**2 * columns, precision)


def inverse(n: int, precision: Precision = DOUBLE) -> Work:
    """numpy.linalg.inv (always double): LU and n right-hand sides, 2⅔n³."""
    return arithmetic(2.69 * n**3 + 2.9 * n**2, precision)


def inverse_checked(n: int, precision: Precision) -> Work:
    """scipy.linalg.inv: LU, the inverse in place (getri, together 2n³), and the condition number."""
    return arithmetic(2.1 * n**3 + 13 * n**2 + 33 * n, precision)


def determinant(n: int, *, logarithm: bool = True, precision: Precision = DOUBLE) -> Work:
    """numpy.linalg.slogdet (always double) or det: LU and the product of its diagonal, or the sum of its logarithms."""
    return lu(n, precision) + arithmetic((21 if logarithm else 1) * n, precision)


def qr(m: int, n: int, precision: Precision, *, form_q: bool = True, pivoting: bool = False) -> Work:
    """Householder QR: 2mn² - ⅔n³ for R and as much for the thin Q, with 4 to 8 operations per reflector and column.
    The norms of the columns (2mn) are accumulated in double. Pivoting keeps the norms of the columns: 2mn more."""
    k = min(m, n)
    one = 4 * m * n * k - 2 * (m + n) * k**2 + 4 / 3 * k**3
    norms = max(2 * m * k - k**2, 0)
    total = one + (one if form_q and m >= n else 2 * m * k * k - 2 / 3 * k**3 if form_q else 0)
    total += 8.5 * k**2 if form_q else 4 * k**2
    total += 2 * m * n if pivoting else 0
    return arithmetic(max(total - norms, 0), precision) + arithmetic(norms, DOUBLE)


def svd(m: int, n: int, precision: Precision, *, full: bool = False) -> Work:
    """gesdd with both sets of vectors. Tall (m >= 11/6·n): QR with Q (4mn²), the square R below, Q·U (2mn²). Else the
    matrix itself. To bidiagonal form and back 8mn² - 4/3·n³ (20/3·n³ for a square one); its vectors by `_divided`.
    Of one column there is a reflector, its way back and a product: 6m, and the norm, 5m (in single precision 2m)."""
    m, n = max(m, n), min(m, n)
    if n == 1 and not full:
        return arithmetic(6 * m, precision) + arithmetic((2 if precision.bits == 32 else 5) * m, DOUBLE)
    core = _divided(n, precision, 14.9, 35, 4.7, 0)
    norms = 2 * m * n
    if m >= 11 * n / 6:
        total = 6 * m * n**2 + 20 / 3 * n**3 + 1.6 * m * n + core
        total += 4 * m * n * (m - n) if full else 0
    else:
        total = 8 * m * n**2 - 4 / 3 * n**3 + 4.7 * m * n + core
        total += 4 * m * n * (m - n) if full else 0
    return arithmetic(max(total - norms, 0), precision) + arithmetic(norms, DOUBLE)


def singular_values(m: int, n: int, precision: Precision) -> Work:
    """Bidiagonal form, after QR where the matrix is tall, then dqds: about 28 operations per value and sweep of n."""
    m, n = max(m, n), min(m, n)
    reduced = 2 * m * n**2 + 2 * n**3 if m >= 11 * n / 6 else 4 * m * n**2 - 4 / 3 * n**3
    return arithmetic(reduced + 28 * n**2 + 1.6 * m * n + 60 * n, precision)


def least_squares(m: int, n: int, columns: int, precision: Precision) -> Work:
    """gelsd, what scipy.linalg.lstsq calls. QR of a tall matrix (m >= 1.6n, 2mn²) and Qᵀb (4mn each), the rest to
    bidiagonal form (2n³), whose right vectors come by `_divided`, its left ones are applied to b as they arise."""
    tall = m >= 1.6 * n
    m, n = max(m, n), min(m, n)
    reduced = 2 * m * n**2 + 2 * n**3 if tall else 4 * m * n**2 - 4 / 3 * n**3
    core = _divided(n, precision, 6.5, 8.7, 0.6, 96) + 56 * n**2
    more = (columns - 1) * (4 * m * n + (15 if n <= _LEAF else 9.2) * n**2)
    norms = 2 * m * n
    total = reduced + 5.5 * m * n + core + more + (_gathered_reflectors(m, n, columns) if tall else 0)
    return arithmetic(max(total - norms, 0), precision) + arithmetic(norms, DOUBLE)


def _gathered_reflectors(m: int, n: int, columns: int) -> float:
    """Reflectors that are applied to b by blocks first make a small matrix of each block: m times its width squared.
    `gelsd` leaves that to the room it has for the divided problem (of which 2n are in use), as `ormqr` sees it: from 51
    columns on."""
    halvings = int(math.log2(max(n / (_LEAF + 1), 1))) + 1
    room = (11 + 2 * _LEAF + 8 * halvings + columns) * n + (_LEAF + 1) ** 2
    width = min(_BLOCK, (room - _REFLECTORS) // columns)
    if not 2 <= width < n:
        return 0
    return float(sum((m - begin) * min(width, n - begin) ** 2 for begin in range(0, n, width)))


def _divided(n: int, precision: Precision, cubed: float, squared: float, merge: float, secular: float) -> float:
    """Divide and conquer down to problems of at most 25 columns, which are iterated (`cubed`·s³ + `squared`·s² each),
    and merged two by two (`merge`·t³ + `secular`·t²). In single precision iterations end sooner: 0.86 of them."""
    size, count, total = float(n), 1, 0.0
    while size > _LEAF:
        total += count * (merge * size**3 + secular * size**2)
        size, count = size / 2, 2 * count
    total += count * (cubed * size**3 + squared * size**2)
    return total * (0.86 if precision.bits == 32 else 1)


def eigh(n: int, precision: Precision) -> Work:
    """scipy.linalg.eigh (syevr): tridiagonal form 4/3·n³ and back 2n³; values and vectors of the tridiagonal matrix by
    relatively robust representations, some 90n². Above 32 columns in blocks."""
    if n < 3:
        return arithmetic(30 * n, precision)
    if n <= _BLOCK:
        return arithmetic(2.35 * n**3 + 70 * n**2 + 290 * n, precision)
    return arithmetic(10 / 3 * n**3 + 98 * n**2 + 230 * n, precision)


def eigh_divided(n: int, precision: Precision, rank: int = -1) -> Work:
    """syevd (numpy.linalg.eigh, always double): tridiagonal form and back 10/3·n³, divide and conquer between. Of a
    matrix without full rank the tridiagonal form is zero but for rounding after as many rows as its rank. Where two
    parts of it are merged, such values are done at once (LAPACK's deflation): of t columns with v others t·v² instead
    of t³ are left, and nothing where one of both parts has no others."""
    core = _divided(n, precision, 7.1, 11.6, 1.4, 45)
    if 0 <= rank < n:
        core -= _deflated(0.0, float(n), rank, 1.4, 45)
    return arithmetic(4.2 * n**3 + 13 * n**2 + core, precision)


def _deflated(begin: float, size: float, rank: int, merge: float, secular: float) -> float:
    """What mergers from `begin` on save by values that are zero."""
    if size <= _LEAF or begin + size <= rank:
        return 0.0
    half = size / 2
    others = max(rank - begin, 0.0) if begin + half < rank else 0.0
    saved = merge * size * (size**2 - others**2) + secular * (size**2 - others**2)
    return saved + sum(_deflated(start, half, rank, merge, secular) for start in (begin, begin + half))


def eigh_generalised(n: int, precision: Precision) -> Work:
    """scipy.linalg.eigh(a, b) (sygvd): Cholesky, the reduction (2n³), syevd, the way back."""
    return arithmetic(7.7 * n**3 + _divided(n, precision, 5.7, 33, 0.4, 57), precision)


def pseudo_inverse_symmetric(n: int, precision: Precision, rank: int = -1, *, shrunk: bool = False) -> Work:
    """scipy.linalg.pinvh: syev by QR iteration (9n³, of which 6.5n³ are rotations) and a product (2n³). Of a matrix
    without full rank only vectors of values that are not zero are multiplied; and where all the other values are zero,
    or the same since something was added to the diagonal, they are found at once, without rotations: those of the r
    others are left, nr² instead of n³ (zeros that are only small take a third of theirs)."""
    work = 12.1 * n**3 + 31 * n**2 if n <= _BLOCK else 11.2 * n**3 + 103 * n**2
    if 0 <= rank < n:
        work -= 6.5 * n * (n**2 - rank**2) if shrunk else 4.2 * n * (n**2 - rank**2) + 2 * n**2 * (n - rank)
    return arithmetic(work, precision)


def pseudo_inverse(m: int, n: int, precision: Precision) -> Work:
    """scipy.linalg.pinv: the SVD, U divided by the values, and the product of its factors."""
    k = min(m, n)
    return svd(m, n, precision) + arithmetic(m * k, precision) + gemm(n, k, m, precision)
