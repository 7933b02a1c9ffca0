"""Convolutions of ATen, whichever library computes them."""

import math
from typing import Any

from bitwatt.formulas.conv import correlate, gather, scatter, unrolled
from bitwatt.formulas.linalg import bias_add, matmul
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, fused, named
from bitwatt.rules._tables import tensors


def convolved(x: TensorSpec, weight: TensorSpec, bias: TensorSpec | None, out: TensorSpec, transposed: bool) -> Work:
    """Forward of a convolution, or of a transposed one, and an addition per output element for the bias."""
    kernel = unrolled(x, out, weight) if transposed else unrolled(out, x, weight)
    work = (scatter if transposed else gather)(kernel, x, weight)
    return work if bias is None else work + bias_add(out.numel, out.precision)


def convolved_backward(
    gradient: TensorSpec, x: TensorSpec, weight: TensorSpec, transposed: bool, output_mask: tuple[bool, ...]
) -> Work:
    """dx and dW, each with exactly the multiply-accumulates of the forward, grouped or not; db = Σ g."""
    coarse, fine = (x, gradient) if transposed else (gradient, x)
    kernel = unrolled(coarse, fine, weight)
    spread = gather if transposed else scatter
    work = spread(kernel, gradient, weight) if output_mask[0] else Work()
    if output_mask[1]:
        work += correlate(kernel, x, gradient)
    if len(output_mask) > 2 and output_mask[2]:
        work += bias_add(gradient.numel, gradient.precision)
    return work


@rule(
    *named("convolution _convolution convolution_overrideable _convolution_mode conv1d conv2d conv3d"),
    *named("cudnn_convolution miopen_convolution miopen_depthwise_convolution mkldnn_convolution _mps_convolution"),
    *named("_nnpack_spatial_convolution thnn_conv2d _slow_conv2d_forward slow_conv3d slow_conv3d_forward"),
    *named("slow_conv_dilated2d slow_conv_dilated3d _conv_depthwise2d conv_depthwise3d"),
    family="conv",
)
def convolution(
    weight: TensorSpec, out: Specs, bias: TensorSpec | None = None, transposed: bool = False, **args: Any
) -> Work:
    """N·places·out channels·(in channels / groups)·kernel multiply-accumulates, taps on padding included; places are
    the output's, or the input's where transposed. One addition per output element for the bias."""
    x = next(iter(tensors(tuple(args.values()))))
    return convolved(x, weight, bias, out[0], transposed)


@rule(
    *named("conv_transpose1d conv_transpose2d conv_transpose3d cudnn_convolution_transpose"),
    *named("miopen_convolution_transpose _mps_convolution_transpose slow_conv_transpose2d slow_conv_transpose3d"),
    family="conv",
)
def convolution_transpose(weight: TensorSpec, out: Specs, bias: TensorSpec | None = None, **args: Any) -> Work:
    """N·input places·in channels·(out channels / groups)·kernel multiply-accumulates, and the bias."""
    x = next(iter(tensors(tuple(args.values()))))
    return convolved(x, weight, bias, out[0], transposed=True)


@rule("aten.cudnn_convolution_relu", "aten.miopen_convolution_relu", family="conv")
def convolution_relu(
    self: TensorSpec, weight: TensorSpec, out: Specs, bias: TensorSpec | None = None, **_: Any
) -> Work:
    """A convolution, its bias and ReLU."""
    return convolved(self, weight, bias, out[0], transposed=False) + fused("relu", out[0])


@rule("aten.cudnn_convolution_add_relu", "aten.miopen_convolution_add_relu", family="conv")
def convolution_add_relu(
    self: TensorSpec, weight: TensorSpec, out: Specs, alpha: Any = None, bias: TensorSpec | None = None, **_: Any
) -> Work:
    """ReLU(convolution + α·z + bias)."""
    work = convolved(self, weight, bias, out[0], transposed=False) + fused("add_relu", out[0])
    return work if alpha in (None, 1) else work + fused("mul", out[0])


@rule("aten.convolution_backward", "aten.convolution_backward_overrideable", family="conv")
def convolution_backward(
    grad_output: TensorSpec,
    input: TensorSpec,
    weight: TensorSpec,
    transposed: bool,
    output_mask: tuple[bool, ...],
    **_: Any,
) -> Work:
    """dx and dW, each with exactly the forward's multiply-accumulates, and db = Σ g, as `output_mask` asks."""
    return convolved_backward(grad_output, input, weight, transposed, output_mask)


@rule("aten.mps_convolution_backward", "aten._slow_conv2d_backward", family="conv")
def plain_backward(
    self: TensorSpec, grad_output: TensorSpec, weight: TensorSpec, output_mask: tuple[bool, ...], **_: Any
) -> Work:
    """dx, dW and db of a convolution."""
    return convolved_backward(grad_output, self, weight, False, output_mask)


@rule("aten.mps_convolution_transpose_backward", family="conv")
def transpose_backward(
    self: TensorSpec, grad_output: TensorSpec, weight: TensorSpec, output_mask: tuple[bool, ...], **_: Any
) -> Work:
    """dx and dW of a transposed convolution."""
    return convolved_backward(grad_output, self, weight, True, output_mask)


@rule("aten._convolution_double_backward", family="conv")
def double_backward(
    weight: TensorSpec,
    self: TensorSpec,
    transposed: bool,
    ggI: TensorSpec | None,
    ggW: TensorSpec | None,
    out: Specs,
    gO: TensorSpec,
    ggb: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """ggO = ggI∗W + x∗ggW + ggb, dx from ggW and dW from ggI: a convolution's multiply-accumulates for each."""
    forward = convolved(self, weight, None, gO, transposed)
    work = forward * (2 * (ggI is not None) + 2 * (ggW is not None))
    return work if ggb is None else work + bias_add(gO.numel, gO.precision)


@rule("aten.conv_tbc", family="conv")
def conv_tbc(self: TensorSpec, weight: TensorSpec, out: Specs, **_: Any) -> Work:
    """Time x batch x channels: places·batch·out·in·kernel multiply-accumulates, and the bias."""
    return _tbc(out[0], self, weight) + bias_add(out[0].numel, out[0].precision)


@rule("aten.conv_tbc_backward", family="conv")
def conv_tbc_backward(self: TensorSpec, weight: TensorSpec, **_: Any) -> Work:
    """dx and dW, each with the forward's multiply-accumulates, and db = Σ g."""
    return _tbc(self, self, weight) * 2 + bias_add(self.numel, self.precision)


def _tbc(out: TensorSpec, x: TensorSpec, weight: TensorSpec) -> Work:
    kernel, channels_in, channels_out = weight.shape
    return matmul(math.prod(out.shape[:2]), kernel * channels_in, channels_out, x, weight)
