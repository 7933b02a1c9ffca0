"""Sweeps over coordinates and steps along a path: coordinate descent, least angles, matching pursuit, nearest-margin
updates. Sizes, sweeps and active coordinates in, work out."""

from __future__ import annotations

from dataclasses import replace

from bitwatt.dtypes import Precision
from bitwatt.formulas.lapack import gemv
from bitwatt.formulas.linear import Design
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import Work


def coordinate_descent(design: Design, sweeps: int, nonzero: int) -> Work:
    """Dense columns: their squared norms (2nf), the residual (2¼·nf), a duality gap before and after (2nf + 4n), and in
    each sweep a dot product for each column and an update of the residual for each that is not zero, 2n each. Columns
    that are screened out, and coordinates that move while they vanish, depend on the data; so do further gaps in single
    precision, where a gap that is small enough may take several tries."""
    n, f, p = design.rows, design.columns, design.precision
    gap = gemv(f, n, p) + arithmetic(4 * n + 4 * f, p)
    work = arithmetic(4.25 * n * f + 2 * n, p) + gap * (2 if sweeps else 1)
    moved = sweeps * nonzero
    work += arithmetic(sweeps * f * (2 * n + 30) + moved * 2 * n, p)
    return replace(work, estimated=nonzero < f or p.bits == 32)


def sparse_coordinate_descent(design: Design, sweeps: int, nonzero: int, centred: bool, weighted: bool) -> Work:
    """As for dense columns, with stored elements; where columns are centred implicitly each update of the residual
    also runs over all samples."""
    n, f, p, stored = design.rows, design.columns, design.precision, design.elements
    gap = arithmetic(2 * stored + (4 + weighted) * n + 6 * f, p)
    work = arithmetic(5 * stored + (2 + 4 * weighted) * n * f * centred + 2 * n, p) + gap * (2 if sweeps else 1)
    moved = sweeps * nonzero
    update = (2 + weighted) * stored / max(f, 1) + (1 + 2 * weighted) * n * centred
    work += arithmetic(sweeps * (2 * stored + 12 * f) + moved * update, p)
    return replace(work, estimated=nonzero < f)


#: Sweeps after which single precision has no better coordinates to offer.
_EXHAUSTED = 30


def gram_coordinate_descent(design: Design, sweeps: int, nonzero: int, ended: bool = True) -> Work:
    """With XᵀX and Xᵀy at hand a coordinate costs 8 operations, three of them in double whatever comes in (the soft
    threshold), and 2f + 1 where it moves. The duality gap: 8f, of which sums of products add up in double, and 20 in
    double; screening by it takes 5 for each coordinate that is left, 4 in double. Where single precision does not reach
    the gap that was asked for, coordinates stand still after a while, those that vanish are screened out, and the gap
    is taken after every sweep."""
    n, f, p = design.rows, design.columns, design.precision
    stuck = max(sweeps - _EXHAUSTED, 0) if not ended and p.bits == 32 else 0
    gap = arithmetic(6 * f, p) + arithmetic(2 * f + 20, DOUBLE)
    screened = arithmetic(f, p) + arithmetic(4 * f, DOUBLE)
    work = gemv(f, f, p) + arithmetic(2 * n + 17, p) + (gap + screened) * (2 if sweeps else 1)
    work += (gap + arithmetic(nonzero, p) + arithmetic(4 * nonzero, DOUBLE)) * stuck
    visits, moved = (sweeps - stuck) * f + stuck * nonzero, (sweeps - stuck) * nonzero
    work += arithmetic(visits * 5 + moved * (2 * f + 1), p) + arithmetic(visits * 3, DOUBLE)
    return replace(work, estimated=nonzero < f or stuck > 0)


def task_coordinate_descent(design: Design, sweeps: int, nonzero: int, tasks: int) -> Work:
    """Several targets that share their columns: every product and update for each of them, and the norm of a row."""
    n, f, p = design.rows, design.columns, design.precision
    column = design.elements / max(f, 1)
    dot = 2 * column + (0 if design.is_sparse else 17)
    implicit = 2 * n if design.is_sparse else 0
    gap = arithmetic(f * tasks * (dot + 5) + 4 * n * tasks + 2 * f, p)
    work = arithmetic(2 * design.elements + 2 * n * tasks + f * tasks * implicit, p) + gap * (2 if sweeps else 1)
    moved = sweeps * nonzero
    work += arithmetic(sweeps * f * (tasks * (dot + 8) + 8) + moved * tasks * (2 * column + implicit), p)
    return replace(work, estimated=nonzero < f)


def least_angles(design: Design, steps: int, active: int, *, gram: bool, made: bool, products: bool) -> Work:
    """LARS. A step with k active columns extends a Cholesky factor (k²), solves with it (2k²), takes the direction's
    correlation with the other columns (from the Gram matrix 2¼·k(f-k); from X two products), and moves along: 18 for
    each column that is active, twelve for each other one. These two were read off counted steps, not derived."""
    n, f, p = design.rows, design.columns, design.precision
    work = Work() if products else design.transposed()
    work += design.gram() if made else Work()
    for step in range(steps):
        k = min(step + 1, active)
        rest = max(f - k, 0)
        work += arithmetic(3 * k * k + 18 * k + 12 * rest + 3, p)
        if gram:
            work += gemv(rest, k, p, columns=True)
        else:
            work += arithmetic(2 * n + 2.25 * n * k, p) + gemv(k, n, p) + gemv(rest, n, p)
    return work


def matching_pursuit(columns: int, rows: int, chosen: int, precision: Precision, *, gram: bool) -> Work:
    """OMP: for the k-th atom a triangular solve (k²), two with the factor (2k²), and the new residual's correlations:
    from the Gram matrix 2¼·fk; from X a product with all columns (2nf), one with those chosen (2nk) and the residual
    (2¼·nk)."""
    f, n = columns, rows
    work = Work()
    for k in range(1, chosen + 1):
        work += arithmetic(3 * k * k + 12 * k, precision)
        if gram:
            work += gemv(f, k, precision, columns=True) + arithmetic(2 * f, precision)
        else:
            work += gemv(f, n, precision) + gemv(k, n, precision) + gemv(n, k, precision, columns=True)
            work += arithmetic(3 * n, precision)
    return work
