"""The three networks that bitwatt is measured on everywhere: an MLP, a ResNet-18 for CIFAR, and an encoder LM."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.short = nn.Sequential()
        if stride != 1 or before != after:
            self.short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(inner + self.short(x))


class ResNet18(nn.Module):
    """3x3 stem and no max-pool, for 32x32 images."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
        self.blocks = nn.Sequential(*(b for i, o, s in widths for b in (Block(i, o, s), Block(o, o, 1))))
        self.head = nn.Linear(512, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class EncoderLM(nn.Module):
    def __init__(self, vocabulary: int = 33278, width: int = 256, layers: int = 4, dropout: float = 0.1) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(vocabulary, width)
        self.register_buffer("positions", torch.randn(1, 512, width) * 0.02)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, dropout, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.decoder = nn.Linear(width, vocabulary)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf"), device=ids.device).triu(1)
        hidden = self.embedding(ids) * math.sqrt(self.width) + self.positions[:, :length]
        return self.decoder(self.encoder(hidden, mask=mask))


@dataclass
class Program:
    """A training step, ready to run: `step()` is one iteration."""

    model: nn.Module
    step: Callable[[], None]
    forward_macs: int
    backward_macs: int


def _train(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(x).flatten(0, -2), y.flatten()).backward()
        optimizer.step()

    return step


def mlp(device: str, batch: int = 64) -> Program:
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
    x, y = torch.randn(batch, 784, device=device), torch.randint(0, 10, (batch,), device=device)
    first, rest = 784 * 512, 512 * 512 + 512 * 10
    step = _train(model, torch.optim.Adam(model.parameters()), x, y)
    return Program(model, step, batch * (first + rest), batch * (first + 2 * rest))


def resnet18(device: str, batch: int = 1) -> Program:
    model = ResNet18().to(device)
    x, y = torch.randn(batch, 3, 32, 32, device=device), torch.randint(0, 10, (batch,), device=device)
    # 555,422,720 a sample; backward twice that less the input gradient of the stem, 3·64·9·32² MACs
    forward, stem = 555_422_720, 3 * 64 * 9 * 32 * 32
    step = _train(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), x, y)
    return Program(model, step, batch * forward, batch * (2 * forward - stem))


def encoder_lm(device: str, batch: int = 1, length: int = 128, dropout: float = 0.1) -> Program:
    model = EncoderLM(dropout=dropout).to(device)
    ids = torch.randint(0, 33278, (batch, length), device=device)
    tokens, d = batch * length, 256
    layer = tokens * (3 * d * d + d * d + 8 * d * d) + 2 * batch * length * length * d
    forward = 4 * layer + tokens * d * 33278
    step = _train(model, torch.optim.AdamW(model.parameters()), ids, torch.randint_like(ids, 33278))
    return Program(model, step, forward, 2 * forward)


NETWORKS: dict[str, Callable[..., Program]] = {"mlp": mlp, "resnet18": resnet18, "encoder_lm": encoder_lm}
