"""Attention as ONNX Runtime fuses it: with the products around it, with caches, with shared heads."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.linalg import bias_add, matrix_product
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._onnx import biased
from bitwatt.rules._packed import scaled_back
from bitwatt.rules._products import Specs
from bitwatt.rules.onnx.attention import attended, longer, rotated, split


def _inside(
    x: TensorSpec, out: Specs, heads: int, width: int, past: TensorSpec | None, causal: bool, masked: bool
) -> Work:
    """Attention on every head of what the products made: q and k as wide as `width`, v as the result."""
    batch, length, wide = out[0].shape
    q = TensorSpec((batch, heads, length, width // heads), out[0].dtype)
    v = TensorSpec((batch, heads, length, wide // heads), out[0].dtype)
    before = past.shape[3] if past is not None else 0
    cache = TensorSpec((batch, heads, before, width // heads), out[0].dtype) if before else None
    return attended(q, longer(q, cache), longer(v, cache), causal=causal, masked=masked, before=before)


@rule("com_microsoft.Attention", family="attention")
def attention(
    input: TensorSpec,
    weights: TensorSpec,
    num_heads: int,
    out: Specs,
    bias: TensorSpec | None = None,
    mask_index: TensorSpec | None = None,
    attention_bias: TensorSpec | None = None,
    past: TensorSpec | None = None,
    qkv_hidden_sizes: tuple[int, ...] = (),
    unidirectional: int = 0,
    **_: Any,
) -> Work:
    """The product that makes q, k and v, its bias, then softmax(q·kᵀ/√d + mask)·v on every head."""
    made = TensorSpec((*input.shape[:-1], weights.shape[-1]), input.dtype)
    width = qkv_hidden_sizes[0] if qkv_hidden_sizes else weights.shape[-1] // 3
    masked = mask_index is not None or attention_bias is not None
    inside = _inside(input, out, num_heads, width, past, bool(unidirectional), masked)
    return matrix_product(input, weights) + biased(bias, made) + inside


@rule("com_microsoft.QAttention", family="attention")
def quantised_attention(
    input: TensorSpec,
    weight: TensorSpec,
    num_heads: int,
    out: Specs,
    mask_index: TensorSpec | None = None,
    past: TensorSpec | None = None,
    unidirectional: int = 0,
    **_: Any,
) -> Work:
    """The product that makes q, k and v, of 8-bit integers, scaled back and biased; then attention in floats."""
    made = TensorSpec((*input.shape[:-1], weight.shape[-1]), out[0].dtype)
    inside = _inside(input, out, num_heads, weight.shape[-1] // 3, past, bool(unidirectional), mask_index is not None)
    return matrix_product(input, weight) + scaled_back(made) + inside


@rule("com_microsoft.MultiHeadAttention", "com_microsoft.DecoderMaskedMultiHeadAttention", family="attention")
def multi_head(
    query: TensorSpec,
    num_heads: int,
    key: TensorSpec | None = None,
    value: TensorSpec | None = None,
    bias: TensorSpec | None = None,
    key_padding_mask: TensorSpec | None = None,
    mask_index: TensorSpec | None = None,
    attention_bias: TensorSpec | None = None,
    past_key: TensorSpec | None = None,
    past_value: TensorSpec | None = None,
    unidirectional: int = 0,
    **_: Any,
) -> Work:
    """softmax(q·kᵀ/√d + mask)·v on every head, and the biases of q, k and v before it; keys of the past count too."""
    q, k, v = _unpacked(query, key, value, num_heads)
    work = bias_add((q.numel + k.numel + v.numel) * (bias is not None), query.precision)
    masked = any(mask is not None for mask in (key_padding_mask, mask_index, attention_bias))
    before = past_key.shape[2] if past_key is not None else 0
    keys, values = longer(k, past_key), longer(v, past_value)
    return work + attended(q, keys, values, causal=bool(unidirectional), masked=masked, before=before)


def _unpacked(
    query: TensorSpec, key: TensorSpec | None, value: TensorSpec | None, heads: int
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """q, k and v apart, or packed as (batch, length, heads, 3, width); k and v as (batch, length, heads, 2, width)."""
    if key is None:
        batch, length, _, _, width = query.shape
        one = TensorSpec((batch, heads, length, width), query.dtype)
        return one, one, one
    q = split(query, heads)
    if value is None:
        batch, length, _, _, width = key.shape
        packed = TensorSpec((batch, heads, length, width), key.dtype)
        return q, packed, packed
    return q, split(key, heads), split(value, heads)


@rule("com_microsoft.GroupQueryAttention", family="attention")
def grouped(
    query: TensorSpec,
    num_heads: int,
    kv_num_heads: int,
    out: Specs,
    key: TensorSpec | None = None,
    attention_bias: TensorSpec | None = None,
    do_rotary: int = 0,
    local_window_size: int = -1,
    softcap: float = 0.0,
    **_: Any,
) -> Work:
    """softmax(q·kᵀ/√d + causal mask)·v with heads that share keys; over all keys that the result's cache has room for.
    The rotation of q and k is 2 mul, 1 add per element where it is asked for."""
    batch, length, hidden = query.shape
    width = hidden // (num_heads + 2 * kv_num_heads if key is None else num_heads)
    q = TensorSpec((batch, num_heads, length, width), query.dtype)
    total = out[1].shape[2] if len(out) > 1 else length
    k = TensorSpec((batch, kv_num_heads, total, width), query.dtype)
    work = attended(
        q, k, k, causal=True, masked=attention_bias is not None, left=local_window_size, softcap=softcap,
        before=total - length,
    )  # fmt: skip
    turned = batch * length * width * (num_heads + kv_num_heads)
    return work + (rotated(query, turned) if do_rotary else Work())


@rule("com_microsoft.RotaryEmbedding", family="attention")
def rotary(input: TensorSpec, num_heads: int = 0, rotary_embedding_dim: int = 0, **_: Any) -> Work:
    """Pairs turned by an angle: 2 mul, 1 add per element that is turned."""
    whole = input.shape[-1] // num_heads if len(input.shape) == 3 and num_heads else input.shape[-1]
    return rotated(input, input.numel * (rotary_embedding_dim or whole) // max(whole, 1))


@rule("com_microsoft.RelativePositionBias", family="index")
def position_bias(out: Specs, **_: Any) -> Work:
    """A bias looked up for each pair of places: 1 index each, and the bucket of the distance: 1 add, 1 log, 1 mul,
    1 cast."""
    pairs = out[0].shape[-1] * out[0].shape[-2]
    return pointwise(out[0], out[0].numel, index=1) + pointwise(out[0], pairs, add=1, log=1, mul=1, cast=1)


@rule("com_microsoft.PackedAttention", family="attention")
def packed(
    input: TensorSpec, weights: TensorSpec, bias: TensorSpec, num_heads: int, token_offset: TensorSpec, **_: Any
) -> Work:
    """As Attention, padding left out of the products; the sequences are taken as long as the longest."""
    batch, length = token_offset.shape
    width = weights.shape[-1] // 3
    q = TensorSpec((batch, num_heads, length, width // num_heads), input.dtype)
    work = matrix_product(input, weights) + bias_add(input.shape[0] * weights.shape[-1], input.precision)
    return replace(work + attended(q, q, q, causal=False, masked=False), estimated=True)
