"""Ordering: how many compares. They depend on the data, so every amount here is an estimate."""

import math

from bitwatt.records import TensorSpec, Work


def _compares(spec: TensorSpec, compares: float) -> Work:
    return Work(Work.of(spec.precision, compare=round(compares)).ops, estimated=True)


def sort(spec: TensorSpec, rows: int, length: int) -> Work:
    """rows·n·log2 n compares (Knuth, The Art of Computer Programming 5.3.1)."""
    return _compares(spec, rows * length * math.log2(max(length, 1)))


def select(spec: TensorSpec, rows: int, length: int, kept: int = 0) -> Work:
    """The k-th of n: 2n compares, as quickselect takes on average to its order; k·log2 k more to sort those kept."""
    return _compares(spec, rows * (2 * length + kept * math.log2(max(kept, 1))))


def search(spec: TensorSpec, values: int, length: int) -> Work:
    """Binary search: log2(n + 1) compares for each value."""
    return _compares(spec, values * math.log2(length + 1))
