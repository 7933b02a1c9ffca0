"""Options of optimizers that are changed in mid-run, numbers and switches, in a row of steps that are known."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import bitwatt

STEPS, CHANGED = 300, 203


def trained(exactness: str, name: str, value: Any) -> Any:
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    with bitwatt.measure("switched", keep=False, meter=False, exactness=exactness) as session:
        for i in range(STEPS):
            if i == CHANGED:
                optimizer.param_groups[0][name] = value
            optimizer.zero_grad()
            model(torch.ones(2, 4)).square().mean().backward()
            optimizer.step()
    return session.run


@pytest.mark.parametrize(
    ("name", "value"), [("weight_decay", 0.1), ("dampening", 0.5), ("nesterov", True), ("foreach", True)]
)
def test_an_option_that_comes_into_use_is_heard_of_at_once(name: str, value: Any) -> None:
    counted, replayed = trained("always", name, value), trained("auto", name, value)
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")
    assert replayed.replay.disagreed == {}
    assert replayed.replay.replayed > STEPS / 2
