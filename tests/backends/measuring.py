"""Run a function under measure() and read what was counted where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import bitwatt


def measured(function: Callable[[], Any], **options: Any) -> bitwatt.Run:
    with bitwatt.measure(function.__name__, keep=False, **options) as session:
        function()
    assert session.run is not None
    return session.run


def macs(run: bitwatt.Run, *keys: str) -> dict[Any, int]:
    """Multiply-accumulates by the keys, places without any left out."""
    sums: dict[Any, int] = bitwatt.totals(run, "macs").by(*(keys or ("phase",)))  # type: ignore[assignment]
    return {place: n for place, n in sums.items() if n}


def calls(run: bitwatt.Run, phase: str | None = None) -> Counter[str]:
    """Calls by op name, in one phase or all."""
    found: Counter[str] = Counter()
    for row in run.ledger:
        if phase is None or row.phase == phase:
            found[row.op.name] += row.calls
    return found


class Net(nn.Module):
    """8 -> 16 -> 4. On 32 rows: fc1 is 32·8·16 = 4096 MACs, fc2 32·16·4 = 2048."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.act(self.fc1(x)))


FC1, FC2 = 32 * 8 * 16, 32 * 16 * 4
#: Backward: both weight gradients, and the input gradient of fc2 alone, since the data needs none.
BACKWARD = FC1 + 2 * FC2


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(32, 8), torch.randint(0, 4, (32,))
