"""Options of optimizers that are changed in mid-run: numbers are heard of at once, switches within sixteen steps, and
then the report says that something was not as known."""

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


@pytest.mark.parametrize(("name", "value"), [("weight_decay", 0.1), ("dampening", 0.5)])
def test_a_number_that_comes_into_use_is_heard_of_at_once(name: str, value: float) -> None:
    counted, replayed = trained("always", name, value), trained("auto", name, value)
    assert bitwatt.totals(replayed).by("phase") == bitwatt.totals(counted).by("phase")
    assert replayed.replay.disagreed == {}
    assert replayed.replay.replayed > STEPS / 2


def test_a_switch_is_found_within_sixteen_steps_and_told() -> None:
    """Nesterov's momentum adds a multiplication and an addition for each weight."""
    counted, replayed = trained("always", "nesterov", True), trained("auto", "nesterov", True)
    plain = trained("always", "nesterov", False)
    steps, found = (bitwatt.totals(run).by("phase")["optimizer"] for run in (counted, replayed))
    each = (steps - bitwatt.totals(plain).by("phase")["optimizer"]) / (STEPS - CHANGED)
    assert each > 0
    assert 0 <= steps - found <= 16 * each
    assert replayed.replay.disagreed == {"marks of optimizers": 1}
    assert "replayed, verified" in bitwatt.report(replayed)


def test_switches_that_stay_are_not_told() -> None:
    assert trained("auto", "nesterov", False).replay.disagreed == {}
