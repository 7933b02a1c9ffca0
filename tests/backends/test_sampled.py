"""exactness="sample": steps that vary are counted now and then, and the interval that is stated holds the truth."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import bitwatt
from bitwatt.records import Run
from bitwatt.replaying import student

STEPS, SEEDS = 200, 12


class Slim(nn.Module):
    """One of four widths at each call, by a number that is no attribute of it. None is the whole: older torch makes a
    node less for it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Parameter(torch.randn(33, 8)), nn.Parameter(torch.randn(4, 33))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        width = random.choice((4, 8, 16, 32))
        return F.linear(F.relu(F.linear(x, self.first[:width])), self.second[:, :width])


def trained(exactness: str, seed: int) -> Run:
    torch.manual_seed(seed)
    random.seed(seed)
    model, x = Slim(), torch.randn(2, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with bitwatt.measure("slim", keep=False, meter=False, exactness=exactness) as session:
        for _ in range(STEPS):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    assert session.run is not None
    return session.run


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    inside, errors = 0, []
    for seed in range(SEEDS):
        run = trained("sample", seed)
        truth, found = bitwatt.totals(trained("always", seed)).total, bitwatt.totals(run).total
        assert run.replay is not None
        assert run.replay.interval is not None
        assert run.replay.replayed > STEPS / 2
        inside += abs(found - truth) <= run.replay.interval
        errors.append((found - truth) / truth)
    assert inside >= SEEDS - 3
    assert (sum(error**2 for error in errors) / SEEDS) ** 0.5 < 0.3


@pytest.mark.parametrize(("freedom", "table", "off"), [(2, 4.303, 0.11), (4, 2.776, 0.02), (10, 2.228, 0.002)])
def test_few_samples_make_it_wider(freedom: int, table: float, off: float) -> None:
    assert student(freedom) == pytest.approx(table, rel=off)


def test_many_samples_leave_the_normal_distribution() -> None:
    assert student(10**6) == pytest.approx(1.959964, abs=1e-5)
