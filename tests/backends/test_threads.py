"""Threads and worker processes: nothing is lost, nothing counted twice."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils.data import DataLoader, Dataset

import bitwatt
from backends.measuring import BACKWARD, FC1, FC2, Net, batch, calls, macs, measured

STEP = {"forward": FC1 + FC2, "backward": BACKWARD}


def in_thread(function) -> None:  # type: ignore[no-untyped-def]
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_step_in_another_thread_is_the_same_step() -> None:
    net, (x, y) = Net(), batch()
    run = measured(lambda: in_thread(lambda: F.cross_entropy(net(x), y).backward()))
    assert macs(run) == STEP
    assert calls(run, "loss")["aten.nll_loss_forward"] == 1


def test_forward_in_one_thread_and_backward_in_another_keep_phase_and_layer() -> None:
    net, (x, y) = Net(), batch()
    losses: list[torch.Tensor] = []

    def forward() -> None:
        losses.append(F.cross_entropy(net(x), y))

    def there_and_here() -> None:
        in_thread(forward)
        losses.pop().backward()

    def here_and_there() -> None:
        forward()
        in_thread(losses.pop().backward)

    for run in (measured(there_and_here), measured(here_and_there)):
        assert macs(run) == STEP
        assert calls(run, "loss")["aten.nll_loss_forward"] == 1
        assert macs(run, "scope") == {"fc1": 2 * FC1, "fc2": 3 * FC2}


def test_a_pool_that_ran_before_the_session_is_seen() -> None:
    net, (x, y) = Net(), batch()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(abs, range(4)))
        run = measured(lambda: list(pool.map(lambda _: F.cross_entropy(net(x), y).backward(), range(6))))
    assert macs(run) == {phase: 6 * n for phase, n in STEP.items()}
    assert calls(run, "loss")["aten.nll_loss_forward"] == 6


def test_a_bare_thread_that_ran_before_the_session_is_seen_through_its_modules() -> None:
    net, (x, y) = Net(), batch()
    tasks: queue.Queue = queue.Queue()

    def work() -> None:
        while (task := tasks.get()) is not None:
            task()
            tasks.task_done()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def hand_over() -> None:
        tasks.put(lambda: F.cross_entropy(net(x), y).backward())
        tasks.join()

    run = measured(hand_over)
    assert macs(run) == STEP
    modes: list[int] = []
    tasks.put(lambda: modes.append(len(_get_current_dispatch_mode_stack())))
    tasks.put(None)
    thread.join()
    assert modes == [0]  # a mode left on a thread can crash the interpreter when it ends


def test_sessions_in_concurrent_tasks_count_their_own() -> None:
    net, (x, _) = Net(), batch()

    async def one(times: int) -> int:
        async with bitwatt.measure(keep=False) as session:
            for _ in range(times):
                net(x)
                await asyncio.sleep(0.001)
        return bitwatt.totals(session.run, "macs").total

    async def main() -> list[int]:
        return await asyncio.gather(one(1), one(3), one(2))

    assert asyncio.run(main()) == [n * (FC1 + FC2) for n in (1, 3, 2)]


def test_sessions_in_concurrent_threads_count_their_own() -> None:
    net, (x, _) = Net(), batch()
    together = threading.Barrier(3)

    def one(times: int) -> int:
        together.wait()
        with bitwatt.measure(keep=False) as session:
            together.wait()
            for _ in range(times):
                net(x)
        net(x)  # outside any session, while the others' may be open
        return bitwatt.totals(session.run, "macs").total

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(one, (1, 3, 2))) == [n * (FC1 + FC2) for n in (1, 3, 2)]


def test_a_session_inside_another_is_part_of_both() -> None:
    net, (x, _) = Net(), batch()
    with bitwatt.measure(keep=False) as outer:
        net(x)
        with bitwatt.phase("again"), bitwatt.measure(keep=False) as inner:
            net(x)
    assert macs(inner.run) == {"forward": FC1 + FC2}
    assert macs(outer.run) == {"forward": FC1 + FC2, "again/forward": FC1 + FC2}


class Products(Dataset):
    """Each item is a vector times an 8 x 8 matrix: 64 MACs."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.randn(8) @ torch.randn(8, 8), index % 4


@pytest.mark.parametrize(("workers", "start"), [(0, None), (2, "fork"), (2, "spawn")])
def test_work_of_the_loader_and_its_workers_is_preprocess(workers: int, start: str | None) -> None:
    net = Net()

    def train() -> None:
        loader = DataLoader(Products(), batch_size=4, num_workers=workers, multiprocessing_context=start)
        for x, y in loader:
            F.cross_entropy(net(x), y).backward()

    run = measured(train)
    assert macs(run)["preprocess"] == 16 * 64
    assert macs(run)["forward"] == 16 * (8 * 16 + 16 * 4)
    assert run.phase_seconds["preprocess"] > 0


class Encoded(Products):
    """Items that a small model encodes, as a feature extractor in a data set does."""

    def __init__(self) -> None:
        self.net = torch.nn.Linear(8, 8)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with torch.no_grad():
            return self.net(torch.ones(8) + index), index % 4


def test_workers_count_in_the_phases_and_scopes_of_a_loader_without_workers() -> None:
    def epoch(workers: int) -> None:
        with bitwatt.phase("epoch"):
            for x, _ in DataLoader(Encoded(), batch_size=4, num_workers=workers):
                x.sum()

    alone, sent = measured(lambda: epoch(0)), measured(lambda: epoch(2))
    assert macs(sent) == macs(alone) == {"epoch/inference": 16 * 64}
    places = [{(r.phase, r.scope, r.op.name) for r in run.ledger} for run in (alone, sent)]
    assert places[0] <= places[1]  # sending a batch takes some ops more
    assert ("epoch/preprocess", "DataLoader", "aten.add") in places[0]


def test_workers_that_outlive_the_session_do_not_disturb() -> None:
    loader = DataLoader(Products(), batch_size=4, num_workers=1, persistent_workers=True)
    run = measured(lambda: [x.sum() for x, _ in loader])
    assert macs(run)["preprocess"] == 16 * 64
    assert run.notes == ()
    assert len(list(loader)) == 4
    later = measured(lambda: list(loader))
    assert "before this session" in later.notes[0]


def test_a_thread_that_only_waits_takes_no_time_of_any_phase() -> None:
    done = threading.Event()

    def wait() -> None:
        thread = threading.Thread(target=done.wait)
        thread.start()
        time.sleep(0.3)
        done.set()
        thread.join()

    run = measured(wait)
    assert sum(run.phase_seconds.values()) <= run.seconds * (1 + 1e-9)
