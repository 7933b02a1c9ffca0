"""Distances, kernels and the primitives below them: what happens inside neighbours, clusters, manifolds and kernel
methods is told by the few functions that all of them call. Their names begin with a topic: `dot`, `tree query`, ..."""

from __future__ import annotations

import functools
import math
import sys
import weakref
from typing import Any

from numpy import ndarray

from bitwatt.backends.sklearn.around import apart
from bitwatt.backends.sklearn.facts import facts
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.readers.densities import met

_PAIRS = "sklearn.metrics.pairwise"


def _bits(X: Any) -> int:
    if type(X) is ndarray:  # as most are
        return 32 if X.dtype.char == "f" else 64
    return 32 if getattr(getattr(X, "dtype", None), "char", "") == "f" else 64


def _nnz(X: Any) -> int:
    """Stored elements of a sparse matrix, -1 for a dense one."""
    return int(X.nnz) if type(X) is not ndarray and hasattr(X, "tocsr") else -1


def _is_ragged(lists: Any) -> bool:
    return getattr(getattr(lists, "dtype", None), "kind", "") == "O"


def _shape(X: Any) -> tuple[int, int]:
    shape = getattr(X, "shape", None) or (len(X), 1)
    return (int(shape[0]), int(shape[1])) if len(shape) > 1 else (int(shape[0]), 1)


def _get(args: Any, kwargs: Any, position: int, name: str, default: Any = None) -> Any:
    return args[position] if len(args) > position else kwargs.get(name, default)


@functools.cache
def _config() -> Any:
    """scikit-learn's own way to its settings; the public one makes a copy of all of them."""
    return getattr(sys.modules["sklearn._config"], "_get_threadlocal_config", sys.modules["sklearn"].get_config)


