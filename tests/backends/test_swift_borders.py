"""The borders of laps that are taken the swiftest way: what is announced to them, and sessions that end in mid-row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from clock_by_hand import ByHand, Lasts
from replay_programs import mlp, train
from torch import nn

import bitwatt
from bitwatt.backends.torch import state as states
from bitwatt.backends.torch.replay import learner
from bitwatt.backends.torch.state import ThreadState
from bitwatt.backends.torch.timeline import Timeline
from bitwatt.context import opened
from bitwatt.records import Run

#: Steps after which laps are taken the swiftest way.
LEARN = 60


@pytest.fixture(autouse=True)
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a step may seem so long that the code around it is always watched."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)


def measured(exactness: str, program: Callable[[], None]) -> Run:
    torch.manual_seed(0)
    with bitwatt.measure(keep=False, meter=False, exactness=exactness) as session:
        program()
    assert session.run is not None
    return session.run


FREEZING: dict[str, Callable[[nn.Parameter], Any]] = {
    "set": lambda p: setattr(p, "requires_grad", False),
    "told": lambda p: p.requires_grad_(False),
}


@pytest.mark.parametrize("how", FREEZING)
def test_a_parameter_that_is_frozen_in_mid_row_is_noticed_in_that_step(how: str) -> None:
    def program() -> None:
        model = nn.Sequential(*[part for _ in range(3) for part in (nn.Linear(12, 12), nn.ReLU())], nn.Linear(12, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(LEARN + 40):
            if i == LEARN + 7:
                FREEZING[how](model[2].weight)
            train(model, optimizer)

    counted, replayed = measured("always", program), measured("auto", program)
    assert bitwatt.totals(replayed).by("phase", "scope") == bitwatt.totals(counted).by("phase", "scope")
    assert replayed.replay is not None
    assert not replayed.replay.disagreed
    assert "requires_grad" not in nn.Parameter.__dict__


def test_one_that_is_frozen_behind_everybodys_back_is_told_as_a_doubt() -> None:
    def program() -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(LEARN + 60):
            if i == LEARN + 7:  # a bias, whose gradient stays: neither graph nodes nor missing gradients tell
                torch._C.TensorBase.requires_grad_(model[3].bias, False)
            optimizer.zero_grad(set_to_none=False)
            model(torch.randn(8, 12)).square().mean().backward()
            optimizer.step()

    replay = measured("auto", program).replay
    assert replay is not None
    assert replay.disagreed == {"marks of models": 1}


def test_a_layer_that_is_taken_out_in_mid_row_is_noticed() -> None:
    def program() -> None:
        model = nn.Sequential(nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 4))
        with torch.no_grad():
            for i in range(LEARN + 60):
                if i == LEARN + 20:
                    del model[1]
                model(torch.ones(8, 12))

    counted, replayed = measured("always", program), measured("auto", program)
    assert bitwatt.totals(replayed).total == bitwatt.totals(counted).total


class Worker:
    """A thread that trains when it is told to, and waits in between, in the middle of its loop."""

    def __init__(self) -> None:
        self.model = mlp()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.steps, self.go, self.done = 0, threading.Semaphore(0), threading.Semaphore(0)
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            while self.go.acquire(timeout=300) and self.steps:
                for _ in range(self.steps):
                    train(self.model, self.optimizer)
                self.done.release()
        except BaseException as error:
            self.error = error
            self.done.release()

    def does(self, steps: int) -> None:
        self.steps = steps
        self.go.release()
        if steps:
            assert self.done.acquire(timeout=300)
        else:
            self.thread.join()
        assert self.error is None


def one_step() -> float:
    worker = Worker()
    return bitwatt.totals(measured("always", lambda: train(worker.model, worker.optimizer)), "macs").total


def test_a_session_that_ends_while_a_thread_is_in_mid_row_is_told_all_of_it_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker, steps = Worker(), LEARN + 51
    worker.model.append(Lasts(ByHand(monkeypatch)))
    with bitwatt.measure(keep=False, meter=False) as first:
        worker.thread.start()
        worker.does(steps)
    worker.does(23)  # nobody's
    with bitwatt.measure(keep=False, meter=False, exactness="always") as second:
        worker.does(5)
    worker.does(0)
    assert first.run is not None
    assert second.run is not None
    each = one_step()
    assert bitwatt.totals(first.run, "macs").total == steps * each
    assert bitwatt.totals(second.run, "macs").total == 5 * each
    replay = first.run.replay
    assert replay is not None
    assert replay.counted + replay.replayed == steps
    assert not replay.disagreed
    assert first.run.seconds == steps
    assert {phase: seconds for phase, seconds in first.run.phase_seconds.items() if seconds and phase != "other"} == {
        "forward": pytest.approx(steps)
    }


def test_sessions_that_end_while_threads_train_do_them_no_harm() -> None:
    """At no point of a step: here the threads do not wait."""
    stop, errors = threading.Event(), list[BaseException]()
    steps = [0, 0]

    def work(i: int) -> None:
        try:
            model = mlp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            while not stop.is_set():
                train(model, optimizer)
                steps[i] += 1
        except BaseException as error:
            errors.append(error)

    each = one_step()
    for _ in range(8):
        stop.clear()
        steps[:] = [0, 0]
        threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
        with bitwatt.measure(keep=False, meter=False) as session:
            for thread in threads:
                thread.start()
            stop.wait(0.2)
            least = sum(steps)
        most = sum(steps)
        stop.set()
        for thread in threads:
            thread.join()
        assert session.run is not None
        assert least - 2 <= bitwatt.totals(session.run, "macs").total / each <= most + 2
        assert session.run.replay is None or not session.run.replay.disagreed
    assert not errors


def test_a_thread_that_goes_on_books_no_time_beyond_the_end_of_its_session(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(states.time, "perf_counter", lambda: now[0])
    state = ThreadState()
    with opened("run") as context:
        frame = state.push("forward", "model")
        now[0] = 2.0
        context.token.ended = 1.5
        state.clock()
        now[0] = 3.0
        state.pop(frame)
    assert sum(state.seconds.values()) == 1.5


def test_a_thread_that_ran_before_the_session_is_told_of() -> None:
    worker = Worker()
    worker.thread.start()
    with bitwatt.measure(keep=False, meter=False) as session:
        worker.does(3)
    worker.does(0)
    assert session.run is not None
    assert any("before the session" in note for note in session.run.notes)
    other = Worker()
    with bitwatt.measure(keep=False, meter=False) as session:
        other.thread.start()
        other.does(3)
        other.does(0)
    assert session.run is not None
    assert not session.run.notes


def test_laps_of_several_lanes_put_nothing_in_the_queue_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Event:
        recorded = 0

        def record(self) -> None:
            Event.recorded += 1

        def query(self) -> bool:
            return True

        def synchronize(self) -> None:
            return None

        def elapsed_time(self, _: Event) -> float:
            return 1.0

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(states, "timeline_here", lambda: Timeline(Event))
    make, judge = nn.Linear(6, 12), nn.Linear(12, 1)
    of_make, of_judge = torch.optim.SGD(make.parameters(), 0.1), torch.optim.SGD(judge.parameters(), 0.1)

    def step() -> None:
        fake = make(torch.ones(8, 6))
        of_judge.zero_grad()
        F.softplus(judge(fake.detach())).mean().backward()
        of_judge.step()
        of_make.zero_grad()
        F.softplus(-judge(fake)).mean().backward()
        of_make.step()

    with bitwatt.measure(keep=False, meter=False) as session:
        for _ in range(150):
            step()
        before = Event.recorded
        for _ in range(250):
            step()
        after = Event.recorded
    assert session.run is not None
    assert after - before < 250  # a step changes lanes twice
    assert {"forward", "backward", "optimizer"} <= session.run.device_seconds.keys()
