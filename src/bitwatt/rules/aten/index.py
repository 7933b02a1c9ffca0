"""Elements taken from and put to places that a tensor of indices names: 1 index each, and only their bytes."""

import math
from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import RuleFunction, rule
from bitwatt.rules._tables import Specs, each, named, size_of


@rule("aten.gather", "aten.index_select", "aten.take", "aten.take_along_dim", family="index")
@rule("aten.index", "aten._unsafe_index", "aten._unsafe_masked_index", family="index")
def gather(out: Specs, index: Any = None, indices: Any = None, **_: Any) -> Work:
    """Elements by index: 1 index per result; read are the indices and only the elements taken."""
    if not out:
        return Work()
    return pointwise(out[0], out[0].numel, index=1) + Work(bytes_read=out[0].nbytes + size_of((index, indices)))


@rule("aten.masked_select", family="index")
def masked_select(self: TensorSpec, out: Specs, mask: TensorSpec, **_: Any) -> Work:
    """Elements where a mask is set: 1 compare per element of the mask, 1 index per result."""
    return pointwise(mask, max(self.numel, mask.numel), compare=1) + pointwise(out[0], out[0].numel, index=1)


@rule("aten.nonzero", "aten.nonzero_numpy", "aten.nonzero_static", "aten.argwhere", family="index")
def nonzero(self: TensorSpec, **_: Any) -> Work:
    """Places of elements that are not 0: 1 compare per element."""
    return pointwise(self, self.numel, compare=1)


each("masked_fill", "a value where a mask is set", family="index", index=1)
each("masked_scatter", "the next value where a mask is set", family="index", index=1)
each("one_hot", "1 at the class, 0 elsewhere", family="index", of="in", index=1)
each(
    "masked_scatter_backward masked_select_backward",
    "the gradient back to where the mask is set",
    family="index",
    index=1,
)
each("value_selecting_reduction_backward", "the gradient put where the value was chosen", family="index", index=1)


def scattered(names: str, formula: str, touched: RuleFunction) -> None:
    """Register a write by index: in place it touches only the places named, otherwise the tensor is copied first."""
    named(" ".join(f"{name}_" for name in names.split()), formula, touched, "index")
    copied(names, formula, touched)


def copied(names: str, formula: str, touched: RuleFunction) -> None:
    """Register a write by index that is not in place: all of `self` is copied, then the places named are touched."""

    def function(self: TensorSpec, **args: Any) -> Work:
        return touched(self=self, **args) + Work(bytes_read=self.nbytes, bytes_written=self.nbytes)

    named(names, formula + " Not in place, all of the tensor is copied first.", function, "index")


_REDUCE = {
    "add": {"add": 1},
    "sum": {"add": 1},
    "mean": {"add": 1},
    "multiply": {"mul": 1},
    "prod": {"mul": 1},
    "amax": {"compare": 1},
    "amin": {"compare": 1},
}


def _put(self: TensorSpec, count: int, given: Any, reduce: dict[str, int]) -> Work:
    """`count` elements of `self` written, or read, reduced with and written; `given` is what else is read."""
    places = math.ceil(count * self.nbytes / max(self.numel, 1))
    moved = Work(bytes_read=size_of(given) + (places if reduce else 0), bytes_written=places)
    return pointwise(self, count, index=1, **reduce) + moved


def _positions(self: TensorSpec, indices: tuple[Any, ...]) -> int:
    """How many elements a tuple of index tensors names: their broadcast size times the dimensions not indexed."""
    named_ones = [spec for spec in indices if isinstance(spec, TensorSpec)]
    used = sum(len(spec.shape) if spec.dtype in ("bool", "uint8") else 1 for spec in named_ones)
    skipped = sum(spec is None for spec in indices)
    kept = math.prod(self.shape[:skipped]) * math.prod(self.shape[skipped + used :])
    return max((spec.numel for spec in named_ones), default=1) * kept


