"""libsvm's sequential minimal optimisation (Fan, Chen & Lin 2005) and its decision function, in double."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import Work

#: The C library's functions on one number; a tangent's where nobody looked. Of small arguments it is the quotient of a
#: short polynomial, of larger ones the exponent is split off (8) and built again (4); beyond the last bend it is one.
_EXP, _TANH = 20, 33
_BENT, _ONE = (27, 35, 39), 1


def transcendental(kernel: str, known: tuple[int, ...] = ()) -> float:
    """The kernel's exponential, of which so many per thousand are lost (a product), or its tangent, of arguments that
    lie below each of its bends."""
    if kernel == "rbf":
        lost = known[0] / 1000 if known else 0.0
        return _EXP * (1 - lost) + lost
    if kernel != "sigmoid" or len(known) != len(_BENT):
        return _TANH
    each, before = 0.0, 0
    for cost, below in zip(_BENT, known, strict=True):
        each, before = each + cost * (below - before) / 1000, below
    return each + _ONE * (1000 - before) / 1000


def dot(f: int) -> int:
    """BLAS: 2f, and sixteen partial sums to add up where there are sixteen features or more."""
    return 2 * f + (16 if f >= 16 else 0)


def _powers(degree: int) -> int:
    """By repeated squaring: a square for each bit, a product for each that is set."""
    return degree.bit_length() + degree.bit_count()


def of_dot(kernel: str, degree: int, tangent: float = _TANH) -> float:
    """What a kernel does to xᵀy: gamma·, + coef0, then a power or tanh."""
    return {"linear": 0, "poly": 2 + _powers(degree), "sigmoid": 2 + tangent}.get(kernel, 0)


def _of_sparse_dot(kernel: str, degree: int, shared: float, coef0: float) -> float:
    """Rows that meet nowhere have a product of zero, whose tanh is known: exp(-shared) of all, if elements are spread
    evenly."""
    whole = of_dot(kernel, degree)
    return whole - _TANH * math.exp(-shared) if kernel == "sigmoid" and not coef0 else whole


def trained_kernel(
    kernel: str, f: int, degree: int, shared: float, coef0: float = 0.0, empty: float = 0.0,
    known: tuple[int, ...] = (),
) -> float:  # fmt: skip
    """One element of the kernel's matrix while training: RBF from norms that are known, exp(-gamma·(a + b - 2xᵀy)).
    Sparse rows meet in `shared` features (-1: dense); of a share of pairs both are `empty`, and exp(0) is known. Of
    dense ones the arguments may be `known`."""
    if kernel == "precomputed":
        return 0.0
    function = transcendental(kernel, known)
    if kernel == "rbf":
        return (dot(f) if shared < 0 else 2 * shared) + 4 + function * (1 - empty)
    if shared < 0:
        return dot(f) + of_dot(kernel, degree, function)
    return 2 * shared + _of_sparse_dot(kernel, degree, shared, coef0)


def predicted_kernel(
    kernel: str, f: int, degree: int, stored: float, shared: float, coef0: float = 0.0, empty: float = 0.0,
    known: tuple[int, ...] = (),
) -> float:  # fmt: skip
    """One element for a prediction: RBF takes the difference and its product with itself. Sparse rows of together
    `stored` elements are walked along: 2 for each, one less where both have it."""
    if kernel == "precomputed":
        return 0.0
    function = transcendental(kernel, known)
    if kernel == "rbf":
        return (f + dot(f) if shared < 0 else 2 * stored - shared) + 1 + function * (1 - empty)
    if shared < 0:
        return dot(f) + of_dot(kernel, degree, function)
    return 2 * shared + _of_sparse_dot(kernel, degree, shared, coef0)


@dataclass(frozen=True)
class Problem:
    """One machine as it was solved: rows, iterations, support vectors, those of them at their bound."""

    rows: int
    iterations: int
    used: int
    at_bound: int
    kind: str = "c_svc"
    nu: float = 0.5
    shrinking: bool = True

    @property
    def regression(self) -> bool:
        return self.kind.endswith("svr")

    @property
    def variables(self) -> int:
        """Machines for regression have two for each row, of which one is zero."""
        return 2 * self.rows if self.regression else self.rows

    @property
    def free(self) -> float:
        """Share of the variables that are between their bounds in the end."""
        return (self.used - self.at_bound) / max(self.variables, 1)

    @property
    def begun(self) -> float:
        """Rows of which a nu-machine starts with a part, so that their sum is right."""
        share = {"nu_svc": self.nu, "one_class": self.nu, "nu_svr": self.nu / 2}.get(self.kind, 0.0)
        return share * self.rows

    @property
    def period(self) -> int:
        """Iterations after which shrinking looks for variables that will stay at their bounds."""
        return min(self.variables, 1000)


#: The part of all iterations in which shrinking finds out about most variables: an exponential's time.
_SETTLED = 0.12


def active(problem: Problem) -> float:
    """Visits of variables in all iterations. Until shrinking first looks it is all of them. From then on those that are
    free in the end, and of the others ever fewer: what can still move is known the better, the nearer the end is."""
    variables, iterations, free = problem.variables, problem.iterations, problem.free
    if not problem.shrinking:
        return float(variables * iterations)
    first = min(problem.period, iterations)
    later = iterations - first
    if not later:
        return float(variables * first)
    fewer = math.exp(-first / iterations / _SETTLED)  # from one look to the next: a geometric series
    others = first * fewer * (1 - math.pow(fewer, later / first)) / (1 - fewer)
    return variables * (first + free * later + (1 - free) * others)


def chosen(problem: Problem, visits: float) -> tuple[float, float]:
    """Variables that may go down, whose gradient is compared, and those of them that may be the pair. May go down: all
    that are free, half of those at a bound (which is up for one class and down for the other). May be the pair: before
    shrinking three quarters of what is free in the end, for free ones come to be in time, and some of the others, the
    more the more support vectors there are; afterwards all that are free, half of the others."""
    iterations, free = problem.iterations, problem.free
    before = float(problem.variables * (min(problem.period, iterations) if problem.shrinking else iterations))
    later = max(visits - before, 0.0)
    still = min(free * problem.variables * iterations - free * before, later)
    some = 0.1 + 0.18 * problem.used / max(problem.rows, 1)
    pairs = before * (0.77 * free + some * (1 - free)) + still + 0.47 * (later - still)
    loose = min(free * before + still, visits)
    down = problem.at_bound / max(problem.rows - (problem.used - problem.at_bound), 1)
    low = loose + (visits - loose) * (down if problem.kind == "one_class" else 0.5)
    return low, min(pairs, low)


def touched(problem: Problem) -> float:
    """Rows of the kernel's matrix that were needed: of variables that are not zero in the end or were not at first, and
    of those that moved in between, the more of them the longer it took."""
    rows = problem.rows
    ends = problem.begun + problem.used * (1 - problem.begun / max(rows, 1))
    if problem.begun:  # a step brings in one new row at most
        ends = min(ends, problem.begun + problem.iterations)
    between = 1 - math.pow(1 + problem.iterations / (10 * max(problem.variables, 1)), -0.4)
    there_and_back = 0.0 if problem.begun else 0.1 * problem.used * (1 - problem.used / max(rows, 1))
    return min(ends + (rows - ends) * between + there_and_back, float(rows))


def _unshrunk(problem: Problem) -> tuple[float, float]:
    """The gradient of what was shrunk is made anew when the end is near and at the end: a product for each free
    variable with each that was shrunk; and rows of the kernel that this takes."""
    if not problem.shrinking or problem.iterations <= problem.period:
        return 0.0, 0.0
    times = 2 if problem.iterations > 2 * problem.period else 1
    products = problem.free * (1 - problem.free) * problem.variables**2
    rows = problem.used + (problem.rows - problem.used) * problem.free
    return times * products, rows if problem.free > 0.5 and not problem.regression else 0.0


def rows_cached(rows: int, megabytes: float) -> float:
    """Rows of single precision numbers that the cache has room for, beside 32 bytes for each row; at least two."""
    room = megabytes * 2**20 / 4 - 8 * rows
    return max(room / max(rows, 1), 2.0)


def solved(problem: Problem, each: float, cached: float = math.inf) -> tuple[float, float]:
    """One machine: operations in double and in single precision, as numbers, since there may be thousands of machines.

    A row of the kernel's matrix for every variable that was ever moved, and again where the cache has room for fewer
    (`cached`). An iteration: the gradient of the active variables (4), a difference for those that may go down, and six
    for those that may be the pair. Moving to or from the bound changes a sum over all rows. Regression copies each row
    of the kernel with its signs in single precision whenever it asks for one."""
    rows, variables, iterations = problem.rows, problem.variables, problem.iterations
    visits = active(problem)
    low, pairs = chosen(problem, visits)
    products, needed = _unshrunk(problem)
    kept = max(touched(problem), needed)
    lost = 2 * iterations * max(1 - cached / max(kept, 1.0), 0.0)
    signed = each + (problem.kind in ("c_svc", "nu_svc"))
    begun, sides = problem.begun, 2 if problem.regression else 1
    changed = 1.15 * (
        begun * sides * (1 - problem.at_bound / max(rows, 1)) + problem.at_bound * (1 - begun / max(rows, 1))
    )
    kernel = kept * rows * signed + lost * visits / max(iterations, 1) / sides * signed + rows * (each + 1)
    nu = problem.kind.startswith("nu")
    steps = 4 * visits + low + (5 if nu else 6) * pairs + 2 * products + 10 * iterations
    bounds = 2 * variables * (changed + 2 * begun * sides)
    single = iterations + (pairs if nu else 0.0)
    if problem.regression:
        single += 2 * (3 + nu) * visits + 2 * variables * (changed + 2 * begun)
    return kernel + steps + bounds, single


def decided(n: int, used: int, each: float, coefficients: int) -> Work:
    """A kernel with every support vector, times its coefficients: one for each other class."""
    return arithmetic(n * used * (each + 2 * coefficients), DOUBLE)
