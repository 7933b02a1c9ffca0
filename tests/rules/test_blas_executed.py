"""Products and factorisations of OpenBLAS and LAPACK beside the operations that the instrument read for them: small
sizes, left-over columns in single precision, matrices without full rank."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bitwatt.formulas.lapack import eigh_divided, gemv, svd, syrk
from bitwatt.formulas.vector import DOUBLE, SINGLE, gemm, left_over, multiplied
from bitwatt.records import Work
from executed import amount

_READ: list[tuple[Callable[[], Work], int]] = [
    (lambda: syrk(2, 200, SINGLE), 3220), (lambda: syrk(3, 200, SINGLE), 6844), (lambda: syrk(7, 200, SINGLE), 22952),
    (lambda: syrk(10, 200, SINGLE), 35416), (lambda: syrk(39, 200, SINGLE), 370488),
    (lambda: syrk(3, 200, DOUBLE), 3624), (lambda: syrk(39, 200, DOUBLE), 366428),
    (lambda: gemm(2, 200, 3, SINGLE), 4826), (lambda: gemm(3, 50, 6, SINGLE), 2450),
    (lambda: gemm(3, 50, 7, SINGLE), 2961), (lambda: gemm(3, 50, 7, DOUBLE), 2157),
    (lambda: multiplied(100, 50, 1, SINGLE), 11400), (lambda: multiplied(100, 50, 1, DOUBLE), 10600),
    (lambda: multiplied(323, 1, 1, DOUBLE), 646),
    (lambda: gemv(2, 200, SINGLE, columns=True), 1604), (lambda: gemv(6, 200, SINGLE, columns=True), 3504),
    (lambda: gemv(10, 200, SINGLE, columns=True), 5404), (lambda: gemv(100, 1000, SINGLE, columns=True), 225500),
    (lambda: gemv(6, 200, DOUBLE, columns=True), 2604), (lambda: gemv(200, 10, DOUBLE, columns=True), 4600),
    (lambda: svd(323, 1, DOUBLE), 3564), (lambda: svd(323, 1, SINGLE), 2617),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(_READ)))
def test_products_as_they_were_read(place: int) -> None:
    made, executed = _READ[place]
    assert amount(made()) == pytest.approx(executed, rel=0.03)


@pytest.mark.parametrize(
    ("columns", "rank", "executed"),
    [
        (60, 15, 1045712), (60, 40, 1272927), (60, 60, 1580584), (100, 20, 5301922), (100, 60, 5940506),
        (100, 90, 6781789), (130, 59, 10692233), (150, 30, 15080337), (200, 60, 34371655), (200, 150, 40584011),
    ],
)  # fmt: skip
def test_eigenvectors_of_a_matrix_without_full_rank(columns: int, rank: int, executed: int) -> None:
    """Covariances of fewer rows than columns: mergers of values that are zero are left out."""
    assert amount(eigh_divided(columns, DOUBLE, rank)) == pytest.approx(executed, rel=0.12)


def test_full_rank_is_as_if_none_were_told() -> None:
    assert eigh_divided(80, DOUBLE, 80) == eigh_divided(80, DOUBLE)
    assert amount(eigh_divided(80, DOUBLE, 79)) < amount(eigh_divided(80, DOUBLE))


def test_tiles_that_are_left_over() -> None:
    """Two by two computes eight results, two by one four; three by three is one of the first, two of the second and a
    single one."""
    assert [left_over(m, n, SINGLE) for m, n in ((4, 8), (2, 2), (2, 1), (3, 3), (5, 5), (101, 6))] == [
        0,
        4,
        2,
        8,
        0,
        2,
    ]
    assert left_over(3, 3, DOUBLE) == 0
