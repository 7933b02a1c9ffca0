"""Manifolds and spectra: neighbours, distances and eigenvectors. Where an eigenvalue iteration may take any number of
steps, or a factor may fill up as the graph wants, nothing is assumed."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.decomposition import random_range
from bitwatt.backends.sklearn.apriori.distances import euclidean
from bitwatt.backends.sklearn.apriori.linear import iterations
from bitwatt.backends.sklearn.apriori.registry import UnassumedError, assumes, calls, nobody_knows
from bitwatt.records import TensorSpec

nobody_knows("cluster.SpectralClustering manifold.SpectralEmbedding",
             "steps of its eigenvalue iteration vary a thousandfold with the data", "fit", "fit_transform",
             "fit_predict")  # fmt: skip
nobody_knows("covariance.GraphicalLasso covariance.GraphicalLassoCV", "its sweeps depend on the data", "fit")
nobody_knows("gaussian_process.GaussianProcessClassifier",
             "Newton's steps for each evaluation of its likelihood depend on the data", "fit")  # fmt: skip


def _pairs(call: Call) -> None:
    """Distances of all pairs through pairwise_distances."""
    call.checked(call.X)
    euclidean(call, call.X, squared=False)
    call.probe("pairwise", "euclidean_distances", call.rows, call.rows, call.columns, call.bits, 0, 3.0, 0)


def _neighbours(call: Call, count: int) -> Any:
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(n_neighbors=count)
    call.ask(model, "fit", call.X, name="nbrs")
    return model


@assumes("manifold.TSNE", methods=("fit_transform",))
def tsne(call: Call) -> dict[str, Any]:
    from sklearn.decomposition import PCA

    n, parts = call.rows, int(call.get("n_components", 2))
    steps = int(call.assume("n_iter_", int(call.get("max_iter", 1000)), "max_iter"))
    looks = max(steps // 50, 1)
    call.checked(call.X)
    if call.get("init", "pca") == "pca":
        call.ask(PCA(n_components=parts), "fit_transform", call.X)
    if call.get("method", "barnes_hut") == "exact":
        _pairs(call)
        call.probe("tsne pairs", n, n, 22)
        call.probe("cdist", n * (n - 1) // 2, 1, parts, "sqeuclidean", 2.0, times=steps)
        call.probe("tsne exact", n, parts, -1, False, times=steps - looks)
        call.probe("tsne exact", n, parts, -1, True, times=looks)
    else:
        near = max(min(n - 1, int(3.0 * float(call.get("perplexity", 30.0)) + 1)), 1)
        model = _neighbours(call, near)
        call.ask(model, "kneighbors_graph", call.X, name="nbrs")
        stored = round(n * near * float(call.assume("mutual", 1.3, "pairs that are near one way or the other")))
        call.probe("tsne pairs", n, near, 22)
        call.probe("tsne tree", n, parts, stored, False, times=steps - looks)
        call.probe("tsne tree", n, parts, stored, True, times=looks)
    return {"n_iter_": steps, "_width": parts, "_kept": None, "_dtype": "float32"}


@assumes("manifold.MDS", methods=("fit_transform",))
def mds(call: Call) -> dict[str, Any]:
    from sklearn.isotonic import IsotonicRegression
    from sklearn.manifold import ClassicalMDS

    n, parts = call.rows, int(call.get("n_components", 2))
    tries = call.get("n_init", 1)
    start = call.get("init", "classical_mds")
    tries = tries if isinstance(tries, int) else 1 if start == "classical_mds" else 4
    steps = iterations(call, int(call.get("max_iter", 300)), "max_iter")
    call.checked(call.X)
    _pairs(call)
    placed = TensorSpec((n, parts), "float64")
    euclidean(call, placed, squared=False, times=(steps + 1) * tries)
    call.checked(placed, times=(steps + 1) * tries)
    call.probe("finite", 64, n * n)
    if start == "classical_mds":
        call.ask(ClassicalMDS(n_components=parts, metric="precomputed"), "fit_transform", TensorSpec((n, n), "float64"))
    if call.get("metric_mds", True) is False:
        pairs = TensorSpec((n * (n - 1) // 2,), "float64")
        call.ask(IsotonicRegression(), "fit_transform", pairs, pairs, times=steps * tries)
    return {"n_iter_": steps, "_width": parts, "_kept": None}


@assumes("manifold.ClassicalMDS", methods=("fit_transform",))
def classical(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    if call.get("metric", "euclidean") != "precomputed":
        _pairs(call)
    call.probe("scipy eigh", call.rows, 64, "evr", False, call.rows)
    return {"_width": int(call.get("n_components", 2)), "_kept": None}


calls("manifold.TSNE manifold.MDS manifold.ClassicalMDS", "fit", "fit_transform")


@assumes("manifold.Isomap")
def isomap(call: Call) -> dict[str, Any]:
    from sklearn.decomposition import KernelPCA

    parts, near = int(call.get("n_components", 2)), int(call.get("n_neighbors", 5) or 5)
    model = _neighbours(call, near)
    call.ask(model, "kneighbors_graph", call.X, name="nbrs")
    solver = call.get("eigen_solver", "auto")
    inner = KernelPCA(n_components=parts, kernel="precomputed", eigen_solver=solver)
    square = TensorSpec((call.rows, call.rows), call.X.dtype)
    call.ask(inner, "fit_transform", square, name="kernel_pca")
    return {"dist_matrix_": square, "_width": parts, "_nbrs": model, "_inner": inner, "_kept": None}


@assumes("manifold.Isomap", methods=("transform",))
def isomap_transform(call: Call) -> dict[str, Any]:
    call.ask(call.known["_nbrs"], "kneighbors", call.X, name="nbrs")
    rows = call.known["dist_matrix_"].shape[0]
    call.ask(call.known["_inner"], "transform", TensorSpec((call.rows, rows), call.X.dtype), name="kernel_pca")
    return {}


calls("manifold.Isomap", "fit_transform", "fit")


@assumes("manifold.LocallyLinearEmbedding")
def locally_linear(call: Call) -> dict[str, Any]:
    n, near = call.rows, int(call.get("n_neighbors", 5))
    if call.get("method", "standard") != "standard":
        raise UnassumedError("only its standard method is known before")
    if n > 200 and call.get("eigen_solver", "auto") in ("auto", "arpack"):
        raise UnassumedError("how its sparse matrix fills up when it is factorised depends on the data")
    model = _neighbours(call, near + 1)
    call.ask(model, "kneighbors", call.X, name="nbrs")
    call.checked(call.X, times=3)
    call.probe("scipy solve", near, 1, call.bits, "pos", times=n)
    call.probe("scipy eigh", n, 64, "evr", False, int(call.get("n_components", 2)))
    return {"_width": int(call.get("n_components", 2)), "_nbrs": model, "_kept": None}


@assumes("manifold.LocallyLinearEmbedding", methods=("transform",))
def locally_linear_transform(call: Call) -> dict[str, Any]:
    call.ask(call.known["_nbrs"], "kneighbors", call.X, name="nbrs")
    call.checked(call.X, times=2)
    call.probe("scipy solve", int(call.get("n_neighbors", 5)), 1, call.bits, "pos", times=call.rows)
    return {}


@assumes("neighbors.NeighborhoodComponentsAnalysis")
def components(call: Call) -> dict[str, Any]:
    from sklearn.decomposition import PCA

    parts = int(call.get("n_components") or call.columns)
    steps = iterations(call, 50, "max_iter" if int(call.get("max_iter", 50)) <= 50 else "typical")
    times = int(call.assume("n_evaluations", round(1.2 * steps) + 1, "of the loss"))
    if call.get("init", "auto") == "pca" or (call.get("init", "auto") == "auto" and parts < call.columns):
        call.ask(PCA(n_components=parts), "fit", call.X)
    call.checked(call.X)
    placed = TensorSpec((call.rows, parts), call.X.dtype)
    call.probe("components loss", call.rows, call.columns, parts, call.bits, times=times)
    euclidean(call, placed, times=times)
    call.checked(placed, times=times)
    return {"components_": TensorSpec((parts, call.columns), "float64"), "n_iter_": steps, "_width": parts}


@assumes("neighbors.NeighborhoodComponentsAnalysis", methods=("transform",))
def component_transform(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    return {}


@assumes("cluster.SpectralCoclustering")
def cocluster(call: Call) -> dict[str, Any]:
    from sklearn.cluster import KMeans

    n, f = call.X.shape
    count = 1 + max((int(call.get("n_clusters", 3)) - 1).bit_length(), 1)
    call.checked(call.X)
    call.probe("scaled both ways", n, f, call.bits, call.stored)
    random_range(call, n, f, count)
    call.probe("finite", 64, (n + f) * count)
    both = TensorSpec((n + f, count - 1), "float64")
    call.ask(KMeans(n_clusters=int(call.get("n_clusters", 3)), n_init=int(call.get("n_init", 10))), "fit", both)
    return {}
