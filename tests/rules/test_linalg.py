"""Factorisations and transforms against textbook loops that count themselves. Lower-order terms may differ."""

from __future__ import annotations

import cmath

import pytest
import torch

from rules.capture import Number, kinds, sqrt, tallied, works_of

N = 24


def _flops(counts: dict[str, int]) -> int:
    return sum(n for kind, n in counts.items() if kind not in ("compare", "logic"))


def _numbers(matrix: torch.Tensor) -> list[list[Number]]:
    return [[Number(v) for v in row] for row in matrix.tolist()]


@pytest.fixture
def definite() -> torch.Tensor:
    torch.manual_seed(0)
    a = torch.rand(N, N, dtype=torch.float64)
    return a @ a.T + N * torch.eye(N, dtype=torch.float64)


def _eliminate(a):
    n = len(a)
    for k in range(n):
        for i in range(k + 1, n):
            a[i][k] = a[i][k] / a[k][k]
            for j in range(k + 1, n):
                a[i][j] = a[i][j] - a[i][k] * a[k][j]
    return a


def _cholesky(a):
    n = len(a)
    for j in range(n):
        a[j][j] = sqrt(a[j][j])
        for i in range(j + 1, n):
            a[i][j] = a[i][j] / a[j][j]
        for k in range(j + 1, n):
            for i in range(k, n):
                a[i][k] = a[i][k] - a[i][j] * a[k][j]
    return a


def _substitute(lower, b):
    for i in range(len(b)):
        for j in range(i):
            b[i] = b[i] - lower[i][j] * b[j]
        b[i] = b[i] / lower[i][i]
    return b


def _householder(a):
    """Upper triangle by reflections x - 2v(vᵀx)/(vᵀv), v not stored."""
    m, n = len(a), len(a[0])
    for k in range(n):
        size = Number(0)
        for i in range(k, m):
            size = size + a[i][k] * a[i][k]
        alpha = float(sqrt(size)) * (-1 if float(a[k][k]) > 0 else 1)
        v = [a[i][k] for i in range(k, m)]
        v[0] = v[0] - alpha
        length = Number(0)
        for x in v:
            length = length + x * x
        for j in range(k, n):
            dot = Number(0)
            for i in range(k, m):
                dot = dot + v[i - k] * a[i][j]
            factor = 2 * dot / length
            for i in range(k, m):
                a[i][j] = a[i][j] - factor * v[i - k]
    return a


def test_elimination_counts_two_thirds_of_the_cube(definite: torch.Tensor) -> None:
    lu, counts = tallied(_eliminate, _numbers(definite))
    torch_lu, *_ = torch.linalg.lu_factor_ex(definite, pivot=True)
    assert [float(lu[i][i]) for i in range(N)] == pytest.approx(torch_lu.diagonal().tolist())
    work = works_of(lambda: torch.linalg.lu_factor_ex(definite))["aten.linalg_lu_factor_ex"]
    assert _flops(kinds(work)) == pytest.approx(_flops(counts), rel=0.05)
    assert work.macs == 0  # no matrix product of the program's own


def test_cholesky_counts_a_third_of_the_cube(definite: torch.Tensor) -> None:
    factor, counts = tallied(_cholesky, _numbers(definite))
    expected = torch.linalg.cholesky(definite)
    assert [float(factor[i][i]) for i in range(N)] == pytest.approx(expected.diagonal().tolist())
    work = works_of(lambda: torch.linalg.cholesky_ex(definite))["aten.linalg_cholesky_ex"]
    assert _flops(kinds(work)) == pytest.approx(_flops(counts), rel=0.1)


def test_cholesky_is_near_what_the_instrument_read() -> None:
    # valgrind counted 74,195 operations for n = 60 (LAPACK, AVX2); n³/3 = 72,000
    work = works_of(lambda: torch.linalg.cholesky_ex(torch.eye(60)))["aten.linalg_cholesky_ex"]
    assert _flops(kinds(work)) == 72_000


def test_back_substitution_counts_the_square(definite: torch.Tensor) -> None:
    lower = torch.linalg.cholesky(definite)
    b = torch.rand(N, 1, dtype=torch.float64)
    x, counts = tallied(_substitute, _numbers(lower), [Number(v) for v in b.flatten().tolist()])
    assert [float(v) for v in x] == pytest.approx(
        torch.linalg.solve_triangular(lower, b, upper=False).flatten().tolist()
    )
    work = works_of(lambda: torch.linalg.solve_triangular(lower, b, upper=False))["aten.linalg_solve_triangular"]
    assert _flops(kinds(work)) == pytest.approx(_flops(counts), rel=0.05)


