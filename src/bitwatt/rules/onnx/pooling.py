"""Pooling, resizing and sampling of pictures."""

import math
from typing import Any

from bitwatt.formulas.linalg import matmul
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.reduction import vector_norm
from bitwatt.formulas.windows import linear_resample, separable
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs
from bitwatt.rules._tables import as_twin
from bitwatt.rules.torchvision import roi_align as aligned
from bitwatt.rules.torchvision import roi_pool


@rule("onnx.AveragePool", family="pool")
def average(out: Specs, kernel_shape: tuple[int, ...], **_: Any) -> Work:
    """The mean of each window: window add, 1 div per result."""
    return pointwise(out[0], out[0].numel, add=math.prod(kernel_shape), div=1)


@rule("onnx.MaxPool", family="pool")
def largest(out: Specs, kernel_shape: tuple[int, ...], **_: Any) -> Work:
    """The largest of each window: window compare per result."""
    return pointwise(out[0], out[0].numel, compare=math.prod(kernel_shape))


@rule("onnx.LpPool", family="pool")
def lp(out: Specs, kernel_shape: tuple[int, ...], p: int = 2, **_: Any) -> Work:
    """The p-norm of each window: as a norm over its elements."""
    return vector_norm(out[0], out[0].numel * math.prod(kernel_shape), out[0].numel, p)


@rule("onnx.GlobalAveragePool", family="pool")
def global_average(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """The mean of each channel: 1 add per element, 1 div per result."""
    return pointwise(X, X.numel, add=1) + pointwise(X, out[0].numel, div=1)


@rule("onnx.GlobalMaxPool", family="pool")
def global_largest(X: TensorSpec, **_: Any) -> Work:
    """The largest of each channel: 1 compare per element."""
    return pointwise(X, X.numel, compare=1)


@rule("onnx.GlobalLpPool", family="pool")
def global_lp(X: TensorSpec, out: Specs, p: int = 2, **_: Any) -> Work:
    """The p-norm of each channel."""
    return vector_norm(X, X.numel, out[0].numel, p)


@rule("onnx.MaxUnpool", family="pool")
def unpool(X: TensorSpec, **_: Any) -> Work:
    """Each value put where its maximum was, zeros elsewhere: 1 index per value."""
    return pointwise(X, X.numel, index=1)


@rule("onnx.MaxRoiPool", family="pool")
def max_roi(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """A maximum over each bin, whose size is data: every pixel of a map once for each region."""
    return roi_pool(input=X, out=out)


@rule("onnx.RoiAlign", family="pool")
def roi_align(out: Specs, sampling_ratio: int = 0, **_: Any) -> Work:
    """The mean of sampling_ratio² bilinear samples in each bin; the ratio that adapts to a region is taken as 2."""
    return aligned(out=out, sampling_ratio=sampling_ratio or -1)


@rule("onnx.Resize", "onnx.Upsample", family="pool")
def resize(X: TensorSpec, out: Specs, mode: str = "nearest", antialias: int = 0, **_: Any) -> Work:
    """Nearest: 1 index per result. Linear: 2^d - 1 blends of 2 mul, 1 add over the d axes that change. Cubic: 4 taps
    along each of them, one after the other. With anti-aliasing, taps·max(1, n/o) neighbours along each."""
    pairs = [(n, o) for n, o in zip(X.shape, out[0].shape, strict=True) if n != o]
    if mode == "nearest" or not pairs:
        return pointwise(out[0], out[0].numel, index=1)
    if antialias or mode == "cubic":
        changed = out[0].numel // max(math.prod(o for _, o in pairs), 1)
        sizes, results = [n if antialias else 0 for n, _ in pairs], [o for _, o in pairs]
        return separable(out[0], changed, sizes, results, 4 if mode == "cubic" else 2)
    return linear_resample(out[0], out[0].numel, len(pairs))


_GRIDS = {"bilinear": 0, "linear": 0, "nearest": 1, "bicubic": 2, "cubic": 2}


@rule("onnx.GridSample", family="pool")
def grid_sample(X: TensorSpec, grid: TensorSpec, out: Specs, mode: str = "linear", **_: Any) -> Work:
    """Each point placed and weighed, then 2^d neighbours blended per result; nearest 1 index, cubic 16 neighbours."""
    dims = len(X.shape) - 2
    twin = "aten.grid_sampler_3d" if dims == 3 else "aten.grid_sampler_2d"
    return as_twin(twin, {"input": X, "grid": grid, "interpolation_mode": _GRIDS[mode]}, out)


@rule("onnx.AffineGrid", family="matmul")
def affine_grid(theta: TensorSpec, out: Specs, **_: Any) -> Work:
    """Each point (x, y[, z], 1) times the transposed matrix: one matrix product per picture."""
    batch, rows, columns = theta.shape
    return matmul(out[0].numel // max(batch * rows, 1), columns, rows, out[0], theta, batch=batch)


@rule("onnx.NonMaxSuppression", family="other")
def suppression(boxes: TensorSpec, scores: TensorSpec, **_: Any) -> Work:
    """Every pair of boxes of each class, as torchvision's nms; which pairs are left out is data."""
    pairs = as_twin("torchvision.nms", {"dets": TensorSpec((boxes.shape[1], 4), boxes.dtype)}, ())
    ordered = as_twin("aten.sort", {"self": scores}, (scores,))
    once = Work(pairs.ops, estimated=True)
    return once * (scores.shape[0] * scores.shape[1]) + Work(ordered.ops, estimated=True)
