"""One accumulator for all energy counters: never a step back, never more than could be drawn, always in words."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitwatt.sensors.counters import Clock, Counter, Power, Tally
from bitwatt.testing import FakeClock

RANGE_UJ = 262_143_328_850
J = 1_000_000


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


def package(clock: Clock, *, range: int | None = RANGE_UJ, ceiling_w: float = 1000.0) -> Counter:
    return Counter(unit_j=1e-6, range=range, ceiling_w=ceiling_w, clock=clock)


def test_a_counter_is_joules_since_its_first_value(clock: FakeClock) -> None:
    counter = package(clock)
    assert counter.count(5000 * J) == (0.0, "")
    clock.advance(1)
    assert counter.count(5100 * J) == (100.0, "")
    clock.advance(1)
    assert counter.count(5150 * J) == (150.0, "")


def test_a_wrap_between_two_readings_is_unwrapped(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(RANGE_UJ - 40 * J)
    clock.advance(1)
    # 40 J to the top and 60 J from the bottom
    assert counter.count(60 * J) == (pytest.approx(100.0), "")


def test_two_wraps_that_were_both_seen_are_both_counted(clock: FakeClock) -> None:
    counter = package(clock, range=1000 * J)
    counter.count(900 * J)
    for value, total in ((400, 500), (950, 1050), (450, 1550)):  # 500 or 550 J; at most 0.6 s x 1000 W
        clock.advance(0.6)
        assert counter.count(value * J) == (pytest.approx(total), "")


def test_two_wraps_in_one_interval_count_the_least_and_say_so(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(RANGE_UJ - 40 * J)
    # In 1000 s up to 1000 W x 1000 s = 1 MJ may have been drawn, which is almost four times round.
    clock.advance(1000)
    total, note = counter.count(60 * J)
    assert total == pytest.approx(100.0)
    assert "more often" in note
    assert "the least" in note


def test_a_long_forward_step_may_hide_rounds_and_says_so(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(1000)
    total, note = counter.count(50_000 * J)
    assert total == pytest.approx(50_000.0)
    assert "the least" in note


def test_a_step_that_cannot_hide_a_round_is_certain(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(250)  # at most 250 kJ, and a round is 262 kJ
    assert counter.count(50_000 * J) == (pytest.approx(50_000.0), "")


def test_a_reset_is_not_a_wrap(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(2)
    counter.count(1000 * J)
    clock.advance(1)
    # As a wrap, 1000 J -> 5 J would be 262,143 - 1000 + 5 = 261,148 J in a second.
    total, note = counter.count(5 * J)
    assert total == 1000.0
    assert "reset" in note
    clock.advance(1)
    assert counter.count(105 * J) == (1100.0, "")


def test_a_counter_without_a_range_never_wraps(clock: FakeClock) -> None:
    counter = package(clock, range=None)
    counter.count(1000 * J)
    clock.advance(3600)
    total, note = counter.count(5 * J)
    assert total == 0.0
    assert "reset" in note


def test_a_leap_beyond_the_ceiling_is_no_energy(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(1)
    total, note = counter.count(5000 * J)  # 5 kW from a part that draws 1 kW at most
    assert total == 0.0
    assert "leapt" in note
    clock.advance(1)
    assert counter.count(5100 * J) == (100.0, "")


@pytest.mark.parametrize("value", [-1, RANGE_UJ + 1])
def test_values_that_the_counter_cannot_have_are_none(clock: FakeClock, value: int) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(1)
    total, note = counter.count(value)
    assert total is None
    assert "cannot" in note
    clock.advance(1)
    assert counter.count(150 * J) == (150.0, "")


def test_a_frozen_counter_is_none_and_what_it_missed_is_counted_when_it_moves(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(1)
    counter.count(100 * J)
    clock.advance(2)
    assert counter.count(100 * J) == (100.0, "")  # not yet: three seconds are allowed
    clock.advance(2)
    total, note = counter.count(100 * J)
    assert total is None
    assert "frozen" in note
    clock.advance(6)
    assert counter.count(1100 * J) == (1100.0, "")  # 1000 J in the 10 s since it last moved: 100 W


def test_a_counter_read_more_often_than_it_moves_is_not_frozen(clock: FakeClock) -> None:
    counter = Counter(unit_j=1e-3, ceiling_w=100, resolution_s=1.0, clock=clock)
    counter.count(0)
    for _ in range(9):
        clock.advance(0.1)
        assert counter.count(0) == (0.0, "")
    clock.advance(0.1)
    # 90 J in the whole second since it moved: plausible, though 900 W of the last tenth would not be
    assert counter.count(90_000) == (90.0, "")


def test_a_clock_that_jumps_back_makes_the_step_wait(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(1)
    counter.count(100 * J)
    clock.advance(-500)
    total, note = counter.count(200 * J)
    assert total is None
    assert "clock" in note
    clock.advance(1)
    assert counter.count(300 * J) == (300.0, "")  # nothing lost, nothing twice


def test_a_clock_that_jumps_forward_invents_nothing(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(86_400)
    total, note = counter.count(100 * J)
    assert total == 100.0
    assert "the least" in note


def test_a_suspended_laptop_that_resets_its_counter_loses_and_invents_nothing(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(10)
    counter.count(500 * J)
    clock.advance(1)
    clock.suspend(8 * 3600)
    # Eight hours would make room for 100 rounds of the counter: a wrap of 261,648 J is not believed all the same.
    total, note = counter.count(5 * J)
    assert total == 500.0
    assert "reset" in note
    clock.advance(1)
    assert counter.count(25 * J) == (520.0, "")


def test_a_suspended_laptop_whose_counter_goes_on_counts_its_sleep(clock: FakeClock) -> None:
    counter = package(clock, ceiling_w=100.0)
    counter.count(0)
    clock.advance(1)
    clock.suspend(3600)
    # 1800 J are half a watt for an hour; in the second awake they would be 1.8 kW
    assert counter.count(1800 * J) == (1800.0, "")


def test_a_counter_that_vanishes_and_returns_counts_the_gap_once(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(1)
    counter.count(100 * J)
    clock.advance(1)
    assert counter.lost("gone") == (None, "gone")
    clock.advance(20)
    assert counter.count(2100 * J) == (2100.0, "")  # 2000 J in 21 s: 95 W
    clock.advance(1)
    assert counter.count(2200 * J) == (2200.0, "")


def test_a_counter_that_returns_from_zero_leaves_a_gap(clock: FakeClock) -> None:
    counter = package(clock)
    counter.count(0)
    clock.advance(1)
    counter.count(700 * J)
    counter.lost("the driver was unloaded")
    clock.advance(600)  # long enough for a whole round: 600 kJ
    total, note = counter.count(50 * J)
    assert total == 700.0
    assert "reset" in note


def test_power_stands_in_for_a_lost_counter_and_gives_way_to_it(clock: FakeClock) -> None:
    counter = Counter(unit_j=1e-3, ceiling_w=1000, resolution_s=0.1, clock=clock)
    counter.count(0)
    clock.advance(1)
    assert counter.count(100_000) == (100.0, "")
    totals = []
    for _ in range(3):
        totals.append(counter.lost("no answer", power_w=90.0)[0])
        clock.advance(1)
    assert totals == [100.0, 190.0, 280.0]
    # The counter knows of 320 J since: they take the place of 180 J added up, and are not put on top of them.
    assert counter.count(420_000) == (420.0, "")


def test_the_total_never_falls_when_the_counter_knows_of_less_than_was_added_up(clock: FakeClock) -> None:
    counter = Counter(unit_j=1e-3, ceiling_w=1000, resolution_s=0.1, clock=clock)
    counter.count(0)
    counter.lost("no answer", power_w=100.0)
    clock.advance(1)
    assert counter.lost("no answer", power_w=100.0)[0] == 100.0
    clock.advance(1)
    assert counter.count(80_000) == (100.0, "")
    clock.advance(1)
    assert counter.count(160_000) == (160.0, "")


def test_power_added_up_stays_when_the_counter_comes_back_reset(clock: FakeClock) -> None:
    counter = Counter(unit_j=1e-3, ceiling_w=1000, resolution_s=0.1, clock=clock)
    counter.count(500_000)
    counter.lost("driver reloaded", power_w=100.0)
    clock.advance(2)
    assert counter.lost("driver reloaded", power_w=100.0)[0] == 200.0
    clock.advance(1)
    total, note = counter.count(1_000)
    assert total == 200.0
    assert "reset" in note
    clock.advance(1)
    assert counter.count(101_000) == (300.0, "")


def test_many_threads_may_count_at_once() -> None:
    counter = Counter(unit_j=1.0, ceiling_w=1e12)
    counter.count(0)
    values, drawing = iter(range(1, 4001)), threading.Lock()

    def work() -> None:
        for _ in range(1000):
            with drawing:
                counter.count(next(values))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.total_j == 4000


def test_a_child_forked_while_a_counter_is_read_does_not_wait_for_its_parent() -> None:
    counter = Counter(unit_j=1.0, ceiling_w=1e12)
    counter.count(0)
    with counter._lock:  # a reader is in the middle of it
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if counter.count(1)[0] == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_polled_power_is_added_up_as_trapezoids(clock: FakeClock) -> None:
    power = Power(ceiling_w=700, clock=clock)
    power.sample(100.0)
    clock.advance(1)
    assert power.sample(300.0) == (200.0, "")  # (100 + 300) / 2 x 1 s
    clock.advance(2)
    assert power.sample(300.0) == (800.0, "")


@pytest.mark.parametrize("watts", [0.0, -5.0, 1e6, float("nan"), None])
def test_watts_that_are_no_power_are_none_and_skipped(clock: FakeClock, watts: float | None) -> None:
    power = Power(ceiling_w=700, clock=clock)
    power.sample(100.0)
    clock.advance(1)
    total, note = power.sample(watts)
    assert total is None
    assert note
    clock.advance(1)
    assert power.sample(100.0) == (200.0, "")  # the two good samples are two seconds apart


def test_time_in_which_power_was_not_seen_is_a_gap(clock: FakeClock) -> None:
    power = Power(ceiling_w=700, clock=clock)
    power.sample(100.0)
    clock.advance(3600)
    total, note = power.sample(100.0)
    assert total == 0.0
    assert "3.6e+03 s" in note


def test_polled_power_does_not_grow_while_the_laptop_sleeps(clock: FakeClock) -> None:
    power = Power(ceiling_w=700, clock=clock)
    power.sample(100.0)
    clock.advance(1)
    clock.suspend(3600)
    assert power.sample(100.0) == (100.0, "")


def test_polled_power_survives_a_clock_that_jumps_back(clock: FakeClock) -> None:
    power = Power(ceiling_w=700, clock=clock)
    power.sample(100.0)
    clock.advance(-10)
    assert power.sample(100.0)[0] == 0.0
    clock.advance(1)
    assert power.sample(100.0) == (100.0, "")


def test_a_tally_starts_at_its_first_value_and_again_after_a_step_back() -> None:
    tally = Tally()
    assert [tally.count(value) for value in (50, 70, 10, 15)] == [0, 20, 20, 25]


EVENTS = st.one_of(
    st.tuples(st.just("pass"), st.floats(0, 400)),
    st.tuples(st.just("pass"), st.floats(-50, 0)),
    st.tuples(st.just("sleep"), st.floats(0, 20_000)),
    st.tuples(st.just("count"), st.integers(-10, 1_100_000)),
    st.tuples(st.just("lost"), st.sampled_from([None, -10.0, 0.0, 50.0, 99.0, 2000.0, float("nan")])),
)


@given(st.lists(EVENTS, max_size=60), st.sampled_from([None, 1_000_000]))
@settings(max_examples=300, deadline=None)
def test_whatever_happens_energy_never_falls_and_is_never_more_than_could_be_drawn(
    events: list[tuple[str, float]], range: int | None
) -> None:
    clock, ceiling_w = FakeClock(), 100.0
    counter = Counter(unit_j=1e-3, range=range, ceiling_w=ceiling_w, clock=clock)
    passed, looks, last = 0.0, 0, 0.0
    for what, amount in events:
        if what == "pass":
            clock.advance(amount)
            passed += max(amount, 0.0)
        elif what == "sleep":
            clock.suspend(amount)
            passed += amount
        else:
            looks += 1
            total, note = counter.count(int(amount)) if what == "count" else counter.lost("gone", amount)
            assert note or total is not None
            assert counter.total_j >= last
            last = counter.total_j
            assert last <= ceiling_w * (passed + 0.05 * looks) + 1e-6
            assert total is None or total == last
