"""What an optimizer finds that is changed in mid-run, its options and gradients, in a row of steps that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import bitwatt
from bitwatt.backends.torch.replay import learner
from bitwatt.backends.torch.replay.expecting import RARELY

STEPS, CHANGED = 200, 103
#: The same when a program is so well known that this is looked at in one step of sixty-four.
LONG, LATE = 700, 503


class Own(nn.Module):
    """A model of the program's own."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)  # type: ignore[no-any-return]


def options(name: str, value: Any) -> Callable[[torch.optim.Optimizer], None]:
    return lambda optimizer: optimizer.param_groups[0].update({name: value})


def gradient(optimizer: torch.optim.Optimizer) -> None:
    optimizer.param_groups[0]["params"][-1].grad = None


def trained(
    exactness: str,
    change: Callable[[torch.optim.Optimizer], None],
    steps: int = STEPS,
    when: int = CHANGED,
    model: type[nn.Module] | None = None,
) -> Any:
    torch.manual_seed(0)
    network = nn.Linear(4, 4) if model is None else model()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    with bitwatt.measure("switched", keep=False, meter=False, exactness=exactness) as session:
        for i in range(steps):
            optimizer.zero_grad()
            network(torch.ones(2, 4)).square().mean().backward()
            if i >= when:
                change(optimizer)
            optimizer.step()
    return session.run


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a step may seem so long that the code around it is always watched."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)


@pytest.mark.parametrize(
    ("name", "value"), [("weight_decay", 0.1), ("dampening", 0.5), ("nesterov", True), ("foreach", True)]
)
def test_an_option_that_comes_into_use_is_heard_of_at_once(name: str, value: Any) -> None:
    counted, replayed = trained("always", options(name, value)), trained("auto", options(name, value))
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")
    assert replayed.replay.disagreed == {}
    assert replayed.replay.replayed > STEPS / 2


CHANGES = {"an option": options("weight_decay", 0.1), "a switch": options("nesterov", True), "a gradient": gradient}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_in_a_program_that_is_well_known_is_found_before_long_and_told(change: str) -> None:
    counted, replayed = (trained(exactness, CHANGES[change], LONG, LATE) for exactness in ("always", "auto"))
    assert replayed.replay.disagreed == {"marks of optimizers": 1}
    assert not replayed.replay.exact
    as_before = trained("always", lambda _: None, LONG, LATE)
    steps = abs(_optimizer(counted) - _optimizer(as_before)) / (LONG - LATE)
    assert 0 < abs(_optimizer(replayed) - _optimizer(counted)) <= RARELY * steps


@pytest.mark.parametrize("when", range(118, 420, 23))
def test_wherever_it_changes_it_is_found_or_told(when: int) -> None:
    """Also where a look follows, to which it would be a mark like others."""
    change = options("weight_decay", 0.1)
    counted, replayed = (trained(exactness, change, when + 2 * RARELY, when) for exactness in ("always", "auto"))
    assert replayed.replay.disagreed or _optimizer(replayed) == _optimizer(counted)


@pytest.mark.parametrize("rows", [2, 3], ids=["the program ends", "a batch of another size"])
def test_it_is_told_where_known_steps_end_before_it_is_looked_at(rows: int) -> None:
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    with bitwatt.measure("switched", keep=False, meter=False) as session:
        for i in range(330):
            if i == 300:
                optimizer.param_groups[0]["weight_decay"] = 0.1
            optimizer.zero_grad()
            model(torch.ones(2 if i < 310 else rows, 4)).square().mean().backward()
            optimizer.step()
    assert session.run.replay.disagreed == {"marks of optimizers": 1}


@pytest.mark.parametrize("change", CHANGES)
def test_with_a_model_of_the_programs_own_it_is_heard_of_at_once(change: str) -> None:
    counted, replayed = (trained(exactness, CHANGES[change], LONG, LATE, Own) for exactness in ("always", "auto"))
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")
    assert replayed.replay.disagreed == {}


def test_a_step_without_a_backward_before_it_is_heard_of_at_once() -> None:
    def change(optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()

    counted, replayed = (trained(exactness, change, LONG, LATE) for exactness in ("always", "auto"))
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")


def test_a_group_of_parameters_more_is_heard_of_at_once() -> None:
    def programs(exactness: str) -> Any:
        torch.manual_seed(0)
        body, head = nn.Linear(4, 4), nn.Linear(4, 2)
        optimizer = torch.optim.SGD(body.parameters(), lr=0.01, momentum=0.9)
        model = nn.Sequential(body, head)
        with bitwatt.measure("unfrozen", keep=False, meter=False, exactness=exactness) as session:
            for i in range(LONG):
                if i == LATE:
                    optimizer.add_param_group({"params": list(head.parameters())})
                model.zero_grad()
                model(torch.ones(2, 4)).square().mean().backward()
                optimizer.step()
        return session.run

    counted, replayed = programs("always"), programs("auto")
    assert bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")


def _optimizer(run: Any) -> int:
    return int(bitwatt.totals(run).by("phase")["optimizer"])


@pytest.mark.parametrize("model", [None, Own])
@pytest.mark.parametrize("rates", [(1.0, 0.5), (0.5, 1.0)])
def test_a_rate_of_one_takes_a_multiplication_less_and_is_heard_of_or_told(
    rates: tuple[float, float], model: type[nn.Module] | None
) -> None:
    """`p.add_(grad, alpha=-1.0)` is a subtraction. That a rate has become one is found where a row of known steps ends:
    rates that follow a schedule are others in each step."""

    def run(exactness: str) -> Any:
        torch.manual_seed(0)
        network = nn.Linear(4, 4) if model is None else model()
        optimizer = torch.optim.SGD(network.parameters(), lr=rates[0])
        with bitwatt.measure("rates", keep=False, meter=False, exactness=exactness) as session:
            for i in range(STEPS):
                optimizer.zero_grad()
                network(torch.ones(2, 4)).square().mean().backward()
                if i == CHANGED:
                    optimizer.param_groups[0]["lr"] = rates[1]
                optimizer.step()
        return session.run

    counted, replayed = run("always"), run("auto")
    same = bitwatt.totals(replayed).by("phase", "op") == bitwatt.totals(counted).by("phase", "op")
    assert same if rates[0] == 1.0 else replayed.replay.disagreed == {"marks of optimizers": 1}


@pytest.mark.parametrize("begins", [True, False])
def test_a_schedule_may_begin_or_end_with_a_rate_of_zero(begins: bool) -> None:
    """It does the same with it."""
    model = nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: i / STEPS if begins else max(1 - i / STEPS, 0.0))
    with bitwatt.measure("schedule", keep=False, meter=False) as session:
        for _ in range(STEPS + 20):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).square().mean().backward()
            optimizer.step()
            schedule.step()
    replay = session.run.replay
    assert (replay.disagreed, replay.assumed, replay.deviated) == ({}, 0, 0)
