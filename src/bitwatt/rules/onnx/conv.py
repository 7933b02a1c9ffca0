"""Convolutions of ONNX."""

from typing import Any

from bitwatt.formulas.linalg import bias_add
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import Carried, activated, biased, convolved, expanded
from bitwatt.rules._packed import requantised
from bitwatt.rules._products import Specs
from bitwatt.rules.torchvision import deform_conv2d


@rule("onnx.Conv", family="conv")
def conv(
    X: TensorSpec, W: TensorSpec, out: Specs, B: TensorSpec | None = None, carried: Carried = (), **_: Any
) -> Work:
    """N·places·out channels·(in channels / groups)·kernel multiply-accumulates, taps on padding included; one addition
    per output element for the bias."""
    return expanded(convolved(X, W, out[0]), carried, "X", "W") + biased(B, out[0])


@rule("onnx.ConvTranspose", family="conv")
def conv_transpose(
    X: TensorSpec, W: TensorSpec, out: Specs, B: TensorSpec | None = None, carried: Carried = (), **_: Any
) -> Work:
    """N·places of the input·in channels·(out channels / groups)·kernel multiply-accumulates, and the bias."""
    return expanded(convolved(X, W, out[0], transposed=True), carried, "X", "W") + biased(B, out[0])


@rule("onnx.ConvInteger", family="conv")
def integer_conv(x: TensorSpec, w: TensorSpec, out: Specs, **_: Any) -> Work:
    """A convolution of 8-bit integers, summed in 32 bits."""
    return convolved(x, w, out[0])


@rule("onnx.QLinearConv", family="conv")
def quantised_conv(x: TensorSpec, w: TensorSpec, out: Specs, B: TensorSpec | None = None, **_: Any) -> Work:
    """A convolution of 8-bit integers; bias, scale and rounding per result."""
    return convolved(x, w, out[0]) + requantised(out[0], B is not None)


@rule("onnx.DeformConv", family="conv")
def deform_conv(
    X: TensorSpec,
    W: TensorSpec,
    out: Specs,
    B: TensorSpec | None = None,
    mask: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """A convolution on samples taken between pixels: 8 mul, 7 add for each tap, 1 mul for its mask."""
    work = deform_conv2d(input=X, weight=W, out=out, use_mask=mask is not None)
    return work if B is not None else Work(_without_bias(work, out[0]), work.products)


def _without_bias(work: Work, out: TensorSpec) -> Any:
    """torchvision's operator always has one."""
    ((_, precision, part, n),) = bias_add(out.numel, out.precision).ops
    return tuple(
        (kind, p, of, m - n if (kind, p, of) == ("add", precision, part) else m) for kind, p, of, m in work.ops
    )


@rule("onnx.CausalConvWithState", family="conv")
def causal_conv(
    input: TensorSpec,
    weight: TensorSpec,
    out: Specs,
    bias: TensorSpec | None = None,
    activation: str = "none",
    **_: Any,
) -> Work:
    """A depthwise convolution over the past: N·places·channels·kernel multiply-accumulates, the bias, and what is fused
    behind."""
    work = convolved(input, weight, out[0]) + biased(bias, out[0])
    return work + activated("" if activation == "none" else activation, out[0])


@rule("onnx.Col2Im", family="copy")
def col2im(input: TensorSpec, **_: Any) -> Work:
    """Every window added back into the picture: 1 add per window element."""
    return pointwise(input, input.numel, add=1)
