"""sklearn.manifold. Neighbours, kernel PCA, isotonic regression and k-means are estimators of their own; distances,
factorisations and eigenvalue iterations are counted inside."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas import embeddings
from bitwatt.formulas.inside import Probes, inside, seen
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule

_HERE = "sklearn.manifold"

free(
    *(f"{_HERE}.{name}.fit" for name in ("TSNE", "MDS", "ClassicalMDS")),
    *(f"{_HERE}.{name}.fit_transform" for name in ("SpectralEmbedding",)),
    reason="calls fit_transform or fit, which is counted",
)


@rule(f"{_HERE}.SpectralEmbedding.fit", family="manifold")
def spectral_fit(probes: Probes = (), **_: Any) -> Work:
    """The affinity, its Laplacian, and ARPACK's steps with the inverse of the shifted matrix."""
    return inside(probes)


@rule(f"{_HERE}.TSNE.fit_transform", family="manifold")
def tsne_fit(X: TensorSpec, n_components: int = 2, probes: Probes = (), **_: Any) -> Work:
    """Bandwidths, gradients as counted, and the descent's own ten operations on each coordinate and iteration."""
    steps: int = sum(times for name in ("tsne exact", "tsne tree") for *_, times in seen(probes, name))
    work = inside(probes, "tsne tree")
    looks = list(seen(probes, "tsne tree"))
    known = [(cells[0], times) for _, _, _, _, *cells, times in looks if cells]
    typical = round(sum(c * times for c, times in known) / sum(times for _, times in known)) if known else -1
    for n, components, stored, loss, *cells, times in looks:
        work += embeddings.tsne_tree(n, components, stored, loss, cells[0] if cells else typical) * times
    return work + arithmetic(10 * X.shape[0] * n_components * steps, DOUBLE)


@rule(f"{_HERE}.MDS.fit_transform", family="manifold")
def mds_fit(
    X: TensorSpec, n_components: int = 2, metric_mds: bool = True, metric: Any = True, probes: Probes = (), **_: Any
) -> Work:
    """Distances of every step as counted, and what a step of SMACOF does with them."""
    n = X.shape[0]
    steps: int = sum(times for rows, _, f, *_, times in seen(probes, "euclidean") if rows == n and f == n_components)
    ordinal = arithmetic(0 if metric_mds else 4 * n * n, DOUBLE)
    return inside(probes) + (embeddings.majorised(n, n_components) + ordinal) * steps


@rule(f"{_HERE}.ClassicalMDS.fit_transform", family="manifold")
def classical_fit(X: TensorSpec, probes: Probes = (), **_: Any) -> Work:
    """All distances, centred twice, and the eigenvectors of what has few values that are not zero: the tridiagonal
    problem falls apart, which saves some 30n²; how much depends on the data."""
    n = X.shape[0]
    work = inside(probes) + embeddings.centred_twice(n) + arithmetic(-30 * n * n, DOUBLE)
    return replace(work, estimated=True)


@rule(f"{_HERE}.Isomap.fit", f"{_HERE}.Isomap.fit_transform", family="manifold")
def isomap_fit(
    X: TensorSpec, n_neighbors: int | None = 5, path_method: str = "auto", probes: Probes = (), **_: Any
) -> Work:
    """Shortest paths through the graph of neighbours, squared and halved."""
    n = X.shape[0]
    paths = embeddings.shortest_paths(n, n * (n_neighbors or 5), dense=path_method == "FW")
    return inside(probes) + paths + arithmetic(2 * n * n, DOUBLE)


@rule(f"{_HERE}.Isomap.reconstruction_error", family="manifold")
def isomap_error(dist_matrix_: TensorSpec, **_: Any) -> Work:
    """Distances squared and halved, and the sum of their squares once they are centred, which is counted."""
    return arithmetic(4 * dist_matrix_.numel, DOUBLE)


@rule(f"{_HERE}.Isomap.transform", family="manifold")
def isomap_transform(
    X: TensorSpec, dist_matrix_: TensorSpec | None = None, n_neighbors: int | None = 5, probes: Probes = (), **_: Any
) -> Work:
    """Paths of new points by way of their neighbours."""
    n = dist_matrix_.shape[0] if dist_matrix_ is not None else X.shape[0]
    return inside(probes) + embeddings.through_neighbours(X.shape[0], n_neighbors or 5, n)


@rule(f"{_HERE}.LocallyLinearEmbedding.fit", f"{_HERE}.LocallyLinearEmbedding.fit_transform", family="manifold")
def locally_linear_fit(X: TensorSpec, n_neighbors: int = 5, probes: Probes = (), **_: Any) -> Work:
    """Around each point a Gram matrix of its neighbours and a solve, or a decomposition; then the smallest eigenvectors
    of a sparse matrix of n rows, by steps with its inverse or all at once."""
    n, f = X.shape
    return inside(probes) + embeddings.barycentres(n, n_neighbors, f)


@rule(f"{_HERE}.LocallyLinearEmbedding.transform", family="manifold")
def locally_linear_transform(
    X: TensorSpec, n_neighbors: int = 5, n_components: int = 2, probes: Probes = (), **_: Any
) -> Work:
    """Weights that rebuild each new point from its neighbours, and their mean in the embedding."""
    n, f = X.shape
    mean = arithmetic(2 * n * n_neighbors * n_components, DOUBLE)
    return inside(probes) + embeddings.barycentres(n, n_neighbors, f) + mean
