"""sklearn.decomposition: independent components, non-negative factors, topics."""

from __future__ import annotations

from typing import Any

from bitwatt.formulas.arrays import checked, column_means, column_variances, floats, stored
from bitwatt.formulas.decompose import NORMAL, Probes, of_bits, randomised, seen, times_seen
from bitwatt.formulas.lapack import eigh, pseudo_inverse, svd
from bitwatt.formulas.parts import (
    contrast,
    decorrelated,
    divergence,
    expected_logarithms,
    factor_sweep,
    multiplicative_h,
    multiplicative_w,
    topics_of_word,
)
from bitwatt.formulas.vector import DOUBLE, EXP, arithmetic, function, gemm, multiplied
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules.sklearn.decomposition import times

_NAME = "sklearn.decomposition."


@rule(f"{_NAME}FastICA.fit", f"{_NAME}FastICA.fit_transform", family="decomposition")
def ica_fit(
    X: TensorSpec, n_components: Any = None, n_iter_: int = 1, algorithm: str = "parallel", fun: str = "logcosh",
    whiten: Any = "unit-variance", whiten_solver: str = "svd", probes: Probes = (), components_: Any = None,
    out: tuple[TensorSpec, ...] = (), **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check; centring and whitening by a singular value decomposition (or eigenvectors of XᵀX), a
    product with what is kept; in each step a product, the nonlinearity of every value, a product back and symmetric
    decorrelation (by deflation: of one component at a time, as often as each took). Sources scaled to unit variance;
    the pseudo-inverse of the components."""
    (n, f), p = X.shape, floats(X)
    k = components_.shape[0] if isinstance(components_, TensorSpec) else n_components or min(n, f)
    work = checked(X)
    if whiten:
        work += column_means(n, f, p) + arithmetic(n * f + n * k + 2 * f * f, p) + gemm(k, f, n, p)
        work += gemm(f, n, f, p) + eigh(f, p) if whiten_solver == "eigh" else svd(n, f, p)
    work += arithmetic(NORMAL * k * k, DOUBLE)
    if algorithm == "deflation":
        steps = times_seen(probes, "deflation step") or n_iter_ * k
        one = arithmetic(4.25 * n * k + 2 * n * k + 8 * k * k, p) + contrast(fun, n, 1, p)
        work += one * steps
    else:
        one = gemm(k, k, n, p) + contrast(fun, n, k, p) + gemm(k, n, k, p) + arithmetic(5 * k * k, p)
        work += (one + decorrelated(k, p)) * n_iter_ + decorrelated(k, p)
    if whiten:
        made = whiten == "unit-variance" or bool(out)
        work += gemm(k, k, f, p) + (gemm(k, f, n, p) + gemm(k, k, f, p) if made else Work())
        work += column_variances(n, k, p) + arithmetic(n * k, p) if whiten == "unit-variance" else Work()
    return work + pseudo_inverse(k, f, p)


@rule(f"{_NAME}FastICA.transform", family="decomposition")
def ica_transform(X: TensorSpec, components_: Any = None, whiten: Any = True, **_: Any) -> Work:
    """The finiteness check, centring, and a product with the components."""
    p = floats(X) if components_.precision.bits == 32 else DOUBLE
    return checked(X) + Work.of(floats(X), add=X.numel * bool(whiten)) + times(X, components_.shape[0], p)


@rule(f"{_NAME}FastICA.inverse_transform", family="decomposition")
def ica_back(X: TensorSpec, mixing_: Any = None, whiten: Any = True, **_: Any) -> Work:
    """The finiteness check, a product with the mixing matrix, and the mean."""
    f, k = mixing_.shape
    p = floats(X) if mixing_.precision.bits == 32 else DOUBLE
    return checked(X) + gemm(X.shape[0], k, f, p) + Work.of(p, add=X.shape[0] * f * bool(whiten))


free(
    *(f"{_NAME}{kind}.fit" for kind in ("NMF", "MiniBatchNMF")),
    reason="calls fit_transform, which is counted",
)


_BETA = {"frobenius": 2.0, "kullback-leibler": 1.0, "itakura-saito": 0.0}


def _penalty(alpha: Any, l1_ratio: float) -> int:
    """Operations on each element of a factor that a penalty adds to an update: a constant, and a product with it."""
    return int(l1_ratio > 0) + 2 * int(l1_ratio < 1) if isinstance(alpha, (int, float)) and alpha else 0


def _updates(
    probes: Probes, averaged: bool, alpha_W: Any = 0.0, alpha_H: Any = "same", l1_ratio: float = 0.0, **_: Any
) -> Work:
    """Every sweep and every update that was made, with the sizes it was made on."""
    work = Work()
    of_w, of_h = _penalty(alpha_W, l1_ratio), _penalty(alpha_W if alpha_H == "same" else alpha_H, l1_ratio)
    for n, f, k, kept, bits, sweeps, both, count in seen(probes, "factor descent"):
        p = of_bits(bits)
        other = factor_sweep(f, n, k, kept, p) if both else Work()
        work += (factor_sweep(n, f, k, kept, p) + other) * (sweeps * count)
    for n, f, k, kept, bits, beta, taken, both, looks, count in seen(probes, "factor updates"):
        p = of_bits(bits)
        w = multiplicative_w(n, f, k, kept, beta, p)
        later = (
            w + multiplicative_h(n, f, k, kept, beta, p)
            if both
            else multiplicative_w(n, f, k, kept, beta, p, known=True)
        )
        first = later if both else w
        work += arithmetic(k * (of_w * n + of_h * f * both) * taken * count, p)
        work += (first + later * (taken - 1) + divergence(n, f, k, kept, beta, p) * looks) * count
    for n, f, k, kept, bits, beta, known, count in seen(probes, "factor w"):
        work += multiplicative_w(n, f, k, kept, beta, of_bits(bits), known=bool(known)) * count
    for n, f, k, kept, bits, beta, count in seen(probes, "factor h"):
        work += multiplicative_h(n, f, k, kept, beta, of_bits(bits), averaged=averaged) * count
    for n, f, k, kept, bits, beta, count in seen(probes, "divergence"):
        work += divergence(n, f, k, kept, beta, of_bits(bits)) * count
    return work


def _start(X: TensorSpec, k: int, init: Any, probes: Probes) -> Work:
    """The mean of X; then from the singular vectors, whose positive and negative parts are measured and one is kept: 9
    operations for each element of the factors; or normal numbers."""
    p, size = floats(X), sum(X.shape) * k
    drawn = arithmetic((NORMAL + 1) * size, DOUBLE) if init in ("random", "nndsvdar") else Work()
    signs = arithmetic(7 * size, p) if init != "random" else Work()
    return arithmetic(stored(X), p) + randomised(probes) + signs + drawn


@rule(f"{_NAME}NMF.fit_transform", family="decomposition")
def nmf_fit(
    X: TensorSpec, n_components_: int = 1, init: Any = None, beta_loss: Any = 2.0, probes: Probes = (), **facts: Any
) -> Work:
    """The finiteness check, a start from singular vectors or random numbers, then the sweeps of coordinate descent or
    multiplicative updates that were made, with the distances from X that decide when to stop."""
    kept = -1 if X.nnz is None else X.nnz
    beta = _BETA.get(beta_loss, beta_loss)
    error = divergence(X.shape[0], X.shape[1], n_components_, kept, float(beta), floats(X))
    return checked(X) + _start(X, n_components_, init, probes) + _updates(probes, False, **facts) + error


@rule(f"{_NAME}NMF.transform", family="decomposition")
def nmf_transform(X: TensorSpec, solver: str = "cd", probes: Probes = (), **facts: Any) -> Work:
    """The finiteness check, the mean of X, and the sweeps or updates of one factor that were made."""
    return checked(X) + arithmetic(stored(X), floats(X)) + _updates(probes, False, **facts)


@rule(f"{_NAME}NMF.inverse_transform", f"{_NAME}MiniBatchNMF.inverse_transform", family="decomposition")
def nmf_back(X: TensorSpec, components_: Any = None, **_: Any) -> Work:
    """A product with the components."""
    p = floats(X) if components_.precision.bits == 32 else DOUBLE
    k, f = components_.shape
    return multiplied(X.shape[0], k, f, p) if X.nnz is None else times(X, f, p)


def _batch_costs(X: TensorSpec, k: int, probes: Probes) -> Work:
    """Beside the updates: penalties of both factors (3 for each element), and how far H has moved (5)."""
    p = floats(X)
    work = Work()
    for n, f, _k, _kept, _bits, _beta, count in seen(probes, "factor h"):
        work += arithmetic(3 * (n + f) * k + 5 * f * k, p) * count
    return work


@rule(f"{_NAME}MiniBatchNMF.fit_transform", f"{_NAME}MiniBatchNMF.partial_fit", family="decomposition")
def minibatch_nmf_fit(X: TensorSpec, n_components_: int = 1, init: Any = None, probes: Probes = (), **_: Any) -> Work:
    """As NMF with multiplicative updates, batch by batch, with running averages of H's numerator and denominator."""
    start = _start(X, n_components_, init, probes)
    return checked(X) + start + _updates(probes, averaged=True) + _batch_costs(X, n_components_, probes)


@rule(f"{_NAME}MiniBatchNMF.transform", family="decomposition")
def minibatch_nmf_transform(X: TensorSpec, n_components_: int = 1, probes: Probes = (), **_: Any) -> Work:
    """The finiteness check, the mean of X, the updates of W that were made, and how far each moved it: 5 for each
    element."""
    p = floats(X)
    moved = Work()
    for n, _f, k, *_rest, count in seen(probes, "factor w"):
        moved += arithmetic(5 * n * k, p) * count
    return checked(X) + arithmetic(stored(X), p) + _updates(probes, averaged=False) + moved


_LDA = f"{_NAME}LatentDirichletAllocation."
#: A gamma number by rejection from a normal one.
GAMMA = 44


def _documents(X: TensorSpec, k: int, probes: Probes) -> Work:
    """Every pass over documents: as many steps as they took until their topics stood still, and what comes before and
    after them for each document."""
    p = floats(X)
    work = Work()
    for n, words, statistics, drawn, steps, _bits, count in seen(probes, "topics"):
        each = topics_of_word(k, words / max(n, 1), p) * steps
        start = expected_logarithms(n, k, p) + function(EXP, n * k, p)
        start += arithmetic(GAMMA * n * k * drawn, DOUBLE)
        end = arithmetic((3 * k + 2) * words if statistics else 0, p)
        work += (each + start + end) * int(count)
    return work


def _components(k: int, f: int, X: TensorSpec) -> Work:
    """The exponential of the expected logarithm of each topic's words."""
    p = floats(X)
    return expected_logarithms(k, f, p) + function(EXP, k * f, p) + arithmetic(4 * k * f, p)


def _bound(X: TensorSpec, k: int, words: float) -> Work:
    """Log-likelihoods: a logsumexp over topics for each word of each document (scipy's: 44 per topic and 41), and
    logarithms of gamma functions of all parameters."""
    p, (n, f) = floats(X), X.shape
    special = expected_logarithms(n, k, p) + expected_logarithms(k, f, p) + arithmetic(56 * k * (n + f), DOUBLE)
    return special + arithmetic((44 * k + 43 + k) * words, p)


def _words(X: TensorSpec, probes: Probes) -> float:
    return max((found[1] for found in seen(probes, "topics")), default=stored(X))


@rule(f"{_LDA}fit", f"{_LDA}partial_fit", family="decomposition")
def lda_fit(
    X: TensorSpec, n_components: int = 10, probes: Probes = (), n_batch_iter_: int = 1, learning_method: str = "batch",
    bound_: float | None = None, **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check, gamma numbers to start from (44 each); for every pass the steps that documents took,
    each a product with the words' probabilities and back and a digamma for each topic; topics from the statistics;
    in the end another pass and the likelihood."""
    (_n, f), k = X.shape, n_components
    updates: int = sum(found[-1] for found in probes if found[0] == "topics" and len(found) > 4 and found[3])
    work = checked(X) + arithmetic(GAMMA * k * f, DOUBLE) + _components(k, f, X) * (updates + 1)
    work += _documents(X, k, probes)
    return work + (_bound(X, k, _words(X, probes)) if bound_ is not None else Work())


@rule(f"{_LDA}transform", family="decomposition")
def lda_transform(X: TensorSpec, n_components: int = 10, probes: Probes = (), **_: Any) -> Work:
    """The finiteness check, the steps that documents took, and their topics normalised."""
    k = n_components
    return checked(X) + _documents(X, k, probes) + arithmetic(2 * X.shape[0] * k, floats(X))


free(f"{_LDA}fit_transform", reason="calls fit and transform, which are counted")


@rule(f"{_LDA}score", f"{_LDA}perplexity", family="decomposition")
def lda_score(X: TensorSpec, n_components: int = 10, probes: Probes = (), **_: Any) -> Work:
    """The finiteness check, the steps that documents took, and the likelihood."""
    return checked(X) + _documents(X, n_components, probes) + _bound(X, n_components, _words(X, probes))
