"""Attention of ONNX, and the rotation of queries and keys before it."""

from typing import Any

from bitwatt.formulas.attention import Scores, attention, dense, window
from bitwatt.formulas.linalg import matmul
from bitwatt.formulas.pointwise import pointwise
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules._products import Specs


def split(spec: TensorSpec, heads: int) -> TensorSpec:
    """(batch, length, heads·width) as (batch, heads, length, width); four axes stay as they are."""
    if len(spec.shape) == 4:
        return spec
    batch, length, hidden = spec.shape
    return TensorSpec((batch, heads, length, hidden // max(heads, 1)), spec.dtype)


def longer(spec: TensorSpec, past: TensorSpec | None) -> TensorSpec:
    """Keys or values behind those that a cache holds."""
    if past is None:
        return spec
    batch, heads, length, width = spec.shape
    return TensorSpec((batch, heads, length + past.shape[2], width), spec.dtype)


def attended(
    q: TensorSpec,
    k: TensorSpec,
    v: TensorSpec,
    *,
    causal: bool,
    masked: bool,
    left: int = -1,
    right: int = -1,
    softcap: float = 0.0,
    before: int = 0,
) -> Work:
    """Queries (batch, heads, length, width) over keys and values that may have fewer heads. Causal: query i sees keys
    up to i + `before`; windows count from there too."""
    batch, heads, lq, d = q.shape
    scores: Scores = dense(batch * heads, lq, k.shape[2], d, v.shape[3], batch * k.shape[1])
    if causal or left >= 0 or right >= 0:
        ahead = 0 if causal else (right if right >= 0 else None)
        scores = window(scores, left if left >= 0 else None, ahead, offset=before)
    work = attention(scores, q, k, v, biased=causal or masked)
    pairs = scores.batch * scores.lq * scores.lk
    return work + pointwise(q, pairs if softcap else 0, div=1, tanh=1, mul=1)


@rule("onnx.Attention", family="attention")
def sdpa(
    Q: TensorSpec,
    K: TensorSpec,
    V: TensorSpec,
    attn_mask: TensorSpec | None = None,
    past_key: TensorSpec | None = None,
    past_value: TensorSpec | None = None,
    is_causal: int = 0,
    q_num_heads: int = 0,
    kv_num_heads: int = 0,
    left_window_size: int = -1,
    right_window_size: int = -1,
    softcap: float = 0.0,
    **_: Any,
) -> Work:
    """softmax(q·kᵀ/√d + mask)·v: heads·Lq·Lk·(d + dv) multiply-accumulates, scaling of q and k, softmax and mask on
    heads·Lq·Lk; keys of the past count among Lk. Soft capping is 1 div, 1 tanh, 1 mul on each score."""
    q, k, v = split(Q, q_num_heads), split(K, kv_num_heads), split(V, kv_num_heads)
    before = past_key.shape[2] if past_key is not None else 0
    return attended(
        q,
        longer(k, past_key),
        longer(v, past_value),
        causal=bool(is_causal),
        masked=attn_mask is not None,
        left=left_window_size,
        right=right_window_size,
        softcap=softcap,
        before=before,
    )


@rule("onnx.RotaryEmbedding", family="attention")
def rotary(X: TensorSpec, rotary_embedding_dim: int = 0, num_heads: int = 0, **_: Any) -> Work:
    """Pairs turned by an angle: 4 mul, 2 add for each pair, so 2 mul, 1 add per element that is turned."""
    width = X.shape[-1] // num_heads if len(X.shape) == 3 and num_heads else X.shape[-1]
    return rotated(X, X.numel * (rotary_embedding_dim or width) // max(width, 1))


def rotated(spec: TensorSpec, elements: int) -> Work:
    return pointwise(spec, elements, mul=2, add=1)


@rule("onnx.LinearAttention", family="attention")
def linear_attention(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    out: Specs,
    decay: TensorSpec | None = None,
    beta: TensorSpec | None = None,
    q_num_heads: int = 1,
    kv_num_heads: int = 1,
    update_rule: str = "linear",
    **_: Any,
) -> Work:
    """A state S of d x dv for each head, step by step: S += k·vᵀ and o = q·S, d·dv multiply-accumulates each; the delta
    rule reads what S holds for k first, as many again; decay is d·dv mul, the step's size dv mul."""
    batch, steps, hidden = query.shape
    q, v = hidden // q_num_heads, value.shape[-1] // kv_num_heads
    heads = max(q_num_heads, kv_num_heads)
    times = batch * steps * heads
    delta = "delta" in update_rule
    work = matmul(q, 1, v, key, value, batch=times) + matmul(1, q, v, query, value, batch=times)
    if delta:
        work += matmul(1, q, v, key, value, batch=times) + pointwise(value, times * v, add=1)
    work += pointwise(value, times * v if beta is not None else 0, mul=1)
    return work + pointwise(value, times * q * v if decay is not None else 0, mul=1)
