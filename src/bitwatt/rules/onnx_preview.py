"""Operators that ONNX tries out."""

from typing import Any

from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.onnx.attention import attended


@rule("onnx_preview.FlexAttention", family="attention")
def flex_attention(Q: TensorSpec, K: TensorSpec, V: TensorSpec, **_: Any) -> Work:
    """softmax(q·kᵀ/√d)·v without what its graphs do to scores: heads·Lq·Lk·(d + dv) multiply-accumulates."""
    return attended(Q, K, V, causal=False, masked=False)
