"""sklearn.kernel_approximation."""

from dataclasses import replace
from typing import Any

from bitwatt.dtypes import Precision
from bitwatt.formulas.arrays import floats, logarithms
from bitwatt.formulas.fft import pocket_fft
from bitwatt.formulas.inside import Probes, inside, looked_at, seen
from bitwatt.formulas.lapack import svd
from bitwatt.formulas.vector import DOUBLE, LOG, arithmetic, function, gemm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule

_HERE = "sklearn.kernel_approximation"
#: Operations of a cosine, where arguments are some multiples of pi and nobody looked; of a uniform and of a normal
#: random number with their scaling; of a tangent.
_COS, _UNIFORM, _NORMAL, _TAN = (36, 29), 4, 25, 22


@rule(f"{_HERE}.Nystroem.fit", family="kernel")
def nystroem_fit(X: TensorSpec, components_: TensorSpec, kernel: Any = "rbf", probes: Probes = (), **_: Any) -> Work:
    """The kernel of q rows with themselves, its singular value decomposition (in double, by numpy), U/√S times V.
    Kernels of products have few values that are not zero: their decomposition falls apart, by how much is not known."""
    q = components_.shape[0]
    work = inside(probes) + svd(q, q, DOUBLE) + gemm(q, q, q, DOUBLE) + arithmetic(q * q, DOUBLE, sqrt=q)
    return replace(work, estimated=kernel not in ("rbf", "laplacian"))


@rule(f"{_HERE}.Nystroem.transform", family="kernel")
def nystroem_transform(
    X: TensorSpec, components_: TensorSpec, kernel: Any = "rbf", probes: Probes = (), **_: Any
) -> Work:
    """The kernel with the q rows, times the normalisation; scipy gives Manhattan distances in double."""
    q = components_.shape[0]
    return inside(probes) + gemm(X.shape[0], q, q, DOUBLE if kernel == "laplacian" else floats(X))


@rule(f"{_HERE}.RBFSampler.fit", family="kernel")
def rbf_sampler_fit(X: TensorSpec, n_components: int = 100, gamma: Any = 1.0, probes: Probes = (), **_: Any) -> Work:
    """Normal numbers for the weights, uniform ones for the offsets; gamma="scale" takes the variance of X."""
    elements = X.numel if X.nnz is None else X.nnz
    variance = arithmetic(4 * elements if gamma == "scale" else 0, floats(X))
    return inside(probes) + variance + arithmetic(n_components * (_NORMAL * X.shape[1] + _UNIFORM), DOUBLE)


@rule(f"{_HERE}.SkewedChi2Sampler.fit", family="kernel")
def skewed_fit(X: TensorSpec, n_components: int = 100, probes: Probes = (), **_: Any) -> Work:
    """Uniform numbers u as log(tan(πu/2))/π, and offsets."""
    weight = _UNIFORM + 3 + _TAN + LOG[0]
    return inside(probes) + arithmetic(n_components * (weight * X.shape[1] + _UNIFORM), DOUBLE)


@rule(f"{_HERE}.RBFSampler.transform", f"{_HERE}.SkewedChi2Sampler.transform", family="kernel")
def random_features(
    X: TensorSpec, n_components: int = 100, skewedness: float | None = None, probes: Probes = (), **_: Any
) -> Work:
    """X times the weights (counted inside), the offset, a cosine, a factor; the skewed kernel takes logarithms of X
    before."""
    precision, results = floats(X), X.shape[0] * n_components
    known = looked_at(probes, "angles")
    work = inside(probes) + arithmetic(2 * results, precision) + _cosines(results, precision, *known[:4])
    if skewedness is None:
        return work
    return work + logarithms(X.numel, precision, *known[4:]) + arithmetic(X.numel, precision)


def _cosines(elements: int, precision: Precision, *known: int) -> Work:
    """The C library's, in double: 22 where the argument is small, 28 where it is turned to a sine, 40 or 42 where it is
    divided by π/2 before; 9 less for a sine near to zero."""
    if precision.bits == 32 or not known:
        return function(_COS, elements, precision)
    small, turned, short, divided_short = (share / 1000 for share in known)
    each = 22 * small + 28 * turned + 41 * (1 - small - turned) - 9 * (short + divided_short)
    return arithmetic(elements * each, DOUBLE)


@rule(f"{_HERE}.AdditiveChi2Sampler.fit", f"{_HERE}.PolynomialCountSketch.fit", family="kernel")
def checked_fit(probes: Probes = (), **_: Any) -> Work:
    """The finiteness check; hashes are drawn as integers."""
    return inside(probes)


@rule(f"{_HERE}.AdditiveChi2Sampler.transform", family="kernel")
def additive_transform(X: TensorSpec, sample_steps: int = 2, probes: Probes = (), **_: Any) -> Work:
    """A root, a logarithm and four factors of each element that is not zero; each further step a sine and a cosine (52
    with their factors; 60 in single precision). Of one the logarithm is known at once, in double, and so are the sines
    and cosines of zero."""
    looked = list(seen(probes, "chi2 values"))
    ones = sum(ones * times for _, ones, times in looked)
    stored = sum(values * times for values, _, times in looked) if looked else X.numel if X.nnz is None else X.nnz
    more = sample_steps - 1
    if floats(X).bits == 32:  # vectors, for which nothing is known at once
        own = arithmetic((34 + 60 * more) * stored, floats(X)) + arithmetic(4 * more * stored, DOUBLE)
    else:
        own = arithmetic((27 + 52 * more) * (stored - ones) + (5 + 4 * more) * ones, DOUBLE)
    work = inside(probes) + own
    return replace(work, estimated=not looked)  # nobody looked through the elements of a sparse matrix


@rule(f"{_HERE}.PolynomialCountSketch.transform", family="kernel")
def sketch_transform(X: TensorSpec, n_components: int = 100, degree: int = 2, probes: Probes = (), **_: Any) -> Work:
    """Every feature added to a column of each sketch (2), the sketches through Fourier transforms of real numbers (half
    of a complex one), their product (6), and one complex transform back."""
    n, m = X.shape[0], n_components
    stored = X.numel if X.nnz is None else X.nnz
    transforms = pocket_fft(m) * (degree / 2 + 1)
    return inside(probes) + arithmetic(2 * degree * stored + n * (transforms + 6 * m * (degree - 1)), DOUBLE)
