"""Sorting, selecting, searching. Compares depend on the data: every amount is an estimate."""

from typing import Any

from bitwatt.formulas import sort as order
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule


def _rows(spec: TensorSpec, dim: Any) -> tuple[int, int]:
    """How many rows, and how long."""
    if dim is None or not spec.shape:
        return 1, spec.numel
    length = spec.shape[dim]
    return spec.numel // max(length, 1), length


@rule("aten.sort", "aten.argsort", family="sort")
def sort(self: Any, dim: int = -1, **_: Any) -> Work:
    """n·log2 n compares per row."""
    return order.sort(self, *_rows(self, dim)) if isinstance(self, TensorSpec) else Work()


@rule("aten.msort", family="sort")
def msort(self: TensorSpec, **_: Any) -> Work:
    """n·log2 n compares per column."""
    return order.sort(self, *_rows(self, 0))


@rule("aten.topk", family="sort")
def topk(self: TensorSpec, k: int = 1, dim: int = -1, **_: Any) -> Work:
    """The k largest selected, then sorted: 2n + k·log2 k compares per row."""
    return order.select(self, *_rows(self, dim), kept=k)


@rule("aten.kthvalue", "aten.median", "aten.nanmedian", family="sort")
def kth(self: TensorSpec, dim: int | None = None, k: int | None = None, **_: Any) -> Work:
    """The k-th value selected: 2n compares per row."""
    return order.select(self, *_rows(self, -1 if k is not None and dim is None else dim))


@rule("aten.mode", "aten.quantile", "aten.nanquantile", family="sort")
def mode(self: TensorSpec, dim: int | None = -1, **_: Any) -> Work:
    """Rows sorted, then read through: n·log2 n + n compares per row."""
    return order.sort(self, *_rows(self, dim)) + pointwise(self, self.numel, compare=1)


@rule("aten._unique", "aten._unique2", "aten.unique_dim", family="sort")
def unique(self: TensorSpec, dim: int | None = None, **_: Any) -> Work:
    """Sorted, then neighbours compared: n·log2 n + n compares; by rows, each compare as long as a row."""
    if dim is None:
        return order.sort(self, 1, self.numel) + pointwise(self, self.numel, compare=1)
    length = self.shape[dim]
    return order.sort(self, self.numel // max(length, 1), length) + pointwise(self, self.numel, compare=1)


@rule("aten.unique_consecutive", "aten.unique_dim_consecutive", family="sort")
def unique_consecutive(self: TensorSpec, **_: Any) -> Work:
    """Neighbours compared: 1 compare per element."""
    return pointwise(self, self.numel, compare=1)


@rule("aten.searchsorted", family="sort")
def searchsorted(sorted_sequence: TensorSpec, self: Any = None, **_: Any) -> Work:
    """Binary search: log2(n + 1) compares per value."""
    values = self.numel if isinstance(self, TensorSpec) else 1
    return order.search(sorted_sequence, values, sorted_sequence.shape[-1] if sorted_sequence.shape else 1)


@rule("aten.bucketize", family="sort")
def bucketize(boundaries: TensorSpec, self: Any = None, **_: Any) -> Work:
    """Binary search among the boundaries: log2(n + 1) compares per value."""
    return searchsorted(sorted_sequence=boundaries, self=self)
