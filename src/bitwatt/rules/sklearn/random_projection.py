"""sklearn.random_projection."""

from __future__ import annotations

from typing import Any

from bitwatt.formulas.arrays import checked, floats, sparse_dense, stored
from bitwatt.formulas.lapack import pseudo_inverse
from bitwatt.formulas.vector import DOUBLE, arithmetic, gemm
from bitwatt.records import Product, TensorSpec, Work
from bitwatt.registry import rule

_GAUSSIAN = "sklearn.random_projection.GaussianRandomProjection."
_SPARSE = "sklearn.random_projection.SparseRandomProjection."
#: A normal number by the polar method: a logarithm, a root, and rejection of one in five.
NORMAL = 24


def _inverse(components: TensorSpec | None, wanted: bool) -> Work:
    if not wanted or components is None:
        return Work()
    return pseudo_inverse(components.shape[0], components.shape[1], floats(components))


@rule(f"{_GAUSSIAN}fit", family="projection")
def gaussian_fit(
    X: TensorSpec, n_components_: int = 1, components_: Any = None, compute_inverse_components: bool = False, **_: Any
) -> Work:
    """The finiteness check and a normal number for each feature and component: 24 operations each; the pseudo-inverse
    where it is asked for."""
    drawn = n_components_ * X.shape[1]
    return (
        checked(X)
        + arithmetic(NORMAL * drawn, DOUBLE, random=drawn)
        + _inverse(components_, compute_inverse_components)
    )


@rule(f"{_SPARSE}fit", family="projection")
def sparse_fit(
    X: TensorSpec, n_components_: int = 1, components_: Any = None, compute_inverse_components: bool = False, **_: Any
) -> Work:
    """The finiteness check; for each component a binomial number (some 60 operations), that many places, and signs."""
    return (
        checked(X)
        + arithmetic(60 * n_components_, DOUBLE, random=n_components_)
        + _inverse(components_, compute_inverse_components)
    )


@rule(f"{_GAUSSIAN}transform", f"{_SPARSE}transform", family="projection")
def project(X: TensorSpec, n_components_: int = 1, components_: Any = None, **_: Any) -> Work:
    """The finiteness check and a product with the components; sparse ones take part with what they store, and of two
    sparse factors those elements that meet."""
    p, k = floats(X), n_components_
    kept = components_.nnz if isinstance(components_, TensorSpec) else None
    if kept is None:
        product = gemm(X.shape[0], X.shape[1], k, p) if X.nnz is None else sparse_dense(X, k, p)
        return checked(X) + product
    meeting = X.shape[0] * kept if X.nnz is None else round(stored(X) * kept / max(X.shape[1], 1))
    return checked(X) + Work(products=((Product(1, 1, 1, meeting, p, p), 1),) if meeting else ())


@rule(f"{_GAUSSIAN}inverse_transform", f"{_SPARSE}inverse_transform", family="projection")
def project_back(X: TensorSpec, components_: Any = None, compute_inverse_components: bool = False, **_: Any) -> Work:
    """The finiteness check, the pseudo-inverse of the components unless fit made it, and a product with it."""
    p = floats(X)
    features = components_.shape[1] if isinstance(components_, TensorSpec) else 1
    product = gemm(X.shape[0], X.shape[1], features, p) if X.nnz is None else sparse_dense(X, features, p)
    return checked(X) + _inverse(components_, not compute_inverse_components) + product
