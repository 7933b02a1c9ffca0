"""What numpy, scipy and BLAS execute for simple things, in the elementary operations of their AVX2 code.

scikit-learn's rules count executed arithmetic: an exponential is the twenty additions and multiplications of its
polynomial. The numbers were read with a valgrind tool that counts every lane (benchmarks/accuracy).
"""

from __future__ import annotations

import math

from bitwatt.dtypes import Precision, dtype
from bitwatt.formulas.linalg import matmul
from bitwatt.records import NECESSARY, TensorSpec, Work

DOUBLE, SINGLE = dtype("float64").precision, dtype("float32").precision

#: Operations of one call on one element: (float64, float32).
EXP, LOG, TANH = (20, 24), (23, 29), (33, 13)


def function(cost: tuple[int, int], elements: float, precision: Precision) -> Work:
    """A transcendental function on `elements` values: half of its operations multiply."""
    n = round(elements * cost[precision.bits == 32])
    return Work.of(precision, mul=n // 2, add=n - n // 2)


def arithmetic(operations: float, precision: Precision, **counts: float) -> Work:
    """So many operations, additions and multiplications alike, and others by name (div, sqrt, compare)."""
    n = round(operations)
    rest = {kind: round(amount) for kind, amount in counts.items()}
    rest["mul"], rest["add"] = n // 2 + rest.get("mul", 0), n - n // 2 + rest.get("add", 0)
    return Work.of(precision, NECESSARY, **rest)


def left_over(m: int, n: int, precision: Precision) -> int:
    """Results that OpenBLAS computes for nothing. It works on tiles of four by four; what is left over in rows and
    columns goes by tiles of two and of one, and in single precision a side of two fills a register for four: a tile of
    two by two computes eight results, one of two by one four."""
    two_rows, two_columns, row, column = m % 4 >= 2, n % 4 >= 2, m % 2, n % 2
    if precision.bits != 32:
        return 0
    return 4 * (two_rows and two_columns) + 2 * (two_rows and column) + 2 * (row and two_columns)


def gemm(m: int, k: int, n: int, precision: Precision) -> Work:
    """A product by OpenBLAS: 2·m·k·n, and two operations for each result, which is multiplied by alpha and added, once
    for every 256 of k (384 in single precision). Double precision saves one of them from k = 8 on, except in the
    columns that are left over from blocks of four."""
    spec = TensorSpec((1,), precision.name)
    double = precision.bits == 64
    blocks = math.ceil(k / (256 if double else 384))
    again = m * (n % 4) if double and k >= 8 else m * n
    filled = k * left_over(m, n, precision)
    return matmul(m, k, n, spec, spec) + Work.of(precision, mul=again * blocks + filled, add=m * n * blocks + filled)


def multiplied(m: int, k: int, n: int, precision: Precision) -> Work:
    """numpy's `@`, which is BLAS unless k is 1: then nothing but the product, added to zero. A single column goes row
    by row, each of which ends with the sum of a register's lanes, 6 (single: 14), unless it has less than four."""
    if k == 1:
        return Work.of(precision, mul=m * n, add=m * n)
    if n == 1:
        spec = TensorSpec((1,), precision.name)
        lanes = 0 if k < 4 else 14 if precision.bits == 32 else 6
        return matmul(m, k, 1, spec, spec) + Work.of(precision, add=m * lanes)
    return gemm(m, k, n, precision)


def validated(X: TensorSpec, precision: Precision | None = None) -> Work:
    """The finiteness check of `validate_data`: a sum over all of X, one addition for each element stored."""
    stored = X.numel if X.nnz is None else X.nnz
    floating = precision or X.precision
    return Work.of(floating, add=stored) if floating.kind == "float" else Work()
