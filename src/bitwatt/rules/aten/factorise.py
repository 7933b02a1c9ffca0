"""Factorisations and solves of linear algebra, for every matrix of a batch."""

import math
from typing import Any

from bitwatt.formulas import factorise as lapack
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.reduction import vector_norm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs


def _matrices(spec: TensorSpec) -> tuple[int, int, int]:
    """How many matrices, their rows and columns."""
    m, n = spec.shape[-2:]
    return math.prod(spec.shape[:-2]), m, n


def _squares(spec: TensorSpec) -> tuple[int, int]:
    """How many square matrices, and their size."""
    return math.prod(spec.shape[:-2]), spec.shape[-1]


def _work(spec: TensorSpec, operations: float, *, estimated: bool = False) -> Work:
    return lapack.arithmetic(spec, operations, estimated=estimated)


def _columns(right: TensorSpec, batch: int, n: int) -> int:
    """Right-hand sides for each of `batch` matrices: the result has n numbers for each."""
    return right.numel // max(batch * n, 1)


@rule("aten.linalg_cholesky_ex", "aten.linalg_cholesky", "aten.cholesky", family="linalg")
@rule("aten.linalg_ldl_factor_ex", "aten.linalg_ldl_factor", family="linalg")
def cholesky(self: TensorSpec, **_: Any) -> Work:
    """⅓n³ per matrix, half mul and half add."""
    batch, n = _squares(self)
    return _work(self, batch * lapack.cholesky(n))


@rule("aten.cholesky_inverse", family="linalg")
def cholesky_inverse(self: TensorSpec, **_: Any) -> Work:
    """The inverse from its factor: ⅔n³ per matrix."""
    batch, n = _squares(self)
    return _work(self, batch * 2 * lapack.cholesky(n))


