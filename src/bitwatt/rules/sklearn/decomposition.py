"""sklearn.decomposition: PCA and its relatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import (
    checked,
    column_means,
    column_sums,
    column_variances,
    floats,
    lanes,
    logarithms,
    sparse_dense,
    sparse_gram,
    sparse_mean_variance,
    stored,
)
from bitwatt.formulas.decompose import Probes, lanczos, randomised
from bitwatt.formulas.lapack import determinant, eigh_divided, inverse_checked, svd, syrk
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm, multiplied, validated
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_PCA, _INCREMENTAL = "sklearn.decomposition.PCA.", "sklearn.decomposition.IncrementalPCA."
_TRUNCATED = "sklearn.decomposition.TruncatedSVD."
_FACTORS = "sklearn.decomposition.FactorAnalysis."


def times(X: TensorSpec, columns: int, precision: Precision) -> Work:
    """X times a dense matrix of so many columns."""
    if X.nnz is not None:
        return sparse_dense(X, columns, precision)
    return multiplied(X.shape[0], X.shape[1], columns, precision)


def _dimension(features: int) -> Work:
    """Minka's estimate of the number of components: logarithms of ratios of all pairs of eigenvalues, for each rank."""
    pairs = features**3 / 3
    return logarithms(2 * pairs, DOUBLE) + arithmetic(13 * pairs, DOUBLE)


def _whole(X: TensorSpec, solver: str, p: Precision) -> Work:
    n, f = X.shape
    if solver == "full":
        return column_means(n, f, p) + Work.of(p, add=n * f) + svd(n, f, p) + arithmetic((n + 4 * f) * min(n, f), p)
    if X.nnz is not None:
        means, gram = arithmetic(3 * X.nnz, p), sparse_gram(X, p)
    else:
        means, gram = column_means(n, f, p), syrk(f, n, p)
    # What rounding in single precision leaves of zeros is no zero in double.
    rank = min(n - 1, f) if p == DOUBLE else f
    return means + gram + arithmetic(4 * f * f, p) + eigh_divided(f, DOUBLE, rank)


def _truncated(X: TensorSpec, solver: str, p: Precision, probes: Probes, normaliser: str) -> Work:
    n, f = X.shape
    if X.nnz is not None:
        return sparse_mean_variance(X) + lanczos(probes, n, f, p, X.nnz, centred=True)
    centred = column_means(n, f, p) + arithmetic(3 * n * f, p)  # centred, then squared and added up for the variance
    return centred + (randomised(probes, normaliser) if solver == "randomized" else lanczos(probes, n, f, p, -1))


def _pca(X: TensorSpec, n_components: Any, solver: str, probes: Probes, normaliser: str) -> Work:
    p = floats(X)
    work = checked(X)
    if solver in ("full", "covariance_eigh"):
        work += _whole(X, solver, p)
    else:
        work += _truncated(X, solver, p, probes, normaliser)
    return work + _dimension(X.shape[1]) if n_components == "mle" else work


