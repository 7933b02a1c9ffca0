"""sklearn.neighbors. Searches are told by what was called inside them: matrix products, tree queries, single pairs."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.arrays import column_sums, floats, stored
from bitwatt.formulas.distances import SORTING
from bitwatt.formulas.inside import Probes, inside, seen
from bitwatt.formulas.vector import DOUBLE, EXP, LOG, arithmetic, function, gemm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_HERE = "sklearn.neighbors"
_CLASSES = ("KNeighborsClassifier", "KNeighborsRegressor", "RadiusNeighborsClassifier", "RadiusNeighborsRegressor",
            "NearestNeighbors", "KNeighborsTransformer", "RadiusNeighborsTransformer")  # fmt: skip


@rule(
    *(f"{_HERE}.{name}.fit" for name in (*_CLASSES, "KernelDensity")),
    *(f"{_HERE}.{name}.kneighbors_graph" for name in (*_CLASSES, "LocalOutlierFactor")),
    *(f"{_HERE}.{name}.radius_neighbors" for name in _CLASSES),
    *(f"{_HERE}.{name}.radius_neighbors_graph" for name in _CLASSES),
    f"{_HERE}.KNeighborsTransformer.transform",
    f"{_HERE}.RadiusNeighborsTransformer.transform",
    f"{_HERE}.KernelDensity.score_samples",
    family="neighbours",
)
def searched(probes: Probes = (), **_: Any) -> Work:
    """The finiteness check; building a tree, or looking for neighbours by matrix products or in the tree."""
    return inside(probes)


@rule(*(f"{_HERE}.{name}.kneighbors" for name in (*_CLASSES, "LocalOutlierFactor")), family="neighbours")
def nearest(X: TensorSpec | None = None, metric: Any = "minkowski", probes: Probes = (), **_: Any) -> Work:
    """The finiteness check; looking for neighbours by matrix products or in the tree. Rows of given distances are
    sorted, which compares, but for a logarithm of each row's length."""
    if metric != "precomputed" or X is None or X.nnz is not None:
        return inside(probes)
    return inside(probes) + arithmetic(SORTING * X.shape[0], DOUBLE)


free(
    f"{_HERE}.KNeighborsTransformer.fit_transform",
    f"{_HERE}.RadiusNeighborsTransformer.fit_transform",
    f"{_HERE}.KNeighborsClassifier.score",
    f"{_HERE}.RadiusNeighborsClassifier.score",
    f"{_HERE}.LocalOutlierFactor.fit_predict",
    f"{_HERE}.LocalOutlierFactor.predict",
    reason="calls fit, transform or predict, which are counted",
)


def _votes(X: TensorSpec | None, fit_shape: tuple[int, ...], n_neighbors: int | None, weights: Any) -> Work:
    """Weights from distances are one division each; they are added up by class."""
    queries = X.shape[0] if X is not None else fit_shape[0]
    votes = queries * (n_neighbors or 0)
    return arithmetic(votes if weights == "distance" else 0, DOUBLE, div=votes if weights == "distance" else 0)


@rule(f"{_HERE}.KNeighborsClassifier.predict", f"{_HERE}.KNeighborsClassifier.predict_proba", family="neighbours")
def neighbours_vote(
    X: TensorSpec | None = None, fit_shape: tuple[int, ...] = (0,), n_neighbors: int = 5, weights: Any = "uniform",
    classes_: Any = 2, probes: Probes = (), out: tuple[TensorSpec, ...] = (), **_: Any,
) -> Work:  # fmt: skip
    """What was searched here (brute force counts classes as it goes; else kneighbors is an op of its own), the votes,
    and for probabilities their sum and a division for each class."""
    shares = out[0].numel if out and len(out[0].shape) == 2 else 0
    voting = shares * 2 + (X.shape[0] if X is not None else 0) * (n_neighbors if shares else 0)
    return inside(probes) + _votes(X, fit_shape, n_neighbors, weights) + arithmetic(voting, DOUBLE)


@rule(f"{_HERE}.RadiusNeighborsClassifier.predict", f"{_HERE}.RadiusNeighborsClassifier.predict_proba",
      f"{_HERE}.RadiusNeighborsRegressor.predict", family="neighbours")  # fmt: skip
