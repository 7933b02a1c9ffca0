"""The time of a slow loader is preprocess, and is told once, however its batches are replayed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import bitwatt
from bitwatt.backends.torch import state, timeline
from bitwatt.backends.torch.replay import learner

#: Samples, so many in a batch, and how long each takes.
SAMPLES, BATCH, SECONDS = 480, 4, 0.002


class Clock:
    """It goes on only while a sample is read."""

    now = 0.0


class Slow(Dataset[torch.Tensor]):
    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        self.clock.now += SECONDS
        return torch.ones(8)


class Event:
    """Of a GPU that is never behind the host."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.at = clock, 0.0

    def record(self) -> None:
        self.at = self.clock.now

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        """It is done."""

    def elapsed_time(self, later: Event) -> float:
        return 1e3 * (later.at - self.at)


@pytest.fixture(scope="module")
def trained() -> Any:
    """A run of one epoch in which most batches are read in rows of laps, with a GPU's clock beside the host's."""
    clock, model = Clock(), nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        patched.setattr(torch.cuda, "current_device", lambda: 0)
        patched.setattr(learner, "_SHARE", 0.0)  # on a busy machine steps may seem so long that all is watched
        patched.setattr(state, "timeline_here", lambda: timeline.Timeline(lambda: Event(clock)))
        with bitwatt.measure("slow loader", keep=False, meter=False) as session:
            for batch in DataLoader(Slow(clock), batch_size=BATCH):
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
    assert session.run.replay.replayed > SAMPLES // BATCH // 2
    return session.run


def test_no_time_is_told_twice(trained: Any) -> None:
    assert sum(trained.phase_seconds.values()) <= 1.01 * trained.seconds  # by two clocks


def test_all_of_the_loaders_time_is_preprocess(trained: Any) -> None:
    spent = {phase: seconds for phase, seconds in trained.device_seconds.items() if seconds > 1e-9}
    assert set(spent) == {"preprocess"}
    # the timeline begins where the first batch has been read
    assert spent["preprocess"] == pytest.approx((SAMPLES - BATCH) * SECONDS)
