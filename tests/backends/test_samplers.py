"""Samplers shuffle where epochs begin and end: that is counted however well the steps between are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, Sampler, TensorDataset

import bitwatt
from bitwatt.backends.torch.replay import learner, lessons
from bitwatt.records import Run

ROWS = 160


class Nearest(Sampler[int]):
    """In an order that a model of its own gives, some of them at a time."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data, self.model = data, nn.Linear(4, 1)

    def __iter__(self) -> Iterator[int]:
        for part in self.data.split(40):
            yield from self.model(part)[:, 0].detach().argsort().tolist()

    def __len__(self) -> int:
        return len(self.data)


class Halves(Sampler[list[int]]):
    """Batches of its own making, drawn anew in mid-epoch."""

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(2):
            for batch in torch.randperm(ROWS)[: ROWS // 2].split(2):
                yield batch.tolist()


def data() -> TensorDataset:
    torch.manual_seed(0)
    return TensorDataset(torch.randn(ROWS, 4), torch.randint(0, 3, (ROWS,)))


LOADERS: dict[str, Callable[[], DataLoader]] = {
    "shuffled": lambda: DataLoader(data(), batch_size=2, shuffle=True),
    "workers": lambda: DataLoader(data(), batch_size=2, shuffle=True, num_workers=1),
    "drawn with replacement": lambda: DataLoader(
        data(), batch_size=2, sampler=RandomSampler(range(ROWS), replacement=True)
    ),
    "a sampler of batches": lambda: DataLoader(data(), batch_sampler=Halves()),
    "a sampler with a model": lambda: DataLoader(data(), batch_size=2, sampler=Nearest(data().tensors[0])),
}


def epoch(model: nn.Module, optimizer: torch.optim.Optimizer, loader: Iterable[Any], most: int = ROWS) -> None:
    for i, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if i + 1 >= most:
            break


def measured(make: Callable[[], DataLoader], exactness: str, most: int = ROWS) -> Run:
    torch.manual_seed(0)
    loader, model = make(), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with bitwatt.measure("samplers", keep=False, meter=False, exactness=exactness) as session:
        for _ in range(4):
            epoch(model, optimizer, loader, most)
    assert session.run is not None
    return session.run


@pytest.mark.parametrize("exactness", ["always", "auto"])
def test_a_session_may_begin_in_mid_epoch(exactness: str) -> None:
    loader, model = LOADERS["shuffled"](), nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(loader)
    for _ in range(40):
        next(batches)
    with bitwatt.measure("samplers", keep=False, meter=False, exactness=exactness) as session:
        epoch(model, optimizer, batches)
    assert session.run is not None
    assert sum(n for key, n in drawn(session.run).items() if "randperm" in key[2]) == 1


def drawn(run: Run) -> dict[tuple[str, str, str], int]:
    return {(row.phase, row.scope, str(row.op)): row.calls for row in run.ledger}


@pytest.fixture(autouse=True)
def _gaps_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learner, "_SHARE", 0.0)
    monkeypatch.setattr(lessons, "GAPS", 2)


@pytest.mark.parametrize(
    ("loader", "most"),
    # workers of an epoch that is left early have read more or fewer batches ahead
    [(loader, most) for loader in LOADERS for most in (ROWS, 30) if (loader, most) != ("workers", 30)],
)
def test_what_samplers_do_is_always_counted(loader: str, most: int) -> None:
    counted, replayed = (measured(LOADERS[loader], exactness, most) for exactness in ("always", "auto"))
    assert replayed.replay is not None
    assert replayed.replay.replayed > 10 * replayed.replay.counted or loader == "a sampler with a model"
    assert drawn(replayed) == drawn(counted)


def test_what_they_do_is_the_loaders() -> None:
    shuffles = {key: n for key, n in drawn(measured(LOADERS["shuffled"], "auto")).items() if "randperm" in key[2]}
    assert sum(shuffles.values()) == 8  # torch shuffles once more where an epoch ends
    assert {key[:2] for key in shuffles} == {("preprocess", "DataLoader")}
