"""sklearn.covariance. Pseudo-inverses and determinants are counted inside."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas import covariances, lapack
from bitwatt.formulas.arrays import column_means, floats
from bitwatt.formulas.descent import gram_coordinate_descent, least_angles
from bitwatt.formulas.distances import of_bits
from bitwatt.formulas.inside import Probes, inside, seen
from bitwatt.formulas.linear import Design
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_HERE = "sklearn.covariance"
_ALL = ("EmpiricalCovariance", "ShrunkCovariance", "LedoitWolf", "OAS", "MinCovDet", "EllipticEnvelope",
        "GraphicalLasso", "GraphicalLassoCV")  # fmt: skip
#: Series of so many concentration steps end at their limit, longer ones when nothing changes.
_SHORT = 3
#: Of a cross-validation that was not told how many.
_FOLDS = 5

free(
    *(f"{_HERE}.{name}.correct_covariance" for name in ("MinCovDet", "EllipticEnvelope")),
    f"{_HERE}.EllipticEnvelope.predict",
    f"{_HERE}.EllipticEnvelope.score_samples",
    f"{_HERE}.EllipticEnvelope.fit_predict",
    reason="calls mahalanobis or decision_function, which are counted, or takes a median",
)


@rule(*(f"{_HERE}.{name}.get_precision" for name in _ALL), family="covariance")
def precision(probes: Probes = (), **_: Any) -> Work:
    """The precision as stored, or the pseudo-inverse of the covariance."""
    return inside(probes)


def _inverted(X: TensorSpec, assume_centered: bool, shrunk: bool, probes: Probes, *, diagonal: bool = False) -> Work:
    """Everything inside; pseudo-inverses of covariances of fewer rows than columns do not have full rank. Those of a
    diagonal matrix, which is left of one that was shrunk as far as can be, need no reflections and rotations: the
    product of the vectors is left."""
    rank = X.shape[0] - (not assume_centered)
    work = inside(probes, "scipy pinvh")
    for size, bits, *_rank, times in seen(probes, "scipy pinvh"):
        whole = lapack.pseudo_inverse_symmetric(size, of_bits(bits), rank, shrunk=shrunk)
        work += (gemm(size, size, size, of_bits(bits)) if diagonal else whole) * times
    return replace(work, estimated=diagonal)  # what is nearly zero beside the diagonal may take some


@rule(f"{_HERE}.EmpiricalCovariance.fit", f"{_HERE}.ShrunkCovariance.fit", family="covariance")
def empirical_fit(
    X: TensorSpec, assume_centered: bool = False, shrinkage: float | None = None, probes: Probes = (), **_: Any
) -> Work:
    """The means, the covariance, its pseudo-inverse; shrinking is two operations on each element."""
    n, f = X.shape
    means = Work() if assume_centered else column_means(n, f, floats(X))
    shrunk = arithmetic(0 if shrinkage is None else 2 * f * f, DOUBLE)
    inverse = _inverted(X, assume_centered, shrinkage is not None, probes)
    return inverse + means + shrunk + covariances.covariance(n, f, centred=assume_centered, precision=floats(X))


@rule(f"{_HERE}.LedoitWolf.fit", f"{_HERE}.OAS.fit", family="covariance")
def shrunk_fit(
    X: TensorSpec, assume_centered: bool = False, block_size: int | None = None, shrunk_whole: bool = False,
    probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """The means, deviations, and XᵀX of these; Ledoit and Wolf's shrinkage takes two products of its own, that of OAS
    follows from the covariance."""
    n, f = X.shape
    own = floats(X)
    centring = Work() if assume_centered else column_means(n, f, own) + arithmetic(X.numel, own)
    shrinkage = covariances.shrinkage(n, f, own) if block_size is not None else arithmetic(4 * f * f, own)
    inverse = _inverted(X, assume_centered, True, probes, diagonal=shrunk_whole)
    return inverse + centring + shrinkage + covariances.covariance(n, f, centred=True, precision=own)


@rule(*(f"{_HERE}.{name}.mahalanobis" for name in _ALL), f"{_HERE}.EllipticEnvelope.decision_function",
      family="covariance")  # fmt: skip
def mahalanobis(X: TensorSpec, location_: TensorSpec | None = None, probes: Probes = (), **_: Any) -> Work:
    """The distance of each row to the location."""
    if not any(name == "cdist" for name, *_ in probes):  # decision_function asks mahalanobis
        return inside(probes) + arithmetic(X.shape[0], DOUBLE)
    return inside(probes)


@rule(*(f"{_HERE}.{name}.score" for name in _ALL), family="covariance")
def score(
    X: TensorSpec | None = None, X_test: TensorSpec | None = None, location_: TensorSpec | None = None,
    probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """The log-likelihood of other rows: their covariance around the location, and a determinant."""
    given = X_test or X
    if given is None:
        return inside(probes)
    wide = location_ is not None and location_.dtype == "float64"
    return inside(probes) + covariances.scored(given.shape[0], given.shape[1], DOUBLE if wide else floats(given))


@rule(*(f"{_HERE}.{name}.error_norm" for name in _ALL), family="covariance")
def error_norm(comp_cov: TensorSpec | None = None, probes: Probes = (), **_: Any) -> Work:
    """The squared difference of two covariances, added up; a spectral norm takes the singular values of its square."""
    f = comp_cov.shape[0] if comp_cov is not None else 0
    return inside(probes) + arithmetic(3 * f * f, DOUBLE)


@rule(f"{_HERE}.MinCovDet.fit", f"{_HERE}.EllipticEnvelope.fit", family="covariance")
def robust_fit(X: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """Concentration steps: each factorises once (its pseudo-inverse is counted inside). Starts stop after two steps,
    the best go on until nothing changes; these share what pseudo-inverses remain."""
    n, f = X.shape
    work = inside(probes) + column_means(n, f, DOUBLE)
    left = sum(times for size, *_, times in seen(probes, "scipy pinvh") if size == f)
    series = list(seen(probes, "concentration"))
    left -= sum(limit * times for *_, limit, times in series if limit <= _SHORT)
    long = sum(times for *_, limit, times in series if limit > _SHORT)
    for rows, features, support, limit, times in series:
        steps = limit * times if limit <= _SHORT else max(round(left * times / max(long, 1)), times)
        work += covariances.concentration(rows, features, support) * steps
        work += covariances.concentrated(rows, features, support) * times
    return replace(work, estimated=True)


@rule(f"{_HERE}.MinCovDet.reweight_covariance", f"{_HERE}.EllipticEnvelope.reweight_covariance", family="covariance")
def reweighted(data: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """Once more with the rows that are not far: their mean and covariance, and the distances of all."""
    return inside(probes) + covariances.concentration(data.shape[0], data.shape[1], data.shape[0])


@rule(f"{_HERE}.GraphicalLasso.fit", f"{_HERE}.GraphicalLassoCV.fit", family="covariance")
def graphical_fit(
    X: TensorSpec, assume_centered: bool = False, covariance: Any = None, probes: Probes = (), cv: Any = None,
    alphas: Any = None, n_refinements: int = 0, **_: Any,
) -> Work:  # fmt: skip
    """The covariance, then for every sweep and column a regression on the others by coordinate descent or least
    angles, as counted, and a product with their covariance. Cross-validation repeats that for each fold and alpha; the
    covariances of both parts are made for each fold as often as alphas are refined."""
    n, f = X.shape
    work = inside(probes) + column_means(n, f, floats(X))
    paths = (n_refinements if isinstance(alphas, int) else 1) if n_refinements else 0
    folds = cv if isinstance(cv, int) else _FOLDS
    work += covariances.covariance(n, f, centred=assume_centered, precision=floats(X)) * (1 + paths * folds)
    columns = 0
    for *sizes, sweeps, nonzero, ended, times in seen(probes, "linear_gram_descent"):
        work += gram_coordinate_descent(Design.probed(*sizes), sweeps, nonzero, bool(ended)) * times
        columns += times
    for samples, features, given, made, products, bits, steps, active, times in seen(probes, "linear_lars"):
        design = Design.probed(samples, features, -1, bits)
        gram = bool(given or made)
        work += least_angles(design, steps, active, gram=gram, made=bool(made), products=bool(products)) * times
        columns += times
    return replace(work + covariances.graph_column(f) * columns, estimated=True)
