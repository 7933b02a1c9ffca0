"""Pictures resized and resampled, windows folded back, borders' gradients gathered.

Weights that depend on a row or column alone are left out: there are as many as rows and columns, not pixels.
"""

import math
from collections.abc import Sequence
from typing import Any

from bitwatt.formulas.linalg import matmul
from bitwatt.formulas.pointwise import pointwise
from bitwatt.formulas.windows import linear_resample, linear_spread, separable
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._tables import Specs, named, tensors


@rule(
    *(f"aten.{kind}{d}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for d in (1, 2, 3)), family="pool"
)
def nearest(out: Specs, **_: Any) -> Work:
    """The nearest neighbour: 1 index per result."""
    return pointwise(out[0], out[0].numel, index=1)


@rule(
    *(f"aten.{kind}{d}d_backward" for kind in ("upsample_nearest", "_upsample_nearest_exact") for d in (1, 2, 3)),
    family="pool",
)
def nearest_backward(grad_output: TensorSpec, **_: Any) -> Work:
    """g added to its nearest neighbour: 1 add, 1 index per gradient."""
    return pointwise(grad_output, grad_output.numel, add=1, index=1)


def _linear(name: str, dims: int) -> None:
    def forward(out: Specs, **_: Any) -> Work:
        return linear_resample(out[0], out[0].numel, dims)

    def backward(grad_output: TensorSpec, **_: Any) -> Work:
        return linear_spread(grad_output, grad_output.numel, dims)

    n = 2**dims
    named(name, f"{n} neighbours blended pairwise: {2 * n - 2} mul, {n - 1} add per result.", forward, "pool")
    named(f"{name}_backward", f"g shared by {n} neighbours: {2 * n - 2} mul, {n} add per gradient.", backward, "pool")


for _dims, _name in ((1, "linear1d"), (2, "bilinear2d"), (3, "trilinear3d")):
    _linear(f"upsample_{_name}", _dims)


@rule("aten.upsample_bicubic2d", family="pool")
def bicubic(out: Specs, **_: Any) -> Work:
    """Four rows of four neighbours, then the four: 5·(4 mul, 3 add) = 20 mul, 15 add per result (Keys 1981)."""
    return pointwise(out[0], out[0].numel, mul=20, add=15)


@rule("aten.upsample_bicubic2d_backward", family="pool")
def bicubic_backward(grad_output: TensorSpec, **_: Any) -> Work:
    """g split over four rows, each over four neighbours: 20 mul, 16 add per gradient."""
    return pointwise(grad_output, grad_output.numel, mul=20, add=16)


def _antialias(name: str, taps: int) -> None:
    def forward(out: Specs, **args: Any) -> Work:
        source = next(iter(tensors(tuple(args.values()))))
        return separable(source, math.prod(source.shape[:-2]), source.shape[-2:], out[0].shape[-2:], taps)

    def backward(grad_output: TensorSpec, input_size: Sequence[int], **_: Any) -> Work:
        outer = math.prod(input_size[:-2])
        return separable(grad_output, outer, tuple(input_size)[-2:], grad_output.shape[-2:], taps)

    formula = f"Columns then rows, {taps}·max(1, n/o) neighbours weighed and added: 1 mul, 1 add each."
    named(name, formula, forward, "pool")
    named(f"{name}_backward", formula, backward, "pool")


for _name, _taps in (("bilinear", 2), ("bicubic", 4), ("lanczos", 6)):
    _antialias(f"_upsample_{_name}2d_aa", _taps)


def _grid(dims: int, names: str) -> None:
    corners = 2**dims

    def forward(out: Specs, grid: TensorSpec, interpolation_mode: int = 0, **_: Any) -> Work:
        points = grid.numel // dims
        place = pointwise(grid, points, mul=2 * dims, add=2 * dims, cast=dims)
        if interpolation_mode == 1:
            return place + pointwise(out[0], out[0].numel, index=1)
        if interpolation_mode == 2:
            weights = pointwise(grid, points, mul=4 * 4 * dims, add=3 * 4 * dims)
            return place + weights + pointwise(out[0], out[0].numel, mul=20, add=15, index=16)
        weights = pointwise(grid, points, add=2 * dims, mul=corners * (dims - 1))
        return place + weights + pointwise(out[0], out[0].numel, mul=corners, add=corners - 1, index=corners)

    def backward(
        grad_output: TensorSpec,
        grid: TensorSpec,
        interpolation_mode: int = 0,
        output_mask: Any = (True, True),
        **_: Any,
    ) -> Work:
        points, n = grid.numel // dims, grad_output.numel
        place = pointwise(grid, points, mul=2 * dims, add=2 * dims, cast=dims)
        if interpolation_mode == 1:
            return place + pointwise(grad_output, n, add=int(output_mask[0]), index=1)
        taps = corners if interpolation_mode == 0 else 16
        weights = pointwise(grid, points, add=2 * dims, mul=taps * (dims - 1))
        image = pointwise(grad_output, n, mul=taps, add=taps) if output_mask[0] else Work()
        slope = pointwise(grad_output, n, mul=taps * (dims + 1), add=taps * dims) if output_mask[1] else Work()
        return place + weights + image + slope

    formula = (
        f"Each point placed (2 mul, 2 add per coordinate) and weighed, then {corners} mul, {corners - 1} add per "
        "result; nearest 1 index, bicubic 20 mul, 15 add."
    )
    named(names, formula, forward, "pool")
    formula = (
        f"Each gradient added to {corners} neighbours ({corners} mul, {corners} add) and turned into the slope of the "
        f"grid ({corners * (dims + 1)} mul, {corners * dims} add)."
    )
    backwards = " ".join(
        f"{name}_backward" for name in names.split() if name != "grid_sampler"
    )  # it has none of its own
    named(backwards, formula, backward, "pool")


_grid(2, "grid_sampler grid_sampler_2d _grid_sampler_2d_cpu_fallback cudnn_grid_sampler")
_grid(3, "grid_sampler_3d")


@rule("aten.affine_grid_generator", "aten.cudnn_affine_grid_generator", family="matmul")
def affine_grid(theta: TensorSpec, out: Specs, **_: Any) -> Work:
    """Each point (x, y[, z], 1) times the transposed matrix: one matrix product per picture."""
    batch, rows, columns = theta.shape
    return matmul(out[0].numel // max(batch * rows, 1), columns, rows, out[0], theta, batch=batch)


@rule("aten.affine_grid_generator_backward", "aten.cudnn_affine_grid_generator_backward", family="matmul")
def affine_grid_backward(grad: TensorSpec, **_: Any) -> Work:
    """The points transposed times the gradient: one matrix product per picture."""
    batch, dims = grad.shape[0], grad.shape[-1]
    return matmul(dims, grad.numel // max(batch * dims, 1), dims + 1, grad, grad, batch=batch)


@rule("aten.col2im", "aten.unfold_backward", family="copy")
def fold(self: Any = None, grad_in: Any = None, **_: Any) -> Work:
    """Every window added back into the picture: 1 add per window element."""
    windows = self if self is not None else grad_in
    return pointwise(windows, windows.numel, add=1)


@rule(
    *(f"aten.{kind}_pad{d}d_backward" for kind in ("reflection", "replication") for d in (1, 2, 3)),
    family="copy",
)
def pad_backward(grad_output: TensorSpec, **_: Any) -> Work:
    """Each gradient added to where its value was copied from: 1 add each."""
    return pointwise(grad_output, grad_output.numel, add=1)
