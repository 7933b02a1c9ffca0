"""Transformer layers that ATen computes in one call: the encoder's fast path and multi-head attention."""

from typing import Any

from bitwatt.formulas.linalg import bias_add, scaling
from bitwatt.formulas.norm import layer_norm
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs, affine, flat, fused
from bitwatt.rules.aten.attention import forward, scores_of


def _split(spec: TensorSpec, heads: int) -> TensorSpec:
    """(batch, length, width) as (batch, heads, length, width / heads); nested ones alike."""
    if spec.parts is not None:
        parts = tuple((heads, length, width // heads) for length, width in spec.parts)
        return TensorSpec(spec.shape, spec.dtype, parts=parts)
    *batch, length, width = spec.shape
    return TensorSpec((*batch, heads, length, width // heads), spec.dtype)


def multi_head(
    query: TensorSpec, key: TensorSpec, qkv: TensorSpec, projection: TensorSpec, heads: int, masked: bool
) -> Work:
    """Products with the weights of q, k, v and of the result, each with a bias, around attention on every head."""
    width = qkv.shape[0] // 3
    weight = TensorSpec((width, qkv.shape[1]), qkv.dtype)
    q, k = (_split(flat(x) if x.parts is None and len(x.shape) < 3 else x, heads) for x in (query, key))
    into = affine(query, weight, weight, flat(query)) + affine(key, weight, weight, flat(key)) * 2
    inside = forward(scores_of(q, k, k), q, k, k, masked)
    return into + inside + affine(query, projection, projection, flat(query))


@rule("aten._native_multi_head_attention", "aten._triton_multi_head_attention", family="attention")
def native_multi_head_attention(
    query: TensorSpec,
    key: TensorSpec,
    num_head: int,
    qkv_weight: TensorSpec,
    proj_weight: TensorSpec,
    mask: TensorSpec | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    out: Specs = (),
    **_: Any,
) -> Work:
    """Products for q, k, v, attention on every head, the product of the result; the mean of the heads' weights where
    they are asked for."""
    work = multi_head(query, key, qkv_weight, proj_weight, num_head, mask is not None)
    if len(out) > 1 and need_weights and average_attn_weights:
        weights = out[1]
        work += Work.of(weights.precision, add=weights.numel * num_head, div=weights.numel)
    return work


@rule("aten._transformer_encoder_layer_fwd", family="attention")
def encoder_layer(
    src: TensorSpec,
    num_heads: int,
    qkv_weight: TensorSpec,
    proj_weight: TensorSpec,
    use_gelu: bool,
    ffn_weight_1: TensorSpec,
    ffn_weight_2: TensorSpec,
    mask: TensorSpec | None = None,
    **_: Any,
) -> Work:
    """Multi-head attention, two linear layers with ReLU or GELU between, two residual sums, two layer norms."""
    x = flat(src)
    inner = TensorSpec((x.shape[0], ffn_weight_1.shape[0]), src.dtype)
    norm = layer_norm(x.numel, x.shape[0], x.precision, weight=True, bias=True)
    work = multi_head(src, src, qkv_weight, proj_weight, num_heads, mask is not None)
    work += affine(x, ffn_weight_1, ffn_weight_1, inner) + fused("gelu" if use_gelu else "relu", inner)
    work += affine(inner, ffn_weight_2, ffn_weight_2, x)
    return work + bias_add(2 * x.numel, x.precision) + norm * 2


@rule("aten._transform_bias_rescale_qkv", family="attention")
def transform_bias_rescale_qkv(out: Specs, **_: Any) -> Work:
    """The biases added to q, k and v, and q scaled."""
    q, k, v = out
    return bias_add(q.numel + k.numel + v.numel, q.precision) + scaling(q.numel, q.precision)
