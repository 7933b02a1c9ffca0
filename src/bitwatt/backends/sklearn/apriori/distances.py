"""Distances and kernels between all rows, as the probes inside estimators would have told them; and neighbours."""

from __future__ import annotations

import math
from typing import Any

from bitwatt.backends.sklearn.apriori.call import Call, bits_of
from bitwatt.backends.sklearn.apriori.registry import assumes, calls, told_by_shapes
from bitwatt.records import TensorSpec


def stored_of(X: TensorSpec) -> int:
    return -1 if X.nnz is None else X.nnz


def dot(call: Call, m: int, k: int, n: int, *, same: bool = False, a: int = -1, b: int = -1, times: int = 1) -> None:
    meeting = round(a * b / max(k, 1)) if a >= 0 and b >= 0 else 0
    call.probe("dot", m, k, n, 64 if a < 0 and b < 0 else call.bits, a, b, same, meeting, times=times)


def euclidean(call: Call, X: TensorSpec, Y: TensorSpec | None = None, *, squared: bool = True, times: int = 1) -> None:
    """(x - y)² from a product and the norms of both sides; of one where they are the same."""
    other, (n, f), bits = X if Y is None else Y, X.shape, bits_of(X)
    m, stored = other.shape[0], stored_of(X)
    dot(call, n, f, m, same=Y is None, a=stored, b=stored_of(other), times=times)
    call.probe("euclidean", n, m, f, bits, squared, Y is None, stored >= 0, times=times)
    call.probe("row norms", n, f, 64, stored, True, times=times)
    if Y is not None:
        call.probe("row norms", m, f, 64, stored_of(other), True, times=times)


_NAMES = {"rbf": "rbf_kernel", "linear": "linear_kernel", "poly": "polynomial_kernel", "cosine": "cosine_similarity",
          "polynomial": "polynomial_kernel", "sigmoid": "sigmoid_kernel", "laplacian": "laplacian_kernel",
          "chi2": "chi2_kernel", "additive_chi2": "additive_chi2_kernel"}  # fmt: skip


def kernel(call: Call, name: str, X: TensorSpec, Y: TensorSpec | None = None, degree: float = 3.0) -> None:
    """A matrix of kernels through pairwise_kernels, with the checks of both sides."""
    other = X if Y is None else Y
    (n, f), m = X.shape, other.shape[0]
    call.checked(X)
    call.checked(other)
    if name == "rbf":
        euclidean(call, X, Y)
        if Y is not None:
            call.checked(X, other)
    elif name == "cosine":
        call.probe("normalised", bits_of(X), X.numel + (0 if Y is None else other.numel))
        dot(call, n, f, m, same=False, a=stored_of(X), b=stored_of(other))
    elif name == "laplacian":
        call.probe("cdist", n, m, f, "cityblock", 2.0)
    elif name not in ("chi2", "additive_chi2"):
        dot(call, n, f, m, same=Y is None, a=stored_of(X), b=stored_of(other))
    call.probe("pairwise", _NAMES.get(name, "linear_kernel"), n, m, f, bits_of(X), 0, float(degree),
               max(stored_of(X), 0))  # fmt: skip


def tree_nodes(rows: int, leaf: int) -> int:
    levels = int(math.log2(max(1.0, (rows - 1) / max(leaf, 1)))) + 1
    return (1 << levels) - 1


