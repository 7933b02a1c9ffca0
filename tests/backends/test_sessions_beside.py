"""Sessions that close while other threads are in the middle of a step, in another order, or inside an event."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from typing import Any

import pytest
import torch
from replay_programs import mlp, train
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

import bitwatt
from bitwatt.backends.torch.replay import learner, lessons
from bitwatt.records import Run


@pytest.fixture(params=[32, 1 << 30], ids=["unwatched", "watched"], autouse=True)
def gaps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps are short: the code between events is watched for a while, or always."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", request.param)
    monkeypatch.setattr(lessons, "_GAP_PATIENCE", 1 << 30)


def calls(run: Run | None) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for row in run.ledger if run is not None else ():
        found[row.phase, str(row.op)] += row.calls
    return found


class Meeting:
    """A place in a thread's step at which it waits, now and then, while another thread does something."""

    def __init__(self) -> None:
        self.step, self.here, self.done = 0, threading.Event(), threading.Event()

    def __call__(self, *_: Any) -> None:
        if self.step in (4, 45, 70, 71):
            self.done.clear()
            self.here.set()
            self.done.wait(120)


def meet(where: str, exactness: str) -> tuple[Run | None, list[Run | None]]:
    meeting, inner = Meeting(), list[Run | None]()

    def work() -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        if where == "forward":
            model[0].register_forward_hook(meeting)
        elif where == "backward":
            model[3].weight.register_hook(meeting)
        elif where == "step":
            optimizer.register_step_pre_hook(meeting)
        for meeting.step in range(100):
            optimizer.zero_grad()
            loss = model(torch.ones(8, 12)).square().mean()
            if where == "loss":
                meeting()
            loss.backward()
            optimizer.step()

    with bitwatt.measure(keep=False, meter=False, exactness=exactness) as outer:
        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(4):
            assert meeting.here.wait(120)
            meeting.here.clear()
            with bitwatt.measure(keep=False, meter=False, exactness=exactness) as session:
                torch.ones(3, 5) @ torch.ones(5, 7)
            inner.append(session.run)
            meeting.done.set()
        thread.join()
    return outer.run, inner


@pytest.mark.parametrize("where", ["forward", "loss", "backward", "step"])
def test_a_session_that_closes_leaves_the_steps_of_other_threads_alone(where: str) -> None:
    counted, replayed = meet(where, "always"), meet(where, "auto")
    assert calls(replayed[0]) == calls(counted[0])
    assert [calls(run) for run in replayed[1]] == [calls(run) for run in counted[1]]
    replay = replayed[0].replay if replayed[0] is not None else None
    assert replay is not None
    assert replay.agrees
    assert replay.replayed > 80


def test_a_session_that_closes_before_one_inside_it_does_not_end_that_one() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def flops(run: Run | None) -> float:
        assert run is not None
        return float(bitwatt.totals(run).total)

    def steps(n: int) -> None:
        for _ in range(n):
            train(model, optimizer)

    for exactness in ("always", "auto"):
        with bitwatt.measure(keep=False, meter=False, exactness="always") as one:
            steps(1)
        with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
            a = second.enter_context(bitwatt.measure(keep=False, meter=False, exactness=exactness))
            steps(20)
            b = first.enter_context(bitwatt.measure(keep=False, meter=False, exactness=exactness))
            steps(15)
            second.close()
            steps(20)
        steps(5)
        assert flops(a.run) == 20 * flops(one.run)
        assert flops(b.run) == 35 * flops(one.run)
    assert not _get_current_dispatch_mode_stack()


def test_after_a_session_inside_a_backward_steps_are_counted_again() -> None:
    """The engine puts back the modes that there were when it began."""
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    passed: list[int] = []

    def now_and_then(_: torch.Tensor) -> None:
        if len(passed) == 50:
            with bitwatt.measure(keep=False, meter=False):
                torch.ones(2, 2)

    model[3].weight.register_hook(now_and_then)
    with bitwatt.measure(keep=False, meter=False) as session:
        for i in range(54):
            train(model, optimizer)
            passed.append(i)
    assert session.run is not None
    assert session.run.replay is not None
    found = calls(session.run)
    forward = {op: n for (phase, op), n in found.items() if phase == "forward" and "addmm" in op}
    assert set(forward.values()) == {54}
    steps = {n for (phase, op), n in found.items() if phase == "optimizer" and "add_" in op}
    assert steps == {54}
    assert not session.run.replay.agrees  # what was done in that backward is not known
