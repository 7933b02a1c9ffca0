"""The compiled inner loops of k-means and hierarchical clustering, with their sizes."""

from __future__ import annotations

import math
from typing import Any

from numpy import ndarray

from bitwatt.backends.sklearn.facts import facts
from bitwatt.backends.sklearn.probes import probe

_KMEANS = "sklearn.cluster._kmeans"


def _bits(X: Any) -> int:
    if type(X) is ndarray:  # as most are
        return 32 if X.dtype.char == "f" else 64
    return 32 if getattr(getattr(X, "dtype", None), "char", "") == "f" else 64


def _nnz(X: Any) -> int:
    return int(X.nnz) if type(X) is not ndarray and hasattr(X, "tocsr") else -1


def _loop(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Rows, features, clusters, bits, stored elements, whether the centres move."""
    X, centers = args[0], args[2] if len(args) > 2 else kwargs["centers"]
    moving = "update_centers" not in kwargs or bool(kwargs["update_centers"])
    return *X.shape, len(centers), _bits(X), -1 if type(X) is ndarray else _nnz(X), moving


#: Rows whose bounds are looked at, evenly spread.
_LOOKED_AT = 256


def _some(bounds: Any) -> Any:
    return bounds[:: max(len(bounds) // _LOOKED_AT, 1)]


def _bounds(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """In the end the distances computed for each row, in tenths: what was ruled out keeps a bound of zero."""
    X, centers = args[:2]
    some = _some(args[5])
    computed = round(10 * float((some != 0).sum()) / max(len(some), 1))
    return (*map(int, X.shape), int(centers.shape[0]), _bits(X), _nnz(X), computed)


def _elkan(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """As the others, and the distances computed for each row, in tenths: each is a new bound, the others are the old
    ones, moved by as much as the centres."""
    old, new = kwargs["before"], _some(args[8])
    if kwargs.get("update_centers", True):
        old = (old - args[10]).clip(min=0)
    computed = round(10 * float((new != old).sum()) / max(len(new), 1))
    return *_loop(args, kwargs, result), computed


for _kind in ("dense", "sparse"):
    probe(f"{_KMEANS}:lloyd_iter_chunked_{_kind}", "kmeans lloyd", _loop)
    probe(f"{_KMEANS}:elkan_iter_chunked_{_kind}", "kmeans elkan", _elkan, before=lambda args: _some(args[8]).copy())
    probe(f"{_KMEANS}:init_bounds_{_kind}", "kmeans bounds", _bounds)
    probe(f"{_KMEANS}:_inertia_{_kind}", "kmeans inertia", _loop)
    probe(f"{_KMEANS}:_minibatch_update_{_kind}", "kmeans minibatch", _loop)


def _started(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Rows, features, clusters, candidates for each."""
    X, clusters = args[:2]
    trials = kwargs.get("n_local_trials") or (args[5] if len(args) > 5 else None)
    return (*map(int, X.shape), int(clusters), int(trials or 2 + int(math.log(clusters))), _bits(X))


probe(f"{_KMEANS}:_kmeans_plusplus", "kmeans start", _started)


def _averaged(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    return (int(args[0].shape[0]), int(args[0].shape[1]), _bits(args[0]), _nnz(args[0]))


probe(f"{_KMEANS}:_tolerance", "kmeans tolerance", _averaged)


def _pairs(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Pairs of clusters whose merger is priced, features."""
    return len(args[2]), int(args[1].shape[1])


probe("sklearn.cluster._hierarchical_fast:compute_ward_dist", "ward pairs", _pairs)
probe("sklearn.cluster._bicluster:_scale_normalize", "scaled both ways", _averaged)
probe("sklearn.cluster._bicluster:_log_normalize", "logarithms of all", lambda args, kwargs, result: (
    round(1000 * float((args[0] == max(args[0].min(), 1)).mean())),))  # fmt: skip


@facts("sklearn.cluster._birch.Birch")
def _birch(estimator: Any) -> dict[str, Any]:
    """The mean number of subclusters in a node, for each level of the tree."""
    level = [root] if (root := getattr(estimator, "root_", None)) is not None else []
    means: list[float] = []
    while level and len(means) < 64:
        held = [subcluster for node in level for subcluster in node.subclusters_]
        means.append(len(held) / len(level))
        level = [child for subcluster in held if (child := subcluster.child_) is not None]
    return {"held_by_level": tuple(means)}
