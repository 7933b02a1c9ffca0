"""Operators that take functions and do their own work: flex attention. The backend unfolds the others."""

from dataclasses import replace
from typing import Any

from bitwatt.formulas.attention import Scores, attention, attention_backward
from bitwatt.records import TensorSpec, Work
from bitwatt.registry import rule
from bitwatt.rules.aten.attention import scores_of


def _listed(scores: Scores, block_mask: tuple[Any, ...]) -> Scores:
    """Each block of queries lists the blocks of keys it may see, whole ones and partly masked ones apart; lists too
    short for all keys hide the others. How far longer lists are filled is data, so they hide nothing."""
    lists = [value for value in block_mask if isinstance(value, TensorSpec) and len(value.shape) == 4]
    sizes = [value for value in block_mask if type(value) is int]
    if not lists or not sizes:
        return scores
    by_query = lists[: len(lists) // 2]  # the second half lists the same blocks by key
    seen = min(sum(spec.shape[-1] for spec in by_query) * sizes[-1], scores.lk)
    return replace(scores, visible=scores.lq * seen)


@rule("higher_order.flex_attention", family="attention")
def flex_attention(arg0: TensorSpec, arg1: TensorSpec, arg2: TensorSpec, arg4: tuple[Any, ...] = (), **_: Any) -> Work:
    """softmax(score_mod(q·kᵀ/√d))·v: heads·Lq·Lk·(d + dv) multiply-accumulates; score_mod itself is not counted."""
    (scores,) = scores_of(arg0, arg1, arg2)
    return attention(_listed(scores, arg4), arg0, arg1, arg2)


@rule("higher_order.flex_attention_backward", family="attention")
def flex_attention_backward(
    arg0: TensorSpec, arg1: TensorSpec, arg2: TensorSpec, arg9: tuple[Any, ...] = (), **_: Any
) -> Work:
    """Four products of heads·Lq·Lk·d, one more recomputed; score_mod itself is not counted."""
    (scores,) = scores_of(arg0, arg1, arg2)
    return attention_backward(_listed(scores, arg9), arg0, arg1, arg2)
