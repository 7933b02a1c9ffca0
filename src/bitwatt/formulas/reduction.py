"""Work that takes many elements to few: sums, variances, norms, distances."""

from typing import Any

from bitwatt.formulas.pointwise import magnitude, pointwise
from bitwatt.records import NECESSARY, TensorSpec, Work


def variance(spec: TensorSpec, elements: int, results: int, *, root: bool = False) -> Work:
    """Two passes, Σx/n then Σ(x - μ)²/n: 3 add and 1 mul per element, 2 div (and a square root for std) per result."""
    return pointwise(spec, elements, add=3, mul=1) + pointwise(spec, results, div=2, sqrt=int(root))


def vector_norm(spec: TensorSpec, elements: int, results: int, p: Any = 2) -> Work:
    """(Σ|x|^p)^(1/p): p=2 is mul and add per element and a square root per result; p=1 an add; p=±inf a compare;
    p=0 a compare and an add; any other a power and an add per element and a power per result."""
    if p in (2, None, "fro"):  # |z|² = a² + b²: components are as many real elements
        parts = 2 if spec.is_complex else 1
        return _real(spec, mul=parts * elements, add=parts * elements, sqrt=results)
    size = magnitude(spec, elements)
    if p in (float("inf"), float("-inf")):
        return size + _real(spec, compare=elements)
    if p == 1:
        return size + _real(spec, add=elements)
    if p == 0:
        return _real(spec, compare=elements, add=elements)
    return size + _real(spec, pow=elements + results, add=elements)


def _real(spec: TensorSpec, **counts: int) -> Work:
    return Work.of(spec.precision, NECESSARY, **counts)


def distances(spec: TensorSpec, pairs: int, length: int, p: Any = 2) -> Work:
    """‖a - b‖_p for `pairs` vectors of `length`: one subtraction per component, then the norm."""
    return pointwise(spec, pairs * length, add=1) + vector_norm(spec, pairs * length, pairs, p)
