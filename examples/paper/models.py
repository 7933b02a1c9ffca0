"""The paper's three networks with what it leaves open as parameters: random weights, random data of the right shapes.

Each knows the closed form of its matrix work, by which settings are searched without running anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Words of WikiText-2: in its own files, and as torchtext's basic_english splits them; and three tokenizers' sizes.
VOCABULARIES = {33278: "WikiText-2", 28782: "torchtext", 50257: "GPT-2", 30522: "BERT", 32000: "Llama", 10000: "10 k"}


@dataclass
class Program:
    """A training step, ready to run."""

    model: nn.Module
    step: Callable[[], None]


@dataclass(frozen=True)
class MLP:
    """Fashion-MNIST: 784 features, ten classes, Adam."""

    batch: int = 64
    hidden: tuple[int, ...] = (512, 512)

    def __str__(self) -> str:
        return f"{'-'.join(map(str, self._sizes))}, batch {self.batch}"

    @property
    def _sizes(self) -> tuple[int, ...]:
        return 784, *self.hidden, 10

    def matrix_flops(self) -> tuple[int, int]:
        """Forward and backward; nothing asks for the gradient of the images."""
        sizes = self._sizes
        layers = [2 * self.batch * inner * outer for inner, outer in pairwise(sizes)]
        return sum(layers), 2 * sum(layers) - layers[0]

    def model(self) -> nn.Module:
        layers: list[nn.Module] = []
        for inner, outer in pairwise(self._sizes):
            layers += [nn.Linear(inner, outer), nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def batch_on(self, device: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        x = torch.randn(self.batch, 784, device=device, dtype=dtype)
        return x, torch.randint(0, 10, (self.batch,), device=device)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(model.parameters())


class Residual(nn.Module):
    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm1, self.norm2, self.short = nn.BatchNorm2d(outer), nn.BatchNorm2d(outer), nn.Sequential()
        if stride != 1 or inner != outer:
            self.short = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x))))) + self.short(x))


@dataclass(frozen=True)
class ResNet:
    """ResNet-18, ten classes, SGD with momentum. The ImageNet stem is 7x7 with stride 2 and a max-pool after it."""

    batch: int = 1
    pixels: int = 32
    stem: str = "cifar"

    def __str__(self) -> str:
        return f"{self.stem} stem, {self.pixels} x {self.pixels}, batch {self.batch}"

    def matrix_flops(self) -> tuple[int, int]:
        def conv(inner: int, outer: int, size: int, kernel: int) -> int:
            return 2 * self.batch * inner * outer * kernel**2 * size**2

        size = -(-self.pixels // 2) if self.stem == "imagenet" else self.pixels
        stem = conv(3, 64, size, 7 if self.stem == "imagenet" else 3)
        size = -(-size // 2) if self.stem == "imagenet" else size
        forward = stem + 4 * conv(64, 64, size, 3)
        for inner in (64, 128, 256):
            size, outer = -(-size // 2), 2 * inner
            forward += conv(inner, outer, size, 3) + 3 * conv(outer, outer, size, 3) + conv(inner, outer, size, 1)
        forward += 2 * self.batch * 512 * 10
        return forward, 2 * forward - stem

    def model(self) -> nn.Module:
        stem: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
        if self.stem == "imagenet":
            stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        blocks = [block for i, o, s in widths for block in (Residual(i, o, s), Residual(o, o, 1))]
        return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))

    def batch_on(self, device: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        x = torch.randn(self.batch, 3, self.pixels, self.pixels, device=device, dtype=dtype)
        return x, torch.randint(0, 10, (self.batch,), device=device)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


class Layer(nn.Module):
    """Its projections are four nn.Linear, so that libraries which pack nn.Linear reach them."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        q, k, v = (part(y).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.o(seen)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary: int, width: int, heads: int, layers: int, inner: int, length: int) -> None:
        super().__init__()
        self.embedding, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.layers = nn.Sequential(*(Layer(width, heads, inner) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.embedding(ids) + self.positions(places)
        return self.head(self.norm(self.layers(hidden))).flatten(0, 1)


@dataclass(frozen=True)
class Transformer:
    """4 layers, 4 heads, width 256, AdamW. A causal mask is not discounted: every score counts."""

    batch: int = 1
    length: int = 128
    vocabulary: int = 33278
    inner: int = 1024
    width: int = 256
    layers: int = 4

    def __str__(self) -> str:
        words = f"{self.vocabulary:,} words ({VOCABULARIES.get(self.vocabulary, 'other')})"
        return f"{self.batch} x {self.length} tokens, {words}, feed-forward {self.inner}"

    def matrix_flops(self) -> tuple[int, int]:
        tokens, width = self.batch * self.length, self.width
        layer = tokens * (4 * width**2 + 2 * width * self.inner) + 2 * tokens * self.length * width
        forward = 2 * (self.layers * layer + tokens * width * self.vocabulary)
        return forward, 2 * forward

    def model(self) -> nn.Module:
        return LanguageModel(self.vocabulary, self.width, 4, self.layers, self.inner, self.length)

    def batch_on(self, device: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        ids = torch.randint(0, self.vocabulary, (self.batch, self.length), device=device)
        return ids, torch.randint(0, self.vocabulary, (self.batch * self.length,), device=device)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(model.parameters())


Setting = MLP | ResNet | Transformer
NAMES = {"mlp": "MLP", "resnet": "ResNet-18", "transformer": "Transformer"}


def program(
    setting: Setting, device: str = "cpu", dtype: torch.dtype = torch.float32, autocast: torch.dtype | None = None
) -> Program:
    """One training step. `dtype` is what all of the model is in; autocast keeps the weights and casts what computes."""
    model = setting.model().to(device, dtype)
    optimizer = setting.optimizer(model)
    x, y = setting.batch_on(device, dtype)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(device, autocast or torch.bfloat16, enabled=autocast is not None):
            out = model(x)
        F.cross_entropy(out.float() if autocast else out, y).backward()
        optimizer.step()

    return Program(model, step)
