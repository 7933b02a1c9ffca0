"""Kernels of Gaussian processes, evaluations of losses in manifold learning, and concentration steps."""

from __future__ import annotations

from typing import Any

from bitwatt.backends.sklearn.facts import Facts, facts
from bitwatt.backends.sklearn.probes import probe
from bitwatt.backends.sklearn.readers.distances import vanished

_GP = "sklearn.gaussian_process.kernels"


def _evaluated(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Kernel, rows, rows of the other side (-1: with itself), features, derivatives, its smoothness, and what
    vanished."""
    kernel, X = args[:2]
    Y = args[2] if len(args) > 2 else kwargs.get("Y")
    K, gradient = result if isinstance(result, tuple) else (result, None)
    derivatives = int(gradient.shape[2]) if gradient is not None else 0
    features = int(X.shape[1]) if getattr(X, "ndim", 1) > 1 else 1
    shape = {"Matern": "nu", "RationalQuadratic": "alpha", "Exponentiation": "exponent"}.get(type(kernel).__name__, "")
    smoothness = float(getattr(kernel, shape, 0.0))
    if shape == "alpha":  # it changes as it is learnt
        smoothness = 1.0 if smoothness == 1.0 else 0.0
    sizes = int(K.shape[0]), -1 if Y is None else int(K.shape[1]), features, derivatives
    return type(kernel).__name__, *sizes, smoothness, vanished(K) if type(kernel).__name__ == "RBF" else 0


for _name in ("RBF", "Matern", "RationalQuadratic", "ExpSineSquared", "DotProduct", "WhiteKernel", "ConstantKernel",
              "Sum", "Product", "Exponentiation", "PairwiseKernel"):  # fmt: skip
    probe(f"{_GP}:{_name}.__call__", "process kernel", _evaluated)


def _embedded(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Points, components, neighbours stored (-1: all pairs), whether the loss is computed too."""
    _, P, _, n, components = args[:5]
    stored = int(P.nnz) if hasattr(P, "nnz") else -1
    return int(n), int(components), stored, bool(kwargs.get("compute_error", True))


#: Points that go through the tree again.
_SOME = 16


def _embedded_by_tree(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """The same; and where the loss is computed, which is seldom, the cells that a point looks at, in tenths."""
    n, components, stored, loss = _embedded(args, kwargs, result)
    if not loss:
        return n, components, stored, loss
    return n, components, stored, loss, _cells(args[0], n, components, float(kwargs.get("angle", 0.5)))


def _cells(places: Any, n: int, components: int, angle: float) -> int:
    import numpy as np
    from sklearn.neighbors._quad_tree import _QuadTree

    points = np.ascontiguousarray(places, dtype=np.float32).reshape(n, components)
    tree = _QuadTree(components, 0)
    tree.build_tree(points)
    some = points[:: max(n // _SOME, 1)]
    room = np.empty((n * (components + 2), 1), np.float32)  # as many rows as it fills numbers
    filled = sum(int(tree._py_summarize(one, room, angle)[0]) for one in some)
    return round(10 * filled / (components + 2) / len(some))


probe("sklearn.manifold._t_sne:_kl_divergence", "tsne exact", _embedded)
probe("sklearn.manifold._t_sne:_kl_divergence_bh", "tsne tree", _embedded_by_tree)
#: Bisections for a bandwidth: some five from one to the scale of the data, and as many halvings as the tolerance of
#: 1e-5 asks for.
_BISECTIONS = 5 + 17
probe("sklearn.manifold._t_sne:_joint_probabilities", "tsne pairs",
      lambda args, kwargs, result: (int(args[0].shape[0]), int(args[0].shape[0]), _BISECTIONS))  # fmt: skip
probe("sklearn.manifold._t_sne:_joint_probabilities_nn", "tsne pairs", lambda args, kwargs, result: (
    int(args[0].shape[0]), int(args[0].nnz // args[0].shape[0]), _BISECTIONS))  # fmt: skip


def _concentrated(args: Any, kwargs: Any, result: Any) -> tuple[Any, ...]:
    """Rows, features, rows of the support, the most steps it may take."""
    X, support = args[:2]
    return (*map(int, X.shape), int(support), int(kwargs.get("remaining_iterations", 30)))


probe("sklearn.covariance._robust_covariance:_c_step", "concentration", _concentrated)
probe("sklearn.manifold._spectral_embedding:lobpcg", "lobpcg",
      lambda args, kwargs, result: (int(args[0].shape[0]), int(args[1].shape[1])))  # fmt: skip


def _above_zero(args: Any, kwargs: Any, result: Any) -> tuple[int, int]:
    """Values above zero, and those that are one: their logarithm is zero, and so is the angle that follows."""
    return int((args[0] > 0).sum()), int((args[0] == 1).sum())


probe("sklearn.kernel_approximation:AdditiveChi2Sampler._transform_dense", "chi2 values", _above_zero)


@facts("sklearn.covariance._shrunk_covariance.OAS", "sklearn.covariance._shrunk_covariance.LedoitWolf")
def _shrunk(estimator: Any) -> Facts:
    """Whether nothing is left of the covariance but its diagonal's mean."""
    return {"shrunk_whole": True} if getattr(estimator, "shrinkage_", 0.0) >= 1.0 else {}
