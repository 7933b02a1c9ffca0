"""sklearn.decomposition: kernels, and sparse codes with the dictionaries they are written in."""

from __future__ import annotations

from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import checked, column_means, floats, row_squares
from bitwatt.formulas.decompose import Probes, randomised, times_seen
from bitwatt.formulas.inside import inside
from bitwatt.formulas.lapack import solve_positive, svd, syrk
from bitwatt.formulas.parts import atoms_updated
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm, multiplied
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_NAME = "sklearn.decomposition."
free(f"{_NAME}DictionaryLearning.fit", reason="calls fit_transform, which is counted")
_KERNEL = f"{_NAME}KernelPCA."


@rule(f"{_KERNEL}fit", family="decomposition")
def kernel_fit(X: TensorSpec, probes: Probes = (), fit_inverse_transform: bool = False, **_: Any) -> Work:
    """The finiteness check, the kernel of all pairs, and eigenvectors (LAPACK's, Lanczos steps as taken, or Halko's
    method); the map back solves with the kernel of what was mapped. Centring is counted as its own: KernelCenterer."""
    return inside(probes)


@rule(f"{_KERNEL}fit_transform", family="decomposition")
def kernel_fit_transform(X: TensorSpec, out: tuple[TensorSpec, ...] = (), probes: Probes = (), **_: Any) -> Work:
    """fit is counted as itself; eigenvectors times the roots of their values, and the map back once more."""
    return inside(probes) + Work.of(floats(X), mul=out[0].numel if out else 0)


@rule(f"{_KERNEL}transform", family="decomposition")
def kernel_transform(
    X: TensorSpec, probes: Probes = (), eigenvectors_: Any = None, out: tuple[TensorSpec, ...] = (), **_: Any
) -> Work:
    """The finiteness check, the kernel with the data of fit, and a product with the scaled eigenvectors. Centring is
    counted as its own: KernelCenterer."""
    seen_rows, k = eigenvectors_.shape
    p = floats(X) if eigenvectors_.precision.bits == 32 else DOUBLE
    return inside(probes) + gemm(X.shape[0], seen_rows, k, p) + arithmetic(seen_rows * k + k, p)


@rule(f"{_KERNEL}inverse_transform", family="decomposition")
def kernel_back(X: TensorSpec, probes: Probes = (), dual_coef_: Any = None, **_: Any) -> Work:
    """The kernel with what was mapped in fit, and a product with the dual coefficients."""
    rows, f = dual_coef_.shape
    p = floats(X) if dual_coef_.precision.bits == 32 else DOUBLE
    return inside(probes) + gemm(X.shape[0], rows, f, p)


_CODERS = ("SparseCoder", "DictionaryLearning", "MiniBatchDictionaryLearning")


def _encoded(X: TensorSpec, k: int, algorithm: str, *, checks: bool = True, of: TensorSpec | None = None) -> Work:
    """The dictionary's Gram matrix and its product with the data, in the wider precision of both; the Lasso or least
    angles that follow are counted as themselves; a threshold takes 2 for each code; matching pursuit, for each atom it
    takes, updates the correlations, a Cholesky factor and a solution."""
    (n, f), p = X.shape, _wider(X, of)
    work = (checked(X) + arithmetic(k * f, p)) if checks else Work()
    if algorithm != "threshold":
        work += syrk(k, f, p)
    if algorithm != "lasso_cd":
        work += gemm(k, f, n, p)
    if algorithm == "threshold":
        work += arithmetic(2 * n * k, p)
    return work


def _wider(X: TensorSpec, atoms: TensorSpec | None) -> Precision:
    return floats(X) if atoms is None or floats(atoms) == floats(X) else DOUBLE


def _pursued(X: TensorSpec, k: int, wanted: Any, of: TensorSpec) -> Work:
    """Orthogonal matching pursuit of every sample with the Gram matrix: for the j-th atom new correlations (2kj and
    2k), and from the second on a triangular solve, a norm, and a solve with the factor: some 70 + 31j for so few atoms,
    of which the norm is in double. The norms of the samples come first."""
    (n, f), p = X.shape, _wider(X, of)
    atoms = int(wanted or min(max(f / 10, 1), k))
    later = range(2, atoms + 1)
    norms = row_squares(n, f, floats(X))
    if p.bits == 64:
        return norms + arithmetic(n * (66 + 3 * k + sum(70 + 31 * j + (2 * j + 2) * k for j in later)), p)
    single = 4 + 3 * k + sum((2 * j + 3) * k + 25 * (j - 2) for j in later)
    return norms + arithmetic(n * single, p) + arithmetic(n * (29 + sum(75 + 7.5 * j for j in later)), DOUBLE)


for _kind in _CODERS:

    @rule(f"{_NAME}{_kind}.transform", family="decomposition")
    def encode(
        X: TensorSpec, transform_algorithm: str = "omp", components_: Any = None, dictionary: Any = None,
        transform_n_nonzero_coefs: Any = None, **_: Any,
    ) -> Work:  # fmt: skip
        """The finiteness check, twice; the dictionary's Gram matrix, its product with the data, and then by algorithm:
        a threshold, matching pursuit, or the Lasso and least angles, which are counted as themselves."""
        atoms = dictionary if isinstance(dictionary, TensorSpec) else components_
        k = atoms.shape[0]
        work = checked(X) + _encoded(X, k, transform_algorithm, of=atoms)
        return work + (_pursued(X, k, transform_n_nonzero_coefs, atoms) if transform_algorithm == "omp" else Work())

    @rule(f"{_NAME}{_kind}.inverse_transform", family="decomposition")
    def decode(
        X: TensorSpec, components_: Any = None, dictionary: Any = None, split_sign: bool = False, **_: Any
    ) -> Work:
        """The finiteness check and a product with the dictionary."""
        atoms = dictionary if isinstance(dictionary, TensorSpec) else components_
        k, f = atoms.shape
        p = _wider(X, atoms)
        return checked(X) + Work.of(p, add=X.shape[0] * k * bool(split_sign)) + multiplied(X.shape[0], k, f, p)


