"""Attention kernels of ATen: one mathematics, whichever of them computes it."""

import math
from dataclasses import replace
from typing import Any

from bitwatt.formulas.attention import Scores, attention, attention_backward, causal, dense, window
from bitwatt.formulas.linalg import components
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import free, rule
from bitwatt.rules._products import named

free("aten._fused_sdp_choice", reason="it only picks a kernel")

ALL = (True, True, True)


def scores_of(q: TensorSpec, k: TensorSpec, v: TensorSpec) -> list[Scores]:
    """Tensors whose last axes are (length, width), leading axes being sequences and heads; nested ones by component."""
    if q.parts is not None:
        triples = zip(components(q), components(k), components(v), strict=True)
        return [scores for triple in triples for scores in scores_of(*triple)]
    batch, shared = math.prod(q.shape[:-2]), math.prod(k.shape[:-2])
    return [dense(batch, q.shape[-2], k.shape[-2], q.shape[-1], v.shape[-1], shared)]


def forward(
    all_scores: list[Scores], q: TensorSpec, k: TensorSpec, v: TensorSpec, biased: bool, dropout_p: Any = 0.0
) -> Work:
    dropped = dropout_p not in (0, None)
    return sum((attention(scores, q, k, v, biased=biased, dropped=dropped) for scores in all_scores), Work())


def backward(
    all_scores: list[Scores],
    q: TensorSpec,
    k: TensorSpec,
    v: TensorSpec,
    biased: bool,
    dropout_p: Any,
    wanted: tuple[bool, ...] = ALL,
) -> Work:
    dropped = dropout_p not in (0, None)
    dq, dk, dv, *_ = wanted
    works = (
        attention_backward(scores, q, k, v, biased=biased, dropped=dropped, dq=dq, dk=dk, dv=dv)
        for scores in all_scores
    )
    return sum(works, Work())


def given(mask: TensorSpec | None) -> bool:
    """Whether there is a mask; some backwards get an empty tensor for none."""
    return mask is not None and mask.numel > 0


@rule(
    *named(
        "scaled_dot_product_attention _scaled_dot_product_attention_math _scaled_dot_product_attention_math_for_mps"
    ),
    *named("_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_efficient_attention"),
    *named("_scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable"),
    family="attention",
)
def sdpa(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    attn_mask: TensorSpec | None = None,
    attn_bias: TensorSpec | None = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    **_: Any,
) -> Work:
    """softmax(q·kᵀ/√d + mask)·v: heads·Lq·Lk·(d + dv) multiply-accumulates, scaling of q and k, softmax and mask on
    heads·Lq·Lk. A causal mask counts from the first query and the first key."""
    all_scores = scores_of(query, key, value)
    if is_causal:
        all_scores = [causal(scores) for scores in all_scores]
    return forward(all_scores, query, key, value, is_causal or given(attn_mask) or given(attn_bias), dropout_p)


@rule(
    *named("_scaled_dot_product_flash_attention_for_cpu_backward _scaled_dot_product_efficient_attention_backward"),
    *named("_scaled_dot_product_cudnn_attention_backward _scaled_dot_product_fused_attention_overrideable_backward"),
    family="attention",
)
def sdpa_backward(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    attn_mask: TensorSpec | None = None,
    attn_bias: TensorSpec | None = None,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    grad_input_mask: tuple[bool, ...] = ALL,
    **_: Any,
) -> Work:
    """Four products of heads·Lq·Lk·d, the softmax's gradient on heads·Lq·Lk, the scale on dq and dk; q·kᵀ and its
    exponentials once more, marked as recomputed."""
    all_scores = scores_of(query, key, value)
    if is_causal:
        all_scores = [causal(scores) for scores in all_scores]
    biased = is_causal or given(attn_mask) or given(attn_bias)
    return backward(all_scores, query, key, value, biased, dropout_p, grad_input_mask)


