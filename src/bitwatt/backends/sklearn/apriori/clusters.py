"""k-means and its kin by typical iterations; hierarchies and densities from the distances that they need."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call
from bitwatt.backends.sklearn.apriori.distances import euclidean, stored_of
from bitwatt.backends.sklearn.apriori.linear import iterations
from bitwatt.backends.sklearn.apriori.registry import UnassumedError, assumes, nobody_knows
from bitwatt.records import TensorSpec


def _tries(call: Call, default: int) -> int:
    tries, start = call.get("n_init", "auto"), call.get("init", "k-means++")
    if tries != "auto":
        return int(tries)
    return 1 if not isinstance(start, str) or start == "k-means++" else default


def start(call: Call, X: TensorSpec, clusters: int, times: int) -> None:
    """k-means++: a centre is drawn, then for each other the best of 2 + ln k candidates."""
    trials = 2 + int(math.log(max(clusters, 1)))
    for candidates, often in ((1, times), (trials, times * (clusters - 1))):
        if not often:
            continue
        (n, f), stored = X.shape, stored_of(X)
        few = -1 if stored < 0 or candidates == 1 else round(stored * candidates / max(n, 1))
        meeting = round(few * stored / max(f, 1)) if few >= 0 else 0
        call.probe("dot", candidates, f, n, 64, few, stored, False, meeting, times=often)
        call.probe("euclidean", candidates, n, f, call.bits, True, False, few >= 0, times=often)
    call.probe("kmeans start", *X.shape, clusters, trials, call.bits, times=times)


def lloyd(call: Call, X: TensorSpec, clusters: int, times: int, *, moves: bool = True) -> None:
    call.probe("kmeans lloyd", *X.shape, clusters, call.bits, stored_of(X), moves, times=times)


@assumes("cluster.KMeans")
def kmeans(call: Call) -> dict[str, Any]:
    clusters, tries = int(call.get("n_clusters", 8)), _tries(call, 10)
    steps = iterations(call, 10)
    sizes = (*call.X.shape, clusters, call.bits, call.stored)
    call.checked(call.X)
    call.probe("kmeans tolerance", call.rows, call.columns, call.bits, call.stored)
    call.probe("row norms", call.rows, call.columns, 64, call.stored, True)
    if call.get("init", "k-means++") == "k-means++":
        start(call, call.X, clusters, tries)
    call.probe("kmeans inertia", *sizes, True, times=tries)
    if call.get("algorithm", "lloyd") == "elkan":
        centres = TensorSpec((clusters, call.columns), call.X.dtype)
        call.probe("kmeans bounds", *sizes, times=tries)
        call.probe("kmeans elkan", *sizes, True, times=steps * tries)
        call.checked(centres, times=(steps + 1) * tries)
        call.probe("dot", clusters, call.columns, clusters, 64, -1, -1, True, 0, times=(steps + 1) * tries)
        call.probe("euclidean", clusters, clusters, call.columns, call.bits, False, True, False,
                   times=(steps + 1) * tries)  # fmt: skip
        call.probe("row norms", clusters, call.columns, 64, -1, True, times=(steps + 1) * tries)
    else:
        lloyd(call, call.X, clusters, steps * tries)
        call.probe("row norms", clusters, call.columns, 64, -1, True, times=steps * tries)
    return {"n_iter_": steps, "_width": clusters, "_kept": None,
            "cluster_centers_": TensorSpec((clusters, call.columns), "float64")}  # fmt: skip


@assumes("cluster.MiniBatchKMeans")
def minibatch(call: Call) -> dict[str, Any]:
    clusters, batch = int(call.get("n_clusters", 8)), min(int(call.get("batch_size", 1024)), call.rows)
    tries = _tries(call, 3)
    steps = int(call.assume("n_steps_", min(30, max(int(call.get("max_iter", 100)) * call.rows // batch, 1)),
                            "batches until nothing gets better"))  # fmt: skip
    first = call.get("init_size") or max(3 * batch, 3 * clusters)
    seen = TensorSpec((min(first, call.rows), call.columns), call.X.dtype)
    call.checked(call.X)
    call.probe("kmeans tolerance", call.rows, call.columns, call.bits, call.stored)
    call.probe("row norms", call.rows, call.columns, 64, call.stored, True)
    if call.get("init", "k-means++") == "k-means++":
        start(call, seen, clusters, tries)
    for rows, times, moved in ((seen.shape[0], tries, False), (batch, steps, True), (call.rows, 1, False)):
        sizes = (rows, call.columns, clusters, call.bits, _stored(call, rows))
        call.probe("kmeans lloyd", *sizes, False, times=times)
        call.probe("kmeans inertia", *sizes, True, times=times)
        if moved:
            call.probe("kmeans minibatch", *sizes, True, times=times)
    return {"n_iter_": max(steps * batch // max(call.rows, 1), 1), "n_steps_": steps, "_width": clusters, "_kept": None}


def _stored(call: Call, rows: int) -> int:
    return -1 if call.stored < 0 else round(call.stored * rows / max(call.rows, 1))


@assumes("cluster.BisectingKMeans")
def bisecting(call: Call) -> dict[str, Any]:
    """Each split is a k-means of two on the largest cluster; clusters are halves of halves."""
    clusters, tries = int(call.get("n_clusters", 8)), int(call.get("n_init", 1))
    steps = iterations(call, 6, "for each split in two")
    call.checked(call.X)
    call.probe("row norms", call.rows, call.columns, 64, call.stored, True)
    plus = call.get("init", "random") == "k-means++"
    sizes = [call.rows]
    for _ in range(min(clusters - 1, 4096)):
        sizes.sort()
        rows = sizes.pop()
        sizes += [math.ceil(rows * 0.55), max(rows - math.ceil(rows * 0.55), 1)]
        inside = TensorSpec((rows, call.columns), call.X.dtype, None if call.stored < 0 else _stored(call, rows))
        lloyd(call, inside, 2, steps * tries)
        call.probe("kmeans inertia", rows, call.columns, 2, call.bits, _stored(call, rows), True, times=tries + 2)
        call.probe("kmeans tolerance", rows, call.columns, call.bits, _stored(call, rows))
        call.probe("row norms", 2, call.columns, 64, -1, True, times=steps * tries)
        if plus:
            start(call, inside, 2, tries)
    call.probe("kmeans inertia", call.rows, call.columns, clusters, call.bits, call.stored, True)
    return {"_width": clusters, "_kept": None}


@assumes("cluster.KMeans", "cluster.MiniBatchKMeans", "cluster.BisectingKMeans", methods=("predict", "score"))
def nearest_centre(call: Call) -> dict[str, Any]:
    clusters = int(call.get("n_clusters", 8))
    call.checked(call.X)
    call.probe("row norms", clusters, call.columns, 64, -1, True)
    lloyd(call, call.X, clusters, 1, moves=False)
    if call.method == "score":
        call.probe("kmeans inertia", *call.X.shape, clusters, call.bits, call.stored, True)
    return {}


@assumes("cluster.KMeans", "cluster.MiniBatchKMeans", "cluster.BisectingKMeans", methods=("transform",))
def centre_distances(call: Call) -> dict[str, Any]:
    centres = TensorSpec((int(call.get("n_clusters", 8)), call.columns), call.X.dtype)
    call.checked(call.X, times=2)
    call.checked(centres)
    euclidean(call, call.X, centres, squared=False)
    return {}


def _neighbours(call: Call, **options: Any) -> Any:
    from sklearn.neighbors import NearestNeighbors

    model = NearestNeighbors(**options)
    call.ask(model, "fit", call.X)
    return model


@assumes("cluster.DBSCAN")
def dbscan(call: Call) -> dict[str, Any]:
    model = _neighbours(call, radius=call.get("eps", 0.5), algorithm=call.get("algorithm", "auto"),
                        leaf_size=call.get("leaf_size", 30), metric=call.get("metric", "euclidean"))  # fmt: skip
    call.checked(call.X)
    call.ask(model, "radius_neighbors", call.X)
    return {}


@assumes("cluster.HDBSCAN")
def hdbscan(call: Call) -> dict[str, Any]:
    tall = call.rows > 100 and call.stored < 0 and call.columns <= 60
    asked = call.get("algorithm", "auto")
    method = asked if asked != "auto" else "kd_tree" if tall else "brute"
    call.checked(call.X)
    if method == "brute":
        euclidean(call, call.X, squared=False)
        call.checked(call.X)
        return {}
    model = _neighbours(call, algorithm=method, leaf_size=call.get("leaf_size", 40),
                        n_neighbors=call.get("min_samples") or call.get("min_cluster_size", 5))  # fmt: skip
    call.ask(model, "kneighbors", call.X)
    return {}


@assumes("cluster.OPTICS")
def optics(call: Call) -> dict[str, Any]:
    """All neighbours of every point in turn; distances to those that were not yet visited, half of them on average."""
    least = call.get("min_samples", 5)
    model = _neighbours(call, n_neighbors=least if isinstance(least, int) else max(round(least * call.rows), 2),
                        algorithm=call.get("algorithm", "auto"), leaf_size=call.get("leaf_size", 30))  # fmt: skip
    call.checked(call.X)
    call.ask(model, "kneighbors", call.X)
    call.ask(model, "radius_neighbors", TensorSpec((1, call.columns), call.X.dtype), times=call.rows)
    share = float(call.assume("reached", 1.0, "share of points inside max_eps"))
    call.probe("cdist", 1, max(round(share * call.rows / 2), 1), call.columns, "minkowski", 2.0, times=call.rows)
    return {}


@assumes("cluster.AgglomerativeClustering", "cluster.FeatureAgglomeration")
def hierarchy(call: Call) -> dict[str, Any]:
    by_column = "Feature" in type(call.estimator).__name__
    points, features = (call.columns, call.rows) if by_column else (call.rows, call.columns)
    call.checked(call.X)
    metric, linkage = str(call.get("metric", "euclidean")), call.get("linkage", "ward")
    if call.get("connectivity") is not None:
        raise UnassumedError("which clusters meet depends on the connectivity")
    name = {"manhattan": "cityblock", "l1": "cityblock", "l2": "euclidean"}.get(metric, metric)
    if linkage != "single" and metric != "precomputed":
        call.probe("cdist", points * (points - 1) // 2, 1, features, name, 2.0)
    clusters = int(call.get("n_clusters", 2))
    return {"n_leaves_": points, "n_clusters_": clusters, "children_": TensorSpec((points - 1, 2), "int64"),
            "_width": clusters if by_column else call.columns}  # fmt: skip


@assumes("cluster.FeatureAgglomeration", methods=("transform",))
def pooled(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    return {}


@assumes("cluster.AffinityPropagation")
def affinity(call: Call) -> dict[str, Any]:
    call.checked(call.X, times=2)
    euclidean(call, call.X)
    return {"n_iter_": iterations(call, 30), "cluster_centers_": TensorSpec((max(call.rows // 20, 1), call.columns))}


@assumes("cluster.MeanShift")
def mean_shift(call: Call) -> dict[str, Any]:
    model = _neighbours(call, radius=call.get("bandwidth") or 1.0)
    seeds = int(call.assume("seeds", call.rows, "a seed at each point")) if not call.get("bin_seeding") else int(
        call.assume("seeds", max(call.rows // 10, 1), "a seed for ten points"))  # fmt: skip
    steps = iterations(call, 12, "for each seed")
    call.checked(call.X)
    call.ask(model, "radius_neighbors", TensorSpec((1, call.columns), call.X.dtype), times=seeds * steps)
    if call.get("bandwidth") is None:
        rows = call.rows
        near = _neighbours(call, n_neighbors=max(int(0.3 * rows), 1))
        call.ask(near, "kneighbors", call.X)
    return {"n_iter_": steps, "cluster_centers_": TensorSpec((max(call.rows // 50, 1), call.columns))}


@assumes("cluster.Birch")
def birch(call: Call) -> dict[str, Any]:
    """A tree of subclusters. How many there are depends on the threshold: three quarters of a node are filled."""
    subclusters = max(round(call.rows * float(call.assume("subclusters", 0.9, "for each row"))), 1)
    branching = int(call.get("branching_factor", 50))
    held, left, nodes = list[float](), float(subclusters), 0.0
    while left > branching:
        held.append(0.6 * branching)
        left = left / (0.6 * branching)
        nodes += left
    held.append(max(left, 1.0))
    call.checked(call.X)
    full = TensorSpec((branching + 1, call.columns), call.X.dtype)
    splits = round(nodes)
    if splits:
        euclidean(call, full, times=splits)
        call.checked(full, times=splits)
    call.probe("row norms", subclusters, call.columns, 64, -1, True)
    _assigned(call, subclusters)
    told = {"held_by_level": tuple(reversed(held)), "_subclusters": subclusters, "_width": subclusters,
            "subcluster_centers_": TensorSpec((subclusters, call.columns), "float64")}  # fmt: skip
    if isinstance(call.get("n_clusters", 3), int):
        from sklearn.cluster import AgglomerativeClustering

        model = AgglomerativeClustering(n_clusters=call.get("n_clusters", 3))
        call.ask(model, "fit_predict", TensorSpec((subclusters, call.columns), call.X.dtype))
    return told


def _assigned(call: Call, points: int) -> None:
    call.probe("argkmin", call.rows, call.columns, points, call.bits, "euclidean", 2.0, call.rows, False, False,
               call.stored, -1)  # fmt: skip


@assumes("cluster.Birch", "cluster.AffinityPropagation", "cluster.MeanShift", methods=("predict",))
def nearest_of(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    centres = call.known.get("subcluster_centers_") or call.known["cluster_centers_"]
    _assigned(call, centres.shape[0])
    return {}


@assumes("cluster.Birch", methods=("transform",))
def subcluster_distances(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    euclidean(call, call.X, TensorSpec((call.known["_subclusters"], call.columns), call.X.dtype), squared=False)
    return {}


nobody_knows("cluster.SpectralBiclustering", "tries of k-means on projections depend on the data", "fit")