def search_method(call: Call, X: TensorSpec, neighbours: int | None) -> str:
    """What `algorithm="auto"` comes to."""
    algorithm, metric = str(call.get("algorithm", "auto")), call.get("metric", "minkowski")
    if X.nnz is not None or metric == "precomputed":
        return "brute"
    if algorithm != "auto":
        return algorithm
    if X.shape[1] > 15 or (neighbours is not None and neighbours >= X.shape[0] // 2) or callable(metric):
        return "ball_tree" if callable(metric) and X.shape[1] <= 15 else "brute"
    return "kd_tree" if metric in ("minkowski", "euclidean", "manhattan", "chebyshev", "cityblock", "l1", "l2", "p",
                                   "infinity") else "brute"  # fmt: skip


def visited(rows: int, features: int, leaf: float, found: float) -> float:
    """Points that a query of a tree looks at: Friedman, Bentley and Finkel's bound on leaves that the ball of the
    neighbours touches, (1 + (k·G(f)/b)^(1/f))^f for b points in a leaf, where G is the volume of a cube by that of the
    ball inside. Where that is more than there are, a fifth is still left out."""
    half = features / 2
    log_cube = features * math.log(2) + math.lgamma(half + 1) - half * math.log(math.pi)
    edge = math.exp((log_cube + math.log(max(found, 1.0) / max(leaf, 1.0))) / features)
    touched = math.exp(min(features * math.log1p(edge), 60.0))
    return min(touched * leaf, 0.8 * rows) if rows > leaf else float(rows)


_TREES = {"kd_tree": "KDTree", "ball_tree": "BallTree"}
_METRICS = {"manhattan": "ManhattanDistance", "l1": "ManhattanDistance", "cityblock": "ManhattanDistance",
            "chebyshev": "ChebyshevDistance"}  # fmt: skip


def _tree(call: Call) -> tuple[Any, ...]:
    rows, features = call.known["fit_shape"]
    metric = _METRICS.get(str(call.get("metric", "minkowski")), "EuclideanDistance")
    if call.get("metric", "minkowski") == "minkowski" and call.get("p", 2) not in (1, 2):
        metric = "MinkowskiDistance"
    nodes = tree_nodes(rows, int(call.get("leaf_size", 30)))
    return _TREES[call.known["fit_method"]], metric, rows, features, nodes


def _metric(call: Call) -> str:
    metric, p = call.get("metric", "minkowski"), call.get("p", 2)
    if metric == "minkowski":
        return {1: "manhattan", 2: "euclidean"}.get(p, "minkowski")
    return str(metric) if not callable(metric) else "callable"


@assumes("neighbors.NeighborsBase")
def neighbours_fit(call: Call) -> dict[str, Any]:
    asked = call.get("n_neighbors")
    told = {"fit_method": search_method(call, call.X, asked), "fit_shape": tuple(call.X.shape), "fit_bits": call.bits,
            "outputs": call.outputs, "effective_metric_": _metric(call), "_stored": stored_of(call.X),
            "n_samples_fit_": call.rows}  # fmt: skip
    call.known.update(told)
    call.checked(call.X, call.y if call.y is not None and call.y.dtype.startswith("float") else None)
    if told["fit_method"] in _TREES:
        call.probe("finite", 64, call.elements)
        call.probe("tree built", *_tree(call))
    return told


@assumes("neighbors.KNeighborsMixin", methods=("kneighbors",))
def kneighbors(call: Call) -> dict[str, Any]:
    wanted = call.get("weights") == "distance" or "Classifier" not in type(call.estimator).__name__
    wanted = wanted and not ("Regressor" in type(call.estimator).__name__ and call.get("weights") != "distance")
    search(call, call.X, int(call.get("n_neighbors", 5)), wanted=wanted)
    return {}


def search(call: Call, X: TensorSpec, k: int, *, wanted: bool, checked: bool = True) -> None:
    """The k nearest of what was fitted, for each row."""
    rows, features = call.known["fit_shape"]
    n = X.shape[0]
    if checked:
        call.checked(X)
    if call.known["fit_method"] == "brute":
        call.probe("argkmin", n, features, rows, bits_of(X), _metric(call), float(call.get("p", 2)), k * n, wanted,
                   False, stored_of(X), call.known.get("_stored", -1))  # fmt: skip
        return
    call.probe("finite", 64, X.numel)
    tree = _tree(call)
    leaf = rows / ((tree[4] + 1) / 2)
    looked = call.assume("visited", round(visited(rows, features, leaf, k) / max(rows, 1), 4),
                         "share of points that a query looks at")  # fmt: skip
    nodes = max(float(looked) * rows / leaf, 1.0)
    call.probe("tree query", *tree, n, round(float(looked) * rows * n), round(nodes * n), k * n)


@assumes("neighbors.RadiusNeighborsMixin", methods=("radius_neighbors",))
def radius_neighbours(call: Call) -> dict[str, Any]:
    radius_search(call, call.X)
    return {}


def radius_search(call: Call, X: TensorSpec, *, wanted: bool | None = None) -> None:
    rows, features = call.known["fit_shape"]
    n = X.shape[0]
    call.checked(X)
    share = float(call.assume("within", 0.05, "share of points inside the radius"))
    found = round(share * rows * n)
    wants = call.get("weights") == "distance" or "Transformer" in type(call.estimator).__name__
    wants = wants if wanted is None else wanted
    if call.known["fit_method"] == "brute":
        call.probe("radius", n, features, rows, bits_of(X), _metric(call), float(call.get("p", 2)), found, wants, False,
                   stored_of(X), call.known.get("_stored", -1))  # fmt: skip
        return
    call.probe("finite", 64, X.numel)
    tree = _tree(call)
    looked = visited(rows, features, rows / ((tree[4] + 1) / 2), max(share * rows, 1.0))
    call.probe("tree radius", *tree, n, round(looked * n), found, wants)


calls("neighbors.KNeighborsClassifier neighbors.KNeighborsRegressor", "predict", "kneighbors")
calls("neighbors.KNeighborsClassifier", "predict_proba", "kneighbors")
calls("neighbors.RadiusNeighborsClassifier neighbors.RadiusNeighborsRegressor", "predict", "radius_neighbors")
calls("neighbors.RadiusNeighborsClassifier", "predict_proba", "radius_neighbors")
calls("neighbors.KNeighborsMixin", "kneighbors_graph", "kneighbors")
calls("neighbors.RadiusNeighborsMixin", "radius_neighbors_graph", "radius_neighbors")
told_by_shapes("neighbors.KNeighborsMixin", "kneighbors_graph")
told_by_shapes("neighbors.KNeighborsClassifier neighbors.KNeighborsRegressor neighbors.RadiusNeighborsClassifier "
               "neighbors.RadiusNeighborsRegressor", "predict", "predict_proba")  # fmt: skip


@assumes("neighbors.KNeighborsTransformer", "neighbors.RadiusNeighborsTransformer", methods=("transform",))
def graph(call: Call) -> dict[str, Any]:
    name = "kneighbors_graph" if "KNeighbors" in type(call.estimator).__name__ else "radius_neighbors_graph"
    call.again(name)
    rows = call.known["fit_shape"][0]
    kept = int(call.get("n_neighbors", 5)) + 1 if name == "kneighbors_graph" else 0.05 * rows
    return {"_width": rows, "_kept": kept}


@assumes("neighbors.LocalOutlierFactor")
def outlier_factor(call: Call) -> dict[str, Any]:
    told = neighbours_fit(call)
    k = max(1, min(int(call.get("n_neighbors", 20)), call.rows - 1))
    told["n_neighbors_"] = k
    call.walk.fitted[id(call.estimator)] = {**call.known, **told}
    call.again("kneighbors")
    return told


@assumes("neighbors.LocalOutlierFactor", methods=("kneighbors",))
def outlier_neighbours(call: Call) -> dict[str, Any]:
    k, rows = call.known.get("n_neighbors_", 20), call.known["fit_shape"][0]
    inside = call.rows == rows
    search(call, call.X, k + int(inside), wanted=True, checked=not inside)
    return {}


@assumes("neighbors.LocalOutlierFactor", methods=("score_samples",))
def outlier_scores(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    call.again("kneighbors")
    return {}


calls("neighbors.LocalOutlierFactor", "decision_function", "score_samples")
calls("neighbors.LocalOutlierFactor", "predict", "decision_function")
told_by_shapes("neighbors.LocalOutlierFactor", "decision_function", "predict")


@assumes("neighbors.NearestCentroid")
def centroids(call: Call) -> dict[str, Any]:
    call.checked(call.X)
    return {"centroids_": TensorSpec((call.classes, call.columns), "float64")}


@assumes("neighbors.NearestCentroid", methods=("predict",))
def nearest_centroid(call: Call) -> dict[str, Any]:
    metric = str(call.get("metric", "euclidean"))
    call.checked(call.X, times=2)
    call.probe("finite", 64, call.classes * call.columns)
    call.probe("argkmin", call.rows, call.columns, call.classes, 64, metric, 2.0, call.rows, False, False, call.stored,
               -1)  # fmt: skip
    return {}


@assumes("neighbors.NearestCentroid", methods=("predict_log_proba", "decision_function"))
def centroid_distances(call: Call) -> dict[str, Any]:
    centre = TensorSpec((1, call.columns), "float64")
    for _ in range(call.classes):
        euclidean(call, call.X, centre, squared=False)
        call.checked(centre, call.X)
    call.checked(call.X)
    return {}


calls("neighbors.NearestCentroid", "predict_proba", "predict_log_proba")


@assumes("neighbors.KernelDensity")
def density_fit(call: Call) -> dict[str, Any]:
    algorithm = str(call.get("algorithm", "auto"))
    method = algorithm if algorithm != "auto" else "kd_tree"
    told = {"fit_method": method, "fit_shape": tuple(call.X.shape)}
    call.known.update(told)
    call.probe("finite", 64, call.elements, times=2)
    call.probe("tree built", *_density_tree(call))
    bandwidth = call.get("bandwidth", 1.0)
    value = call.rows ** (-1 / (call.columns + 4)) if isinstance(bandwidth, str) else float(bandwidth)
    return {**told, "bandwidth_": value, "_fit": tuple(call.X.shape)}


def _density_tree(call: Call) -> tuple[Any, ...]:
    rows, features = call.known["fit_shape"]
    kind = _TREES[call.known["fit_method"]]
    return kind, "EuclideanDistance", rows, features, tree_nodes(rows, int(call.get("leaf_size", 40)))


@assumes("neighbors.KernelDensity", methods=("score_samples",))
def density(call: Call) -> dict[str, Any]:
    call.probe("finite", 64, call.elements, times=2)
    rows = call.known["fit_shape"][0]
    share = float(call.assume("visited", 1.0, "share of points that a query looks at"))
    call.probe("tree density", *_density_tree(call), call.rows, round(share * rows * call.rows),
               str(call.get("kernel", "gaussian")))  # fmt: skip
    return {}