@rule("aten._scaled_dot_product_flash_attention", family="attention")
def sdpa_flash(
    query: TensorSpec, key: TensorSpec, value: TensorSpec, dropout_p: Any = 0.0, is_causal: bool = False, **_: Any
) -> Work:
    """As scaled_dot_product_attention; this kernel counts its causal mask from the last query and the last key."""
    all_scores = scores_of(query, key, value)
    if is_causal:
        all_scores = [causal(scores, bottom_right=True) for scores in all_scores]
    return forward(all_scores, query, key, value, is_causal, dropout_p)


@rule("aten._scaled_dot_product_flash_attention_backward", family="attention")
def sdpa_flash_backward(
    query: TensorSpec, key: TensorSpec, value: TensorSpec, dropout_p: Any, is_causal: bool, **_: Any
) -> Work:
    """As the backward of scaled_dot_product_attention, the causal mask counted from the last query and key."""
    all_scores = scores_of(query, key, value)
    if is_causal:
        all_scores = [causal(scores, bottom_right=True) for scores in all_scores]
    return backward(all_scores, query, key, value, is_causal, dropout_p)


@rule("aten._triton_scaled_dot_attention", family="attention")
def triton_attention(q: TensorSpec, k: TensorSpec, v: TensorSpec, dropout_p: Any = 0.0, **_: Any) -> Work:
    """As scaled_dot_product_attention."""
    return forward(scores_of(q, k, v), q, k, v, False, dropout_p)


def _lengths_first(
    q: TensorSpec, k: TensorSpec, v: TensorSpec, starts: TensorSpec | None, longest: tuple[Any, Any]
) -> tuple[Scores, bool]:
    """Scores of tensors laid out (..., length, heads, width), and whether they are exact.

    Where `starts` is given, sequences of many lengths lie end to end: they are taken at their mean length, which is
    exact if the longest is no longer.
    """
    if starts is None:
        return scores_of(*(_heads_first(spec) for spec in (q, k, v)))[0], True
    sequences = max(starts.shape[0] - 1, 1)
    (tokens_q, heads, d), (tokens_k, shared, dv) = q.shape[-3:], v.shape[-3:]
    lq, lk = round(tokens_q / sequences), round(tokens_k / sequences)
    exact = longest == (lq, lk) and (lq * sequences, lk * sequences) == (tokens_q, tokens_k)
    return dense(sequences * heads, lq, lk, d, dv, sequences * shared), exact


def _heads_first(spec: TensorSpec) -> TensorSpec:
    *leading, length, heads, width = spec.shape
    return replace(spec, shape=(*leading, heads, length, width))


def _seen(scores: Scores, is_causal: bool, left: int | None, right: int | None) -> Scores:
    """The flash kernel's mask: a window around the diagonal that ends at the last query and key; -1 is no bound."""
    left = None if left is None or left < 0 else left
    right = 0 if is_causal else None if right is None or right < 0 else right
    return window(scores, left, right, offset=scores.lk - scores.lq)


@rule("aten._flash_attention_forward", "aten._flash_attention_forward_no_dropout_inplace", family="attention")
def flash(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    cum_seq_q: TensorSpec | None,
    max_q: int,
    max_k: int,
    dropout_p: Any,
    is_causal: bool,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    **_: Any,
) -> Work:
    """Attention on (batch, length, heads, width), or on sequences end to end (tokens, heads, width) taken at their
    mean length; a causal mask or a window of keys counts from the last query and key."""
    scores, exact = _lengths_first(query, key, value, cum_seq_q, (max_q, max_k))
    seen = _seen(scores, is_causal, window_size_left, window_size_right)
    work = forward([seen], query, key, value, seen.masked > 0, dropout_p)
    return replace(work, estimated=not exact)


@rule("aten._flash_attention_backward", family="attention")
def flash_backward(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    cum_seq_q: TensorSpec | None,
    max_q: int,
    max_k: int,
    dropout_p: Any,
    is_causal: bool,
    window_size_left: int | None = None,
    window_size_right: int | None = None,
    **_: Any,
) -> Work:
    """The backward of the same: four products, one more recomputed."""
    starts = cum_seq_q if given(cum_seq_q) and len(query.shape) == 3 else None
    scores, exact = _lengths_first(query, key, value, starts, (max_q, max_k))
    seen = _seen(scores, is_causal, window_size_left, window_size_right)
    work = backward([seen], query, key, value, seen.masked > 0, dropout_p)
    return replace(work, estimated=not exact)