def neighbours_within(
    X: TensorSpec | None = None, fit_shape: tuple[int, ...] = (0,), weights: Any = "uniform", outputs: int = 1,
    classes_: Any = None, probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """What was searched here; radius_neighbors is an op of its own. Of the neighbours found numbers are added up and
    divided; with weights a reciprocal distance of each, products and two sums. Classes are counted, or their weights
    added up."""
    queries = X.shape[0] if X is not None else fit_shape[0]
    weighted = weights not in ("uniform", None)
    each = 1.0 * weighted if classes_ is not None else (3.0 if weighted else 1.0) * outputs
    found = sum(number * times for number, times in seen(probes, "within"))
    averaged = arithmetic(found * each + queries * outputs * (classes_ is None), DOUBLE, div=found * weighted)
    return replace(inside(probes) + averaged, estimated=True)


@rule(f"{_HERE}.KNeighborsRegressor.predict", family="neighbours")
def neighbours_average(
    X: TensorSpec | None = None, fit_shape: tuple[int, ...] = (0,), n_neighbors: int = 5, weights: Any = "uniform",
    outputs: int = 1, probes: Probes = (), **_: Any,
) -> Work:  # fmt: skip
    """The mean of the neighbours' values; with weights their reciprocal distances, products and two sums."""
    queries = X.shape[0] if X is not None else fit_shape[0]
    each = n_neighbors * outputs + outputs
    if weights not in ("uniform", None):
        each = n_neighbors * (2 + 2 * outputs) + outputs
    return inside(probes) + arithmetic(queries * each, DOUBLE)


@rule(f"{_HERE}.KernelDensity.score", f"{_HERE}.KernelDensity.sample", family="neighbours")
def density(X: TensorSpec | None = None, out: tuple[TensorSpec, ...] = (), probes: Probes = (), **_: Any) -> Work:
    """The sum of the logarithms; a sample is one normal number (22) for each feature."""
    return inside(probes) + arithmetic(22 * out[0].numel if out else (X.shape[0] if X is not None else 0), DOUBLE)


def _reachability(n: int, k: int) -> Work:
    """Mean of the reach to k neighbours, its reciprocal, and the mean ratio of the neighbours' densities."""
    return arithmetic(n * (2 * k + 3), DOUBLE, div=n * (k + 1))


@rule(f"{_HERE}.LocalOutlierFactor.fit", family="neighbours")
def outlier_fit(X: TensorSpec, n_neighbors_: int = 20, probes: Probes = (), **_: Any) -> Work:
    """The tree; kneighbors is counted as its own. Then the densities."""
    return inside(probes) + _reachability(X.shape[0], n_neighbors_)


@rule(f"{_HERE}.LocalOutlierFactor.score_samples", f"{_HERE}.LocalOutlierFactor.decision_function", family="neighbours")
def outlier_scores(X: TensorSpec, n_neighbors_: int = 20, probes: Probes = (), **_: Any) -> Work:
    """As in fit, for other rows."""
    return inside(probes) + (_reachability(X.shape[0], n_neighbors_) if probes else Work())


@rule(f"{_HERE}.NearestCentroid.fit", family="centroids")
def centroids_fit(X: TensorSpec, metric: str = "euclidean", probes: Probes = (), **_: Any) -> Work:
    """Means (or medians) of each class, deviations from them squared and added up, the mean of all. Sums over rows run
    in the precision of X, deviations from the centroids in double."""
    n, f = X.shape
    if X.nnz is not None:  # sums by products, and what is left of a mean is dense
        return inside(probes) + arithmetic(7 * X.nnz, floats(X)) + arithmetic(3 * X.numel, DOUBLE)
    means = column_sums(n, f, floats(X)) * (2 if metric == "euclidean" else 1)
    return inside(probes) + means + column_sums(n, f, DOUBLE) + arithmetic(2 * X.numel, DOUBLE)


@rule(f"{_HERE}.NearestCentroid.predict", family="centroids")
def centroids_predict(
    X: TensorSpec, centroids_: TensorSpec, is_even: bool = True, probes: Probes = (), **_: Any
) -> Work:
    """The nearest centroid of each row; where classes are not equally likely, the highest score."""
    return inside(probes) if is_even else centroids_scores(X, centroids_, probes)


@rule(f"{_HERE}.NearestCentroid.decision_function", family="centroids")
def centroids_scores(X: TensorSpec, centroids_: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """Rows divided by the deviations, distances to each centroid, squared."""
    return inside(probes) + arithmetic(stored(X) + 3 * X.shape[0] * centroids_.shape[0], DOUBLE)


@rule(f"{_HERE}.NearestCentroid.predict_log_proba", family="centroids")
def centroids_log_probabilities(X: TensorSpec, centroids_: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """The scores, less the logarithm of the sum of their exponentials in each row, of which that of the largest is
    known."""
    scores = X.shape[0] * centroids_.shape[0]
    softmax = function(EXP, scores - X.shape[0], DOUBLE) + function(LOG, X.shape[0], DOUBLE)
    return centroids_scores(X, centroids_, probes) + softmax + arithmetic(4 * scores, DOUBLE)


@rule(f"{_HERE}.NearestCentroid.predict_proba", family="centroids")
def centroids_probabilities(X: TensorSpec, centroids_: TensorSpec, **_: Any) -> Work:
    """The exponentials of predict_log_proba, which is counted as its own."""
    return function(EXP, X.shape[0] * centroids_.shape[0], DOUBLE)


@rule(f"{_HERE}.NeighborhoodComponentsAnalysis.fit", family="neighbours")
def components_fit(X: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """Each evaluation of the loss is counted inside; L-BFGS itself is small beside them."""
    return inside(probes)


@rule(f"{_HERE}.NeighborhoodComponentsAnalysis.transform", family="neighbours")
def components_transform(X: TensorSpec, components_: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """X times the components, in double."""
    return inside(probes) + gemm(X.shape[0], X.shape[1], components_.shape[0], DOUBLE)
