"""What numpy and scipy execute for whole arrays: sums over columns, variances, norms, special functions, sparse rows.

Every number was read with the valgrind tool on arrays of several shapes (AVX2). Functions that scipy computes in double
whatever it is given say so: single precision in, double precision arithmetic.
"""

from __future__ import annotations

import math

from bitwatt.dtypes import Precision
from bitwatt.formulas.vector import DOUBLE, EXP, LOG, SINGLE, arithmetic, function
from bitwatt.records import Product, TensorSpec, Work

#: Operations per element: (float64, float32). Branches make them vary by a few percent with the values.
LOG1P, EXPM1, SQRT = (32, 29), (31, 29), (1, 1)
#: Per element, in double whatever comes in.
DIGAMMA, LOG_GAMMA = 34, 52


def normal_quantiles(middle: float, tails: float) -> Work:
    """scipy's `norm.ppf`: a quotient of polynomials of degrees 4 and 8 (32 operations); in the tails, of shares below
    exp(-2), one of degrees 8 and 8, of a root and after two logarithms (85)."""
    return arithmetic(32 * middle + 85 * tails, DOUBLE)


def normal_shares(middle: float, tails: float) -> Work:
    """scipy's `norm.cdf`: a quotient of polynomials of degrees 4 and 5 (25 operations); beyond √2, one of degrees 8 and
    8 and an exponential (59)."""
    return arithmetic(25 * middle + 59 * tails, DOUBLE)


def floats(X: TensorSpec) -> Precision:
    """The precision in which estimators that keep single precision compute: integers become double."""
    return SINGLE if X.precision.name == "float32" else DOUBLE


def stored(X: TensorSpec) -> int:
    """Elements in memory: all of a dense array, the stored ones of a sparse matrix."""
    return X.numel if X.nnz is None else X.nnz


def checked(X: TensorSpec) -> Work:
    """`validate_data` into a floating-point array: it is summed up to see whether a value is not finite."""
    return Work.of(floats(X), add=stored(X))


def lanes(columns: int, precision: Precision) -> int:
    """numpy adds row to row in registers of four doubles (eight floats), of which the last is whole also where columns
    end; up to two registers it goes one by one."""
    width = 8 if precision.bits == 32 else 4
    return columns if columns <= 2 * width else width * math.ceil(columns / width)


def column_sums(rows: int, columns: int, precision: Precision) -> Work:
    """`X.sum(axis=0)`: one addition for each element, in whole registers."""
    return Work.of(precision, add=rows * lanes(columns, precision))


def column_means(rows: int, columns: int, precision: Precision) -> Work:
    """The sums and a division for each column."""
    return column_sums(rows, columns, precision) + Work.of(DOUBLE, div=lanes(columns, DOUBLE))


def column_variances(rows: int, columns: int, precision: Precision) -> Work:
    """`X.var(axis=0)`: means, deviations, squares, their means: four operations per element."""
    return column_means(rows, columns, precision) * 2 + Work.of(precision, add=rows * columns, mul=rows * columns)


def row_squares(rows: int, columns: int, precision: Precision) -> Work:
    """Squared norms of rows by `einsum("ij,ij->i")`: 2 per element, and the sum of a register for each row."""
    return arithmetic(rows * (2 * columns + (13 if precision.bits == 32 else 3)), precision)


def log_sum_exp(rows: int, columns: int, precision: Precision, vanished: int = 0, sure: int = 0) -> Work:
    """scikit-learn's own logsumexp of each row: the maximum apart, then for each element a difference, an exponential
    and two sums, and for each row a division, log1p of what is left, the logarithm of how many are largest, and two
    sums. In double the exponential of the largest, minus infinity by then, and the logarithm of one are known; log1p
    is 25 up to √2 - 1 and 35 above it, 30 here. In single precision all lanes are worked out, log1p in 27. Per thousand
    where somebody looked: exponentials that `vanished`, and rows of which one column is `sure`, where log1p takes 3."""
    if precision.bits == 32:
        return arithmetic(rows * (27 * columns + 59), precision, compare=rows * columns)
    known = EXP[0] * columns * vanished / 1000 + 27 * sure / 1000
    each = 23 * columns - EXP[0] + 33 - known if columns > 1 else 8
    return arithmetic(rows * each, precision, compare=rows * columns)


