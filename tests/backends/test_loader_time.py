"""The time of a slow loader is preprocess, on the host's clock and on a GPU's, however its batches are replayed."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import bitwatt
from bitwatt.backends.torch import state, timeline

#: Samples, so many in a batch, and how long each takes.
SAMPLES, BATCH, SECONDS = 480, 4, 0.002


class Slow(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(SECONDS)
        return torch.ones(8)


class Event:
    """Of a GPU that is never behind the host."""

    def record(self) -> None:
        self.at = time.perf_counter()

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """It is done."""

    def elapsed_time(self, later: Event) -> float:
        return 1e3 * (later.at - self.at)


@pytest.fixture(scope="module")
def trained() -> Any:
    """A run of one epoch in which most batches are read in rows of laps, with a GPU's clock beside the host's."""
    model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        patched.setattr(torch.cuda, "current_device", lambda: 0)
        patched.setattr(state, "timeline_here", lambda: timeline.Timeline(Event))
        with bitwatt.measure("slow loader", keep=False, meter=False) as session:
            for batch in DataLoader(Slow(), batch_size=BATCH):
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
    assert session.run.replay.replayed > SAMPLES // BATCH // 2
    return session.run


def test_no_time_is_told_twice(trained: Any) -> None:
    assert sum(trained.phase_seconds.values()) <= trained.seconds
    assert sum(trained.device_seconds.values()) <= trained.seconds


def test_the_loaders_time_is_preprocess_on_both_clocks(trained: Any) -> None:
    """Rows share out the time of their laps, so that a lap which took longer elsewhere takes a little of it."""
    slept = SAMPLES * SECONDS
    assert trained.phase_seconds["preprocess"] > 0.9 * slept
    assert trained.device_seconds["preprocess"] > 0.9 * slept
