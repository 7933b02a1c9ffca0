"""Numbers that a program computes with, or reads out of its tensors, are no part of what it calls: a step that differs
from another by them alone is the same step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import bitwatt


def trained(steps: int, *, begun: int = 0, tell: bool = False, **options: Any) -> Any:
    """A run of Adam, which has taken `begun` steps before; each step of the program may read how many it got right."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(model.parameters(), **options)
    y, right = torch.randint(0, 4, (64,)), 0

    def step() -> int:
        optimizer.zero_grad()
        out = model(torch.randn(64, 8))
        nn.functional.cross_entropy(out, y).backward()
        optimizer.step()
        return int((out.argmax(1) == y).sum().item()) if tell else 0

    if begun:
        step()
        for state in optimizer.state.values():
            state["step"].fill_(begun)
    with bitwatt.measure("numbers", keep=False, meter=False) as session:
        for _ in range(steps):
            right += step()
    return session.run


@pytest.mark.parametrize("foreach", [False, True])
def test_adam_divides_by_one_in_the_end_and_that_is_a_division_as_before(foreach: bool) -> None:
    """1 - 0.999 ** 36_743 is 1.0 in double precision, and its square root stays 1.0."""
    name = "aten._foreach_div_" if foreach else "aten.div"
    before, after = trained(2, begun=30_000, foreach=foreach), trained(2, begun=40_000, foreach=foreach)
    divisions = [{row.op: row.calls for row in run.ledger if row.op.name == name} for run in (before, after)]
    assert divisions[0]
    assert divisions[0] == divisions[1]


def test_the_first_steps_of_adam_are_alike() -> None:
    """It reads its own number out of a tensor: 1.0, 2.0, 3.0. One step makes its state, two are alike after it, and the
    first look comes after more than sixty others."""
    run = trained(60)
    assert (run.replay.counted, run.replay.looks) == (4, 0)


def test_a_count_that_is_read_in_each_step_does_not_keep_the_code_around_it_from_being_known() -> None:
    silent, telling = trained(400), trained(400, tell=True)
    watched = [
        run.replay.agreed["calls and steps"] - run.replay.agreed["code between them"] for run in (silent, telling)
    ]
    assert watched[1] <= watched[0] + 8
    assert telling.replay.disagreed == {}
    assert (
        len([row for row in telling.ledger if row.op.name == "aten._local_scalar_dense" and row.phase != "optimizer"])
        == 1
    )


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.5, 2.0])
def test_whatever_the_rate_is_a_step_is_the_same(rate: float, foreach: bool) -> None:
    usual, other = trained(2, lr=0.01, foreach=foreach), trained(2, lr=rate, foreach=foreach)
    steps = [{row.op: row.calls for row in run.ledger if row.phase == "optimizer"} for run in (usual, other)]
    assert steps[0] == steps[1]
