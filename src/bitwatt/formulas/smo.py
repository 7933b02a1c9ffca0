"""libsvm's sequential minimal optimisation (Fan, Chen & Lin 2005) and its decision function, in double."""

from __future__ import annotations

from dataclasses import replace

from bitwatt.formulas.vector import DOUBLE, SINGLE, arithmetic
from bitwatt.records import Work

#: The C library's functions on one number.
_EXP, _TANH = 20, 33


def dot(f: int) -> int:
    """BLAS: 2f, and sixteen partial sums to add up where there are sixteen features or more."""
    return 2 * f + (16 if f >= 16 else 0)


def _powers(degree: int) -> int:
    """By repeated squaring: a square for each bit, a product for each that is set."""
    return degree.bit_length() + degree.bit_count()


def of_dot(kernel: str, degree: int) -> int:
    """What a kernel does to xᵀy: gamma·, + coef0, then a power or tanh."""
    return {"linear": 0, "poly": 2 + _powers(degree), "sigmoid": 2 + _TANH}.get(kernel, 0)


def trained_kernel(kernel: str, f: int, degree: int, shared: float) -> float:
    """One element of the kernel's matrix while training: RBF from norms that are known, exp(-gamma·(a + b - 2xᵀy)).
    Sparse rows meet in `shared` features (-1: dense)."""
    if kernel == "precomputed":
        return 0.0
    product = dot(f) if shared < 0 else 2 * shared
    return product + (4 + _EXP if kernel == "rbf" else of_dot(kernel, degree))


def predicted_kernel(kernel: str, f: int, degree: int, stored: float, shared: float) -> float:
    """One element for a prediction: RBF takes the difference and its product with itself. Sparse rows of together
    `stored` elements are walked along: 2 for each, one less where both have it."""
    if kernel == "precomputed":
        return 0.0
    if kernel == "rbf":
        return (f + dot(f) if shared < 0 else 2 * stored - shared) + 1 + _EXP
    return (dot(f) if shared < 0 else 2 * shared) + of_dot(kernel, degree)


def active(variables: int, iterations: int, free: int, *, shrinking: bool, regression: bool) -> float:
    """Visits of variables in all iterations. Shrinking looks every min(variables, 1000) iterations for those that will
    stay at their bounds. Classification: three fifths are left after the first time, less after each further one, down
    to an eighth. Regression has two variables for each row, of which one is at zero for certain: those that are free in
    the end are left."""
    if not shrinking:
        return float(variables * iterations)
    period, total, left, number = min(variables, 1000), 0.0, iterations, 0
    floor = max(1.3 * free / max(variables, 1), 0.02) if regression else 0.13
    while left > 0:
        share = floor if regression and number else 1 / (1 + 0.67 * number)
        if share <= floor:
            return (total + left * floor) * variables
        steps = min(period, left)
        total, left, number = total + steps * share, left - steps, number + 1
    return total * variables


#: Operations on each active row and iteration: the gradient (4), and choosing the pair, for those not at their bound.
_STEP = 6.5
#: Rows of the kernel that were needed for variables that went back to zero, as a share of the support vectors.
_TOUCHED = 1.05


def solved(
    rows: int, iterations: int, used: int, at_bound: int, each: float, *, kind: str, nu: float, shrinking: bool
) -> Work:
    """One problem. A row of the kernel's matrix for every variable that was ever moved: support vectors and a few that
    went back, and those that nu-machines start from. Moving to or from the bound changes a sum over all rows. Machines
    for regression have two variables for each row, and copy each row of the kernel with its signs in single precision
    whenever they ask for it."""
    regression = kind.endswith("svr")
    variables = 2 * rows if regression else rows
    begun = {"nu_svc": nu * rows, "one_class": nu * rows, "nu_svr": nu * rows / 2}.get(kind, 0.0)
    touched = min(begun + used * _TOUCHED * (1 - begun / max(rows, 1)), rows)
    visits = active(variables, iterations, used - at_bound, shrinking=shrinking, regression=regression)
    signed = each + (kind in ("c_svc", "nu_svc"))
    diagonal = rows * (each + 1)
    started = 4 * variables * begun * (2 if regression else 1)
    work = arithmetic(touched * rows * signed + diagonal + _STEP * visits + 2 * variables * at_bound + started, DOUBLE)
    single = iterations + (0.25 * visits if kind.startswith("nu") else 0)
    if regression:
        single += 2 * (3 + kind.startswith("nu")) * visits + 2 * variables * (at_bound + begun * 2)
    return replace(work + arithmetic(single, SINGLE), estimated=True)


def decided(n: int, used: int, each: float, coefficients: int) -> Work:
    """A kernel with every support vector, times its coefficients: one for each other class."""
    return arithmetic(n * used * (each + 2 * coefficients), DOUBLE)