def soft_max(rows: int, columns: int, precision: Precision) -> Work:
    """scikit-learn's softmax: subtract the maximum, exponentials, their sum, divide."""
    return function(EXP, rows * columns, precision) + arithmetic(
        2 * rows * columns, precision, div=rows * columns, compare=rows * columns
    )


def power(elements: float, precision: Precision) -> Work:
    """`x ** y`: 61 in double; powf computes in double too, with a shorter polynomial: 27."""
    return arithmetic((27 if precision.bits == 32 else 61) * elements, DOUBLE)


def logistic(elements: float, precision: Precision) -> Work:
    """scipy's expit: 22 in double; in single precision the exponential runs in double (13) and 2 do not."""
    if precision.bits == 32:
        return arithmetic(13 * elements, DOUBLE) + arithmetic(2 * elements, SINGLE)
    return arithmetic(22 * elements, DOUBLE)


def quantiles(columns: int, wanted: int, precision: Precision) -> Work:
    """`nanpercentile` of each column: partitioning compares; positions, neighbours and interpolation of each wanted
    value are 8 operations, and a call some 107."""
    return arithmetic(columns * (7 * wanted + 107), DOUBLE) + arithmetic(columns * wanted, precision)


def interpolated(calls: int, elements: float, knots: int, between: float = 1.0) -> Work:
    """`np.interp` of so many elements in all, in double: slope·(x - x0) + y0 where they lie between knots. Slopes are
    made once for a call (3 per knot), or where it has fewer elements than knots for each of them."""
    many = elements >= calls * knots
    total = 3 * elements * between + 3 * calls * knots if many else 6 * elements * between
    return arithmetic(total, DOUBLE, compare=elements * math.ceil(math.log2(max(knots, 2))))


def distinct(columns: int) -> Work:
    """`np.unique` of a column: sorting or hashing, and 29 operations of its bookkeeping."""
    return arithmetic(29 * columns, DOUBLE)


def sparse_mean_variance(X: TensorSpec) -> Work:
    """Mean and variance of each column of a sparse matrix, in double: 9 per stored element, 29 per column."""
    return arithmetic(9 * stored(X) + 29 * X.shape[1], DOUBLE)


def sparse_width(columns: int, precision: Precision) -> int:
    """Columns that a row of scipy's sparse product computes: in single precision two that are left over from registers
    of four fill one, and three take one more."""
    return 4 * (columns // 4) + (0, 1, 4, 5)[columns % 4] if precision.bits == 32 else columns


def sparse_dense(X: TensorSpec, columns: int, precision: Precision) -> Work:
    """A sparse matrix by a dense one: a multiply-accumulate for each stored element and column of the other. It is
    counted as a product of a row of stored elements."""
    wide = sparse_width(columns, precision)
    if not (stored(X) and columns):
        return Work()
    return Work(products=((Product(1, 1, wide, stored(X), precision, precision), 1),))


def sparse_gram(X: TensorSpec, precision: Precision) -> Work:
    """XᵀX of a sparse matrix: a multiply-accumulate for each pair stored in the same row; pairs follow from a binomial
    number of elements in each row."""
    rows, columns = X.shape
    mean = stored(X) / max(rows, 1)
    pairs = round(rows * (mean**2 + mean * (1 - mean / max(columns, 1))))
    return Work(products=((Product(1, 1, 1, pairs, precision, precision), 1),)) if pairs else Work()


def logarithms(elements: float, precision: Precision, *known: int) -> Work:
    """`np.log`. In double 22, and 39 near to one, by a longer polynomial; that of one is known, that of zero a
    division of floats: `known` tells these per thousand, where somebody looked."""
    if precision.bits == 32 or not known:
        return function(LOG, elements, precision)
    near, one, zero = (share / 1000 for share in known)
    none = Work.of(SINGLE, div=round(elements * zero))
    return arithmetic(elements * (22 * (1 - one - zero) + 17 * near), DOUBLE) + none
