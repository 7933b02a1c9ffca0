"""Pooling: windows averaged or their maxima taken, and gradients sent back through the windows."""

import math
from collections.abc import Sequence
from typing import Any

from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.windows import adaptive_window
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import RuleFunction, rule
from bitwatt.rules._tables import Specs, named


def _window(kernel_size: Sequence[int] | int, dims: int) -> int:
    sizes = (kernel_size,) if isinstance(kernel_size, int) else tuple(kernel_size)
    return math.prod(sizes * dims if len(sizes) == 1 else sizes)


def _over(function: RuleFunction, dims: int) -> RuleFunction:
    def over(**args: Any) -> Work:
        return function(dims=dims, **args)

    return over


def _average(out: Specs, dims: int, kernel_size: Sequence[int], **_: Any) -> Work:
    return pointwise(out[0], out[0].numel, add=_window(kernel_size, dims), div=1)


def _average_backward(grad_output: TensorSpec, dims: int, kernel_size: Sequence[int], **_: Any) -> Work:
    return pointwise(grad_output, grad_output.numel, add=_window(kernel_size, dims), div=1)


def _largest(out: Specs, dims: int, kernel_size: Sequence[int], **_: Any) -> Work:
    return pointwise(out[0], out[0].numel, compare=_window(kernel_size, dims))


def _adaptive_average(self: TensorSpec, dims: int, out: Specs, **_: Any) -> Work:
    return _adaptive(self, out[0], dims, "add") + pointwise(self, out[0].numel, div=1)


def _adaptive_average_backward(self: TensorSpec, dims: int, grad_output: TensorSpec, **_: Any) -> Work:
    return _adaptive(self, grad_output, dims, "add") + pointwise(self, grad_output.numel, div=1)


def _adaptive_largest(self: TensorSpec, dims: int, out: Specs, **_: Any) -> Work:
    return _adaptive(self, out[0], dims, "compare")


def _adaptive(whole: TensorSpec, pooled: TensorSpec, dims: int, kind: str) -> Work:
    outer = math.prod(pooled.shape[:-dims])
    return pointwise(whole, outer * adaptive_window(whole.shape[-dims:], pooled.shape[-dims:]), **{kind: 1})


for _formula, _function, *_names in (
    (
        "The mean of each window: window add, 1 div per result.",
        _average,
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
    ),
    (
        "g/window added to each element of the window: 1 div, window add per gradient.",
        _average_backward,
        "",
        "avg_pool2d_backward",
        "avg_pool3d_backward",
    ),
    (
        "The largest of each window: window compare per result.",
        _largest,
        "max_pool1d max_pool1d_with_indices quantized_max_pool1d",
        "max_pool2d max_pool2d_with_indices quantized_max_pool2d mkldnn_max_pool2d fractional_max_pool2d",
        "max_pool3d max_pool3d_with_indices quantized_max_pool3d mkldnn_max_pool3d fractional_max_pool3d",
    ),
    (
        "The mean of each window, floor(i·n/o) to ceil((i+1)·n/o): 1 add for each element under it, 1 div per result.",
        _adaptive_average,
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d _adaptive_avg_pool2d mkldnn_adaptive_avg_pool2d",
        "adaptive_avg_pool3d _adaptive_avg_pool3d",
    ),
    (
        "g/window added to each element under the window: 1 div per gradient, 1 add for each element under it.",
        _adaptive_average_backward,
        "",
        "_adaptive_avg_pool2d_backward mkldnn_adaptive_avg_pool2d_backward",
        "adaptive_avg_pool3d_backward _adaptive_avg_pool3d_backward",
    ),
    (
        "The largest under each window: 1 compare for each element.",
        _adaptive_largest,
        "adaptive_max_pool1d",
        "adaptive_max_pool2d",
        "adaptive_max_pool3d",
    ),
):
    for _dims, _named in enumerate(_names, start=1):
        named(_named, _formula, _over(_function, _dims), "pool")


@rule("aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward", family="pool")
@rule("aten.max_pool2d_backward", "aten.mkldnn_max_pool2d_backward", "aten.mkldnn_max_pool3d_backward", family="pool")
@rule("aten.adaptive_max_pool2d_backward", "aten.adaptive_max_pool3d_backward", family="pool")
@rule("aten.fractional_max_pool2d_backward", "aten.fractional_max_pool3d_backward", family="pool")
def max_backward(grad_output: TensorSpec, **_: Any) -> Work:
    """g added where the maximum was: 1 add, 1 index per gradient."""
    return pointwise(grad_output, grad_output.numel, add=1, index=1)


@rule("aten.max_unpool2d", "aten.max_unpool3d", family="pool")
def unpool(self: TensorSpec, **_: Any) -> Work:
    """Each value put where its maximum was, zeros elsewhere: 1 index per value."""
    return pointwise(self, self.numel, index=1)
