"""Sums, means, extremes and norms; running ones too. One operation for each element that goes in."""

import math
from typing import Any

from bitwatt.formulas.pointwise import pointwise, stored
from bitwatt.formulas.reduction import variance, vector_norm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, amounts, each, named, tensors


def over(names: str, formula: str, *, of: str = "out", space: str = "aten", **kinds: int) -> None:
    """Register `names`: so many operations per input element, in the output's precision or the input's."""

    def function(out: Specs = (), **args: Any) -> Work:
        given = next(iter(tensors(tuple(args.values()))))
        return pointwise(out[0] if of == "out" and out else given, stored(given), **kinds)

    named(names, f"{formula}: {amounts(kinds)} per input element.", function, "reduction", space)


over("sum sum_to_size", "Σx", add=1)
over("nansum", "Σx without nan", compare=1, add=1)
over("prod", "Πx", mul=1)
over("amax amin argmax argmin", "an extreme", of="in", compare=1)
over("aminmax _aminmax", "both extremes", of="in", compare=2)
over("any all _is_all_true _is_any_true", "truth values joined", of="in", logic=1)
over("count_nonzero", "tests added up", of="in", compare=1, add=1)
over("trapezoid trapz", "Σ½·(x + x')·dx", add=2, mul=2)
over("hash_tensor", "bits mixed", of="in", logic=1)
over("histc _histogramdd_bin_edges", "(x - min)·bins/width, then a count", of="in", add=2, mul=1, cast=1, compare=2)
over("_histogramdd_from_bin_cts", "(x - min)·bins/width, then a count", of="in", add=2, mul=1, cast=1, compare=2)

each("cumsum", "running sum", family="reduction", add=1)
each("cumprod", "running product", family="reduction", mul=1)
each("cummax cummin _cummax_helper _cummin_helper", "running extreme", family="reduction", compare=1)
each("logcumsumexp _logcumsumexp", "log(e^a + e^x) at each step", family="reduction", compare=1, add=2, exp=1, log=1)
each("cumulative_trapezoid", "running Σ½·(x + x')·dx", family="reduction", add=2, mul=2)
each("diff", "x' - x", family="pointwise", add=1)
each("cumprod_backward", "running sum of g·y from the end, divided by x", family="reduction", mul=1, add=1, div=1)
each("cummaxmin_backward", "each gradient added where its extreme was", family="reduction", add=1, index=1)


@rule("aten.mean", "aten.nanmean", family="reduction")
def mean(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """Σx/n: 1 add per input element, 1 div per result."""
    return pointwise(out[0], stored(self), add=1) + pointwise(out[0], out[0].numel, div=1)


@rule("aten.var", "aten.var_mean", family="reduction")
def var(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """Σ(x - μ)²/(n - 1): 3 add and 1 mul per input element, 2 div per result."""
    return variance(self, stored(self), out[0].numel)


@rule("aten.std", "aten.std_mean", family="reduction")
def std(self: TensorSpec, out: Specs, **_: Any) -> Work:
    """√(Σ(x - μ)²/(n - 1)): 3 add and 1 mul per input element, 2 div and 1 sqrt per result."""
    return variance(self, stored(self), out[0].numel, root=True)


@rule("aten.max", "aten.min", family="reduction")
def extreme(self: TensorSpec, out: Specs, other: Any = None, **_: Any) -> Work:
    """The extreme of a tensor, or the larger of two: 1 compare per element."""
    return pointwise(self, out[0].numel if isinstance(other, TensorSpec) else stored(self), compare=1)


@rule("aten.linalg_vector_norm", "aten.linalg_norm", family="reduction")
def norm(self: TensorSpec, out: Specs, ord: Any = 2, **_: Any) -> Work:
    """(Σ|x|^p)^(1/p): p=2 is 1 mul, 1 add per element and 1 sqrt per result; p=1 an add; p=±inf a compare; p=0 both;
    any other 1 pow, 1 add per element and 1 pow per result."""
    return vector_norm(self, stored(self), math.prod(out[0].shape), ord)


@rule("aten.norm", "aten.native_norm", "aten.frobenius_norm", "aten.norm_except_dim", family="reduction")
def old_norm(out: Specs, self: Any = None, v: Any = None, p: Any = 2, **_: Any) -> Work:
    """As linalg_vector_norm."""
    return norm(self=self or v, out=out, ord=p)


@rule("aten.linalg__powsum", family="reduction")
def powsum(self: TensorSpec, ord: Any = 2, **_: Any) -> Work:
    """Σ|x|^p: as a norm without its root."""
    return vector_norm(self, stored(self), 0, ord)


@rule("aten.dist", family="reduction")
def dist(self: TensorSpec, p: Any = 2, **_: Any) -> Work:
    """‖x - y‖_p: 1 add per element, then the norm."""
    return pointwise(self, self.numel, add=1) + vector_norm(self, self.numel, 1, p)


@rule("aten.trace", family="reduction")
def trace(self: TensorSpec, **_: Any) -> Work:
    """Σ of the diagonal: 1 add for each of its elements."""
    n = min(self.shape)
    size = n * self.nbytes // max(self.numel, 1)
    return pointwise(self, n, add=1) + Work(bytes_read=size)


@rule("aten.renorm", family="reduction")
def renorm(self: TensorSpec, p: Any = 2, dim: int = 0, **_: Any) -> Work:
    """The norm of each row, then each element scaled: the norm's work, 1 compare, 1 div per row, 1 mul per element."""
    rows = self.shape[dim]
    return (
        vector_norm(self, self.numel, rows, p)
        + pointwise(self, rows, compare=1, div=1)
        + pointwise(self, self.numel, mul=1)
    )


@rule("aten.bincount", "aten.histogram", "aten.histogramdd", family="reduction")
@rule("aten._histogramdd_from_bin_tensors", family="reduction")
def bincount(self: TensorSpec, out: Specs, bins: Any = None, weights: Any = None, **_: Any) -> Work:
    """A count for each value: 1 add and 1 index per element; with bin edges log2(bins) compares to find the bin."""
    edges = bins.numel if isinstance(bins, TensorSpec) else 1
    counted = out[0] if out else self
    return pointwise(counted, self.numel, add=1, index=1) + pointwise(
        self, self.numel, compare=math.ceil(math.log2(edges))
    )


_SEGMENT = {"sum": {"add": 1}, "mean": {"add": 1}, "prod": {"mul": 1}, "max": {"compare": 1}, "min": {"compare": 1}}


@rule("aten.segment_reduce", family="reduction")
def segment_reduce(data: TensorSpec, out: Specs, reduce: str = "sum", **_: Any) -> Work:
    """Each segment reduced: 1 operation per input element; mean also 1 div per result."""
    work = pointwise(data, data.numel, **_SEGMENT.get(reduce, {"add": 1}))
    return work + pointwise(data, out[0].numel, div=int(reduce == "mean"))


@rule("aten._segment_reduce_backward", family="reduction")
def segment_reduce_backward(data: TensorSpec, reduce: str = "sum", **_: Any) -> Work:
    """The gradient spread over its segment: a copy for sum, 1 div per element for mean, a compare for extremes, 1 mul
    and 1 div for prod."""
    kinds = {"mean": {"div": 1}, "prod": {"mul": 1, "div": 1}, "max": {"compare": 1}, "min": {"compare": 1}}
    return pointwise(data, data.numel, **kinds.get(reduce, {}))
