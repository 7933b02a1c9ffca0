"""Who held up whom, from steps whose truth is known."""

import random
import sys

import pytest

from bitwatt.ranks.arrivals import KEPT, Arrivals, Recorder
from bitwatt.ranks.stragglers import waiting


def job(ranks: int, steps: int, late, compute: float = 0.02, noise: float = 0.0005) -> dict[int, Arrivals]:
    """`late(rank, step)` seconds are added to a rank's own part; all leave together when the last has come, and the
    clock of each began at another time."""
    draw = random.Random(1)
    recorders = [Recorder() for _ in range(ranks)]
    clocks = [1000.0 * (rank + 1) for rank in range(ranks)]
    for step in range(-1, steps):  # the first only sets the clocks
        busy = [compute + draw.random() * noise + late(rank, step) for rank in range(ranks)]
        longest = max(busy)
        for rank, recorder in enumerate(recorders):
            recorder.waited(clocks[rank] + busy[rank], clocks[rank] + longest)
            recorder.stepped()
            clocks[rank] += longest
    return {rank: Arrivals.unpacked(recorder.packed()) for rank, recorder in enumerate(recorders)}


def test_a_rank_that_is_always_late_is_named_with_its_share_and_delay():
    found = waiting(job(4, 200, lambda rank, step: 0.038 * (rank == 3 and step % 5 in (0, 2))))
    assert [str(delay) for delay in found.delays] == ["rank 3 held up 40 % of steps by a median of 38 ms"]
    # 80 of 200 steps, 38 ms each, which the others spend waiting
    assert found.delayed[3] == pytest.approx(80 * 0.038, rel=0.1)
    assert found.waited[0] == pytest.approx(80 * 0.038, rel=0.1)
    assert found.waited[3] < 0.2


def test_where_all_are_late_alike_nobody_is_named():
    draw = random.Random(2)
    found = waiting(job(8, 300, lambda rank, step: draw.random() * 0.01))
    assert found.delays == []


def test_a_single_long_step_is_told_as_one():
    found = waiting(job(4, 5000, lambda rank, step: 1.5 * (rank == 2 and step == 3210)))
    assert [(d.rank, d.is_chronic, d.worst[0]) for d in found.delays] == [(2, False, 3210)]
    assert str(found.delays[0]) == "rank 2 held up the others once, by 1.5 s in step 3,210"


@pytest.mark.parametrize("period", [2, 3, 4, 8, 16, 64])
def test_a_sample_of_a_long_run_keeps_the_share_whatever_its_period(period):
    """Keeping each second step, as one might, would see all or none of these."""
    found = waiting(job(3, 20_000, lambda rank, step: 0.05 * (rank == 1 and step % period == 0)))
    assert found.steps == 20_000
    if period <= 8:
        assert found.delays[0].steps / found.delays[0].of == pytest.approx(1 / period, abs=0.05)
    else:  # less often than chronic, but every time by more than twice a step
        assert found.delayed[1] == pytest.approx(20_000 / period * 0.05, rel=0.5)


def test_two_ranks_can_hold_up_the_others():
    found = waiting(
        job(6, 400, lambda rank, step: 0.03 * (rank == 1 and step % 2) + 0.05 * (rank == 4 and not step % 3))
    )
    assert {delay.rank for delay in found.delays} == {1, 4}


def test_a_rank_that_was_lost_early_is_compared_as_long_as_it_was_there():
    arrivals = job(3, 400, lambda rank, step: 0.03 * (rank == 2))
    early = job(3, 100, lambda rank, step: 0.03 * (rank == 2))[2]
    assert waiting(arrivals | {2: early}).delays[0].rank == 2


def test_ranks_that_never_met_are_not_judged():
    assert waiting({}) is None
    assert waiting({0: Arrivals(0, 0.0, 0.0, {}, {})}) is None


def test_memory_does_not_grow_with_the_run():
    recorder = Recorder()
    sizes = []
    for step in range(200_001):
        recorder.add(0.01, 0.001 * (step % 7))
        if step % 50_000 == 1_000:
            sizes.append(sys.getsizeof(recorder._samples) + len(recorder._heap) * 200)
    assert max(sizes) < 40_000
    assert len(recorder._samples) < 3 * KEPT
    back = Arrivals.unpacked(recorder.packed())
    assert back.count == 200_001
    assert len(recorder.packed()) < 20_000
    assert back.busy == pytest.approx(2000.01)


def test_collectives_without_an_optimizer_are_rounds_until_one_steps():
    recorder = Recorder()
    for i in range(10):
        recorder.waited(i + 0.5, i + 0.75)
    assert (recorder.steps, recorder.rounds) == (9, True)
    recorder.stepped()
    assert (recorder.steps, recorder.rounds) == (0, False)
    recorder.waited(10.5, 10.75)
    recorder.waited(11.0, 11.25)
    recorder.stepped()
    # from 9.75 to 10.5 and from 10.75 to 11.0 busy, a quarter of a second in each collective
    assert (recorder.steps, recorder.busy, recorder.wait) == (1, 1.0, 0.5)


def test_times_of_two_threads_do_not_count_twice():
    recorder = Recorder()
    recorder.rounds = False
    recorder.waited(0.0, 1.0)
    recorder.waited(2.0, 4.0)
    recorder.waited(1.5, 3.0)  # ended while the other waited
    recorder.waited(3.5, 5.0)  # began while the other waited
    recorder.stepped()
    assert (recorder.busy, recorder.wait) == (1.0, 3.0)
