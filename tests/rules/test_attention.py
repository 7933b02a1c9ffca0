"""Attention: every kernel is worth what the composite path dispatches, and masks are told apart exactly."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from priced import flops, products, work
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from bitwatt.formulas.attention import causal, dense, window
from bitwatt.records import RECOMPUTED, TensorSpec

MATH, FUSED = SDPBackend.MATH, SDPBackend.FLASH_ATTENTION

#: batch, query heads, key heads, Lq, Lk, D
SIZES = {
    "usual": (2, 4, 4, 64, 64, 32),
    "short": (2, 4, 4, 48, 48, 16),
    "tiny": (1, 2, 2, 7, 7, 5),
    "cross": (2, 4, 4, 9, 33, 16),
    "decode": (3, 4, 4, 1, 40, 8),
    "shared heads": (2, 8, 2, 24, 24, 16),
    "one key head": (1, 6, 1, 7, 11, 5),
}
MASKS = ["none", "causal", "float", "bool"]


def _step(kernel: SDPBackend, size: str, mask: str, dropout: float = 0.0) -> Callable[[], None]:
    batch, heads, key_heads, lq, lk, d = SIZES[size]
    torch.manual_seed(0)
    q = torch.randn(batch, heads, lq, d, requires_grad=True)
    k, v = (torch.randn(batch, key_heads, lk, d, requires_grad=True) for _ in range(2))
    options: dict[str, Any] = {"enable_gqa": key_heads != heads, "dropout_p": dropout, "is_causal": mask == "causal"}
    if mask == "float":
        options["attn_mask"] = torch.randn(lq, lk)
    if mask == "bool":
        options["attn_mask"] = torch.ones(lq, lk, dtype=torch.bool).tril()

    def step() -> None:
        with sdpa_kernel(kernel):
            out = F.scaled_dot_product_attention(q, k, v, **options)
        out.backward(torch.ones_like(out))

    return step


@pytest.mark.parametrize(("size", "mask"), list(itertools.product(SIZES, MASKS)))
def test_a_fused_kernel_costs_what_the_composite_path_dispatches(size: str, mask: str) -> None:
    assert flops(_step(FUSED, size, mask)) == flops(_step(MATH, size, mask))


@pytest.mark.parametrize("size", SIZES)
def test_a_fused_kernel_has_the_products_of_the_composite_path(size: str) -> None:
    assert products(_step(FUSED, size, "float")) == products(_step(MATH, size, "float"))


def _composite(size: str, mask: str, dropout: float = 0.0) -> dict[str, int]:
    """The one op that inference mode shows, and the kernels of other devices, written down by hand."""
    batch, heads, key_heads, lq, lk, d = SIZES[size]
    q = TensorSpec((batch, heads, lq, d))
    k = TensorSpec((batch, key_heads, lk, d))
    given_mask = TensorSpec((lq, lk)) if mask in ("float", "bool") else None
    args = {"query": q, "key": k, "value": k, "dropout_p": dropout, "is_causal": mask == "causal"}
    names = {
        "scaled_dot_product_attention": {"attn_mask": given_mask},
        "_scaled_dot_product_attention_math": {"attn_mask": given_mask},
        "_scaled_dot_product_efficient_attention": {"attn_bias": given_mask},
        "_scaled_dot_product_cudnn_attention": {"attn_bias": given_mask},
        "_scaled_dot_product_fused_attention_overrideable": {"attn_bias": given_mask},
    }
    if given_mask is None:
        names["_scaled_dot_product_flash_attention"] = {}
    return {name: _flops_of(f"aten.{name}", **args, **more) for name, more in names.items()}


def _flops_of(name: str, **args: Any) -> int:
    done = work(name, **args)
    arithmetic = {"add", "mul", "div", "exp", "sqrt", "log"}
    return 2 * done.macs + sum(n for kind, _, part, n in done.ops if kind in arithmetic and part != RECOMPUTED)


@pytest.mark.parametrize(("size", "mask"), list(itertools.product(SIZES, MASKS)))
def test_every_devices_kernel_costs_the_same(size: str, mask: str) -> None:
    expected = flops(_step(MATH, size, mask))["forward"]
    assert set(_composite(size, mask).values()) == {expected}


def test_dropout_is_a_draw_a_division_and_a_product_for_each_score() -> None:
    expected = flops(_step(MATH, "short", "none", dropout=0.1))["forward"]
    assert set(_composite("short", "none", dropout="scalar").values()) == {expected}


def test_attention_on_meta_tensors_costs_the_same() -> None:
    def on(device: str) -> dict[str, int]:
        q = torch.ones(2, 4, 48, 16, device=device, requires_grad=True)

        def step() -> None:
            out = F.scaled_dot_product_attention(q, q, q)
            out.backward(torch.ones_like(out))

        return flops(step)

    assert on("meta") == on("cpu")


def test_two_products_forward_and_four_backward_and_the_repeated_one_apart() -> None:
    spec = TensorSpec((2, 4, 48, 16))
    forward = work("aten._scaled_dot_product_flash_attention_for_cpu", query=spec, key=spec, value=spec)
    backward = work(
        "aten._scaled_dot_product_flash_attention_for_cpu_backward",
        grad_out=spec, query=spec, key=spec, value=spec, dropout_p=0.0, is_causal=False,
    )  # fmt: skip
    one = 8 * 48 * 48 * 16  # heads·Lq·Lk·D
    assert forward.macs == 2 * one
    assert backward.macs == 4 * one
    assert sum(product.macs for product, _ in backward.products if product.recomputed) == one


def test_gradients_that_nobody_wants_are_not_counted() -> None:
    spec = TensorSpec((1, 1, 8, 4))
    args = {"query": spec, "key": spec, "value": spec, "attn_bias": None, "dropout_p": 0.0}
    name, one = "aten._scaled_dot_product_efficient_attention_backward", 8 * 8 * 4
    assert work(name, **args, grad_input_mask=(True, True, True, False)).macs == 4 * one
    assert work(name, **args, grad_input_mask=(False, False, True, False)).macs == one  # dV alone
    assert work(name, **args, grad_input_mask=(True, False, False, False)).macs == 2 * one  # dP, dQ


LENGTHS = st.integers(0, 12)


@settings(max_examples=80, deadline=None)
@given(LENGTHS, LENGTHS, st.booleans())
def test_visible_pairs_of_a_causal_mask_are_those_that_the_mask_holds(lq: int, lk: int, bottom_right: bool) -> None:
    mask = torch.ones(lq, lk).tril(lk - lq if bottom_right else 0)
    assert causal(dense(1, lq, lk, 4, 4), bottom_right=bottom_right).visible == int(mask.sum())


BOUND = st.none() | st.integers(0, 9)


@settings(max_examples=120, deadline=None)
@given(LENGTHS, LENGTHS, BOUND, BOUND, st.integers(-6, 6))
def test_visible_pairs_of_a_window_are_those_a_loop_finds(
    lq: int, lk: int, left: int | None, right: int | None, offset: int
) -> None:
    pairs = sum(
        (left is None or j >= i + offset - left) and (right is None or j <= i + offset + right)
        for i in range(lq)
        for j in range(lk)
    )
    assert window(dense(1, lq, lk, 4, 4), left, right, offset=offset).visible == pairs


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5))
def test_effective_products_are_those_of_visible_pairs_alone(batch: int, lq: int, lk: int, d: int, dv: int) -> None:
    q, k, v = TensorSpec((batch, 1, lq, d)), TensorSpec((batch, 1, lk, d)), TensorSpec((batch, 1, lk, dv))
    done = work("aten.scaled_dot_product_attention", query=q, key=k, value=v, is_causal=True)
    loop = sum(d + dv for _ in range(batch) for i in range(lq) for j in range(lk) if j <= i)
    assert sum(product.necessary for product, _ in done.products) == loop
    assert done.macs == batch * lq * lk * (d + dv)


def test_half_of_a_long_causal_attention_is_masked() -> None:
    full, seen = flops(_step(FUSED, "usual", "causal")), flops(_step(FUSED, "usual", "causal"), "flops:effective")
    # 64·65/2 of 64·64 pairs are visible; scaling q and k is not on pairs
    assert seen["forward"] - 2 * 8 * 64 * 32 == (full["forward"] - 2 * 8 * 64 * 32) * 65 // 128


def test_sequences_end_to_end_are_exact_if_they_are_of_one_length_and_estimated_otherwise() -> None:
    q, starts = TensorSpec((48, 4, 8), "bfloat16"), TensorSpec((4,), "int32")
    args = {"query": q, "key": q, "value": q, "cum_seq_q": starts, "cum_seq_k": starts}
    args |= {"dropout_p": 0.0, "is_causal": False, "return_debug_mask": False}
    even = work("aten._flash_attention_forward", **args, max_q=16, max_k=16)
    ragged = work("aten._flash_attention_forward", **args, max_q=30, max_k=30)
    assert even.macs == ragged.macs == 3 * 4 * 16 * 16 * (8 + 8)
    assert (even.estimated, ragged.estimated) == (False, True)


def test_a_window_of_keys_leaves_out_the_others() -> None:
    q = TensorSpec((1, 10, 1, 4))
    args = {"query": q, "key": q, "value": q, "cum_seq_q": None, "max_q": 10, "max_k": 10, "dropout_p": 0.0}
    done = work("aten._flash_attention_forward", **args, is_causal=True, window_size_left=2, window_size_right=-1)
    # 1 + 2 + 8·3 pairs of 4 + 4 wide
    assert sum(product.necessary for product, _ in done.products) == 27 * 8


def test_the_memory_efficient_kernel_lays_heads_after_lengths() -> None:
    q, k = TensorSpec((2, 10, 4, 8)), TensorSpec((2, 20, 4, 8))
    done = work("aten._efficient_attention_forward", query=q, key=k, value=k, dropout_p=0.0, custom_mask_type=2)
    assert done.macs == 2 * 4 * 10 * 20 * 16
    # from the last: query i sees keys up to i + 10, so 11 + 12 + ... + 20 = 155 pairs
    assert sum(product.necessary for product, _ in done.products) == 8 * 155 * 16


def test_nested_sequences_attend_to_themselves_alone() -> None:
    parts = ((2, 3, 8), (2, 5, 8))
    q = TensorSpec((2,), parts=parts)
    assert work("aten.scaled_dot_product_attention", query=q, key=q, value=q).macs == 2 * (9 + 25) * 16


def test_flex_attention_is_attention_and_short_lists_of_blocks_hide_keys() -> None:
    # eager flex attention compiles, so the op is written down as the backend sees it
    args = {
        "arg0": TensorSpec((2, 4, 128, 16)),
        "arg1": TensorSpec((2, 4, 256, 16)),
        "arg2": TensorSpec((2, 4, 256, 16)),
    }

    def visible(listed: int) -> int:
        by_query, by_key = TensorSpec((1, 1, 1, listed), "int32"), TensorSpec((1, 1, 2, 1), "int32")
        mask = (128, 256, TensorSpec((1, 1, 1), "int32"), by_query, None, None, TensorSpec((1, 1, 2), "int32"), by_key)
        done = work("higher_order.flex_attention", **args, arg4=(*mask, None, None, 128, 128, "<function>"))
        assert done.macs == 8 * 128 * 256 * 32
        return sum(product.necessary for product, _ in done.products)

    assert visible(2) == 8 * 128 * 256 * 32
    assert visible(1) == 8 * 128 * 128 * 32


def _fast_and_slow(layer: torch.nn.Module, *inputs: torch.Tensor) -> tuple[int, int]:
    def run() -> None:
        layer(*inputs)

    with torch.no_grad():
        fast = flops(run)["forward"]
    return fast, flops(run)["forward"]  # with gradients enabled the fast path is not taken


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_encoders_fast_path_costs_what_its_layers_cost(activation: str) -> None:
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation=activation).eval()
    fast, slow = _fast_and_slow(layer, torch.randn(2, 12, 32))
    assert fast == slow


def test_nested_sequences_take_the_fast_path_by_their_own_lengths() -> None:
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    lengths = (5, 12)
    with torch.no_grad():
        nested = flops(lambda: layer(torch.nested.nested_tensor([torch.ones(n, 32) for n in lengths])))
        apart = sum(flops(lambda n=n: layer(torch.ones(1, n, 32)))["forward"] for n in lengths)
    assert nested["forward"] == apart
