"""What speaks for a replayed step, and what the report may say of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from clock_by_hand import ByHand, Lasts
from replay_programs import mlp, train
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, dataloader

import bitwatt
from bitwatt.backends.torch.replay import checks, learner, lessons
from bitwatt.records import Replay, Run
from bitwatt.reports.replay import verdict


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code between events is left alone as soon as it may be."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)


class Allocator:
    """Stands for CUDA's: a program takes blocks, and their number in all is read."""

    taken = 0

    def take(self, blocks: int) -> None:
        self.taken += blocks


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Allocator:
    one = Allocator()
    monkeypatch.setattr(checks, "allocations", lambda: one.taken)
    return one


def trained(before: Callable[[int], None], steps: int = 200) -> tuple[Run, Replay]:
    torch.manual_seed(0)
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure(keep=False) as session:
        for i in range(steps):
            before(i)
            train(model, optimizer)
    assert session.run is not None
    assert session.run.replay is not None
    return session.run, session.run.replay


def test_the_allocator_vouches_for_code_that_ran_unwatched(allocator: Allocator) -> None:
    run, replay = trained(lambda _: allocator.take(7))
    assert replay.agreed["allocations"] > 1
    assert replay.agreed["code between them, by allocations"] == replay.agreed["code between them"] > 400
    assert replay.exact
    assert "allocator totals" in verdict(run)


