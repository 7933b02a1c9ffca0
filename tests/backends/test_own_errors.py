"""An error of ours in the middle of a program: it goes on, is counted from there on, and is told of it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from replay_programs import mlp, train
from torch import nn

import bitwatt
from bitwatt.backends.torch.replay import expecting, expecting_steps, laps, learner, marks, memory
from bitwatt.records import Run

STEPS = 300
#: Where it happens: what raises, and the call of it that does. The first ones learn, later ones are well known.
PLACES: dict[str, tuple[Any, str, int]] = {
    "a unit ends": (learner.Learner, "_end_unit", 3),
    "an event begins": (memory.Memory, "_find", 2),
    "a gap is learned": (learner.Learner, "_gap_seen", 9),
    "an event is learned": (learner.Learner, "_counted", 4),
    "a known unit is credited": (laps.Laps, "_lap", 2),
    "a call is compared": (expecting.ExpectedCall, "expected", 2),
    "a backward is compared": (expecting.ExpectedBackward, "expected", 2),
    "a step is compared": (expecting_steps.ExpectedStep, "expected", 2),
}


def trained(exactness: str, steps: int = STEPS) -> Run:
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure("errors", keep=False, meter=False, exactness=exactness) as session:
        for _ in range(steps):
            train(model, optimizer)
    return session.run


@pytest.mark.parametrize("place", PLACES)
def test_the_program_goes_on_and_is_told(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name, when = PLACES[place]
    original, met = getattr(owner, name), []

    def fails(*args: Any, **kwargs: Any) -> Any:
        met.append(place)
        if len(met) == when:
            raise LookupError("ours")
        return original(*args, **kwargs)

    counted = bitwatt.totals(trained("always")).total
    monkeypatch.setattr(owner, name, fails)
    with pytest.warns(RuntimeWarning, match="bitwatt: an event could not be recorded: LookupError: ours"):
        run = trained("auto")
    assert len(met) > when  # it was learned anew
    assert run.replay is not None
    assert run.replay.replayed > STEPS / 2
    assert any("could not be recorded" in note for note in run.notes)
    assert bitwatt.totals(run).total == pytest.approx(counted, rel=2 / STEPS)  # of the step in which it happened


@pytest.mark.parametrize("steps", [False, True], ids=["calls", "training"])
def test_a_program_that_makes_models_as_it_goes_makes_more_than_are_remembered(
    steps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(marks, "_MODELS", 20)

    def run(exactness: str) -> Run:
        with bitwatt.measure("models", keep=False, meter=False, exactness=exactness) as session:
            for _ in range(100):
                model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
                model(torch.ones(4, 8)).mean().backward()
                if steps:
                    torch.optim.SGD(model.parameters(), lr=0.1).step()
        return session.run

    found = run("auto")
    assert not any("could not be recorded" in note for note in found.notes)
    assert bitwatt.totals(found).total == bitwatt.totals(run("always")).total
