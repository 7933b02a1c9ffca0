"""Sizes that differ from step to step: what happens at others is worked out, and each speaks for all."""

from __future__ import annotations

import random
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import measuring
import pytest
import torch
import torch.nn.functional as F
from replay_programs import mlp, train
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from bitwatt.backends.torch.replay import learner, lessons
from bitwatt.records import Replay, Run

STEPS = 150


@pytest.fixture(autouse=True)
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code between events is left alone as soon as it may be."""
    monkeypatch.setattr(learner, "_SHARE", 0.0)


class Texts(Dataset[Any]):
    """Tokens of many lengths, as lists or as tensors."""

    def __init__(self, texts: int, *, tensors: bool) -> None:
        lengths = random.Random(0)
        self.texts = [[1 + i % 9 for i in range(lengths.randint(2, 90))] for _ in range(texts)]
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, i: int) -> Any:
        return torch.tensor(self.texts[i]) if self.tensors else self.texts[i]


def padded(texts: list[list[int]]) -> Tensor:
    longest = max(map(len, texts))
    return torch.tensor([text + [0] * (longest - len(text)) for text in texts])


def stacked(texts: list[Tensor]) -> Tensor:
    return nn.utils.rnn.pad_sequence(texts, batch_first=True)


class Reader(nn.Module):
    """It looks at its mask to decide whether it needs one, as published models do."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.mix, self.head = nn.Embedding(10, 8), nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.mix(self.words(ids))
        mask = ids != 0
        weights = x @ x.transpose(1, 2)
        if not bool(mask.all()):
            weights = weights.masked_fill(~mask[:, None], -1e9)
        return self.head((weights.softmax(-1) @ x)[..., 4:].repeat(1, 1, 2).mean(1))


def learns(model: nn.Module, batches: Iterator[Tensor]) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for ids in batches:
        optimizer.zero_grad()
        model(ids).square().mean().backward()
        optimizer.step()


def rows(run: Run) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for row in run.ledger:
        found[row.phase, row.scope, row.op] += row.calls
    return found


def both(program: Callable[[], None]) -> tuple[Counter[Any], Counter[Any], Replay]:
    """What was counted and what was replayed, to the last call."""
    runs = []
    for exactness in ("always", "auto"):
        torch.manual_seed(0)
        runs.append(measuring.measured(program, exactness=exactness, meter=False))
    assert runs[1].replay is not None
    return rows(runs[0]), rows(runs[1]), runs[1].replay


@pytest.mark.parametrize(("tensors", "collate"), [(False, padded), (True, stacked)])
def test_texts_that_are_padded_by_the_programs_own_code_are_replayed(tensors: bool, collate: Any) -> None:
    """Hardly a length comes twice, and how a batch is put together follows from no size that is known: it is counted
    each time, and the steps are not."""

    def program() -> None:
        learns(Reader(), iter(DataLoader(Texts(4 * STEPS, tensors=tensors), 4, shuffle=True, collate_fn=collate)))

    counted, found, replay = both(program)
    assert found == counted
    assert replay.replayed > 0.8 * STEPS
    assert not replay.disagreed


def test_code_before_a_call_that_goes_by_other_sizes_does_not_hold_it_up() -> None:
    def batches() -> Iterator[Tensor]:
        lengths = random.Random(0)
        for _ in range(STEPS):
            texts = [lengths.randint(2, 90) for _ in range(4)]
            ids = torch.zeros(4, max(texts), dtype=torch.long)
            for i, length in enumerate(texts):
                ids[i, :length] = torch.ones(length, dtype=torch.long)
            yield ids

    counted, found, replay = both(lambda: learns(Reader(), batches()))
    assert found == counted
    assert replay.replayed > 0.8 * STEPS


def test_slices_to_the_end_are_no_sizes() -> None:
    """The end of such a slice is 2**63 - 1, which no float holds: it was told as another one, with numpy's warning."""

    def program() -> None:
        learns(Reader(), iter([torch.ones(4, 2 + i * 7 % 89, dtype=torch.long) for i in range(STEPS)]))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        counted, found, replay = both(program)
    assert any(2**63 - 1 in dict(op.args).values() for _, _, op in counted)
    assert found == counted
    assert replay.replayed > 0.8 * STEPS


class Chunked(nn.Module):
    """From a length on it goes through its input in parts."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(8, 8)

    def forward(self, ids: Tensor) -> Tensor:
        x = F.one_hot(ids, 8).float()
        parts = x.split(ids.shape[1] // 2 + 1, 1) if ids.shape[1] > 48 else (x,)
        return torch.cat([F.linear(part, self.mix.weight).tanh() for part in parts], 1)


def test_a_model_that_takes_another_way_at_some_sizes_is_found_out() -> None:
    """One step at a size that nobody had seen is credited as what it was not, and told; after it, none is wrong."""

    def batches() -> Iterator[Tensor]:
        lengths = random.Random(0)
        for i in range(2 * STEPS):
            yield torch.ones(4, lengths.randint(2, 48 if i < STEPS else 90), dtype=torch.long)

    counted, found, replay = both(lambda: learns(Chunked(), batches()))
    wrong = sum(replay.disagreed.values())
    assert replay.replayed > STEPS / 2
    assert 0 < wrong < 10
    differs = sum(abs(counted[key] - found[key]) for key in counted.keys() | found.keys())
    assert differs <= 60 * wrong  # the ops of a step on one way and on the other


def test_what_is_sometimes_so_and_sometimes_not_is_trusted_no_longer() -> None:
    """A mask that every third batch needs: what eight looks found would be credited to the next."""
    holes = random.Random(1)

    def batches() -> Iterator[Tensor]:
        lengths = random.Random(0)
        for _ in range(STEPS):
            ids = torch.ones(4, lengths.randint(2, 90), dtype=torch.long)
            ids[0, 0] = int(holes.random() < 2 / 3)
            yield ids

    counted, found, replay = both(lambda: learns(Reader(), batches()))
    assert replay.replayed < STEPS / 10
    assert sum(counted.values()) == pytest.approx(sum(found.values()), rel=0.01)


def test_another_size_in_the_middle_of_a_row_is_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time was counted from when the machine was switched on."""
    monkeypatch.setattr(lessons, "GAPS", 2)

    def program() -> None:
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(400):
            train(model, optimizer, 16 if 5 <= i < 13 or i in (200, 201, 300, 310, 350) else 8)

    began = time.perf_counter()
    counted, found, replay = both(program)
    assert found == counted
    assert replay.replayed > 300
    assert replay.paused < time.perf_counter() - began


