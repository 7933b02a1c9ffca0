"""Fused, quantised and channels-last convolutions of ONNX Runtime."""

from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import Carried, activated, biased, channels_first, convolved, expanded
from bitwatt.rules._packed import requantised
from bitwatt.rules._products import Specs


def fused(X: TensorSpec, W: TensorSpec, out: Specs, last: bool, args: dict[str, Any]) -> Work:
    """A convolution, its bias, a sum with another tensor, an activation."""
    result = out[0]
    x, y = (channels_first(X), channels_first(result)) if last else (X, result)
    work = expanded(convolved(x, W, y), args.get("carried", ()), "X", "W") + biased(args.get("B"), result)
    return work + biased(args.get("Z") or args.get("Sum"), result) + activated(args.get("activation", ""), result)


@rule("com_microsoft.FusedConv", family="conv")
def fused_conv(X: TensorSpec, W: TensorSpec, out: Specs, **args: Any) -> Work:
    """A convolution's multiply-accumulates; 1 add per result for the bias and for a tensor added; the activation."""
    return fused(X, W, out, False, args)


@rule("com_microsoft.NhwcConv", "com_microsoft.NhwcFusedConv", family="conv")
def nhwc_conv(X: TensorSpec, W: TensorSpec, out: Specs, **args: Any) -> Work:
    """A convolution whose channels lie last: as FusedConv."""
    return fused(X, W, out, True, args)


def quantised(x: TensorSpec, w: TensorSpec, out: Specs, *, last: bool, bias: bool, transposed: bool = False) -> Work:
    given, made = (channels_first(x), channels_first(out[0])) if last else (x, out[0])
    return convolved(given, w, made, transposed=transposed) + requantised(out[0], bias)


@rule("com_microsoft.QLinearConv", family="conv")
def quantised_conv(
    x: TensorSpec, w: TensorSpec, out: Specs, B: TensorSpec | None = None, channels_last: int = 0, **_: Any
) -> Work:
    """A convolution of 8-bit integers, its channels first or last; bias, scale and rounding per result."""
    return quantised(x, w, out, last=bool(channels_last), bias=B is not None)


@rule("com_microsoft.ConvTransposeWithDynamicPads", family="conv")
def transposed_conv(
    X: TensorSpec, W: TensorSpec, out: Specs, B: TensorSpec | None = None, carried: Carried = (), **_: Any
) -> Work:
    """N·places of the input·in channels·(out channels / groups)·kernel multiply-accumulates, and the bias."""
    return expanded(convolved(X, W, out[0], transposed=True), carried, "X", "W") + biased(B, out[0])
