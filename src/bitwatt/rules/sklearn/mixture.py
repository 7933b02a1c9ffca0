"""sklearn.mixture."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import (
    DIGAMMA,
    LOG_GAMMA,
    checked,
    column_means,
    column_variances,
    floats,
    logarithms,
)
from bitwatt.formulas.gaussians import (
    NORMAL,
    expectation,
    factors,
    log_densities,
    maximisation,
    moments,
    normals,
    precisions,
    told_apart,
)
from bitwatt.formulas.lapack import syrk
from bitwatt.formulas.vector import DOUBLE, EXP, arithmetic, function, gemm, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_PLAIN, _BAYES = "sklearn.mixture.GaussianMixture.", "sklearn.mixture.BayesianGaussianMixture."

free(f"{_PLAIN}fit", f"{_BAYES}fit", reason="calls fit_predict, which is counted")


def _times(probes: tuple[Any, ...], name: str) -> int:
    return sum(found[-1] for found in probes if found[0] == name)


def _seeding(X: TensorSpec, k: int, init_params: str, p: Precision) -> Work:
    """Responsibilities to start from: k-means is counted as itself; random ones are normalised; k-means++ measures the
    distance of every sample to 2 + ln k candidates for each further centre."""
    n, f = X.shape
    if init_params == "random":
        return arithmetic(3 * n * k, p)
    if init_params == "k-means++":
        candidates = 2 + int(math.log(k)) if k > 1 else 1
        distances = gemm(candidates, f, n, p) + arithmetic(4 * candidates * n, DOUBLE)
        return checked(X) + arithmetic(2 * n * f, p) + distances * (k - 1)
    return Work()


@rule(f"{_PLAIN}fit_predict", family="mixture")
def gaussian_mixture(
    X: TensorSpec, n_components: int = 1, covariance_type: str = "full", n_iter_: int = 0, n_init: int = 1,
    init_params: str = "kmeans", probes: tuple[Any, ...] = (), **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check; for each start the moments of its responsibilities (k-means is counted as itself); an
    expectation and a maximisation for every step of every start; a last expectation, and the precision matrices."""
    (n, f), k, p, kind = X.shape, n_components, floats(X), covariance_type
    steps = _times(probes, "maximisation") or n_iter_
    starts = _times(probes, "start")
    start = moments(n, f, k, kind, p) + factors(f, k, kind, p) + _seeding(X, k, init_params, p)
    work = checked(X) + start * starts
    work += (expectation(n, f, k, kind, p) + maximisation(n, f, k, kind, p)) * steps
    return work + expectation(n, f, k, kind, p) + precisions(f, k, kind, p)


def _prior(X: TensorSpec) -> Work:
    """The mean of the data, and its covariance and variance, each made twice: scikit-learn computes the prior of every
    kind of covariance and takes one. np.cov centres in double."""
    n, f = X.shape
    spread = column_means(n, f, DOUBLE) + arithmetic(n * f + f * f, DOUBLE) + syrk(f, n, DOUBLE)
    return column_means(n, f, floats(X)) + (spread + column_variances(n, f, floats(X))) * 2


def _weights(f: int, k: int) -> Work:
    """Expected log-weights and log-determinants of a Wishart distribution: digammas, in double."""
    return arithmetic((DIGAMMA + 3) * (3 * k + f * k), DOUBLE)


def _posterior(f: int, k: int, kind: str) -> Work:
    """The parameters of the posterior from the moments, in double: 5 operations for each element of a covariance."""
    size = {"full": f * f * k, "tied": f * f, "diag": f * k, "spherical": k}[kind]
    return arithmetic(5 * size + 6 * f * k, DOUBLE)


def _bound(n: int, f: int, k: int, kind: str, p: Precision) -> Work:
    """The lower bound: entropy of the responsibilities, log-normalisers of Wishart and Dirichlet distributions."""
    entropy = function(EXP, n * k, DOUBLE) + arithmetic(2 * n * k, DOUBLE)
    wisharts = f * (1 if kind == "tied" else k)
    special = arithmetic((LOG_GAMMA + 3) * (wisharts + 3 * k), DOUBLE)
    return entropy + special + logarithms(wisharts + 3 * k, DOUBLE)


