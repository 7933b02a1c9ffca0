"""sklearn.neural_network."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import checked, floats, logistic, stored
from bitwatt.formulas.inside import Probes, logarithms_of
from bitwatt.formulas.linear import lbfgs
from bitwatt.formulas.network import (
    backward,
    boltzmann_step,
    dense,
    forward,
    loss,
    optimiser_step,
    parameters_of,
)
from bitwatt.formulas.vector import DOUBLE, arithmetic, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn.preprocessing_encoders import length

_CLASSIFIER, _REGRESSOR = "sklearn.neural_network.MLPClassifier.", "sklearn.neural_network.MLPRegressor."
_BOLTZMANN = "sklearn.neural_network.BernoulliRBM."


def _units(coefs_: Any) -> list[int]:
    return [coefs_[0].shape[0], *(coef.shape[1] for coef in coefs_)]


def _evaluations(probes: tuple[Any, ...]) -> int:
    return sum(found[-1] for found in probes if found[0] == "network_loss")


@rule(*(f"{name}{method}" for name in (_CLASSIFIER, _REGRESSOR) for method in ("fit", "partial_fit")), family="network")
def network_fit(
    X: TensorSpec, y: Any = None, coefs_: Any = (), activation: str = "relu", out_activation_: str = "identity",
    solver: str = "adam", loss: str = "log_loss", n_iter_: int = 1, batch_size: Any = "auto",
    early_stopping: bool = False, validation_fraction: float = 0.1, sample_weight: Any = None,
    nesterovs_momentum: bool = True, momentum: float = 0.9, probes: tuple[Any, ...] = (), **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check; then for every batch of every epoch (L-BFGS: for every evaluation, of all samples) forward,
    loss, the penalty's norm (2 for each weight), backward, and the optimiser's step. Early stopping runs forward on
    the samples it keeps apart after each epoch. Labels are counted as their own (LabelBinarizer). Numbers to predict
    in double make the loss, the errors and all that follows from them double, also of data in single precision."""
    units, n, p = _units(coefs_), X.shape[0], floats(X)
    classifies = out_activation_ in ("softmax", "logistic")
    back = p if classifies or not isinstance(y, TensorSpec) else _wider(p, floats(y))
    kind = loss if not classifies else "log_loss"
    weights = parameters_of(units) - sum(units[1:])
    targets = Work.of(floats(y), add=y.numel) if isinstance(y, TensorSpec) and y.precision.kind == "float" else Work()
    work = checked(X) + targets
    share = stored(X) / max(n, 1) if X.nnz is not None else None

    def batch(rows: int) -> Work:
        kept = None if share is None else round(share * rows)
        return (
            forward(rows, units, activation, out_activation_, p, kept)
            + _loss(kind, out_activation_, rows, units[-1], back)
            + arithmetic(2 * weights, p)
            + backward(rows, units, activation, back, sample_weight is not None, kept)
        )

    if solver == "lbfgs":
        evaluations = _evaluations(probes) or n_iter_
        return work + batch(n) * evaluations + lbfgs(parameters_of(units), n_iter_, evaluations)
    apart = math.ceil(n * validation_fraction) if early_stopping else 0
    train = n - apart
    size = min(200, train) if batch_size == "auto" else max(1, min(int(batch_size), train))
    full, rest = divmod(train, size)
    step = optimiser_step(solver, parameters_of(units), back, nesterovs_momentum and momentum > 0)
    epoch = (batch(size) + step) * full + (batch(rest) + step if rest else Work())
    if apart:
        kept = None if share is None else round(share * apart)
        epoch += forward(apart, units, activation, out_activation_, p, kept) + arithmetic(apart, DOUBLE)
    return work + epoch * n_iter_


_loss = loss


def _wider(one: Precision, other: Precision) -> Precision:
    return max(one, other, key=lambda precision: precision.bits)


def _predicted(X: TensorSpec, coefs_: Any, activation: str, output: str) -> Work:
    p = _meeting(X, coefs_)
    return validated(X) + forward(X.shape[0], _units(coefs_), activation, output, p, X.nnz)


def _meeting(X: TensorSpec, coefs_: Any) -> Precision:
    """Single precision only where both the data and the weights are: L-BFGS leaves its weights in double."""
    return floats(X) if coefs_ and coefs_[0].precision.bits == 32 else DOUBLE


