"""The parts of linear models: products with the data, centring, pointwise losses, minimisers, sweeps over coordinates.

Everything is a function of sizes: rows, columns, stored elements of a sparse matrix, precision, iterations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import column_means, floats, lanes, row_squares, sparse_width
from bitwatt.formulas.lapack import gemv, syrk
from bitwatt.formulas.vector import DOUBLE, EXP, SINGLE, arithmetic, function, left_over
from bitwatt.records import Product, TensorSpec, Work


@dataclass(frozen=True)
class Design:
    """The data matrix of a linear model: `stored` is -1 where it is dense, `rowwise` false where columns lie together
    (coordinate descent asks for that)."""

    rows: int
    columns: int
    stored: int
    precision: Precision
    rowwise: bool = True

    @classmethod
    def of(cls, X: TensorSpec) -> Design:
        rows, columns = X.shape[0], X.shape[1] if len(X.shape) > 1 else 1
        return cls(rows, columns, -1 if X.nnz is None else X.nnz, floats(X))

    @classmethod
    def probed(cls, rows: int, columns: int, stored: int, bits: int) -> Design:
        """As readers tell it: `stored` is -2 where it is dense and columns lie together."""
        return cls(rows, columns, max(stored, -1), SINGLE if bits == 32 else DOUBLE, stored != -2)

    @classmethod
    def kept(cls, X: TensorSpec) -> Design:
        """X as it lies in memory, of solvers that ask for no order."""
        return replace(cls.of(X), rowwise=not X.columnwise)

    def in_precision(self, precision: Precision) -> Design:
        return Design(self.rows, self.columns, self.stored, precision, self.rowwise)

    @property
    def is_sparse(self) -> bool:
        return self.stored >= 0

    @property
    def elements(self) -> int:
        return self.stored if self.is_sparse else self.rows * self.columns

    def checked(self) -> Work:
        """The finiteness check: one addition for each element."""
        return Work.of(self.precision, add=self.elements)

    def times(self, columns: int = 1, *, vector: bool = True) -> Work:
        """X·w, or X·W for several columns."""
        if self.is_sparse:
            return stored_product(self.elements, columns, self.precision)
        if columns == 1 and vector:
            return gemv(self.rows, self.columns, self.precision, columns=not self.rowwise)
        return product(self.rows, self.columns, columns, self.precision)

    def transposed(self, columns: int = 1, *, vector: bool = True) -> Work:
        """Xᵀ·v, or Xᵀ·V."""
        if self.is_sparse:
            return stored_product(self.elements, columns, self.precision)
        if columns == 1 and vector:
            return gemv(self.columns, self.rows, self.precision, columns=self.rowwise)
        return product(self.columns, self.rows, columns, self.precision)

    def gram(self) -> Work:
        """XᵀX: the upper half of a dense one; pairs within the rows of a sparse one."""
        if self.is_sparse:
            mean = self.stored / max(self.rows, 1)
            pairs = round(self.rows * mean * (mean + 1 - mean / max(self.columns, 1)))
            return stored_product(pairs, 1, self.precision)
        return syrk(self.columns, self.rows, self.precision)

    def outer_gram(self) -> Work:
        """XXᵀ."""
        if self.is_sparse:
            mean = self.stored / max(self.columns, 1)
            return stored_product(round(self.columns * mean * (mean + 1)), 1, self.precision)
        return syrk(self.rows, self.columns, self.precision)

    def row_norms(self) -> Work:
        """Squared norms of the rows."""
        if self.is_sparse:
            return arithmetic(2 * self.elements, self.precision)
        return row_squares(self.rows, self.columns, self.precision)


def product(m: int, k: int, n: int, precision: Precision) -> Work:
    """A matrix product by OpenBLAS: 2mkn; each result is multiplied by alpha, and in single precision added to what was
    there; in double small products (up to 10⁶) do that too unless their columns come in fours, and those with less
    than eight to add up. A single column goes through gemv."""
    if not (m and k and n):
        return Work()
    if n == 1:
        return gemv(m, k, precision)
    if k == 1:  # without BLAS: nothing but the product, added to zero
        return arithmetic(2 * m * n, precision)
    both = precision.bits == 32 or k < 8 or (n % 4 and m * k * n <= 1_000_000)
    rest = 2 * m * n if both else m * n
    rest += 2 * k * left_over(m, n, precision)
    return Work(products=((Product(1, m, n, k, precision, precision), 1),)) + arithmetic(rest, precision)


def stored_product(stored: int, columns: int, precision: Precision) -> Work:
    """A multiply-accumulate for each stored element and column."""
    if not (stored and columns):
        return Work()
    return Work(products=((Product(1, 1, sparse_width(columns, precision), stored, precision, precision), 1),))


def centred(design: Design, targets: int, *, weighted: bool = False, rescaled: bool = True) -> Work:
    """Means of columns and targets taken off; of a sparse matrix only the means are made (with the variances that
    come along: 9 per stored element in double). Weights make the means weighted, for which they are added up twice, and
    scale rows by their root."""
    n, f, p = design.rows, design.columns, design.precision
    work = arithmetic((1 + weighted) * n * targets + n * targets + 2 * n * weighted, p)
    if design.is_sparse:
        work += arithmetic(9 * design.elements + 29 * f, DOUBLE)
    else:
        work += column_means(n, f, p) * (1 + weighted) + arithmetic(n * f, p)
    return work + rescaled_rows(design, targets) if weighted and rescaled else work


def rescaled_rows(design: Design, targets: int) -> Work:
    """Rows and targets by the root of their weights."""
    n = design.rows
    return arithmetic(design.elements + n * targets, design.precision, sqrt=n)


def intercepts(features: int, targets: int, precision: Precision) -> Work:
    """y̅ - x̅·w."""
    return arithmetic((2 * features + 2) * targets + features, precision)


#: Operations per sample of the losses' loops, which run in double whatever comes in: (loss, gradient, both, gradient
#: and Hessian). An exponential is 20, a logarithm 23, log(1 + x) 32 in scalar code, a power 61.
LOSSES = {
    "HalfBinomialLoss": (45, 25, 58, 27), "HalfPoissonLoss": (22, 21, 23, 21), "HalfGammaLoss": (22, 22, 23, 22),
    "HalfTweedieLoss": (48, 46, 49, 50), "HalfTweedieLoss:0.0": (23, 22, 25, 24),
    "HalfTweedieLoss:1.0": (22, 21, 23, 21), "HalfTweedieLoss:2.0": (22, 22, 23, 22),
    "HalfTweedieLossIdentity": (132, 63, 135, 68),
    "HalfTweedieLossIdentity:0.0": (3, 1, 3, 1), "HalfTweedieLossIdentity:0": (3, 1, 3, 1),
    "HalfSquaredError": (3, 1, 4, 1),
}  # fmt: skip


def pointwise_loss(kind: str, classes: int, what: int, samples: int, weighted: bool, *, at_zero: bool = False) -> Work:
    """A loss over samples. Softmax: an exponential for all classes but the largest, 3 more for each, and for the loss
    a logarithm. Where all coefficients are zero, as at the start, exp(0) is known: 19 less for each exponential."""
    if classes:
        each = (22 * classes + 5, 23 * classes - 18, 23 * classes + 6, 23 * classes - 18)[what]
        weights = classes * weighted
    else:
        each = LOSSES.get(kind, LOSSES.get(kind.partition(":")[0], (45, 25, 60, 27)))[what]
        weights = (1, 1, 2, 2)[what] * weighted
    if at_zero and not kind.startswith(("HalfSquared", "HalfTweedieLossIdentity")):
        each -= 19 * max(classes - 1, 1) * (2 if kind == "HalfBinomialLoss" and what == 2 else 1)
    return arithmetic((each + weights) * samples, DOUBLE)


@lru_cache(1_000)  # searches ask for the same few again and again
def linear_loss(
    design: Design, kind: str, classes: int, weighted: bool, known: bool, what: int, *, at_zero: bool = False
) -> Work:
    """`LinearModelLoss`: raw predictions X·w (unless known), the loss, its mean, the gradient Xᵀ·g / n with the
    penalty's. `what` is 0 for the loss, 1 for the gradient, 2 for both."""
    n, f, p = design.rows, design.columns, design.precision
    width = classes or 1
    several = bool(classes)
    work = Work() if known else raw_prediction(design, width, several)
    work += pointwise_loss(kind, classes, what, n, weighted, at_zero=at_zero) + arithmetic(n * weighted, p)
    if what != 1:
        work += arithmetic(n + 2 * f * width + 17, p)
    if what:
        work += loss_gradient(design, width, several)
    return work


