"""oneDNN operators that compiled graphs call: a product and what is fused behind it."""

from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules._products import Specs, affine, fused, named
from bitwatt.rules._tables import moved
from bitwatt.rules.aten.conv import convolved

SPACE = "mkldnn"

moved(
    "_reorder_linear_weight _reorder_convolution_weight _reorder_convolution_transpose_weight "
    "_reorder_mkldnn_rnn_layer_weight",
    "weights copied into the order a kernel reads",
    space=SPACE,
)
free(
    *named("_is_mkldnn_bf16_supported _is_mkldnn_fp16_supported _is_mkldnn_acl_supported _nbytes data_ptr", SPACE),
    "mkldnn._get_mkldnn_serialized_md",
    reason="a question about the library or a tensor",
)


@rule("mkldnn._linear_pointwise", family="matmul")
def linear_pointwise(
    X: TensorSpec,
    W: TensorSpec,
    out: Specs,
    B: TensorSpec | None = None,
    attr: str | None = None,
    **_: Any,
) -> Work:
    """x·Wᵀ + b, and an activation or another tensor joined."""
    return affine(X, W, B, out[0]) + fused(attr, out[0])


@rule("mkldnn._convolution_pointwise", family="conv")
def convolution_pointwise(
    X: TensorSpec,
    W: TensorSpec,
    out: Specs,
    B: TensorSpec | None = None,
    attr: str | None = None,
    binary_attr: str | None = None,
    unary_attr: str | None = None,
    **_: Any,
) -> Work:
    """A convolution with bias, another tensor joined, an activation."""
    after = fused(attr, out[0]) + fused(binary_attr, out[0]) + fused(unary_attr, out[0])
    return convolved(X, W, B, out[0], transposed=False) + after


@rule("mkldnn._convolution_transpose_pointwise", family="conv")
def convolution_transpose_pointwise(
    X: TensorSpec,
    W: TensorSpec,
    out: Specs,
    B: TensorSpec | None = None,
    attr: str | None = None,
    **_: Any,
) -> Work:
    """A transposed convolution with bias, and an activation."""
    return convolved(X, W, B, out[0], transposed=True) + fused(attr, out[0])
