"""The first steps: events are known, and the code between them is still watched."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch
from replay_programs import PROGRAMS, UNFORESEEN, mlp, train

import bitwatt
from bitwatt.backends.torch.replay import checks, learner, lessons, watched
from bitwatt.records import Run


@pytest.fixture(autouse=True)
def never_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are short, and the code between events is watched all the time."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 1 << 30)
    monkeypatch.setattr(lessons, "_GAP_PATIENCE", 1 << 30)


def measured(program: Callable[[], None], exactness: str) -> Run:
    torch.manual_seed(0)
    with bitwatt.measure(keep=False, exactness=exactness) as session:
        program()
    assert session.run is not None
    return session.run


def calls(run: Run) -> dict[tuple[str, str, str], int]:
    return {(row.phase, row.scope, str(row.op)): row.calls for row in run.ledger}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_call_is_counted_where_it_belongs(program: str) -> None:
    counted, replayed = measured(PROGRAMS[program], "always"), measured(PROGRAMS[program], "auto")
    assert calls(replayed) == calls(counted)


def odd_steps(every: int, where: str) -> None:
    """Now and then something more is done: between which events is told by `where`."""
    model, x = mlp(), torch.randn(6, 12)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def more(here: str, i: int) -> None:
        if here == where and i % every == every - 1:
            with torch.no_grad():
                (x @ x.T).softmax(-1).sum()

    for i in range(60):
        more("first", i)
        optimizer.zero_grad()
        out = model(x)
        more("loss", i)
        loss = out.square().mean()
        loss.backward()
        more("step", i)
        optimizer.step()
    more("last", 59)


@pytest.mark.parametrize("where", ["first", "loss", "step", "last"])
@pytest.mark.parametrize("every", [7, 10, 60])
def test_what_is_done_now_and_then_is_seen_in_the_step_in_which_it_is(every: int, where: str) -> None:
    counted, replayed = (measured(lambda: odd_steps(every, where), one) for one in ("always", "auto"))
    assert calls(replayed) == calls(counted)
    assert replayed.replay is not None
    assert replayed.replay.agrees
    assert not replayed.replay.unwatched


def trained(steps: int = 60) -> Run:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program() -> None:
        for _ in range(steps):
            train(model, optimizer)

    return measured(program, "auto")


def test_such_steps_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    short: list[int] = []
    real = learner.Learner._watched_lap

    def lap(self: learner.Learner, lane: object) -> None:
        short.append(1)
        real(self, lane)  # type: ignore[arg-type]

    monkeypatch.setattr(learner.Learner, "_watched_lap", lap)
    replay = trained().replay
    assert replay is not None
    assert len(short) == replay.replayed > 50


def test_a_gap_of_many_calls_is_watched_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "_SHORT", 0)
    monkeypatch.setattr(learner.Learner, "_watched_lap", lambda *_: pytest.fail("it was not"))
    replay = trained().replay
    assert replay is not None
    assert replay.replayed > 50


@pytest.mark.parametrize("blocks", [0, 3])
def test_fewer_will_do_where_the_allocator_tells_of_the_rest(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    """One that hands out nothing tells nothing: the program runs on the processor, in a process that has used a GPU."""
    taken = [0]
    monkeypatch.setattr(lessons, "GAPS", 32)
    monkeypatch.setattr(checks, "allocations", lambda: taken[0])
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def program() -> None:
        for _ in range(60):
            taken[0] += blocks
            train(model, optimizer)

    replay = measured(program, "auto").replay
    assert replay is not None
    vouched = replay.agreed["code between them, by allocations"]
    unseen = replay.agreed["code between them"] // 3
    assert (unseen > 35 and vouched > 0) if blocks else (unseen < 30 and not vouched)


def test_a_step_with_a_closure_is_counted_whole() -> None:
    """Calls of the model in it are known, what the optimizer does between them is not."""
    counted, replayed = (measured(UNFORESEEN["closures_now_and_then"], one) for one in ("always", "auto"))
    assert calls(replayed) == calls(counted)


def test_calls_that_are_alike_are_one_object() -> None:
    """Else what is learned of a deep model makes Python look through all objects there are for garbage."""
    model = torch.nn.Sequential(*[torch.nn.Linear(12, 12) for _ in range(50)])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure(keep=False):
        train(model, optimizer)
        gc.collect()
        before = len(gc.get_objects())
        train(model, optimizer)
        kept = len(gc.get_objects()) - before
    assert kept < 1_500  # 3,300 where each call has a key of its own