@rule("aten.cholesky_solve", "aten._cholesky_solve_helper", family="linalg")
def cholesky_solve(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """Two triangular solves: 2n² per right-hand side."""
    return _work(self, 2.0 * self.shape[-2] * out[0].numel)


@rule("aten.linalg_lu_factor_ex", "aten.linalg_lu_factor", "aten.linalg_lu", "aten._lu_with_info", family="linalg")
def lu(A: Any = None, self: Any = None, **_: Any) -> Work:
    """2mnk - (m+n)k² + ⅔k³ per matrix, k = min(m, n): ⅔n³ for a square."""
    matrix = A if A is not None else self
    batch, m, n = _matrices(matrix)
    return _work(matrix, batch * lapack.lu(m, n))


@rule("aten.linalg_lu_solve", "aten.lu_solve", "aten.linalg_ldl_solve", family="linalg")
def lu_solve(out: Specs, LU: Any = None, LU_data: Any = None, LD: Any = None, **_: Any) -> Work:
    """Two triangular solves: 2n² per right-hand side."""
    factor = LU or LU_data or LD
    return _work(out[0], 2.0 * factor.shape[-1] * out[0].numel)


@rule("aten._linalg_solve_ex", "aten.linalg_solve_ex", "aten.linalg_solve", family="linalg")
def solve(A: TensorSpec, out: Specs, **_: Any) -> Work:
    """LU and two triangular solves: ⅔n³ per matrix and 2n² per right-hand side."""
    batch, n = _squares(A)
    return _work(A, batch * lapack.lu(n, n) + 2.0 * n * out[0].numel)


@rule("aten.linalg_inv_ex", "aten.linalg_inv", "aten.inverse", family="linalg")
def inverse(A: Any = None, self: Any = None, **_: Any) -> Work:
    """2n³ per matrix: LU, then both triangles inverted and multiplied."""
    matrix = A if A is not None else self
    batch, n = _squares(matrix)
    return _work(matrix, batch * lapack.inverse(n))


@rule("aten.triangular_solve", "aten.linalg_solve_triangular", family="linalg")
def triangular_solve(out: Specs, A: Any = None, self: Any = None, **_: Any) -> Work:
    """Back substitution: n² per right-hand side."""
    matrix = A if A is not None else self
    return _work(out[0], float(matrix.shape[-1]) * out[0].numel)


@rule("aten.linalg_qr", "aten.qr", family="linalg")
def qr(A: Any = None, self: Any = None, mode: str = "reduced", some: bool = True, **_: Any) -> Work:
    """Householder: 2mn² - ⅔n³ per matrix (m >= n), and as much again to form Q unless mode="r"."""
    matrix = A if A is not None else self
    batch, m, n = _matrices(matrix)
    k = min(m, n)
    columns = 0 if mode == "r" else m if mode == "complete" or not some else k
    return _work(matrix, batch * (lapack.qr(m, n) + (lapack.form_q(m, columns, k) if columns else 0)))


@rule("aten.geqrf", family="linalg")
def geqrf(self: TensorSpec, **_: Any) -> Work:
    """Householder QR, Q left as reflectors: 2mn² - ⅔n³ per matrix (m >= n)."""
    batch, m, n = _matrices(self)
    return _work(self, batch * lapack.qr(m, n))


@rule("aten.linalg_householder_product", "aten.orgqr", family="linalg")
def householder_product(tau: Any = None, input: Any = None, self: Any = None, input2: Any = None, **_: Any) -> Work:
    """Q from k reflectors: 4mnk - 2(m+n)k² + 4/3·k³ per matrix."""
    reflectors, tau = input or self, tau or input2
    batch, m, n = _matrices(reflectors)
    return _work(reflectors, batch * lapack.form_q(m, n, tau.shape[-1]))


@rule("aten.ormqr", family="linalg")
def ormqr(input2: TensorSpec, input3: TensorSpec, left: bool = True, **_: Any) -> Work:
    """Q times a matrix: 4mnk - 2nk² per matrix, k the reflectors."""
    batch, m, n = _matrices(input3)
    m, n = (m, n) if left else (n, m)
    return _work(input3, batch * lapack.apply_q(m, n, input2.shape[-1]))


@rule("aten._linalg_det", "aten.linalg_det", "aten.det", family="linalg")
def det(A: Any = None, self: Any = None, **_: Any) -> Work:
    """LU, then the product of the diagonal: ⅔n³ and n mul per matrix."""
    matrix = A if A is not None else self
    batch, n = _squares(matrix)
    return _work(matrix, batch * lapack.lu(n, n)) + pointwise(matrix, batch * n, mul=1)


@rule("aten._linalg_slogdet", "aten.linalg_slogdet", "aten.slogdet", "aten.logdet", family="linalg")
def slogdet(A: Any = None, self: Any = None, **_: Any) -> Work:
    """LU, then the sum of the logarithms of the diagonal: ⅔n³, n log and n add per matrix."""
    matrix = A if A is not None else self
    batch, n = _squares(matrix)
    return _work(matrix, batch * lapack.lu(n, n)) + pointwise(matrix, batch * n, log=1, add=1)


@rule("aten._linalg_eigh", "aten.linalg_eigh", family="linalg")
def eigh(A: Any = None, self: Any = None, compute_v: bool = True, **_: Any) -> Work:
    """Tridiagonal form 4/3·n³; with vectors 14/3·n³ by divide and conquer. An estimate: deflation depends on data."""
    matrix = A if A is not None else self
    batch, n = _squares(matrix)
    return _work(matrix, batch * lapack.eigh(n, vectors=compute_v), estimated=True)


@rule("aten.linalg_eigvalsh", family="linalg")
def eigvalsh(self: TensorSpec, **_: Any) -> Work:
    """Tridiagonal form: 4/3·n³ per matrix."""
    return eigh(self=self, compute_v=False)


@rule("aten.linalg_eig", family="linalg")
def eig(self: TensorSpec, **_: Any) -> Work:
    """Hessenberg form and QR iteration with vectors: 25n³ per matrix, an estimate."""
    batch, n = _squares(self)
    return _work(self, batch * lapack.eig(n, vectors=True), estimated=True)


@rule("aten.linalg_eigvals", "aten._linalg_eigvals", family="linalg")
def eigvals(self: TensorSpec, **_: Any) -> Work:
    """Hessenberg form and QR iteration: 10n³ per matrix, an estimate."""
    batch, n = _squares(self)
    return _work(self, batch * lapack.eig(n, vectors=False), estimated=True)


@rule("aten._linalg_svd", "aten.linalg_svd", "aten.svd", family="linalg")
def svd(
    A: Any = None,
    self: Any = None,
    full_matrices: bool | None = None,
    some: bool = True,
    compute_uv: bool = True,
    **_: Any,
) -> Work:
    """Bidiagonal form 4mn² - 4/3·n³ (m >= n); with vectors 8mn² + 4/3·n³ by divide and conquer. An estimate."""
    matrix = A if A is not None else self
    batch, m, n = _matrices(matrix)
    full = not some if full_matrices is None else full_matrices
    return _work(matrix, batch * lapack.svd(m, n, vectors=compute_uv, full=full), estimated=True)


@rule("aten.linalg_svdvals", "aten.linalg_matrix_rank", "aten.linalg_cond", "aten.nuclear_norm", family="linalg")
def svdvals(A: Any = None, self: Any = None, input: Any = None, **_: Any) -> Work:
    """Bidiagonal form: 4mn² - 4/3·n³ per matrix (m >= n), an estimate."""
    return svd(A=A or self or input, compute_uv=False)


@rule("aten.linalg_matrix_norm", family="linalg")
def matrix_norm(self: TensorSpec, out: Specs, ord: Any = "fro", **_: Any) -> Work:
    """fro: 1 mul, 1 add per element, 1 sqrt per result; 1, inf: 1 add per element, then compares; 2, nuc: the values
    of an SVD, an estimate."""
    if ord == "fro":
        return vector_norm(self, self.numel, out[0].numel)
    if ord in (2, -2, "nuc"):
        return svd(A=self, compute_uv=False)
    return pointwise(self, self.numel, logic=1, add=1) + pointwise(self, sum(self.shape[-2:]), compare=1)


@rule("aten.linalg_pinv", "aten.pinverse", family="linalg")
def pinv(self: TensorSpec, **_: Any) -> Work:
    """SVD, then V·Σ⁺·Uᵀ: 8mn² + 4/3·n³ and 2mnk per matrix, an estimate."""
    batch, m, n = _matrices(self)
    return svd(A=self) + _work(self, 2.0 * batch * m * n * min(m, n))


@rule("aten.linalg_lstsq", family="linalg")
def lstsq(self: TensorSpec, b: TensorSpec, driver: str | None = None, **_: Any) -> Work:
    """QR, Qᵀb and back substitution: 2mn² - ⅔n³ per matrix and 4mn - n² per right-hand side; drivers gelsd, gelss an
    SVD and 2mn + 2n² per right-hand side, an estimate."""
    batch, m, n = _matrices(self)
    columns = _columns(b, batch, m)
    if driver in ("gelsd", "gelss"):
        k = min(m, n)
        solved = _work(self, 2.0 * batch * columns * k * (m + n))
        return _work(self, batch * lapack.svd(m, n, vectors=True), estimated=True) + solved
    return _work(self, batch * lapack.least_squares(m, n, columns))


@rule("aten.linalg_matrix_exp", "aten.matrix_exp", family="linalg")
def matrix_exp(self: TensorSpec, **_: Any) -> Work:
    """A Taylor polynomial of degree 18: 5 products of 2n³ per matrix; how many squarings follow depends on the norm."""
    batch, n = _squares(self)
    return _work(self, batch * lapack.matrix_exp(n), estimated=True)


@rule("aten.matrix_exp_backward", family="linalg")
def matrix_exp_backward(self: TensorSpec, **_: Any) -> Work:
    """The exponential of a block matrix of twice the size: 5·2·(2n)³ per matrix."""
    batch, n = _squares(self)
    return _work(self, batch * lapack.matrix_exp(2 * n), estimated=True)


@rule("aten.linalg_matrix_power", "aten.matrix_power", family="linalg")
def matrix_power(self: TensorSpec, n: int, **_: Any) -> Work:
    """Repeated squaring: floor(log2 |k|) squares, a product for each other bit set, 2n³ each; an inverse if k < 0."""
    batch, size = _squares(self)
    products = max(abs(n).bit_length() - 1, 0) + max(abs(n).bit_count() - 1, 0)
    return _work(self, batch * (products * 2.0 * size**3 + (lapack.inverse(size) if n < 0 else 0)))


@rule("aten.linalg_tensorinv", "aten.linalg_tensorsolve", family="linalg")
def tensor_solve(self: TensorSpec, out: Specs, other: Any = None, **_: Any) -> Work:
    """The tensor as an n x n matrix: inverted, 2n³, or solved for one right-hand side, ⅔n³ + 2n²."""
    n = math.isqrt(self.numel)
    return _work(self, lapack.inverse(n) if other is None else lapack.lu(n, n) + 2.0 * n * n)


@rule("aten._compute_linear_combination", family="linalg")
def linear_combination(input: TensorSpec, coefficients: TensorSpec, **_: Any) -> Work:
    """Σ c·A: 1 mul, 1 add for each coefficient and element."""
    elements = coefficients.shape[0] * input.numel
    return pointwise(input, elements, mul=1, add=1)
