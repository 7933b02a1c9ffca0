"""ONNX Runtime's channels-last forms of standard operators."""

from collections.abc import Mapping
from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import RuleFunction, rule
from bitwatt.rules._onnx import biased, channels_first, convolved
from bitwatt.rules._products import Specs
from bitwatt.rules.com_microsoft import quantised as small
from bitwatt.rules.com_microsoft.conv import fused, quantised
from bitwatt.rules.onnx import norm, pooling

SPACE = "com_ms_internal_nhwc"


@rule(f"{SPACE}.Conv", family="conv")
def conv(X: TensorSpec, W: TensorSpec, out: Specs, **args: Any) -> Work:
    """A convolution whose channels lie last, and its bias."""
    return fused(X, W, out, True, args)


@rule(f"{SPACE}.ConvTranspose", family="conv")
def conv_transpose(X: TensorSpec, W: TensorSpec, out: Specs, B: TensorSpec | None = None, **_: Any) -> Work:
    """A transposed convolution whose channels lie last, and its bias."""
    return convolved(channels_first(X), W, channels_first(out[0]), transposed=True) + biased(B, out[0])


@rule(f"{SPACE}.QLinearConv", family="conv")
def quantised_conv(x: TensorSpec, w: TensorSpec, out: Specs, B: TensorSpec | None = None, **_: Any) -> Work:
    """A convolution of 8-bit integers whose channels lie last; bias, scale and rounding per result."""
    return quantised(x, w, out, last=True, bias=B is not None)


@rule(f"{SPACE}.QLinearConvTranspose", family="conv")
def quantised_transpose(x: TensorSpec, w: TensorSpec, out: Specs, B: TensorSpec | None = None, **_: Any) -> Work:
    """A transposed convolution of 8-bit integers whose channels lie last; bias, scale and rounding per result."""
    return quantised(x, w, out, last=True, bias=B is not None, transposed=True)


#: Whose work does not depend on where the channels lie.
_SAME: Mapping[str, tuple[RuleFunction, str]] = {
    "AveragePool": (pooling.average, "pool"),
    "MaxPool": (pooling.largest, "pool"),
    "GlobalAveragePool": (pooling.global_average, "pool"),
    "GlobalMaxPool": (pooling.global_largest, "pool"),
    "QLinearAveragePool": (small.average, "pool"),
    "LRN": (norm.local_response, "norm"),
}
for _name, (_function, _family) in _SAME.items():
    rule(f"{SPACE}.{_name}", family=_family)(_function)