class Sees(nn.Module):
    """Rectangles of any size, some at a time: a layer is given the product of three sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.edges = nn.Conv2d(3, 4, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        flat = self.edges(x).flatten(2)
        return (flat.transpose(1, 2) @ flat).softmax(-1).mean((1, 2))


class Attends(nn.Module):
    """Over rows and columns of its input by turns: a layer is given the square of a size."""

    def __init__(self) -> None:
        super().__init__()
        self.mix, self.soft = nn.Linear(8, 8), nn.Softmax(-1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.mix(x)
        return self.soft(x @ x.transpose(1, 2)) @ x @ (x.transpose(1, 2) @ x)


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (Sees(), (None, 3, None, None)),
        (Sees(), (4, 3, None, None)),
        (Attends(), (None, None, 8)),
        (Attends(), (4, None, 8)),
    ],
)
def test_products_and_squares_of_sizes_are_learned(model: nn.Module, shape: tuple[int | None, ...]) -> None:
    """At a length of 8, two products of `Attends` are alike by chance."""

    def program() -> None:
        sizes = random.Random(0)
        with torch.no_grad():
            for _ in range(STEPS):
                model(torch.ones([n or sizes.randint(2, 20) for n in shape]))

    counted, found, replay = both(program)
    assert found == counted
    assert replay.replayed > 0.7 * STEPS
    assert not replay.disagreed


class Aligned(nn.Module):
    """As kernels of attention on a GPU do: a mask is made as wide as they take at once, where it is not, and what they
    keep for backward is always of so many lines."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.mix = nn.Embedding(10, 8), nn.Linear(8, 8)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.mix(self.words(ids))
        mask = (ids == 0).float()
        if over := ids.shape[1] % 8:
            mask = F.pad(mask, (0, 8 - over))[:, : ids.shape[1]].contiguous()
        kept = x.new_zeros(len(ids), -(-ids.shape[1] // 32) * 32)
        return (x @ x.transpose(1, 2) + mask[:, None]).softmax(-1) @ x + kept.sum()


@pytest.mark.parametrize("rows", [4, None])
def test_sizes_that_are_padded_to_multiples_are_learned(rows: int | None) -> None:
    def batches() -> Iterator[Tensor]:
        sizes = random.Random(0)
        for _ in range(2 * STEPS):
            yield torch.ones(rows or sizes.randint(2, 9), sizes.randint(2, 120), dtype=torch.long)

    counted, found, replay = both(lambda: learns(Aligned(), batches()))
    assert found == counted
    assert replay.replayed > 1.2 * STEPS


def test_strides_that_leave_something_over_are_learned() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 2, 1))

    def batches() -> Iterator[Tensor]:
        sizes = random.Random(0)
        for _ in range(2 * STEPS):
            yield torch.ones(2, 3, sizes.randint(8, 40), sizes.randint(8, 40))

    counted, found, replay = both(lambda: learns(model, batches()))
    assert found == counted
    assert replay.replayed > STEPS


class Wanders(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix, self.varies = nn.Linear(8, 8), random.Random(0)

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self.varies.randint(1, 40)):
            x = self.mix(x)
        return x


def test_what_is_never_the_same_is_not_learned_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step makes as many calls as it likes: all are counted, and most of them without keeping what they were."""
    learned = [0]
    learn = learner.Learner._learn

    def counting(self: Any, *args: Any) -> None:
        learned[0] += 1
        learn(self, *args)

    monkeypatch.setattr(learner.Learner, "_learn", counting)

    def program() -> None:
        model = Wanders()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(600):
            optimizer.zero_grad()
            model(torch.ones(2, 8)).mean().backward()
            optimizer.step()

    counted, found, replay = both(program)
    assert found == counted
    assert replay.counted > 590
    assert learned[0] < 3 * 2 * 300  # of 600 steps with three events and the code before each


def test_batches_of_one_do_not_hide_what_others_are() -> None:
    """Along a size of 1 tensors are laid out anyhow, and other kernels run: it is learned by itself."""

    def program() -> None:
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        model = nn.Sequential(nn.Embedding(10, 8), layer, nn.Linear(8, 4))
        for i in range(2 * STEPS):
            model(torch.zeros((1 + i % 3, 1), dtype=torch.long).expand(-1, 1 + i // 3)).mean().backward()

    counted, found, replay = both(program)
    assert found == counted
    assert replay.replayed > 1.5 * STEPS


def test_where_two_sizes_were_equal_by_chance_what_led_to_a_call_is_not_mixed_up() -> None:
    """Batches of 65 and 129 rows come where a kernel might pad to another multiple for the first time. Nobody watches
    what makes them, so it is taken from another batch: not from the one of 2 x 2, where a 2 may be either size."""

    def program() -> None:
        learns(nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)), (torch.ones(n, 2) for n in range(1, STEPS)))

    counted, found, replay = both(program)
    assert found == counted
    assert replay.assumed > 0