def raw_prediction(design: Design, width: int, several: bool) -> Work:
    """X·w + b."""
    return design.times(width, vector=not several) + arithmetic(design.rows * width, design.precision)


def loss_gradient(design: Design, width: int, several: bool) -> Work:
    """g / n, Xᵀ·g, the penalty's gradient, and Σg for the intercept."""
    n, f, p = design.rows, design.columns, design.precision
    sums = n * (lanes(width, p) if several else 1)
    return design.transposed(width, vector=not several) + arithmetic(n * width + 2 * f * width + sums, p)


def lbfgs(variables: int, iterations: int, evaluations: int, *, bounded: bool = False) -> Work:
    """L-BFGS-B in double. With k pairs of differences in memory (at most 10) a step multiplies by all of them: the
    Cauchy point, the subspace and the update take 17k + 12 operations per variable (with bounds, even on one variable,
    26k + 12), the matrices of 2k columns about 6k³ (7k³). Each further evaluation of a line search takes 6."""
    pair, cube = (26, 7) if bounded else (17, 6)
    total = 0.0
    for step in range(min(iterations, 10)):
        total += variables * (pair * step + 12) + cube * step**3
    total += max(iterations - 10, 0) * (variables * (10 * pair + 12) + 1000 * cube)
    return arithmetic(total + 6 * variables * max(evaluations - iterations, 0), DOUBLE)


def conjugate_gradients(variables: int, iterations: int, precision: Precision) -> Work:
    """Two dot products and three updates in each step: 12 per variable."""
    return arithmetic(12 * variables * iterations, precision)


def lsqr(rows: int, columns: int, iterations: int, precision: Precision) -> Work:
    """The vectors of LSQR's bidiagonalisation beside its products: u (updated, its norm, scaled) 5 per row, and v, w, x
    and their norms 12 per column; rotations, roots, and the ends of the norms are 664 for each step (400 in single
    precision, nearly all of which are in double)."""
    vectors = arithmetic(iterations * (5 * rows + 12 * columns) + 5 * rows + 6 * columns, precision)
    return vectors + arithmetic((664 if precision.bits == 64 else 400) * iterations, DOUBLE)


def soft_max(rows: int, classes: int, precision: Precision) -> Work:
    """scikit-learn's softmax: the maximum off, exponentials (of the largest, exp(0), in double none), sum, divide."""
    exponentials = function(EXP, rows * (classes if precision.bits == 32 else classes - 1), precision)
    return exponentials + arithmetic(2 * rows * classes, precision, div=rows * classes, compare=rows * classes)