@rule(f"{_BAYES}fit_predict", family="mixture")
def bayesian_mixture(
    X: TensorSpec, n_components: int = 1, covariance_type: str = "full", n_iter_: int = 0, n_init: int = 1,
    init_params: str = "kmeans", probes: tuple[Any, ...] = (), **_: Any,
) -> Work:  # fmt: skip
    """As GaussianMixture, with the moments of the data as a prior, the parameters of the posterior in each step,
    digamma functions in each expectation, and a lower bound that holds the entropy of the responsibilities. After the
    first posterior the parameters are double, and so is what they meet; moments of the data stay in its precision."""
    (n, f), k, p, kind = X.shape, n_components, floats(X), covariance_type
    steps = _times(probes, "maximisation") or n_iter_
    starts = _times(probes, "start")
    start = moments(n, f, k, kind, p) + factors(f, k, kind, DOUBLE) + _posterior(f, k, kind)
    work = checked(X) + _prior(X) + (start + _seeding(X, k, init_params, p)) * starts
    expected = expectation(n, f, k, kind, DOUBLE, p) + _weights(f, k) + arithmetic(2 * n * k, DOUBLE)
    step = expected + function(EXP, n * k, DOUBLE) + moments(n, f, k, kind, DOUBLE, p) + factors(f, k, kind, DOUBLE)
    step += _posterior(f, k, kind) + _bound(n, f, k, kind, DOUBLE)
    return work + step * steps + expected + precisions(f, k, kind, DOUBLE)


def _register(name: str, bayesian: bool) -> None:
    def density(X: TensorSpec, k: int, kind: str) -> Work:
        p = DOUBLE if bayesian else floats(X)
        work = validated(X) + log_densities(X.shape[0], X.shape[1], k, kind, p, floats(X))
        return work + _weights(X.shape[1], k) + arithmetic(2 * X.shape[0] * k, DOUBLE) if bayesian else work

    def normalised(X: TensorSpec, k: int, kind: str) -> Work:
        p = DOUBLE if bayesian else floats(X)
        work = validated(X) + expectation(X.shape[0], X.shape[1], k, kind, p, floats(X))
        if bayesian:
            work += _weights(X.shape[1], k) + arithmetic(2 * X.shape[0] * k, DOUBLE)
        return told_apart(work, X.shape[0], k) if p == DOUBLE and k > 1 else work

    @rule(f"{name}predict", family="mixture")
    def predict(X: TensorSpec, n_components: int = 1, covariance_type: str = "full", **_: Any) -> Work:
        """The finiteness check and the log-density of each sample in each component, the largest by comparing."""
        return density(X, n_components, covariance_type)

    @rule(f"{name}score_samples", family="mixture")
    def score_samples(X: TensorSpec, n_components: int = 1, covariance_type: str = "full", **_: Any) -> Work:
        """The finiteness check, log-densities, and their logsumexp over components."""
        return normalised(X, n_components, covariance_type)

    @rule(f"{name}predict_proba", family="mixture")
    def predict_proba(X: TensorSpec, n_components: int = 1, covariance_type: str = "full", **_: Any) -> Work:
        """The finiteness check, log-densities, their logsumexp, and the exponential of the log-responsibilities."""
        p = DOUBLE if bayesian else floats(X)
        return normalised(X, n_components, covariance_type) + function(EXP, X.shape[0] * n_components, p)

    @rule(f"{name}score", family="mixture")
    def score(X: TensorSpec, **_: Any) -> Work:
        """The mean of score_samples, which is counted as itself."""
        return Work.of(DOUBLE if bayesian else floats(X), add=X.shape[0])

    @rule(f"{name}sample", family="mixture")
    def sample(
        n_samples: int = 1, means_: TensorSpec | None = None, covariance_type: str = "full", n_components: int = 1,
        **_: Any,
    ) -> Work:  # fmt: skip
        """Normal numbers through the root of each component's covariance, or times its deviations."""
        f, k = means_.shape[1] if means_ is not None else 1, n_components
        if covariance_type in ("full", "tied"):
            drawn, each = normals(n_samples, f), normals(0, f)
            return drawn + each * (k - 1)
        deviations = arithmetic(0, DOUBLE, sqrt=k * (f if covariance_type == "diag" else 1))
        return deviations + arithmetic((NORMAL + 2) * n_samples * f, DOUBLE, random=n_samples * f)


_register(_PLAIN, bayesian=False)
_register(_BAYES, bayesian=True)
free(f"{_PLAIN}aic", f"{_PLAIN}bic", reason="a few operations on the score, which is counted")