@rule(f"{_NAME}SparseCoder.fit", family="decomposition")
def coder_fit(X: TensorSpec, **_: Any) -> Work:
    """There is nothing to learn: the finiteness check."""
    return checked(X)


def _learned(X: TensorSpec, k: int, n_iter: int, method: str) -> Work:
    """Singular vectors to start from; in each round a code (the Lasso or least angles are counted as themselves), new
    atoms, and the error: a product and 3 for each element."""
    (n, f), p = X.shape, floats(X)
    start = svd(n, f, p) + arithmetic((n + 2 * f) * min(n, f), p)
    one = _encoded(X, k, method) + atoms_updated(n, f, k, p) + gemm(n, k, f, p) + arithmetic(3 * n * f + n * k, p)
    return start + one * n_iter


@rule(f"{_NAME}DictionaryLearning.fit_transform", family="decomposition")
def dictionary_fit(
    X: TensorSpec, n_components: Any = None, n_iter_: int = 1, fit_algorithm: str = "lars", **_: Any
) -> Work:
    """The finiteness check; singular vectors to start from; in each round the dictionary's Gram matrix and its product
    with the data, a sparse code (the Lasso or least angles are counted as themselves), new atoms, and the error."""
    return checked(X) + _learned(X, n_components or X.shape[1], n_iter_, f"lasso_{fit_algorithm}")


@rule(f"{_NAME}SparsePCA.fit", f"{_NAME}MiniBatchSparsePCA.fit", family="decomposition")
def sparse_pca_fit(X: TensorSpec, n_components: Any = None, **_: Any) -> Work:
    """The finiteness check, centring, and the norms of the components; the dictionary of the transposed data is counted
    as itself: DictionaryLearning or MiniBatchDictionaryLearning."""
    (n, f), p = X.shape, floats(X)
    return checked(X) + column_means(n, f, p) + arithmetic(n * f + 3 * f * (n_components or f), p)


@rule(f"{_NAME}SparsePCA.transform", f"{_NAME}MiniBatchSparsePCA.transform", family="decomposition")
def sparse_pca_transform(X: TensorSpec, components_: Any = None, **_: Any) -> Work:
    """The finiteness check, centring, and ridge regression on the components: their Gram matrix, a product with the
    data, and a solve for every sample."""
    (n, f), k = X.shape, components_.shape[0]
    p = floats(X) if components_.precision.bits == 32 else DOUBLE
    check = arithmetic(2 * n * f + k * f, p)  # those of the function that solves
    return (
        checked(X)
        + check
        + syrk(k, f, p)
        + gemm(k, f, n, p)
        + solve_positive(k, 0, p)
        + arithmetic((2 * k * k + 4 * k) * n, p)
    )


@rule(f"{_NAME}SparsePCA.inverse_transform", f"{_NAME}MiniBatchSparsePCA.inverse_transform", family="decomposition")
def sparse_pca_back(X: TensorSpec, components_: Any = None, **_: Any) -> Work:
    """The finiteness check, a product with the components, and the mean."""
    k, f = components_.shape
    p = floats(X) if components_.precision.bits == 32 else DOUBLE
    return checked(X) + multiplied(X.shape[0], k, f, p) + Work.of(p, add=X.shape[0] * f)


@rule(f"{_NAME}MiniBatchDictionaryLearning.partial_fit", family="decomposition")
def dictionary_batch(X: TensorSpec, **facts: Any) -> Work:
    """One batch of all that is given; the first begins with a dictionary from Halko's singular vectors."""
    return minibatch_dictionary_fit(X, **facts | {"batch_size": X.shape[0]})


@rule(f"{_NAME}MiniBatchDictionaryLearning.fit", family="decomposition")
def minibatch_dictionary_fit(
    X: TensorSpec, n_components: Any = None, n_steps_: int = 1, batch_size: int = 256, fit_algorithm: str = "lars",
    probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """The finiteness check; a dictionary from Halko's singular vectors; for each batch a sparse code (the Lasso or
    least angles are counted as themselves), running sums of the code's Gram matrix and its product with the data, new
    atoms, the error, and how far the dictionary has moved."""
    (n, f), p, k = X.shape, floats(X), n_components or X.shape[1]
    size = min(batch_size, n)
    rounds, rest = divmod(n, size)
    per = rounds + bool(rest)
    mean = n / per  # batches of an epoch, the last one smaller
    steps = max(times_seen(probes, "atoms"), 0) or n_steps_
    rows = max(round(mean), 1)
    batch = TensorSpec((rows, f), X.dtype)
    one = _encoded(batch, k, f"lasso_{fit_algorithm}", checks=False) + atoms_updated(rows, f, k, p)
    one += gemm(rows, k, f, p) + arithmetic(3 * rows * f + rows * k + 4 * k * k + 3 * f * k + 3 * f * k, p)
    return checked(X) + randomised(probes) + arithmetic(2 * f * k, p) + one * steps
