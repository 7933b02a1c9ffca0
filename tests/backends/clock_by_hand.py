"""A clock for the torch backend and its session that a test sets, and a layer that takes a second of it."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from bitwatt.backends.torch import dataloader
from bitwatt.backends.torch.replay import learner, memory, rows, swift


class ByHand:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", self._told)
        for module in (dataloader, learner, memory, rows, swift):
            monkeypatch.setattr(module, "_now", self._told)

    def _told(self) -> float:
        return self.now


class Lasts(nn.Module):
    """Takes a second."""

    def __init__(self, clock: ByHand) -> None:
        super().__init__()
        self.clock = clock

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.clock.now += 1.0
        return x