@pytest.mark.parametrize("columns", [80, 40])
def test_householder_counts_two_m_n_squared_less_two_thirds_of_the_cube(columns: int) -> None:
    torch.manual_seed(0)
    tall = torch.rand(80, columns, dtype=torch.float64)
    r, counts = tallied(_householder, _numbers(tall))
    expected = torch.linalg.qr(tall, mode="r").R
    assert [abs(float(r[i][i])) for i in range(columns)] == pytest.approx(expected.diagonal().abs().tolist())
    work = works_of(lambda: torch.geqrf(tall))["aten.geqrf"]
    assert _flops(kinds(work)) == pytest.approx(_flops(counts), rel=0.1)


def test_solving_is_elimination_and_two_substitutions_for_each_right_hand_side(definite: torch.Tensor) -> None:
    few = works_of(lambda: torch.linalg.solve(definite, definite[:, :1]))["aten._linalg_solve_ex"]
    many = works_of(lambda: torch.linalg.solve(definite, definite[:, :11]))["aten._linalg_solve_ex"]
    assert _flops(kinds(many)) - _flops(kinds(few)) == 10 * 2 * N**2


def test_a_batch_is_so_many_matrices_and_complex_ones_cost_four_times(definite: torch.Tensor) -> None:
    one = _flops(kinds(works_of(lambda: torch.linalg.inv(definite))["aten.linalg_inv_ex"]))
    batch = _flops(kinds(works_of(lambda: torch.linalg.inv(definite.expand(5, N, N)))["aten.linalg_inv_ex"]))
    complex_one = _flops(kinds(works_of(lambda: torch.linalg.inv(definite + 0j))["aten.linalg_inv_ex"]))
    assert one == 2 * N**3
    assert batch == 5 * one
    assert complex_one == 4 * one


def test_values_alone_cost_less_than_with_vectors_and_iterations_are_estimates(definite: torch.Tensor) -> None:
    # not eigvalsh and svdvals: under any dispatch mode torch has them compute vectors as well
    values = works_of(lambda: torch.ops.aten._linalg_eigh(definite, "L", False))["aten._linalg_eigh"]
    vectors = works_of(lambda: torch.linalg.eigh(definite))["aten._linalg_eigh"]
    assert values.estimated
    assert 3 * _flops(kinds(values)) < _flops(kinds(vectors))
    few = works_of(lambda: torch.ops.aten._linalg_svd(definite, False, False))["aten._linalg_svd"]
    assert _flops(kinds(few)) < _flops(kinds(works_of(lambda: torch.linalg.svd(definite))["aten._linalg_svd"]))


class _Complex:
    """Two numbers that count."""

    def __init__(self, real: float, imaginary: float) -> None:
        self.real, self.imaginary = real, imaginary

    def __add__(self, other: _Complex) -> _Complex:
        return _Complex(self.real + other.real, self.imaginary + other.imaginary)

    def __sub__(self, other: _Complex) -> _Complex:
        return _Complex(self.real - other.real, self.imaginary - other.imaginary)

    def times(self, w: complex) -> _Complex:
        a, b = self.real, self.imaginary
        return _Complex(a * w.real - b * w.imag, a * w.imag + b * w.real)


def _cooley_tukey(x: list[_Complex]) -> list[_Complex]:
    n = len(x)
    if n == 1:
        return x
    even, odd = _cooley_tukey(x[::2]), _cooley_tukey(x[1::2])
    turned = [z.times(cmath.exp(-2j * cmath.pi * k / n)) for k, z in enumerate(odd)]
    return [e + t for e, t in zip(even, turned, strict=True)] + [e - t for e, t in zip(even, turned, strict=True)]


def test_a_fast_fourier_transform_counts_its_butterflies() -> None:
    torch.manual_seed(0)
    x = torch.randn(64, dtype=torch.complex128)
    values, counts = tallied(_cooley_tukey, [_Complex(Number(z.real), Number(z.imag)) for z in x.tolist()])
    assert [float(v.real) for v in values] == pytest.approx(torch.fft.fft(x).real.tolist())
    # 5·64·log2 64 = 1920: 1152 add and 768 mul
    assert kinds(works_of(lambda: torch.fft.fft(x))["aten._fft_c2c"]) == counts == {"add": 1152, "mul": 768}


def test_a_real_transform_is_half_a_complex_one_either_way() -> None:
    x = torch.randn(6, 64)
    whole = kinds(works_of(lambda: torch.fft.fft(x + 0j))["aten._fft_c2c"])
    half = kinds(works_of(lambda: torch.fft.rfft(x))["aten._fft_r2c"])
    assert {kind: 2 * n for kind, n in half.items()} == whole
    back = kinds(works_of(lambda: torch.fft.irfft(torch.fft.rfft(x)))["aten._fft_c2r"])
    assert back == {"add": half["add"], "mul": half["mul"] + 6 * 64}  # the way back is scaled by 1/n
