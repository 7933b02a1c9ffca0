"""What the clocks take of a short call is not the call's."""

from __future__ import annotations

import pytest

from bitwatt.deploy.measuring import blocks


class Clocks:
    """Reading the CPU clock takes 700 ns of both times, half before it is read; the other takes none."""

    def __init__(self) -> None:
        self.now = 0

    def cpu(self) -> int:
        self.now += 350
        read = self.now
        self.now += 350
        return read

    def wall(self) -> int:
        return self.now


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    found = Clocks()
    monkeypatch.setattr(blocks, "process_time_ns", found.cpu)
    monkeypatch.setattr(blocks, "perf_counter_ns", found.wall)
    return found


def test_the_time_of_the_clocks_is_found_from_laps_without_a_call(clocks: Clocks) -> None:
    assert blocks.clocks_ns() == 700


def test_a_call_that_computes_all_the_time_has_the_same_cpu_and_wall_time(clocks: Clocks) -> None:
    def predict(rows: int) -> None:
        clocks.now += rows

    walls, cpus = blocks.laps(predict, [2000], 0, 0.01, blocks.clocks_ns())
    assert set(walls) == set(cpus) == {2000}, "100 % of a core, not 135 %"


def test_no_call_takes_less_than_no_time(clocks: Clocks) -> None:
    _, cpus = blocks.laps(lambda rows: None, [0], 0, 0.0, 10_000)
    assert set(cpus) == {0}
