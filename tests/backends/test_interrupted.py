"""What comes at any moment: Ctrl-C, and errors that the program's handlers of signals raise, also in code of ours."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import measuring
import numpy as np
import pytest
import torch
from replay_programs import mlp, train
from torch import Tensor, nn

import bitwatt
from bitwatt.backends.torch import watch
from bitwatt.passing import is_passing

#: Python itself drops an error that comes while an object is taken down; of ours none may be lost beside that.
DROPPED = 3


class OutOfTimeError(Exception):
    pass


def out_of_time(number: int, frame: FrameType | None) -> None:
    raise OutOfTimeError


@pytest.fixture
def alarm() -> Iterator[Callable[..., object]]:
    before = signal.getsignal(signal.SIGALRM)
    yield lambda handler: signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted(times: int, error: type[BaseException], step: Callable[[], object]) -> int:
    """How often the error arrived, of so many alarms, which come at moments that differ."""
    arrived = 0
    for i in range(times):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001 + (i * 0.618 % 1) * 0.003)
            end = time.perf_counter() + 1.0
            while time.perf_counter() < end:
                step()
        except error:
            arrived += 1
            torch.set_grad_enabled(True)  # torch's own decorators may have been interrupted, too
    return arrived


@pytest.mark.parametrize("exactness", ["always", "auto"])
def test_errors_of_signal_handlers_reach_the_program(exactness: str, alarm: Callable[..., object]) -> None:
    alarm(out_of_time)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure(keep=False, meter=False, exactness=exactness) as session:
        for _ in range(40):
            train(model, optimizer)
        assert interrupted(100, OutOfTimeError, lambda: train(model, optimizer)) >= 100 - DROPPED
    assert session.run is not None
    assert not [note for note in session.run.notes if "OutOfTime" in note]


def test_they_do_from_estimators_too(alarm: Callable[..., object]) -> None:
    from sklearn.linear_model import LinearRegression

    alarm(out_of_time)
    X = np.random.default_rng(0).normal(size=(8, 3))
    model = LinearRegression().fit(X, X[:, 0])
    with bitwatt.measure(keep=False, meter=False) as session:
        assert interrupted(200, OutOfTimeError, lambda: model.predict(X)) >= 200 - DROPPED
    assert session.run is not None
    assert not [note for note in session.run.notes if "could not be recorded" in note]


@pytest.mark.parametrize("exactness", ["always", "auto"])
def test_after_ctrl_c_nothing_hangs_and_what_follows_has_its_phase(
    exactness: str, alarm: Callable[..., object]
) -> None:
    alarm(signal.default_int_handler)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure(keep=False, meter=False, exactness=exactness) as session:
        assert interrupted(300, KeyboardInterrupt, lambda: train(model, optimizer)) >= 300 - DROPPED
        train(model, optimizer)
        assert watch.active is not None
        assert len(watch.active.states.here.stack) == 1
        with bitwatt.phase("after"):
            for _ in range(20):
                train(model, optimizer)
    assert session.run is not None
    phases = {phase for phase in bitwatt.totals(session.run).by("phase") if "after" in phase}
    assert phases <= {f"after/{name}" for name in ("forward", "loss", "backward", "optimizer", "other")} | {"after"}


def test_errors_of_others_are_none_of_a_handlers(alarm: Callable[..., object]) -> None:
    alarm(out_of_time)
    with pytest.raises(OutOfTimeError) as handlers:
        out_of_time(0, None)
    with pytest.raises(OutOfTimeError) as own:
        raise OutOfTimeError
    assert is_passing(handlers.value)
    assert not is_passing(own.value)
    assert is_passing(KeyboardInterrupt())


def test_a_backward_in_another_thread_is_what_makes_a_loss_of_what_led_to_it() -> None:
    def program() -> None:
        model = nn.Linear(12, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with ThreadPoolExecutor(1) as pool:
            for _ in range(60):
                loss = model(torch.randn(8, 12)).square().mean()
                optimizer.zero_grad()
                pool.submit(loss.backward).result()  # type: ignore[no-untyped-call]
                optimizer.step()

    counted, replayed = (measuring.measured(program, exactness=one) for one in ("always", "auto"))
    assert bitwatt.totals(replayed).by("phase") == bitwatt.totals(counted).by("phase")
    assert replayed.replay is not None
    assert replayed.replay.replayed > 40


class Seldom(nn.Module):
    """Goes another way where its numbers say so, which it reads."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(12, 12), nn.Linear(12, 4)
        self.way = nn.Parameter(torch.randn(12, 12) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.first(x)
        if x.sum() > 0:
            for _ in range(20):
                y = y @ self.way
        out: Tensor = self.last(y)
        return out


def test_a_way_that_is_seldom_gone_is_soon_seen() -> None:
    """After a hundred steps it is gone in each ninth; two or three of them are credited as the short way."""

    def program() -> None:
        model = Seldom()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for i in range(400):
            sign = 1 if i >= 100 and i % 9 == 8 else -1
            optimizer.zero_grad()
            model(sign * torch.rand(8, 12)).square().mean().backward()
            optimizer.step()

    torch.manual_seed(0)
    counted = measuring.measured(program, exactness="always")
    torch.manual_seed(0)
    replayed = measuring.measured(program, exactness="auto")
    assert bitwatt.totals(replayed).total == pytest.approx(bitwatt.totals(counted).total, rel=0.05)
    assert replayed.replay is not None
    assert not replayed.replay.exact
    assert replayed.replay.assumed < 6


def test_the_line_says_what_was_not_watched_where_something_disagreed_too() -> None:
    from bitwatt.reports.replay import verdict

    def program() -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(500):
            if i == 250:
                model.training = False  # without a word
            train(model, optimizer)

    run = measuring.measured(program)
    assert verdict(run).startswith("replayed, verified")
    assert "the code between them was watched in" in verdict(run)
