"""Multi-layer perceptrons and restricted Boltzmann machines, as scikit-learn runs them on numpy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import column_sums, logistic
from bitwatt.formulas.vector import DOUBLE, EXP, TANH, arithmetic, function, gemm
from bitwatt.records import Product, Work


def activation(kind: str, n: float, precision: Precision, width: int = 0) -> Work:
    """relu and identity only compare or copy; tanh, logistic and exp are their functions; softmax subtracts, takes
    exponentials (that of the largest of each `width`, exp(0), is known in double), adds them up and divides."""
    if kind == "tanh":
        return function(TANH, n, precision)
    if kind == "logistic":
        return logistic(n, precision)
    if kind == "exp":
        return function(EXP, n, precision)
    if kind == "softmax":
        known = n / width if width and precision.bits == 64 else 0
        return function(EXP, n - known, precision) + arithmetic(3 * n, precision)
    return Work.of(precision, compare=round(n) if kind == "relu" else 0)


def dense(rows: int, fan_in: int, fan_out: int, precision: Precision, stored: int | None = None) -> Work:
    """A product; by a sparse matrix a multiply-accumulate for each stored element and output."""
    if stored is not None:
        return Work(products=((Product(1, 1, fan_out, stored, precision, precision), 1),)) if stored else Work()
    return gemm(rows, fan_in, fan_out, precision)


def forward(
    rows: int, units: Sequence[int], hidden: str, output: str, precision: Precision, stored: int | None = None
) -> Work:
    """Through every layer: a product, the intercept, the activation."""
    work = Work()
    last = len(units) - 2
    for i, (fan_in, fan_out) in enumerate(pairwise(units)):
        work += dense(rows, fan_in, fan_out, precision, stored if i == 0 else None)
        work += Work.of(precision, add=rows * fan_out)
        work += activation(output if i == last else hidden, rows * fan_out, precision, fan_out)
    return work


#: Operations for each output of the loss, and those that run in double even where the network is in single precision
#: (xlogy takes its logarithm in double there).
_LOSSES = {"squared_error": (3, 0), "poisson": (28, 12)}


def loss(kind: str, output: str, rows: int, outputs: int, precision: Precision) -> Work:
    """Squared error 3 for each output; Poisson a logarithm and 5. Log-loss: a logarithm for the one class of each
    sample that is its own, whether by softmax or as one of two; and its sum."""
    n = rows * outputs
    single = precision.bits == 32
    if kind in _LOSSES:
        total, double = _LOSSES[kind]
        return arithmetic((double if single else total) * n, DOUBLE) + arithmetic((4 if single else 0) * n, precision)
    log = 12 if single else 24
    if output == "softmax":
        return arithmetic(log * rows, DOUBLE) + arithmetic(n, precision)
    return arithmetic(2 * log * n if single else log * n, DOUBLE) + arithmetic(5 * n, precision)


def _errors(rows: int, fan_out: int, fan_in: int, precision: Precision) -> Work:
    """The error of a layer through its weights; one output is an outer product, which numpy does not give to BLAS."""
    if fan_out == 1:
        return Work(products=((Product(1, rows, fan_in, 1, precision, precision), 1),))
    return gemm(rows, fan_out, fan_in, precision)


def backward(
    rows: int, units: Sequence[int], hidden: str, precision: Precision, weighted: bool, stored: int | None = None
) -> Work:
    """The gradient of every layer (a product, a sum for the intercepts, and with the penalty 5 for each weight), and
    the error that goes back through all but the first (a product and the derivative: 3 for tanh and logistic)."""
    work = Work.of(precision, add=rows * units[-1], mul=rows * units[-1] * weighted)
    for i, (fan_in, fan_out) in enumerate(pairwise(units)):
        work += dense(fan_in, rows, fan_out, precision, stored if i == 0 else None)
        work += column_sums(rows, fan_out, precision) + arithmetic(5 * fan_in * fan_out + 2 * fan_out, precision)
        if i:
            work += _errors(rows, fan_out, fan_in, precision)
            work += arithmetic((3 if hidden in ("tanh", "logistic") else 0) * rows * fan_in, precision)
    return work


def optimiser_step(kind: str, parameters: int, precision: Precision, nesterov: bool) -> Work:
    """Adam: 8 in the network's precision, and 4 in double, as its learning rate is. SGD with momentum 3, as many again
    for Nesterov's, and the update."""
    if kind == "adam":
        return arithmetic(8 * parameters, precision) + arithmetic(4 * parameters, DOUBLE)
    return arithmetic((7 if nesterov else 4) * parameters, precision)


def parameters_of(units: Sequence[int]) -> int:
    return sum(fan_in * fan_out + fan_out for fan_in, fan_out in pairwise(units))


def boltzmann_step(rows: int, chain: int, f: int, k: int, precision: Precision, stored: int | None) -> Work:
    """One step of persistent contrastive divergence: hidden units of the data and of the chain, visible units of the
    chain, both correlations, and the updates. A random number takes 5 operations in double."""
    data = dense(rows, f, k, precision, stored) + Work.of(precision, add=rows * k) + logistic(rows * k, precision)
    visible = gemm(chain, k, f, precision) + Work.of(precision, add=chain * f) + logistic(chain * f, precision)
    hidden = gemm(chain, f, k, precision) + Work.of(precision, add=chain * k) + logistic(chain * k, precision)
    correlations = dense(f, rows, k, precision, stored) + gemm(k, chain, f, precision)
    update = arithmetic(3 * f * k + (rows + chain) * k + (rows + chain) * f + 4 * (f + k), precision)
    drawn = arithmetic(5 * chain * (f + k), DOUBLE, random=chain * (f + k))
    return data + visible + hidden + correlations + update + drawn
