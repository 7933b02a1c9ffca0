"""Quantised operators that torch keeps under a private name."""

from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._packed import dynamic_linear, half_linear, packed_conv, packed_linear
from bitwatt.rules._products import Specs, named
from bitwatt.rules._tables import each, moved

SPACE = "_quantized"

each("add", "x + y, both scaled in and the sum out", space=SPACE, mul=3, add=4, cast=1)
moved(
    "linear_prepack linear_prepack_fp16 linear_prepack_legacy linear_prepack_fp16_legacy conv2d_prepack conv3d_prepack "
    "conv_transpose1d_prepack conv_transpose2d_prepack conv_transpose3d_prepack wrapped_fbgemm_pack_gemm_matrix_fp16 "
    "_wrapped_linear_prepack",
    "weights copied into the order a kernel reads",
    space=SPACE,
)


@rule("_quantized.linear", family="matmul")
def linear(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """8-bit x·Wᵀ: rows·in·out multiply-accumulates; bias, scale and rounding per result."""
    return packed_linear(X, out[0])


@rule("_quantized.linear_dynamic", "_quantized.wrapped_quantized_linear", family="matmul")
def linear_dynamic(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """x quantised on the way in, 8-bit x·Wᵀ, scaled back to float plus bias."""
    return dynamic_linear(X, out[0])


@rule("_quantized._wrapped_quantized_linear_prepacked", family="matmul")
def wrapped_prepacked(out: Specs, **args: Any) -> Work:
    """x quantised on the way in, 8-bit x·Wᵀ, scaled back to float plus bias."""
    return dynamic_linear(next(value for value in args.values() if isinstance(value, TensorSpec)), out[0])


@rule("_quantized.wrapped_fbgemm_linear_fp16_weight", family="matmul")
def linear_fp16(X: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ + b with 16-bit float weights."""
    return half_linear(X, out[0])


@rule(*named("conv2d conv2d_relu conv3d conv3d_relu", SPACE), family="conv")
def conv(qx: TensorSpec, packed_weight: Any, out: Specs, **_: Any) -> Work:
    """A convolution of 8-bit values; bias, scale and rounding per result."""
    return packed_conv(qx, packed_weight, out[0], transposed=False)


@rule(*named("conv_transpose1d conv_transpose2d", SPACE), family="conv")
def conv_transpose(qx: TensorSpec, packed_weight: Any, out: Specs, **_: Any) -> Work:
    """A transposed convolution of 8-bit values; bias, scale and rounding per result."""
    return packed_conv(qx, packed_weight, out[0], transposed=True)
