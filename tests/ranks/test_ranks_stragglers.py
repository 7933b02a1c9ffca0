"""Who held up whom, from steps whose truth is known."""

import random
import sys

import pytest

from bitwatt.ranks import chance
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


NOISE = {  # seconds, beside 20 ms of computing
    "up to a twentieth": lambda draw: draw.random() * 0.001,
    "exponential": lambda draw: draw.expovariate(1 / 0.002),
    "lognormal": lambda draw: draw.lognormvariate(0, 1) * 0.002,
    "heavy": lambda draw: draw.paretovariate(1.5) * 0.002,
}


@pytest.mark.parametrize("noise", NOISE)
def test_nobody_is_named_by_chance_in_200_jobs(noise):
    draw = random.Random(5)
    named = []
    for number in range(200):
        found = waiting(job((2, 4, 8)[number % 3], 60, lambda rank, step: NOISE[noise](draw), noise=0.0))
        named += [str(delay) for delay in found.delays]
    assert named == []


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("share", [1.0, 0.4])
def test_a_rank_that_sleeps_30_ms_is_always_named(noise, share):
    draw = random.Random(6)
    for number in range(40):
        found = waiting(
            job(
                (2, 4)[number % 2], 100, noise=0.0,
                late=lambda rank, step: NOISE[noise](draw) + 0.03 * (rank == 1 and draw.random() < share),
            )
        )  # fmt: skip
        assert [delay.rank for delay in found.delays] == [1]
        assert found.delays[0].is_chronic
        assert found.delays[0].steps / found.delays[0].of == pytest.approx(share, abs=0.2)


def test_a_busy_while_of_one_machine_is_not_held_against_its_rank():
    found = waiting(job(2, 1000, lambda rank, step: 0.01 * (rank == 1 and 500 <= step < 550)))
    assert found.delays == []


def test_a_rank_that_slows_down_in_the_middle_of_a_run_is_named():
    found = waiting(job(4, 1000, lambda rank, step: 0.01 * (rank == 1 and step > 500)))
    assert [(delay.rank, delay.is_chronic) for delay in found.delays] == [(1, True)]


def test_equal_rounds_are_won_as_coins_fall():
    # 9 or 10 heads of 10: 11 of 1024
    rounds = [(1.0, int(number > 0), 2) for number in range(10)]
    assert chance.of_winning(rounds, [0, 1, 2]) == pytest.approx({0: 1023 / 1024, 1: 11 / 1024, 2: 1.0})


def test_close_rounds_count_less_than_clear_ones():
    clear, close = [(1.0, 1, 2)] * 8, [(0.01, 0, 2)] * 40
    assert chance.of_winning(clear + close, [1])[1] == pytest.approx(1 / 256)


def test_values_that_lie_apart_are_told_from_a_long_tail():
    draw = random.Random(7)
    tails = [[draw.paretovariate(1.0) for _ in range(300)] for _ in range(300)]
    assert sum(chance.of_apart(tail)[1] < 0.01 for tail in tails) <= 8  # one in a hundred: 3, give or take
    values = [draw.random() for _ in range(300)]
    assert chance.of_apart([*values, 50.0])[0] == 1
    count, by_chance = chance.of_apart([*values, 50.0, 60.0])
    assert count == 2
    assert by_chance < 1e-6
    assert chance.of_apart([1.0, 2.0]) == (0, 1.0)


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