@rule(f"{_CLASSIFIER}predict", f"{_REGRESSOR}predict", family="network")
def network_predict(
    X: TensorSpec, coefs_: Any = (), activation: str = "relu", out_activation_: str = "identity", **_: Any
) -> Work:
    """The finiteness check, then through every layer: a product, the intercept, the activation."""
    return _predicted(X, coefs_, activation, out_activation_)


@rule(f"{_CLASSIFIER}predict_proba", family="network")
def network_proba(
    X: TensorSpec, coefs_: Any = (), activation: str = "relu", out_activation_: str = "identity", **_: Any
) -> Work:
    """As predict; of two classes the other's probability is 1 less."""
    work = _predicted(X, coefs_, activation, out_activation_)
    binary = _units(coefs_)[-1] == 1
    return work + Work.of(_meeting(X, coefs_), add=X.shape[0] * binary)


@rule(f"{_CLASSIFIER}predict_log_proba", family="network")
def network_log_proba(X: TensorSpec, classes_: Any = (), coefs_: Any = (), probes: Probes = (), **_: Any) -> Work:
    """The logarithm of predict_proba, which is counted as itself."""
    return logarithms_of(X.shape[0] * length(classes_), _meeting(X, coefs_), probes)


free(f"{_CLASSIFIER}score", f"{_REGRESSOR}score", reason="the mixin's score is counted")


@rule(f"{_BOLTZMANN}fit", family="network")
def boltzmann_fit(X: TensorSpec, n_components: int = 256, batch_size: int = 10, n_iter: int = 10, **_: Any) -> Work:
    """The finiteness check, normal numbers to start from (24 each), and for each batch a step of persistent
    contrastive divergence: two products with the data, three with the chain, logistic functions of all units."""
    (n, f), p, k = X.shape, floats(X), n_components
    batches = math.ceil(n / batch_size)
    kept = None if X.nnz is None else round(X.nnz / batches)
    step = boltzmann_step(round(n / batches), batch_size, f, k, p, kept)
    return checked(X) + arithmetic(24 * f * k, DOUBLE) + step * (batches * n_iter)


@rule(f"{_BOLTZMANN}partial_fit", family="network")
def boltzmann_partial_fit(X: TensorSpec, n_components: int = 256, batch_size: int = 10, **_: Any) -> Work:
    """The finiteness check and one step of persistent contrastive divergence, in double."""
    (n, f) = X.shape
    return Work.of(DOUBLE, add=stored(X)) + boltzmann_step(n, batch_size, f, n_components, DOUBLE, X.nnz)


@rule(f"{_BOLTZMANN}transform", family="network")
def boltzmann_transform(X: TensorSpec, n_components: int = 256, components_: Any = None, **_: Any) -> Work:
    """The finiteness check, a product with the components, the intercept, the logistic function. Units far from zero
    take less: estimated."""
    (n, f), p, k = X.shape, floats(X), n_components
    work = checked(X) + dense(n, f, k, p, X.nnz) + Work.of(p, add=n * k) + logistic(n * k, p)
    return replace(work, estimated=True)


def _free_energy(X: TensorSpec, k: int, p: Precision) -> Work:
    n, f = X.shape
    product = dense(n, f, k, p, X.nnz) + arithmetic(2 * stored(X) + 6 * n, p)
    if p.bits == 32:
        return product + arithmetic(13 * n * k, DOUBLE) + arithmetic(36 * n * k, p)
    return product + arithmetic(59 * n * k, p)


@rule(f"{_BOLTZMANN}score_samples", family="network")
def boltzmann_score(X: TensorSpec, n_components: int = 256, **_: Any) -> Work:
    """The finiteness check; the free energy of each sample as it is and with one value flipped: a product with the
    components and log(1 + exp) of each hidden unit (59 operations; single precision 49, 13 of them in double); then
    log(1 + exp) of their difference. Units far from zero take less: estimated."""
    p = floats(X)
    work = checked(X) + _free_energy(X, n_components, p) * 2 + arithmetic(60 * X.shape[0], p)
    return replace(work, estimated=True)


@rule(f"{_BOLTZMANN}gibbs", family="network")
def boltzmann_gibbs(v: TensorSpec, n_components: int = 256, **_: Any) -> Work:
    """Hidden units of the data, then visible units of them: two products and the logistic functions."""
    (n, f), k, p = v.shape, n_components, floats(v)
    both = dense(n, f, k, p, v.nnz) + dense(n, k, f, p) + Work.of(p, add=n * (f + k)) + logistic(n * (f + k), p)
    return both + arithmetic(5 * n * (f + k), DOUBLE, random=n * (f + k))