@rule(f"{_PCA}fit", family="decomposition")
def pca_fit(
    X: TensorSpec, n_components: Any = None, solver: str = "full", probes: Probes = (),
    power_iteration_normalizer: str = "auto", **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check and the mean; then by solver. Full: centred data and its singular value decomposition.
    Covariance: XᵀX less the mean's square, and its eigenvectors (numpy's, in double). Randomised: Halko's method.
    ARPACK: two products for each Lanczos step that was taken. Both end with the variance of the centred data."""
    return _pca(X, n_components, solver, probes, power_iteration_normalizer)


@rule(f"{_PCA}fit_transform", family="decomposition")
def pca_fit_transform(
    X: TensorSpec, n_components: Any = None, solver: str = "full", probes: Probes = (), components_: Any = None,
    power_iteration_normalizer: str = "auto", whiten: bool = False, **_: Any,
) -> Work:  # fmt: skip
    """As fit, and the left vectors times the singular values; after the eigenvectors of the covariance, a product."""
    n, p = X.shape[0], floats(X)
    k = components_.shape[0] if isinstance(components_, TensorSpec) else 1
    end = times(X, k, p) + arithmetic(n * k * (1 + whiten), p) if solver == "covariance_eigh" else arithmetic(n * k, p)
    return _pca(X, n_components, solver, probes, power_iteration_normalizer) + end


@rule(f"{_INCREMENTAL}transform", family="decomposition")
def incremental_transform(X: TensorSpec, components_: Any = None, whiten: bool = False, **_: Any) -> Work:
    """As PCA; a sparse matrix is made dense batch by batch."""
    return pca_transform(TensorSpec(X.shape, X.dtype), components_, whiten)


@rule(f"{_PCA}transform", family="decomposition")
def pca_transform(X: TensorSpec, components_: Any = None, whiten: bool = False, **_: Any) -> Work:
    """The finiteness check, a product with the components, less that of the mean; divided by deviations to whiten."""
    k = components_.shape[0]
    p = floats(X) if components_.precision.bits == 32 else DOUBLE
    n = X.shape[0]
    return checked(X) + times(X, k, p) + arithmetic(n * k * (1 + whiten) + 2 * X.shape[1] * k, p)


@rule(f"{_INCREMENTAL}inverse_transform", f"{_PCA}inverse_transform", family="decomposition")
def pca_back(X: TensorSpec, components_: Any = None, whiten: bool = False, **_: Any) -> Work:
    """The finiteness check, a product with the components (scaled, where they whiten), and the mean."""
    k, f = components_.shape
    p = floats(X) if components_.precision.bits == 32 else DOUBLE
    return checked(X) + multiplied(X.shape[0], k, f, p) + arithmetic(X.shape[0] * f + whiten * k * f, p)


def _mean(name: str) -> None:
    @rule(f"{name}score", family="decomposition")
    def score(X: TensorSpec, **_: Any) -> Work:
        """The mean of score_samples, which is counted as itself."""
        return Work.of(floats(X), add=X.shape[0])


_mean(_PCA)
_mean(_FACTORS)


@rule(f"{_PCA}score_samples", f"{_FACTORS}score_samples", family="decomposition")
def gaussian_score(X: TensorSpec, components_: Any = None, **_: Any) -> Work:
    """The finiteness check; deviations, their product with the precision matrix (counted as get_precision), times
    themselves and summed; the logarithm of its determinant."""
    (n, f), p = X.shape, floats(X) if components_.precision.bits == 32 else DOUBLE
    return checked(X) + arithmetic(3 * n * f + 2 * n, p) + gemm(n, f, f, p) + determinant(f)


@rule(f"{_PCA}get_covariance", f"{_INCREMENTAL}get_covariance", f"{_FACTORS}get_covariance", family="decomposition")
def covariance(components_: Any = None, **_: Any) -> Work:
    """A product of the components with themselves, weighted, and the noise."""
    k, f = components_.shape
    p = floats(components_)
    return gemm(f, k, f, p) + arithmetic(k * f + f, p)


@rule(f"{_PCA}get_precision", f"{_INCREMENTAL}get_precision", f"{_FACTORS}get_precision", family="decomposition")
def precision(components_: Any = None, n_samples_: Any = None, **_: Any) -> Work:
    """The matrix inversion lemma: an inverse of as many rows as components, two products around it, and the noise.
    Where no noise is left beside the components, the inverse of the covariance, which is counted as itself."""
    k, f = components_.shape
    p = floats(components_)
    if k >= min(n_samples_ or f, f):
        return inverse_checked(f, p)
    inner = syrk(k, f, p) + arithmetic(k * f + k * k, p) + inverse_checked(k, p)
    return inner + gemm(f, k, k, p) + gemm(f, k, f, p) + arithmetic(2 * f * f + f, p)


@rule(f"{_INCREMENTAL}fit", family="decomposition")
def incremental_fit(X: TensorSpec, **_: Any) -> Work:
    """The finiteness check; each batch is counted as partial_fit."""
    return checked(X) + (Work.of(floats(X), add=X.nnz) if X.nnz is not None else Work())


@rule(f"{_INCREMENTAL}partial_fit", family="decomposition")
def incremental_batch(
    X: TensorSpec, check_input: bool = True, components_: Any = None, n_samples_seen_: int = 0, probes: Probes = (),
    **_: Any,
) -> Work:  # fmt: skip
    """Running mean and variance in double, centring, and the singular value decomposition of the batch, under the
    components so far times their values and a row for the shift of the mean; those are double from the second batch."""
    (n, f), k = X.shape, components_.shape[0]
    later = any(seen[0] == "batches before" and (len(seen) == 2 or seen[1] > n) for seen in probes)
    first = not later and n_samples_seen_ <= n  # as runs of older versions tell
    p = floats(X)
    work = checked(X) if check_input else Work()
    work += column_sums(n, f, DOUBLE) * 4 + arithmetic(2 * n * f + 25 * lanes(f, DOUBLE), DOUBLE)
    rows = n if first else n + k + 1
    ran = p if first else DOUBLE
    means = Work() if first else column_means(n, f, p) + arithmetic(k * f + 3 * f, DOUBLE)
    return work + means + Work.of(p, add=n * f) + svd(rows, f, ran) + arithmetic((rows + f + 6) * min(rows, f), ran)


free(f"{_TRUNCATED}fit", reason="calls fit_transform, which is counted")


@rule(f"{_TRUNCATED}fit_transform", family="decomposition")
def truncated_fit(
    X: TensorSpec, n_components: int = 2, algorithm: str = "randomized", tol: float = 0.0, probes: Probes = (),
    power_iteration_normalizer: str = "auto", **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check; Halko's method, or two products for each Lanczos step that ARPACK took; the product with
    the components (or U·S); variances of that and of X."""
    (n, f), k, p = X.shape, n_components, floats(X)
    if algorithm == "randomized":
        work = randomised(probes, power_iteration_normalizer)
    else:
        work = lanczos(probes, n, f, p, -1 if X.nnz is None else X.nnz)
    moved = times(X, k, p) if algorithm == "randomized" or tol > 0 else arithmetic(n * k, p)
    spread = column_variances(n, f, p) if X.nnz is None else sparse_mean_variance(X)
    return checked(X) + work + moved + column_variances(n, k, p) + spread


