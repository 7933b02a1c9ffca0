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


def gemm(m: int, k: int, n: int, precision: Precision) -> Work:
    """A product by OpenBLAS: 2·m·k·n, and two operations for each result, which is multiplied by alpha and added, once
    for every 256 of k (384 in single precision). Double precision saves one of them from k = 8 on, except in the
    columns that are left over from blocks of four."""
    spec = TensorSpec((1,), precision.name)
    double = precision.bits == 64
    blocks = math.ceil(k / (256 if double else 384))
    again = m * (n % 4) if double and k >= 8 else m * n
    return matmul(m, k, n, spec, spec) + Work.of(precision, mul=again * blocks, add=m * n * blocks)


def multiplied(m: int, k: int, n: int, precision: Precision) -> Work:
    """numpy's `@`, which is BLAS unless k is 1: then nothing but the product, added to zero."""
    return Work.of(precision, mul=m * n, add=m * n) if k == 1 else gemm(m, k, n, precision)


def validated(X: TensorSpec, precision: Precision | None = None) -> Work:
    """The finiteness check of `validate_data`: a sum over all of X, one addition for each element stored."""
    stored = X.numel if X.nnz is None else X.nnz
    floating = precision or X.precision
    return Work.of(floating, add=stored) if floating.kind == "float" else Work()
