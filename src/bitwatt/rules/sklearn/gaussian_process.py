"""sklearn.gaussian_process. Kernels, factorisations and solves are counted inside; the likelihood is a method of its
own, so that fit holds only what it does after the optimiser."""

from typing import Any

from bitwatt.formulas import processes
from bitwatt.formulas.arrays import floats
from bitwatt.formulas.gaussians import normals
from bitwatt.formulas.inside import Probes, inside, seen
from bitwatt.formulas.lapack import gemv, syrk
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_HERE = "sklearn.gaussian_process"
_BINARY = f"{_HERE}._BinaryGaussianProcessClassifierLaplace"


def _sizes(probes: Probes) -> tuple[int, int]:
    """Rows of the training kernel, and derivatives that were asked for."""
    own = [size for size in seen(probes, "process kernel") if size[2] < 0]
    return max((size[1] for size in own), default=0), max((size[4] for size in own), default=0)


@rule(f"{_HERE}.GaussianProcessRegressor.fit", family="gaussian process")
def regressor_fit(probes: Probes = (), **_: Any) -> Work:
    """The kernel with itself, its Cholesky factor and a solve, once more after the likelihoods."""
    return inside(probes)


@rule(f"{_HERE}.GaussianProcessRegressor.log_marginal_likelihood", family="gaussian process")
def regressor_likelihood(probes: Probes = (), **_: Any) -> Work:
    """The kernel (and its derivatives), the factor, the solve; for slopes the inverse, 2n³."""
    return inside(probes) + processes.evidence(*_sizes(probes))


@rule(f"{_HERE}.GaussianProcessRegressor.predict", family="gaussian process")
def regressor_predict(
    X: TensorSpec, alpha_: TensorSpec, return_std: bool = False, return_cov: bool = False, probes: Probes = (),
    **_: Any,
) -> Work:  # fmt: skip
    """The kernel with the training rows times alpha, scaled; a deviation takes the squares of a triangular solve, a
    covariance its product with itself."""
    n, m = X.shape[0], alpha_.shape[0]
    targets = alpha_.shape[1] if len(alpha_.shape) > 1 else 1
    work = inside(probes) + gemv(n, m, DOUBLE) * targets + arithmetic(2 * n * targets, DOUBLE)
    if return_cov:  # once more a product with itself, and one with the scale of each target
        return work + syrk(n, m, DOUBLE) + arithmetic(n * n * (1 + targets), DOUBLE)
    return work + arithmetic(2 * n * m if return_std else 0, DOUBLE)


@rule(f"{_HERE}.GaussianProcessRegressor.sample_y", family="gaussian process")
def regressor_sample(
    X: TensorSpec, alpha_: TensorSpec | None = None, n_samples: int = 1, probes: Probes = (), **_: Any
) -> Work:
    """predict is counted; normal numbers through the root of the covariance, for each target."""
    targets = alpha_.shape[1] if alpha_ is not None and len(alpha_.shape) > 1 else 1
    return inside(probes) + normals(n_samples, X.shape[0]) * targets


free(
    f"{_HERE}.GaussianProcessClassifier.predict",
    f"{_HERE}.GaussianProcessClassifier.predict_proba",
    f"{_HERE}.GaussianProcessClassifier.log_marginal_likelihood",
    f"{_HERE}.GaussianProcessClassifier.latent_mean_and_variance",
    reason="calls the same method of the binary classifiers inside, which is counted",
)


@rule(f"{_HERE}.GaussianProcessClassifier.fit", family="gaussian process")
def classifier_fit(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; the binary classifiers are counted as their own, and so is their likelihood."""
    return Work.of(floats(X), add=X.numel)


@rule(f"{_BINARY}.fit", f"{_BINARY}.log_marginal_likelihood", family="gaussian process")
def binary_likelihood(probes: Probes = (), **_: Any) -> Work:
    """The kernel, and Newton's steps to the mode of the posterior, each with a Cholesky factor (Rasmussen & Williams,
    algorithms 3.1 and 5.1)."""
    n, derivatives = _sizes(probes)
    steps: int = sum(times for size, *_, times in seen(probes, "scipy cholesky") if size == n)
    return inside(probes) + processes.newton_step(n) * steps + processes.evidence_slopes(n, derivatives)


@rule(f"{_BINARY}.predict", f"{_BINARY}.predict_proba", family="gaussian process")
def binary_predict(
    X: TensorSpec, X_train_: TensorSpec, probes: Probes = (), out: tuple[TensorSpec, ...] = (), **_: Any
) -> Work:
    """The kernel with the training rows times the residuals. Probabilities take the mean and variance of the latent
    function, which are an op of their own but in older versions, and the logistic function integrated over a normal one
    by five error functions."""
    asked = bool(out) and len(out[0].shape) == 2
    if asked and not probes:
        return arithmetic(5 * X.shape[0] * 55, DOUBLE)
    work = inside(probes) + gemv(X.shape[0], X_train_.shape[0], DOUBLE, columns=True)
    return work + arithmetic((4 * X_train_.shape[0] + 5 * 55) * X.shape[0] * asked, DOUBLE)


@rule(f"{_BINARY}.latent_mean_and_variance", family="gaussian process")
def binary_latent(X: TensorSpec, X_train_: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """The kernel with the training rows times the residuals; its weighted rows solved by the factor, squared."""
    n, m = X.shape[0], X_train_.shape[0]
    return inside(probes) + gemv(n, m, DOUBLE, columns=True) + arithmetic(3 * n * m + m, DOUBLE)