@rule(f"{_TRUNCATED}transform", family="decomposition")
def truncated_transform(X: TensorSpec, components_: Any = None, **_: Any) -> Work:
    """The finiteness check and a product with the components."""
    p = floats(X) if components_.precision.bits == 32 else DOUBLE
    return validated(X) + times(X, components_.shape[0], p)


@rule(f"{_TRUNCATED}inverse_transform", family="decomposition")
def truncated_back(X: TensorSpec, components_: Any = None, **_: Any) -> Work:
    """The finiteness check and a product with the components."""
    p = floats(X) if components_.precision.bits == 32 else DOUBLE
    return checked(X) + gemm(X.shape[0], components_.shape[0], components_.shape[1], p)


@rule(f"{_FACTORS}fit", family="decomposition")
def factor_fit(
    X: TensorSpec, n_iter_: int = 1, n_components: Any = None, svd_method: str = "randomized", rotation: Any = None,
    probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """In double: the finiteness check, mean, centring, variance; in each step the data over its noise, its singular
    value decomposition (randomised or LAPACK's; the norm of the data where that leaves some out), loadings and
    likelihood. A rotation decomposes a small matrix, of cubes (61 operations each), up to a hundred times: 20 are
    taken."""
    (n, f), k = X.shape, n_components or X.shape[1]
    work = Work.of(DOUBLE, add=stored(X)) + column_means(n, f, DOUBLE) + Work.of(DOUBLE, add=n * f)
    work += column_variances(n, f, DOUBLE)
    step = arithmetic(n * f + 5 * k * f + 6 * f, DOUBLE) + logarithms(k + f, DOUBLE)
    if svd_method == "lapack":
        step += svd(n, f, DOUBLE) + arithmetic(2 * f, DOUBLE)
    else:
        step += arithmetic(2 * n * f, DOUBLE)
        work += randomised(probes)
    work += step * n_iter_
    if rotation is not None:
        one = gemm(f, k, k, DOUBLE) * 2 + svd(k, k, DOUBLE) + gemm(k, k, k, DOUBLE) + arithmetic(68 * f * k, DOUBLE)
        work += one * 20
    return replace(work, estimated=rotation is not None)


@rule(f"{_FACTORS}transform", family="decomposition")
def factor_transform(X: TensorSpec, components_: Any = None, **_: Any) -> Work:
    """The finiteness check; in double centring, two products, and the inverse of as many rows as components."""
    (n, f), k = X.shape, components_.shape[0]
    inner = arithmetic(k * f + k * k, DOUBLE) + gemm(k, f, k, DOUBLE) + inverse_checked(k, DOUBLE)
    return validated(X) + Work.of(DOUBLE, add=n * f) + inner + gemm(n, f, k, DOUBLE) + gemm(n, k, k, DOUBLE)