def _finite(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    X = args[0]
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") != "f" or _config()()["assume_finite"]:
        return _bits(X), 0
    if type(X) is ndarray:  # as most are
        return _bits(X), X.size
    stored = _nnz(X)
    return _bits(X), stored if stored >= 0 else int(X.size)


def _is_transpose(a: Any, b: Any) -> bool:
    """Whether numpy will see the same memory on both sides, and compute half of the product."""
    return bool(a.shape == b.shape[::-1] and a.__array_interface__["data"] == b.__array_interface__["data"])


def _dot(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """m, k, n, bits, stored elements of both, whether it is XXᵀ, and products that meet where both are sparse."""
    a, b = args[:2]
    if type(a) is ndarray is type(b) and a.ndim == 2 == b.ndim:  # as most are
        (m, k), n = a.shape, b.shape[1]
        return m, k, n, max(_bits(a), _bits(b)), -1, -1, _is_transpose(a, b), 0
    if len(a.shape) != 2 or len(b.shape) > 2:
        return ("unknown",)
    (m, k), n = a.shape, b.shape[1] if len(b.shape) > 1 else 1
    same, meeting = False, 0
    if _nnz(a) < 0 and _nnz(b) < 0:
        same = _is_transpose(a, b) if len(b.shape) > 1 else False
    elif _nnz(a) >= 0 and _nnz(b) >= 0:
        meeting = int(_stored_by(a, 0) @ _stored_by(b, 1))
    return int(m), int(k), int(n), max(_bits(a), _bits(b)), _nnz(a), _nnz(b), same, meeting


def _stored_by(X: Any, axis: int) -> Any:
    import numpy as np

    counts = np.bincount(X.tocoo().coords[1 - axis], minlength=X.shape[1 - axis])
    return counts.astype(np.int64)


def _norms(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    X, squared = args[0], bool(args[1] if len(args) > 1 else kwargs.get("squared", False))
    if type(X) is ndarray and X.ndim == 2:  # as most are
        return *X.shape, _bits(X), -1, squared
    return (*_shape(X), _bits(X), _nnz(X), squared)


def _euclidean(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    X, Y = args[:2]
    stored = _nnz(X) >= 0 and _nnz(Y) >= 0
    return (*result.shape, X.shape[1], _bits(X), bool(_get(args, kwargs, 4, "squared", False)), X is Y, stored)


def vanished(result: Any) -> int:
    """Of sixteen groups of four neighbouring results, how many are all zero, from some 256 of them: numpy's exponential
    leaves such groups out. Small matrices are not looked at: it would take longer than the exponentials."""
    if hasattr(result, "tocsr") or result.size < 4096:
        return 0
    flat = result.reshape(-1)
    groups = len(flat) // 4
    some = flat[: 4 * groups].reshape(groups, 4)[:: max(groups // 256, 1)]
    return round(16 * (1 - int(some.any(axis=1).sum()) / len(some)))


def _kernel(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Rows and columns of a kernel's matrix, features, the bits of its elements, sixteenths that vanished."""
    return (*_shape(result), _shape(args[0])[1], _bits(result), vanished(result))


def _additive(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """The same; per thousand the pairs of values that are both zero, of which there is no quotient."""
    X = args[0]
    Y = _get(args, kwargs, 1, "Y")
    zeros = [(one == 0).mean(axis=0) for one in (X, X if Y is None else Y)]
    return (*_shape(result), _shape(X)[1], _bits(result), round(1000 * float((zeros[0] * zeros[1]).mean())))


def _polynomial(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    return (*_kernel(args, kwargs, result), float(_get(args, kwargs, 2, "degree", 3)))


def _named(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """A distance or kernel found in scikit-learn's table, by the name of its function."""
    degree = float(kwargs.get("degree", 3) or 3)
    stored = max(_nnz(args[0]), 0) if args[1] is None else max(_nnz(args[0]), _nnz(args[1]), 0)
    name = getattr(args[2], "__name__", "callable")
    sizes = (_additive if name == "additive_chi2_kernel" else _kernel)(args, {}, result)
    return name, *sizes, degree, stored


def _cosine(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    X, Y = args[0], _get(args, kwargs, 1, "Y")
    size = 0
    for one in (X,) if Y is None or Y is X else (X, Y):
        size += _nnz(one) if _nnz(one) >= 0 else one.size
    return _bits(X), int(size)


def _reduced(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """ArgKmin and RadiusNeighbors: queries, points, features, bits, metric, p, neighbours asked for or found, whether
    their distances are wanted, stored elements and where they meet."""
    X, Y = _get(args, kwargs, 1, "X"), _get(args, kwargs, 2, "Y")
    metric = _get(args, kwargs, 4, "metric", "euclidean")
    metric = metric if isinstance(metric, str) else type(metric).__name__
    p = float((kwargs.get("metric_kwargs") or {}).get("p", 2.0))
    wanted = bool(kwargs.get("return_distance", False))
    if "k" in kwargs or (len(args) > 3 and isinstance(args[3], int)):
        found = int(_get(args, kwargs, 3, "k")) * X.shape[0]
    else:
        lists = result[1] if isinstance(result, tuple) else result
        found = sum(map(len, lists)) if _is_ragged(lists) else 0
    sizes = (*_shape(X), Y.shape[0], _bits(X), metric, p, found, wanted)
    sparse = _nnz(X), _nnz(Y)
    meeting = (int(_stored_by(X, 0) @ _stored_by(Y, 0)),) if min(sparse) >= 0 else ()
    return (*sizes, bool(kwargs.get("sort_results", False)), *sparse, *meeting)


def _condensed(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    metric = _get(args, kwargs, 1, "metric", "euclidean")
    return (int(result.size), 1, _shape(args[0])[1], metric if isinstance(metric, str) else "callable", 2.0)


def _cdist(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    metric = _get(args, kwargs, 2, "metric", "euclidean")
    name = metric if isinstance(metric, str) else "callable"
    return (*result.shape, _shape(args[0])[1], name, float(kwargs.get("p", 2.0) or 2.0))


def _metric_pairs(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    return (*result.shape, _shape(args[1])[1], type(args[0]).__name__.lower(), float(getattr(args[0], "p", 2.0)))


probe("sklearn.utils.validation:_assert_all_finite", "finite", _finite)
probe("sklearn.utils.extmath:safe_sparse_dot", "dot", _dot)
probe("sklearn.utils.extmath:row_norms", "row norms", _norms)
probe(f"{_PAIRS}:_euclidean_distances", "euclidean", _euclidean)
for _name in ("rbf", "laplacian", "sigmoid"):
    probe(f"{_PAIRS}:{_name}_kernel", f"kernel {_name}", _kernel)
probe(f"{_PAIRS}:chi2_kernel", "kernel chi2", _kernel)
probe(f"{_PAIRS}:additive_chi2_kernel", "kernel additive_chi2", _additive)
probe(f"{_PAIRS}:polynomial_kernel", "kernel polynomial", _polynomial)
probe(f"{_PAIRS}:cosine_similarity", "normalised", _cosine)
probe(f"{_PAIRS}:cosine_distances", "cosine distances", _kernel)
probe(f"{_PAIRS}:_parallel_pairwise", "pairwise", _named)
probe("scipy.spatial.distance:cdist", "cdist", _cdist)
probe("scipy.spatial.distance:pdist", "cdist", _condensed)
probe("sklearn.gaussian_process.kernels:cdist", "cdist", _cdist)
probe("sklearn.gaussian_process.kernels:pdist", "cdist", _condensed)
_REDUCED = "sklearn.metrics._pairwise_distances_reduction._dispatcher"
probe(f"{_REDUCED}:ArgKmin.compute", "argkmin", _reduced)
probe(f"{_REDUCED}:ArgKminClassMode.compute", "argkmin", _reduced)
probe(f"{_REDUCED}:RadiusNeighbors.compute", "radius", _reduced)
probe(f"{_REDUCED}:RadiusNeighborsClassMode.compute", "radius", _reduced)


def _tree(tree: Any) -> tuple[Any, ...]:
    """Kind, metric, points, features, nodes. They never change, and a tree is asked many times."""
    asked = _asked.get(id(tree))
    if asked is not None and asked[0]() is tree:
        return asked[1]
    n, f = tree.data.shape
    metric = next(part for part in tree.__getstate__() if hasattr(part, "rdist_to_dist"))
    name = type(metric).__name__.removesuffix("64")
    if name.startswith("Minkowski"):
        name += f":{float(metric.__getstate__()[0])}"
    told = type(tree).__name__, name, int(n), int(f), int(tree.node_data.shape[0])
    if len(_asked) >= _TREES:
        _asked.clear()
    _asked[id(tree)] = weakref.ref(tree), told
    return told


#: So many trees are remembered.
_TREES = 64
_asked: dict[int, tuple[weakref.ref[Any], tuple[Any, ...]]] = {}


def _built(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """The tree, whether its points have weights, and sides of boxes that have no length."""
    tree, weighted = _tree(args[0]), bool(_weighted(args[0]))
    if tree[0] != "KDTree":
        return (*tree, weighted) if weighted else tree
    import numpy as np

    bounds = np.asarray(args[0].get_arrays()[3])
    flat = int((bounds[0] == bounds[1]).sum())
    return (*tree, weighted, flat) if flat else (*tree, weighted) if weighted else tree


def _weighted(tree: Any) -> tuple[bool, ...]:
    """That its points have weights, where they do."""
    weights = getattr(tree, "sample_weight", None)
    return (True,) if weights is not None and len(weights) else ()


def _calls(args: tuple[Any, ...]) -> int:
    return int(args[0].get_n_calls())


def _twin(tree: Any) -> Any:
    """The same arrays with counters of its own. scikit-learn asks a tree from several threads, which lose counts of
    what they add at once, and set back what another one counts."""
    kind: Any = type(tree)
    twin = kind.__new__(kind)
    twin.__setstate__(tree.__getstate__())
    return twin


def _queried(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """The tree, then queries, distances computed, nodes split, neighbours; then of many queries what they met of
    boxes."""
    queries, splits = len(args[1]), int(args[0].get_tree_stats()[2])
    computed, tree = _calls(args) - kwargs["before"], _tree(args[0])
    told = (*tree, queries, computed, splits, int(_get(args, kwargs, 2, "k", 1)) * queries)
    if tree[0] != "KDTree" or queries < max(_MANY, 4 * tree[4]) or _POWERS.get(tree[1], _ALL) == _ALL:
        return told
    import numpy as np

    power, some = _POWERS[tree[1]], slice(None, None, queries // _SOME)
    asked, found = np.asarray(args[1])[some], (result[1] if isinstance(result, tuple) else result)[some]
    away = (np.abs(np.asarray(args[0].data)[found] - asked[:, None]) ** power).sum(axis=2)
    looked, sides, _ = _met(args[0], asked, away.max(axis=1, keepdims=True) ** (1 / power), power)
    return (*told, round(100 * sides / max(looked, 1)))


def _queried_radius(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """The tree, then queries, distances computed, neighbours found, whether their distances are wanted; then of many
    queries what they met of boxes."""
    wanted = bool(_get(args, kwargs, 3, "return_distance", False))
    lists = result[0] if isinstance(result, tuple) else result
    found = sum(map(len, lists)) if _is_ragged(lists) else int(lists.sum())
    tree, queries, radius = _tree(args[0]), args[1], _get(args, kwargs, 2, "r")
    told = (*tree, len(queries), _calls(args) - kwargs["before"], found, wanted)
    is_plain = tree[0] == "KDTree" and isinstance(queries, ndarray) and isinstance(radius, (int, float))
    if not is_plain or len(queries) < _MANY or tree[4] * tree[3] > _BOXES or tree[1] not in _POWERS:
        return told
    return (*told, *_met(args[0], queries[:: len(queries) // _SOME], float(radius), _POWERS[tree[1]]))


#: Of so many queries the way of some through the tree is looked at again, unless it is large (nodes times features).
_MANY, _SOME, _BOXES = 200, 16, 20_000
_ALL = float("inf")
_POWERS = {"EuclideanDistance": 2.0, "ManhattanDistance": 1.0, "ChebyshevDistance": _ALL}


def _met(tree: Any, queries: Any, radius: Any, power: float) -> tuple[int, ...]:
    """Hundredths, of one query: nodes it looked at (the root, and both children of each that it opened, as its box is
    cut by the radius, one for all or each its own), sides of these boxes that it lies beyond, boxes that it is outside
    of."""
    import numpy as np

    bounds = np.asarray(tree.get_arrays()[3])[:, None]
    below, above = bounds[0] - queries[:, None], queries[:, None] - bounds[1]
    gaps = np.maximum(np.maximum(below, above), 0)
    widths = np.maximum(np.abs(below), np.abs(above))
    if power == _ALL:
        nearest, farthest, limit = gaps.max(axis=2), widths.max(axis=2), radius
    else:
        nearest, farthest, limit = (gaps**power).sum(axis=2), (widths**power).sum(axis=2), radius**power
    inner = bounds.shape[2] // 2
    opened = (nearest[:, :inner] <= limit) & (farthest[:, :inner] > limit)
    looked = np.ones(nearest.shape, bool)
    looked[:, 1 : 2 * inner + 1] = np.repeat(opened, 2, axis=1)
    sides, outside = (gaps[looked] > 0).sum(), (nearest[looked] > 0).sum()
    return tuple(round(100 * int(one) / len(queries)) for one in (looked.sum(), sides, outside))


def _density(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """The tree, then queries, distances computed, the kernel, whether points have weights, and what some queries met
    on their way."""
    kernel = str(_get(args, kwargs, 3, "kernel", "gaussian"))
    tree = _tree(args[0])
    told = (*tree, len(args[1]), _calls(args) - kwargs["before"], kernel, bool(_weighted(args[0])))
    if not kwargs.get("breadth_first", True):
        return told
    h = float(_get(args, kwargs, 2, "h"))
    absolute, relative = (
        math.log(one) if one > 0 else -math.inf for one in (kwargs.get("atol", 0), kwargs.get("rtol", 1e-8))
    )
    norm = math.nan if any(one != one for one in result[:1]) else 0.0
    return (*told, *met(args[0], tree[1], args[1], h, kernel, (absolute, relative, norm)))


_apart = apart(_twin)
for _kind, _module in (("KDTree", "_kd_tree"), ("BallTree", "_ball_tree")):
    _class = f"sklearn.neighbors.{_module}:{_kind}"
    probe(f"{_class}.__init__", "tree built", _built)
    probe(f"{_class}.query", "tree query", _queried, before=_calls, around=_apart)
    probe(f"{_class}.query_radius", "tree radius", _queried_radius, before=_calls, around=_apart)
    probe(f"{_class}.kernel_density", "tree density", _density, before=_calls, around=_apart)


probe(
    "sklearn.neighbors._base:_get_weights", "within", lambda args, kwargs, result: (sum(map(len, args[0])),),
    before=lambda args: True if _is_ragged(args[0]) else None,
)  # fmt: skip
probe(
    "sklearn.neighbors._nca:NeighborhoodComponentsAnalysis._loss_grad_lbfgs", "components loss",
    lambda args, kwargs, result: (*_shape(args[2]), args[1].size // args[2].shape[1], _bits(args[2])),
)  # fmt: skip


@facts("sklearn.neighbors._base.NeighborsBase")
def _neighbours(estimator: Any) -> dict[str, Any]:
    """How it searches, and among which data."""
    held = estimator.__dict__
    X, y = held.get("_fit_X"), held.get("_y")
    if X is None or not hasattr(X, "shape"):
        return {}
    outputs = 1 if y is None or y.ndim == 1 else int(y.shape[1])
    shape = X.shape if type(X) is ndarray else tuple(map(int, X.shape))
    return {"fit_method": str(held["_fit_method"]), "fit_shape": shape, "outputs": outputs, "fit_bits": _bits(X)}


@facts("sklearn.neighbors._nearest_centroid.NearestCentroid")
def _centroids(estimator: Any) -> dict[str, Any]:
    """Whether classes are equally likely, which scikit-learn asks before it predicts."""
    priors = estimator.class_prior_
    return {"is_even": bool(abs(priors * len(priors) - 1).max() <= _EVEN)}


#: As near as `numpy.isclose` asks for.
_EVEN = 1e-5
