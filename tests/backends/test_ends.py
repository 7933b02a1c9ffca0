"""What a loop does after its last step is known from what it did between steps, less what led to its first one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from replay_programs import mlp
from torch import nn

import bitwatt
from bitwatt.backends.torch.replay import checks, learner, lessons
from bitwatt.reports.replay import verdict


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code between events is left alone as soon as it may be."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)


class Program:
    """A loop that does something before its steps and after them."""

    def __init__(self, before: int, after: int, *, evaluates: int = 0, changes: int = -1, breaks: bool = False) -> None:
        self.before, self.after, self.evaluates, self.changes, self.breaks = before, after, evaluates, changes, breaks

    def __call__(self, taken: Callable[[int], None] = lambda _: None) -> None:
        torch.manual_seed(0)
        model, steps = mlp(), 150
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        weights = torch.ones(3, 3)
        for i in range(steps):
            x = torch.randn(4, 12)
            for _ in range(self.before):
                x = x.mul(0.5)
            taken(self.before)
            if i == self.changes:
                model.eval()
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            taken(5)
            if self.breaks and i == steps - 1:
                break
            for _ in range(self.after):
                weights = weights @ weights
            taken(self.after)
        for _ in range(self.evaluates):
            with torch.no_grad():
                model(torch.randn(4, 12)).argmax(-1).eq(1)


PROGRAMS = {
    "nothing": Program(0, 0),
    "something before its steps": Program(2, 0),
    "something after them": Program(0, 2),
    "both": Program(1, 3),
    "both, and the model changes": Program(1, 2, changes=60),
    "something, and another loop follows": Program(0, 2, evaluates=60),
}


def measured(program: Callable[[], None], exactness: str) -> Any:
    with bitwatt.measure("ends", keep=False, meter=False, exactness=exactness) as session:
        program()
    return session.run


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_a_loop_does_after_its_last_step_is_counted(name: str) -> None:
    counted, replayed = (measured(PROGRAMS[name], exactness) for exactness in ("always", "auto"))
    assert replayed.replay.replayed > 100
    assert replayed.replay.disagreed == {}
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")


def test_code_after_the_last_step_that_nobody_saw_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but that which ran: the loop is left in the middle."""
    monkeypatch.setattr("bitwatt.reports.replay._NOTABLE", 1e9)  # how long it takes is the machine's affair
    counted, replayed = (measured(Program(1, 2, breaks=True), exactness) for exactness in ("always", "auto"))
    assert replayed.replay.unwatched > 0
    assert verdict(replayed).startswith("calls and steps exact: ")
    more = bitwatt.totals(replayed, "macs").total - bitwatt.totals(counted, "macs").total
    assert more == 2 * 3 * 3 * 3


@pytest.mark.parametrize("odd", [0, 9])
def test_the_allocator_vouches_for_the_steps_and_not_for_what_came_after(
    odd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [0]
    monkeypatch.setattr(checks, "allocations", lambda: blocks[0])

    def taken(more: int) -> None:
        blocks[0] += more

    def program() -> None:
        Program(1, 2)(taken)
        taken(odd)

    replay = measured(program, "auto").replay
    assert replay.disagreed == ({"allocations": 1} if odd else {})
    assert (replay.unwatched > 1) if odd else (replay.unwatched == 1)


def test_a_graph_that_a_loop_makes_after_its_last_step_is_no_surprise() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program() -> None:
        for _ in range(120):
            optimizer.zero_grad()
            out = model(torch.ones(4, 12))
            nn.functional.cross_entropy(out, torch.zeros(4, dtype=torch.int64)).backward()
            optimizer.step()
            out.softmax(-1).max()

    counted, replayed = (measured(program, exactness) for exactness in ("always", "auto"))
    assert replayed.replay.disagreed == {}
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")


def test_of_a_loop_whose_sizes_vary_nothing_is_taken_to_have_run_that_did_not() -> None:
    model = mlp()

    def program() -> None:
        with torch.no_grad():
            for i in range(150):
                model(torch.ones(8 if i % 2 else 5, 12).sub(0.5))

    counted, replayed = (measured(program, exactness) for exactness in ("always", "auto"))
    assert replayed.replay.replayed > 100
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")


def test_a_round_of_two_steps_ends_after_the_second() -> None:
    """Two models take turns, and something is computed when both have had theirs."""
    models = [mlp(), mlp()]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]

    def program() -> None:
        weights = torch.ones(3, 3)
        for _ in range(150):
            for model, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                model(torch.ones(4, 12)).square().mean().backward()
                optimizer.step()
            weights = weights @ weights

    counted, replayed = (measured(program, exactness) for exactness in ("always", "auto"))
    assert replayed.replay.disagreed == {}
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")
