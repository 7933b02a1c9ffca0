"""Runs under way are on disk, whatever other threads do meanwhile."""

import threading
import time

import pytest
import torch
from torch import nn

import bitwatt
from bitwatt import journal, store
from bitwatt.ranks import identity


@pytest.fixture
def hasty(monkeypatch):
    """Writes as often as it can."""
    monkeypatch.setattr(journal, "FIRST", 0.0)
    monkeypatch.setattr(journal, "INTERVAL", 0.05)
    monkeypatch.setattr(journal, "RANK_FIRST", 0.05)
    monkeypatch.setattr(journal, "RANK_INTERVAL", 0.05)
    monkeypatch.setattr(journal, "SHARE", 1.0)


def until(condition, patience: float = 60.0):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


def first(folder, status: str):
    return next((header for header in store.runs(folder) if header.status == status), None)


@pytest.mark.parametrize("exactness", ["always", "auto"])
def test_what_was_counted_so_far_is_there_while_the_program_runs(tmp_path, hasty, exactness):
    net, x = nn.Linear(8, 8), torch.ones(4, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with bitwatt.measure("long", store=tmp_path, exactness=exactness) as session:
        for _ in range(50):
            net(x).sum().backward()
            optimizer.step()
        for _ in range(2):  # the first to end may have begun before
            began = time.time()
            until(lambda began=began: (header := first(tmp_path, "under way")) and header.path.stat().st_mtime > began)
        so_far = bitwatt.totals(store.load(session.id, tmp_path)).by("phase")
    assert {path.name for path in tmp_path.iterdir()} == {f"{session.id}.run"}
    assert store.load(store=tmp_path).status == "ok"
    assert so_far == bitwatt.totals(session.run).by("phase")


def test_threads_that_count_do_not_disturb_the_writing_nor_the_writing_them(tmp_path, hasty):
    """New shapes all the time, so that dicts grow while they are read."""

    def work(number: int) -> None:
        for size in range(1, 150):
            torch.ones(number, size) @ torch.ones(size, number)

    with bitwatt.measure("threads", store=tmp_path) as session:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(2, 5)]
        for thread in threads:
            thread.start()
        until(lambda: first(tmp_path, "under way"))
        for thread in threads:
            thread.join()
    # every product once: 2 n n k for k below 150, whose sum is 11175
    assert bitwatt.totals(session.run).total == sum(2 * n * n * 11_175 for n in range(2, 5))


def test_a_short_run_of_one_process_is_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "FIRST", 3600.0)  # this machine may stand still for seconds
    with bitwatt.measure("short", store=tmp_path):
        torch.ones(2) + 1
        (entry,) = journal._entries
        due = entry.due
        until(lambda: entry.due > due)  # it was looked at when a rank would have been written
        assert store.runs(tmp_path) == []
    assert len(store.runs(tmp_path)) == 1


def test_a_rank_is_written_soon(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "FIRST", 3600.0)  # of others
    monkeypatch.setattr(identity, "given", identity.this_rank(1, 2, "a-job"))
    with bitwatt.measure("rank", store=tmp_path):
        torch.ones(2) + 1
        header = until(lambda: first(tmp_path, "under way"))
        assert (header.rank.rank, header.rank.job) == (1, "a-job")
    assert [header.status for header in store.runs(tmp_path)] == ["ok"]


def test_nothing_is_written_where_nothing_is_kept(tmp_path, hasty, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with bitwatt.measure("unkept", keep=False):
        torch.ones(2) + 1
        time.sleep(0.5)
    assert list(tmp_path.iterdir()) == []
