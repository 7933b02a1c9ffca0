"""CUDA kernels cost what the CPU's cost: the same program, phase by phase, on both."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from priced import flops, macs
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def _attention(kernel: SDPBackend, device: str, causal: bool) -> dict[str, int]:
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    q, k, v = (torch.randn(2, 4, 64, 32, device=device, dtype=dtype, requires_grad=True) for _ in range(3))

    def step() -> None:
        with sdpa_kernel(kernel):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        out.backward(torch.ones_like(out))

    return flops(step)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("kernel", ["FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION", "MATH"])
def test_attention(kernel: str, causal: bool) -> None:
    expected = _attention(SDPBackend.MATH, "cpu", causal)
    assert _attention(getattr(SDPBackend, kernel), "cuda", causal) == expected


LAYERS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "layer norm": (lambda: nn.LayerNorm(32), (8, 16, 32)),
    "rms norm": (lambda: nn.RMSNorm(32), (8, 16, 32)),
    "group norm": (lambda: nn.GroupNorm(4, 16), (8, 16, 10, 10)),
    "batch norm": (lambda: nn.BatchNorm2d(16), (8, 16, 10, 10)),
    "convolution": (lambda: nn.Conv2d(16, 32, 3, groups=4), (8, 16, 10, 10)),
    "transposed convolution": (lambda: nn.ConvTranspose2d(16, 32, 3, stride=2), (8, 16, 10, 10)),
    "depthwise convolution": (lambda: nn.Conv2d(16, 16, 3, groups=16), (8, 16, 10, 10)),
    "linear": (lambda: nn.Linear(32, 8), (8, 16, 32)),
    "softmax": (lambda: nn.Softmax(-1), (8, 16, 32)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name: str) -> None:
    make, shape = LAYERS[name]

    def on(device: str) -> dict[str, int]:
        layer, x = make().to(device), torch.randn(shape, device=device, requires_grad=True)

        def step() -> None:
            y = layer(x)
            y.backward(torch.ones_like(y))

        return flops(step)

    assert on("cuda") == on("cpu")


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_recurrent_products(kind: type) -> None:
    def on(device: str) -> dict[str, int]:
        layer, x = kind(16, 24, 2).to(device), torch.randn(7, 4, 16, device=device)
        return macs(lambda: layer(x))

    assert on("cuda") == on("cpu")