def test_where_it_vouches_no_peek_comes_shortly_before_a_look(
    allocator: Allocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look at this program comes after 64 to 128 steps, a first peek after 32 to 64 that are replayed."""
    peeks: list[str] = []
    watch = learner.Learner._watch_lane
    for blocks, name in ((7, "vouched for"), (0, "not vouched for")):
        monkeypatch.setattr(learner.Learner, "_watch_lane", lambda one, name=name: (peeks.append(name), watch(one)))
        _, replay = trained(lambda _, blocks=blocks: allocator.take(blocks), steps=120)
        assert (replay.disagreed, replay.deviated) == ({}, 0)
    assert peeks.count("vouched for") < peeks.count("not vouched for")


@pytest.mark.parametrize("odd", [60, 100, 170])
def test_it_speaks_against_the_row_in_which_something_else_ran(allocator: Allocator, odd: int) -> None:
    run, replay = trained(lambda i: allocator.take(8 if i == odd else 7))
    assert replay.disagreed == {"allocations": 1}
    assert 0 < replay.agreed["code between them, by allocations"] < replay.agreed["code between them"]
    assert "1 times allocations disagreed" in verdict(run)


def test_without_it_nobody_vouches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitwatt.reports.replay._NOTABLE", 1e9)  # how long it takes is the machine's affair
    run, replay = trained(lambda _: None)
    assert not replay.agreed["allocations"]
    assert not replay.agreed["code between them, by allocations"]
    assert replay.unwatched > 400
    assert verdict(run).startswith("calls and steps exact: ")


@pytest.mark.parametrize(
    ("odd", "places"), [((), ""), ((170,), "in another it took 19.9 s longer"), ((150, 180), "in 2 others")]
)
def test_code_between_steps_that_takes_longer_where_nobody_watches_is_told(
    odd: tuple[int, ...], places: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps take 0.1 s by a clock that is set; one in which something else is done 20 s."""
    clock = ByHand(monkeypatch)

    def before(i: int) -> None:
        clock.now += 20.0 if i in odd else 0.1

    run, replay = trained(before)
    assert replay.pauses == len(odd)
    assert replay.paused == pytest.approx(20.0 * len(odd), rel=0.05)
    assert ("not all that ran between them" in verdict(run)) is bool(odd)
    assert places in verdict(run)
    assert any("s more passed than is known" in note for note in run.notes) is bool(odd)


def test_it_is_not_told_where_the_allocator_vouches(allocator: Allocator, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ByHand(monkeypatch)

    def before(i: int) -> None:
        allocator.take(7)
        clock.now += 20.0 if i == 170 else 0.1

    run, replay = trained(before)
    assert replay.pauses == 1
    assert verdict(run).startswith("exact")
    assert not any("s more passed than is known" in note for note in run.notes)


def test_waiting_for_a_processor_is_no_code_that_nobody_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 s that a step takes longer, others had the processor for all, or for 15 of them."""
    for queued, longer in ((20.0, 0.0), (15.0, 5.0)):
        with monkeypatch.context() as patch:
            clock, waited = ByHand(patch), [0.0]

            def before(i: int, clock: ByHand = clock, waited: list[float] = waited, queued: float = queued) -> None:
                clock.now += 20.0 if i == 170 else 0.1
                waited[0] += queued if i == 170 else 0.0

            patch.setattr(checks, "queued", lambda waited=waited: waited[0])
            _, replay = trained(before)
        assert replay.pauses == bool(longer)
        assert replay.paused == pytest.approx(longer, rel=0.05)


def test_the_system_tells_for_how_long_others_had_the_processor() -> None:
    before = checks.queued()
    assert 0.0 <= before <= checks.queued() < 1e6


class Slow(Dataset[Tensor]):
    """By a clock that is set a sample takes 0.1 s, and one in each round 20 s: read here, or waited for."""

    def __init__(self, clock: ByHand, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock, self.workers, self.read = clock, workers, 0
        kind = dataloader._MultiProcessingDataLoaderIter
        wait = kind._next_data
        monkeypatch.setattr(kind, "_next_data", lambda loader: (self.take(), wait(loader))[1])

    def __len__(self) -> int:
        return 150

    def __getitem__(self, index: int) -> Tensor:
        if not self.workers:
            self.take()
        return torch.ones(12)

    def take(self) -> None:
        self.read += 1
        self.clock.now += 20.0 if self.read % 150 == 120 else 0.1


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("pause", [0.0, 20.0])
def test_what_a_loader_is_waited_for_is_no_code_that_nobody_knows(
    workers: int, pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the program itself does for so long is still told, in the same round."""
    clock, model = ByHand(monkeypatch), mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Slow(clock, workers, monkeypatch), batch_size=1, num_workers=workers)
    with bitwatt.measure(keep=False) as session:
        for _ in range(2):
            for i, x in enumerate(loader):
                clock.now += pause if i == 100 else 0.0
                optimizer.zero_grad()
                model(x).sum().backward()
                optimizer.step()
    assert session.run is not None
    replay = session.run.replay
    assert replay is not None
    assert replay.replayed > 200
    assert replay.pauses == (2 if pause else 0)
    assert replay.paused == pytest.approx(2 * pause, rel=0.05)


class Opaque(nn.Module):
    """Calls no module, and makes no graph where nothing is differentiated."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(12, 12))

    def forward(self, x: Tensor) -> Tensor:
        return (x @ self.weight).tanh()


def called(model: nn.Module) -> tuple[Run, Replay]:
    with bitwatt.measure(keep=False) as session, torch.no_grad():
        for _ in range(80):
            model(torch.ones(4, 12))
    assert session.run is not None
    assert session.run.replay is not None
    return session.run, session.run.replay


def test_calls_with_nothing_to_compare_are_not_called_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", float("inf"))
    run, replay = called(Opaque())
    assert replay.unchecked == replay.replayed > 60
    assert replay.agrees
    assert not replay.exact
    assert verdict(run).startswith("calls and steps as known: ")
    assert f"{replay.unchecked} calls had nothing to compare" in verdict(run)


@pytest.mark.parametrize("model", [nn.Linear(12, 4), nn.Sequential(Opaque(), nn.Linear(12, 4))])
def test_calls_of_what_is_torchs_own_or_calls_modules_are(model: nn.Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", float("inf"))
    run, replay = called(model)
    assert not replay.unchecked
    assert replay.exact
    assert verdict(run).startswith("exact: ")


def test_the_time_after_the_last_step_is_told_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ByHand(monkeypatch)
    model = nn.Sequential(nn.Linear(4, 4), Lasts(clock))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure("tail", keep=False) as session:
        for _ in range(300):
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        clock.now += 5.0
    (told,) = [note for note in session.run.notes if "was not watched" in note]
    assert told.startswith("what ran in the last 5.0 s, after the last step")