@rule("aten._cudnn_attention_forward", family="attention")
def cudnn(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    attn_bias: TensorSpec | None,
    cum_seq_q: TensorSpec | None,
    max_q: int,
    max_k: int,
    dropout_p: Any = 0.0,
    is_causal: bool = False,
    **_: Any,
) -> Work:
    """Attention on (batch, heads, length, width), or on sequences end to end (tokens, heads, width)."""
    scores, exact = _cudnn_scores(query, key, value, cum_seq_q, (max_q, max_k), is_causal)
    work = forward([scores], query, key, value, is_causal or given(attn_bias), dropout_p)
    return replace(work, estimated=not exact)


@rule("aten._cudnn_attention_backward", family="attention")
def cudnn_backward(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    attn_bias: TensorSpec | None,
    cum_seq_q: TensorSpec | None,
    max_q: int,
    max_k: int,
    dropout_p: Any,
    is_causal: bool,
    **_: Any,
) -> Work:
    """The backward of the same: four products, one more recomputed."""
    scores, exact = _cudnn_scores(query, key, value, cum_seq_q, (max_q, max_k), is_causal)
    work = backward([scores], query, key, value, is_causal or given(attn_bias), dropout_p)
    return replace(work, estimated=not exact)


def _cudnn_scores(
    q: TensorSpec, k: TensorSpec, v: TensorSpec, starts: TensorSpec | None, longest: tuple[int, int], is_causal: bool
) -> tuple[Scores, bool]:
    if len(q.shape) == 3 and given(starts):
        scores, exact = _lengths_first(q, k, v, starts, longest)
    else:
        scores, exact = scores_of(q, k, v)[0], True
    return (causal(scores) if is_causal else scores), exact


@rule("aten._efficient_attention_forward", family="attention")
def efficient(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    dropout_p: Any,
    custom_mask_type: int,
    bias: TensorSpec | None = None,
    cu_seqlens_q: TensorSpec | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    window_size: int | None = None,
    **_: Any,
) -> Work:
    """Attention on (batch, length, heads, width), or on sequences end to end; the causal mask counts from the first
    query and key (type 1) or the last (type 2), and a window keeps that many keys before the diagonal."""
    scores, exact = _lengths_first(query, key, value, cu_seqlens_q, (max_seqlen_q, max_seqlen_k))
    seen = _causal_type(scores, custom_mask_type, window_size)
    work = forward([seen], query, key, value, bool(custom_mask_type) or given(bias), dropout_p)
    return replace(work, estimated=not exact)


@rule("aten._efficient_attention_backward", family="attention")
def efficient_backward(
    query: TensorSpec,
    key: TensorSpec,
    value: TensorSpec,
    dropout_p: Any,
    custom_mask_type: int,
    bias: TensorSpec | None = None,
    cu_seqlens_q: TensorSpec | None = None,
    max_seqlen_q: int | None = None,
    max_seqlen_k: int | None = None,
    window_size: int | None = None,
    **_: Any,
) -> Work:
    """The backward of the same: four products, one more recomputed."""
    scores, exact = _lengths_first(query, key, value, cu_seqlens_q, (max_seqlen_q, max_seqlen_k))
    seen = _causal_type(scores, custom_mask_type, window_size)
    work = backward([seen], query, key, value, bool(custom_mask_type) or given(bias), dropout_p)
    return replace(work, estimated=not exact)


def _causal_type(scores: Scores, mask_type: int, before: int | None) -> Scores:
    if not mask_type:
        return scores
    keys_before = before - 1 if before else None  # the kernel's window holds the diagonal too
    return window(scores, keys_before, 0, offset=scores.lk - scores.lq if mask_type == 2 else 0)
