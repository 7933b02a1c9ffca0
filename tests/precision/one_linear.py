"""What every library owes for one Linear(256, 128) with 16 rows of input."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from bitwatt.records import Product
from precision.quantised import Seen

M, K, N = 16, 256, 128
FLOPS = 2 * M * K * N


def linear(dtype: torch.dtype = torch.float32, *, bias: bool = True) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(K, N, bias=bias).to(dtype)


def rows(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(M, K).to(dtype)


def sizes(product: Product) -> tuple[int, int, int]:
    return product.m, product.n, product.k


def check_layer(
    found: Seen,
    weight: str,
    effective: float,
    *,
    inputs: str | None,
    bias_bytes: int,
    kept_bytes: int | None = None,
    room: float = 0,
) -> None:
    """`kept_bytes`: of a weight that stays in float; else it is stored in its format, with `room` to spare for each
    value."""
    layer = found.layer
    assert layer.unknown == ""
    assert layer.weights is not None
    assert layer.shapes == ((N, K),)
    assert layer.weights.precision.name == weight
    assert layer.weights.effective_bits == pytest.approx(effective, abs=1e-9)
    assert layer.weights.stored is (kept_bytes is None)
    stored = math.ceil(N * K * (effective + room) / 8) if kept_bytes is None else kept_bytes
    assert layer.weight_bytes == stored + bias_bytes
    assert (layer.activations and layer.activations.precision.name) == inputs


def check_forward(
    found: Seen, weight: str, inputs: str, executed: str, *, phase: str = "forward", spare: int = 0
) -> None:
    """One product, the bias, and beside them nothing but what goes to and from the format. `spare` is such work that
    looks like any other: sums of integers, as a kernel's offsets need them."""
    (product,) = found.products(phase)
    assert sizes(product) == (M, N, K)
    assert (product.a.name, product.b.name, product.executed.name) == (inputs, weight, executed)
    assert found.flops(phase, kind="mac") == FLOPS
    quantisation = found.flops(phase, part="quantisation")
    assert quantisation > 0
    assert found.flops(phase) - FLOPS - quantisation - M * N in (0, spare)


def check_backward(found: Seen, weight: str, executed: str, *, trains: bool, gradient: str | None = None) -> None:
    """The gradient of the input, a product with the weight as it is written; the weight's own only where it trains."""
    expected = {(M, K, N)} | ({(N, K, M)} if trains else set())
    products = {tuple(sorted(sizes(p)[:2])) + sizes(p)[2:]: p for p in found.products("backward")}
    assert set(products) == {(*sorted(size[:2]), size[2]) for size in expected}
    assert found.flops("backward", kind="mac") == FLOPS * len(expected)
    through = products[(*sorted((M, K)), N)]
    assert weight in (through.a.name, through.b.name)
    assert through.executed.name == executed
    if trains:
        own = products[(*sorted((N, K)), M)]
        assert own.executed.name == (gradient or executed)
        assert weight not in (own.a.name, own.b.name) or gradient is not None
