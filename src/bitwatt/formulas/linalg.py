"""Matrix products and factorisations."""

from bitwatt.dtypes import Precision
from bitwatt.records import NECESSARY, SPARSE, Product, TensorSpec, Work


def matmul(
    m: int, k: int, n: int, a: TensorSpec, b: TensorSpec, *, batch: int = 1, times: int = 1, part: str = NECESSARY
) -> Work:
    """`times` batches of m x k by k x n: batch·m·n·k multiply-accumulates (Golub & Van Loan, Matrix Computations 1.1)."""
    if not (batch and m and k and n):
        return Work()
    return Work(products=((Product(batch, m, n, k, a.precision, b.precision, part), times),))


def sparse_matmul(m: int, k: int, n: int, a: TensorSpec, b: TensorSpec, stored: int) -> Work:
    """m x k by k x n where the first has `stored` elements: stored·n are necessary, the other products fall on zeros."""
    necessary = Product(1, stored, n, 1, a.precision, b.precision)
    rest = Product(1, m * k - stored, n, 1, a.precision, b.precision, SPARSE)
    return Work(products=tuple((product, 1) for product in (necessary, rest) if product.macs))


def bias_add(elements: int, precision: Precision) -> Work:
    """One addition for each output element."""
    return Work.of(precision, add=elements)
