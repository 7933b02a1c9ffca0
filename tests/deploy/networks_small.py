"""Three small torch modules, importable by a fresh process."""

from __future__ import annotations

import torch
from torch import nn


class Perceptron(nn.Module):
    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU()
        )
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.features(x).mean((2, 3)))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), 2)
        self.head = nn.Linear(32, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(self.embedding(x)).mean(1))


def made(name: str) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    kinds = {
        "perceptron": lambda: (Perceptron(), torch.randn(96, 784)),
        "convolutions": lambda: (Convolutions(), torch.randn(96, 1, 14, 14)),
        "encoder": lambda: (Encoder(), torch.randint(0, 100, (96, 12))),
    }
    model, rows = kinds[name]()
    return model.eval(), rows


def perceptron() -> nn.Module:
    return made("perceptron")[0]