def _index_put(self: TensorSpec, indices: Any, values: TensorSpec, accumulate: bool = False, **_: Any) -> Work:
    masked = any(isinstance(spec, TensorSpec) and spec.dtype in ("bool", "uint8") for spec in indices)
    known = values.numel > 1 or not masked  # how many places a mask names, its shape does not tell
    count = values.numel if masked and known else _positions(self, indices)
    work = _put(self, count, (indices, values), {"add": 1} if accumulate else {})
    return Work(work.ops, (), work.bytes_read, work.bytes_written, estimated=not known)


_FORMULA = "Values put at indices: 1 index each, and 1 add each where they accumulate."
scattered("index_put _index_put_impl", _FORMULA, _index_put)
copied("_unsafe_index_put", _FORMULA, _index_put)


def _masked_put(self: TensorSpec, values: TensorSpec, indices: Any = (), **_: Any) -> Work:
    return _put(self, values.numel, (indices, values), {"add": 1})


copied("_unsafe_masked_index_put_accumulate", "Values added at indices: 1 index, 1 add each.", _masked_put)


def _scatter(self: TensorSpec, index: TensorSpec, src: Any = None, reduce: Any = None, **_: Any) -> Work:
    source = min(size_of(src), math.ceil(index.numel * self.nbytes / max(self.numel, 1)))  # only what has an index
    work = _put(self, index.numel, index, _REDUCE.get(reduce, {})) + Work(bytes_read=source)
    return work + pointwise(self, self.numel, div=1) if reduce == "mean" else work


scattered(
    "scatter scatter_reduce",
    "Values put at indices: 1 index each, and what the reduction takes: 1 add, mul or compare; mean 1 div per result.",
    _scatter,
)


def _scatter_add(self: TensorSpec, index: TensorSpec, src: Any = None, **_: Any) -> Work:
    return _scatter(self=self, index=index, src=src, reduce="add")


scattered("scatter_add", "Values added at indices: 1 index, 1 add each.", _scatter_add)


def _index_add(self: TensorSpec, index: TensorSpec, source: TensorSpec, alpha: Any = 1, **_: Any) -> Work:
    scaled = {"mul": 1} if alpha not in (1, -1) else {}
    return _put(self, source.numel, (index, source), {"add": 1, **scaled})


scattered("index_add", "Rows added at indices: 1 index, 1 add per element, and 1 mul where α is not ±1.", _index_add)


def _index_copy(self: TensorSpec, index: TensorSpec, source: TensorSpec, **_: Any) -> Work:
    return _put(self, source.numel, (index, source), {})


scattered("index_copy", "Rows copied to indices: 1 index per element.", _index_copy)


def _index_fill(self: TensorSpec, dim: int, index: TensorSpec, **_: Any) -> Work:
    length = self.shape[dim] if self.shape else 1
    return _put(self, index.numel * (self.numel // max(length, 1)), index, {})


scattered("index_fill", "Rows overwritten at indices: 1 index per element.", _index_fill)


def _index_reduce(self: TensorSpec, index: TensorSpec, source: TensorSpec, reduce: str = "prod", **_: Any) -> Work:
    work = _put(self, source.numel, (index, source), _REDUCE.get(reduce, {}))
    return work + pointwise(self, self.numel, div=1) if reduce == "mean" else work


scattered(
    "index_reduce",
    "Rows reduced into indices: 1 index and 1 operation per element; mean 1 div per result.",
    _index_reduce,
)


def _put_at(self: TensorSpec, index: TensorSpec, source: Any = None, accumulate: bool = False, **_: Any) -> Work:
    return _put(self, index.numel, (index, source), {"add": 1} if accumulate else {})


scattered("put", "Values put at flat indices: 1 index each, and 1 add each where they accumulate.", _put_at)


@rule("aten.gather_backward", "aten.index_select_backward", family="index")
def gather_backward(grad: TensorSpec, **_: Any) -> Work:
    """Each gradient added where it was taken from: 1 index, 1 add each."""
    return pointwise(grad, grad.numel, index=1, add=1)


@rule("aten.fill_diagonal_", family="index")
def fill_diagonal(self: TensorSpec, **_: Any) -> Work:
    """The diagonal overwritten: 1 index for each of its elements."""
    return _put(self, min(self.shape), (), {})
