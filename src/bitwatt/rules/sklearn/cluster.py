"""sklearn.cluster."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas import clusters
from bitwatt.formulas.arrays import column_means, floats, logarithms
from bitwatt.formulas.decompose import lanczos
from bitwatt.formulas.distances import per_pair
from bitwatt.formulas.inside import Probes, inside, seen
from bitwatt.formulas.trees import LOG2
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_HERE = "sklearn.cluster"
_MEANS = ("KMeans", "MiniBatchKMeans", "BisectingKMeans")

free(
    *(f"{_HERE}.{name}.fit_predict" for name in (*_MEANS, "AgglomerativeClustering", "DBSCAN", "HDBSCAN",
                                                 "SpectralClustering", "AffinityPropagation", "FeatureAgglomeration")),
    *(f"{_HERE}.{name}.get_submatrix" for name in ("SpectralBiclustering", "SpectralCoclustering")),
    f"{_HERE}.HDBSCAN.dbscan_clustering",
    reason="calls fit and predict or transform, which are counted, or only looks values up",
)  # fmt: skip


@rule(f"{_HERE}.FeatureAgglomeration.inverse_transform", family="clusters")
def spread(**_: Any) -> Work:
    """Values are looked up by label; labels are sorted before, whose depth a logarithm of 27 operations bounds."""
    return arithmetic(LOG2, DOUBLE)


@rule(
    *(f"{_HERE}.{name}.{method}" for name in _MEANS for method in ("predict", "transform", "score", "fit_transform")),
    *(f"{_HERE}.{name}.predict" for name in ("AffinityPropagation", "Birch", "MeanShift")),
    f"{_HERE}.Birch.transform",
    f"{_HERE}.DBSCAN.fit",
    f"{_HERE}.SpectralClustering.fit",
    family="clusters",
)
def told(probes: Probes = (), **_: Any) -> Work:
    """The finiteness check, distances, products and factorisations counted inside; searches for neighbours and k-means
    are estimators of their own."""
    return inside(probes)


@rule(f"{_HERE}.SpectralBiclustering.fit", f"{_HERE}.SpectralCoclustering.fit", family="clusters")
def biclusters_fit(X: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """X scaled by its rows and columns, or its logarithms less their means (7 operations beside the logarithm), and the
    singular vectors of that: randomised ones are counted inside; those of ARPACK take a product with X and one with Xᵀ
    for each step. k-means are estimators of their own."""
    steps = ("arpack step", "arpack vectors", "eigsh", "scipy svd")
    if not any(name == "arpack step" for name, *_ in probes):
        work = inside(probes)
    else:
        work = inside(tuple(one for one in probes if one[0] not in steps))
        work += lanczos(probes, X.shape[0], X.shape[1], DOUBLE, -1 if X.nnz is None else X.nnz)
    for one, times in seen(probes, "logarithms of all"):
        work += (logarithms(X.numel, DOUBLE, 0, one, 0) + arithmetic(7 * X.numel, DOUBLE)) * times
    return work


@rule(f"{_HERE}.KMeans.fit", f"{_HERE}.BisectingKMeans.fit", family="clusters")
def kmeans_fit(X: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """Starts (k-means++ or random) and iterations as counted, of all runs; X is centred before."""
    if X.nnz is not None:
        return inside(probes)
    n, f = X.shape
    return inside(probes) + column_means(n, f, floats(X)) + arithmetic(X.numel, floats(X))


@rule(f"{_HERE}.MiniBatchKMeans.fit", f"{_HERE}.MiniBatchKMeans.partial_fit", family="clusters")
def minibatch_fit(X: TensorSpec, n_steps_: int = 1, batch_size: int = 1024, probes: Probes = (), **_: Any) -> Work:
    """Starts and steps as counted; every step of fit draws its batch by weights."""
    n = X.shape[0]
    steps = sum(times for *_, times in seen(probes, "kmeans minibatch"))
    drawn = clusters.weighted_choice(n, min(batch_size, n)) * steps if steps > 1 else Work()
    return inside(probes) + drawn


@rule(f"{_HERE}.AffinityPropagation.fit", family="clusters")
def affinity_fit(X: TensorSpec, n_iter_: int = 0, probes: Probes = (), **_: Any) -> Work:
    """All squared distances, then messages between all pairs."""
    return inside(probes) + clusters.affinity_messages(X.shape[0], n_iter_)


def _agglomerated(n: int, f: int, linkage: str, metric: str, connectivity: Any, probes: Probes) -> Work:
    """Distances by scipy are counted inside; single linkage makes its own, as it grows the tree."""
    if connectivity is not None:
        return replace(inside(probes), estimated=linkage != "ward")
    if linkage == "single" and metric != "precomputed":
        return inside(probes) + clusters.spanned(n, f, per_pair(metric, f) + 1)
    return inside(probes) + clusters.linked(n, linkage)


@rule(f"{_HERE}.AgglomerativeClustering.fit", family="clusters")
def agglomerative_fit(
    X: TensorSpec, linkage: str = "ward", metric: str = "euclidean", connectivity: Any = None, probes: Probes = (),
    **_: Any,
) -> Work:  # fmt: skip
    """All distances (3f + 1 for each pair), then mergers that change the distances to those left."""
    return _agglomerated(X.shape[0], X.shape[1], linkage, metric, connectivity, probes)


@rule(f"{_HERE}.FeatureAgglomeration.fit", family="clusters")
def features_fit(
    X: TensorSpec, linkage: str = "ward", metric: str = "euclidean", connectivity: Any = None, probes: Probes = (),
    **_: Any,
) -> Work:  # fmt: skip
    """As AgglomerativeClustering, of the columns."""
    return _agglomerated(X.shape[1], X.shape[0], linkage, metric, connectivity, probes)


@rule(f"{_HERE}.FeatureAgglomeration.transform", family="clusters")
def features_transform(
    X: TensorSpec, pooling_func: Any = "<mean>", probes: Probes = (), out: tuple[TensorSpec, ...] = (), **_: Any
) -> Work:
    """The sum of each cluster's columns, divided by their number; the largest or least is found by comparing, and of
    the median the mean of two is taken."""
    results = out[0].numel if out else 0
    if pooling_func in ("<max>", "<amax>", "<min>", "<amin>"):
        return inside(probes) + Work.of(floats(X), compare=X.numel)
    if pooling_func == "<median>":
        return inside(probes) + arithmetic(results, floats(X), div=results, compare=2 * X.numel)
    pooled = inside(probes) + arithmetic(X.numel, DOUBLE, div=results)
    return replace(pooled, estimated=pooling_func != "<mean>")


@rule(f"{_HERE}.Birch.fit", f"{_HERE}.Birch.partial_fit", family="clusters")
def birch_fit(
    X: TensorSpec | None = None, held_by_level: tuple[float, ...] = (), probes: Probes = (), **_: Any
) -> Work:
    """Rows inserted one by one, splits (counted inside), and the nearest subcluster of each row at the end; clustering
    the subclusters is an estimator of its own."""
    if X is None:
        return inside(probes)
    bits = 32 if X.dtype == "float32" else 64
    return inside(probes) + clusters.birch_inserted(X.shape[0], X.shape[1], held_by_level, bits)


@rule(f"{_HERE}.HDBSCAN.fit", family="clusters")
def hdbscan_fit(X: TensorSpec, metric: str = "euclidean", probes: Probes = (), **_: Any) -> Work:
    """By trees: the distances to the neighbours are an op of their own, then Prim's algorithm computes each pair's. By
    brute force: all distances (counted inside), divided by alpha, and two operations on each in the tree's growth. For
    medoids the distances inside each cluster, weighted and added up."""
    n, f = X.shape
    pairs = [
        rows * columns * times for name in ("euclidean", "cdist") for rows, columns, *_, times in seen(probes, name)
    ]
    medoids = sum(number for number in pairs if number < n * (n - 1) // 2)
    work = inside(probes) + arithmetic(2 * medoids, DOUBLE)
    if medoids < sum(pairs):
        return work + arithmetic(1.7 * n * n, DOUBLE)
    return work + clusters.spanned(n, f, per_pair(metric, f) + 2)


@rule(f"{_HERE}.OPTICS.fit", family="clusters")
def optics_fit(X: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """Every point looks for its neighbours, which is an op of its own, and computes the distances to those not yet
    ordered; they are rounded, two operations on each of n²/2."""
    return inside(probes) + arithmetic(X.shape[0] ** 2, DOUBLE)


@rule(f"{_HERE}.MeanShift.fit", family="clusters")
def meanshift_fit(probes: Probes = (), **_: Any) -> Work:
    """Every step of every seed looks for the points around it, which is an op of its own; their mean is small beside
    that, and not counted."""
    return replace(inside(probes), estimated=True)
