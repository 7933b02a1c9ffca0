"""What the rules of linear models share: reading probes, names of the classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bitwatt.formulas.arrays import floats
from bitwatt.formulas.linear import Design, linear_loss, loss_gradient, pointwise_loss, product, raw_prediction
from bitwatt.formulas.vector import DOUBLE, arithmetic
from bitwatt.records import TensorSpec, Work

Probes = tuple[tuple[Any, ...], ...]


def names(method: str, *estimators: str, module: str = "linear_model") -> tuple[str, ...]:
    return tuple(f"sklearn.{module}.{estimator}.{method}" for estimator in estimators)


def calls(probes: Probes, name: str) -> Iterator[tuple[Any, ...]]:
    """(*sizes, times) of each kind of call of one function; calls whose sizes could not be read are left out."""
    for found in probes:
        if found[0] == name and found[1] != "unknown":
            yield found[1:]


def targets_of(y: Any) -> int:
    """Columns of the target."""
    return y.shape[1] if isinstance(y, TensorSpec) and len(y.shape) > 1 else 1


def classes_of(classes_: Any) -> int:
    if isinstance(classes_, TensorSpec):
        return classes_.shape[0]
    return len(classes_) if isinstance(classes_, tuple) else 2


def checked_targets(y: Any) -> Work:
    """The finiteness check of the target, where it is made of floating-point numbers."""
    if not isinstance(y, TensorSpec) or y.precision.kind != "float":
        return Work()
    return Work.of(floats(y), add=y.numel)


def is_weighted(sample_weight: Any) -> bool:
    return sample_weight is not None


def losses(probes: Probes, *, cold: bool = True) -> Work:
    """Every evaluation of a loss that `LinearModelLoss` was asked for; the first with coefficients of zero, unless the
    start is a warm one."""
    work = Work()
    for what, name in enumerate(("linear_loss", "linear_gradient", "linear_loss_gradient")):
        for *sizes, kind, classes, weighted, known, times in calls(probes, name):
            design, start = Design.probed(*sizes), int(cold and what != 1)
            shape = (design, kind, classes, bool(weighted), bool(known), what)
            work += linear_loss(*shape, at_zero=True) * start + linear_loss(*shape) * (times - start)
            cold = cold and not start
    for *sizes, kind, classes, weighted, _known, times in calls(probes, "linear_hessian_product"):
        work += _hessian_product(Design.probed(*sizes), kind, classes, bool(weighted)) * times
    for *sizes, _kind, classes, weighted, _known, times in calls(probes, "linear_hessian_product_inner"):
        work += _hessian_times_vector(Design.probed(*sizes), classes, bool(weighted)) * times
    for *sizes, kind, classes, weighted, _known, times in calls(probes, "linear_gradient_hessian"):
        work += _hessian(Design.probed(*sizes), kind, classes, bool(weighted)) * times
    return work


def _hessian_product(design: Design, kind: str, classes: int, weighted: bool) -> Work:
    """The gradient, and what products with the Hessian need: h·X and its column sums, or the probabilities."""
    width = classes or 1
    work = raw_prediction(design, width, bool(classes)) + pointwise_loss(kind, classes, 3, design.rows, weighted)
    work += loss_gradient(design, width, bool(classes))
    if not classes:
        work += arithmetic(2 * design.elements + 2 * design.rows, design.precision)
    return work


def _hessian_times_vector(design: Design, classes: int, weighted: bool) -> Work:
    """Xᵀ·(h·X·s), with the step of conjugate gradients around it: 12 per variable; for several classes the products of
    both sides and 5 for each sample and class between them."""
    n, f, p = design.rows, design.columns, design.precision
    width = classes or 1
    work = design.times(width, vector=not classes) + design.transposed(width, vector=not classes)
    work += arithmetic((12 + 6) * (f + 1) * width, p)
    return work + (arithmetic((5 + weighted) * n * classes, p) if classes else Work())


def _hessian(design: Design, kind: str, classes: int, weighted: bool) -> Work:
    """Gradient and Hessian: Xᵀ·diag(h)·X as a scaled copy of X and a full product, one for each pair of classes."""
    n, f, p = design.rows, design.columns, design.precision
    width = classes or 1
    work = pointwise_loss(kind, classes, 3, n, weighted) + loss_gradient(design, width, bool(classes))
    pairs = width * (width + 1) // 2

    sandwich = product(f, n, f, p) if not design.is_sparse else design.gram()
    each = arithmetic(design.elements + n * (4 if classes else 3), p) + sandwich + design.transposed()
    return work + each * pairs


def in_double(design: Design) -> Design:
    return design.in_precision(DOUBLE)
