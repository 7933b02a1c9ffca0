"""Kernels of Gaussian processes and what their likelihoods do with them. All of it runs in double."""

from __future__ import annotations

import math
from dataclasses import replace

from bitwatt.formulas.distances import POWERS
from bitwatt.formulas.lapack import syrk
from bitwatt.formulas.vector import DOUBLE, EXP, LOG, arithmetic, gemm
from bitwatt.records import Work

_EXP, _LOG, _SIN, _COS = EXP[0], LOG[0], 36, 36
#: numpy's power of a matrix.
_POWER = POWERS[0]
#: A Bessel function and what the Matérn kernel of a general smoothness does with it.
_BESSEL = 1447


def kernel(name: str, n: int, m: int, f: int, derivatives: int, smoothness: float, vanished: int) -> Work:
    """One evaluation beyond its distances. With itself (m < 0) RBF and Matérn kernels compute half of the pairs, others
    all; exponentials that vanish in whole groups (sixteenths) are left out. A derivative is three operations on each
    pair and length scale, and what the kernel's own adds."""
    pairs = n * (m if m >= 0 else n)
    half = pairs if m >= 0 else pairs / 2
    scaled = (n + max(m, 0)) * f
    several = derivatives > 1
    exponentials = _EXP * (16 - vanished) / 16
    if name == "RBF":
        slopes = pairs * (4 * f if several else 1) if derivatives else 0
        return arithmetic(scaled + half * (1 + exponentials) + slopes, DOUBLE)
    if name == "Matern":
        own = {0.5: _EXP, 1.5: 3 + _EXP, 2.5: 6 + _EXP, math.inf: 2 + _EXP}.get(smoothness, _BESSEL)
        further = {0.5: 2, 1.5: 5 + _EXP, 2.5: 7 + _EXP, math.inf: 1}.get(
            smoothness,
            _BESSEL * derivatives,  # by differences
        )
        slopes = pairs * (3 * f * several + 1 + derivatives * 2 + further) if derivatives else 0
        work = arithmetic(scaled + half * own + slopes, DOUBLE)
        return replace(
            work, estimated=smoothness not in (0.5, 1.5, 2.5, math.inf)
        )  # what a Bessel function takes varies
    if name == "RationalQuadratic":
        power = 1 if smoothness == 1.0 else _POWER  # numpy knows the reciprocal
        return arithmetic(pairs * (2 + power + (7 + _LOG if derivatives else 0)), DOUBLE)
    if name == "ExpSineSquared":
        return arithmetic(pairs * (5 + _SIN + _EXP + (10 + _COS if derivatives else 0)), DOUBLE)
    if name == "DotProduct":
        product = syrk(n, f, DOUBLE) if m < 0 else gemm(n, f, m, DOUBLE)
        return product + arithmetic(pairs * (1 + (derivatives > 0)), DOUBLE)
    if name == "WhiteKernel":
        return arithmetic(pairs * (1 + (derivatives > 0)) if m < 0 else 0, DOUBLE)
    if name in ("Sum", "Product"):
        return arithmetic(pairs * (1 + derivatives * (name == "Product")), DOUBLE)
    if name == "Exponentiation":
        return arithmetic(pairs * ((1 if smoothness == 2.0 else _POWER) + 3 * derivatives), DOUBLE)
    if name in (
        "ConstantKernel",
        "CompoundKernel",
        "PairwiseKernel",
    ):  # fills in, asks others, or is measured by metric
        return Work()
    raise LookupError(f"nothing is known of the kernel {name}")


def evidence(n: int, derivatives: int) -> Work:
    """The likelihood of a regression from its factor: yᵀa and the logarithms of the diagonal; its slopes take aaᵀ less
    the inverse (3n²) and the trace of it with each derivative (2n²)."""
    return arithmetic(n * (3 + _LOG) + (n * n * (3 + 2 * derivatives) if derivatives else 0), DOUBLE)


def newton_step(n: int) -> Work:
    """One step to the mode of a classification's posterior beyond its factorisation and solve: B = I + W½·K·W½ (3n²),
    two products of a matrix and a vector (4n²), and logistic functions of n values (some 90)."""
    return arithmetic(7 * n * n + 90 * n, DOUBLE)


def evidence_slopes(n: int, derivatives: int) -> Work:
    """The slopes of its evidence: W½ times two matrices (2n²), a sum of squares (2n²); for each derivative products
    with two vectors and two matrices (10n²)."""
    return arithmetic(n * n * (4 + 10 * derivatives), DOUBLE) if derivatives else Work()
