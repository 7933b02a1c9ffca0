"""Quantised oneDNN operators that compiled graphs call: a product and what is fused behind it."""

from typing import Any

from bitwatt.formulas.linalg import matmul
from bitwatt.formulas.norm import line
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._packed import half_linear, packed_conv, requantised
from bitwatt.rules._products import Specs, flat, fused, named
from bitwatt.rules._tables import each, moved

SPACE = "onednn"

each("qadd", "x + y, both scaled in and the sum out", space=SPACE, mul=3, add=4, cast=1)
each("qadd_relu", "x + y, both scaled in and the sum out", space=SPACE, mul=3, add=4, cast=1, compare=1)
each("qmul", "x·y, both scaled in and the product out", space=SPACE, mul=4, add=3, cast=1)
moved("qlinear_prepack qconv_prepack linear_prepack_fp16", "weights copied into a kernel's order", space=SPACE)


@rule("onednn.qlinear_pointwise", family="matmul")
def qlinear_pointwise(
    qx: TensorSpec,
    qw: TensorSpec,
    out: Specs,
    post_op_name: str | None = None,
    binary_post_op: str | None = None,
    unary_post_op: str | None = None,
    **_: Any,
) -> Work:
    """8-bit x·W, requantised; another tensor joined, an activation."""
    rows = flat(qx)
    after = fused(post_op_name, out[0]) + fused(binary_post_op, out[0]) + fused(unary_post_op, out[0])
    return matmul(rows.shape[0], rows.shape[1], out[0].shape[-1], qx, qw) + requantised(out[0]) + after


@rule(*named("qconv_pointwise qconv1d_pointwise qconv2d_pointwise qconv3d_pointwise", SPACE), family="conv")
def qconv_pointwise(
    qx: TensorSpec,
    qw: TensorSpec,
    out: Specs,
    attr: str | None = None,
    binary_attr: str | None = None,
    unary_attr: str | None = None,
    **_: Any,
) -> Work:
    """A convolution of 8-bit values, requantised; another tensor joined, an activation."""
    after = fused(binary_attr, out[0]) + fused(unary_attr, out[0])
    return packed_conv(qx, qw, out[0], transposed=False, after=attr) + after


@rule("onednn.linear_dynamic_fp16", "onednn.linear_relu_dynamic_fp16", family="matmul")
def linear_dynamic_fp16(x: TensorSpec, out: Specs, **_: Any) -> Work:
    """x·Wᵀ + b with 16-bit float weights."""
    return half_linear(x, out[0])


@rule("onednn.qbatch_norm2d", family="norm")
def qbatch_norm2d(qx: TensorSpec, **_: Any) -> Work:
    """One line per channel, then rounded: 1 mul, 1 add, 1 cast per element."""
    return line(qx.numel, qx.precision) + Work.of(qx.precision, cast=qx.numel)
