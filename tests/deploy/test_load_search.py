"""The search for a rate, saturation and recovery, on models whose limits are known; time is a fake clock's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bitwatt.deploy.load import programme
from bitwatt.deploy.load.bench import Bench
from bitwatt.deploy.load.recovery import overload
from bitwatt.deploy.load.search import highest
from bitwatt.deploy.load.settings import checked
from bitwatt.deploy.records import Load
from deploy.virtual import Served, VirtualClock

SERVICE = 0.002


def loaded(slo: str = "", takes: Callable[[int], float | None] = lambda _: SERVICE, **settings: object) -> Load:
    clock = VirtualClock()
    wanted = checked(**{"seconds": 3, "rates": (), "callers": (1,), "slo": slo, **settings})
    return programme.run(Bench(Served(clock, takes), wanted, memory=lambda: 12.5, clock=clock), wanted)


def known(limit: float) -> Callable[[float, float], tuple[bool, float]]:
    return lambda rate, seconds: (rate <= limit, rate / limit)


@pytest.mark.parametrize("limit", [3.0, 20.0, 60.0, 95.0])
def test_the_highest_rate_is_found_wherever_it_lies(limit: float) -> None:
    found = highest(known(limit), known(limit), 100.0, needed=300, seconds=3)
    assert found.rate is not None
    assert limit / 1.09 <= found.rate <= limit


def test_no_more_than_the_capacity_is_tried_however_loose_the_slo() -> None:
    # With a limit of 2 s nothing that comes within a window of 1 s is late, at any rate.
    found = highest(known(1e9), known(1e9), 100.0, needed=300, seconds=3)
    assert found.rate == 100.0
    assert "all that can be served" in found.note


def test_a_rate_that_nothing_holds_is_none() -> None:
    found = highest(known(0.001), known(0.001), 100.0, needed=300, seconds=3)
    assert found.rate is None
    assert "not even" in found.note


def test_a_rate_that_holds_for_a_moment_alone_is_not_confirmed() -> None:
    found = highest(known(80.0), known(50.0), 100.0, needed=300, seconds=3)
    assert found.rate is not None
    assert 40 < found.rate <= 50
    none = highest(known(80.0), known(5.0), 100.0, needed=300, seconds=3)
    assert none.rate is None
    assert "longer" in none.note


def test_one_burst_of_noise_does_not_end_the_search() -> None:
    asked: list[float] = []

    def noisy(rate: float, seconds: float) -> tuple[bool, float]:
        asked.append(rate)
        return (False, 1.5) if len(asked) == 1 else known(90.0)(rate, seconds)

    found = highest(noisy, known(90.0), 100.0, needed=300, seconds=3)
    assert found.rate is not None
    assert found.rate > 80


def test_probes_are_short_and_few() -> None:
    tried: list[float] = []

    def always(rate: float, seconds: float) -> tuple[bool, float]:
        tried.append(seconds)
        return rate < 3, rate / 3

    highest(always, always, 10.0, needed=300, seconds=3, limit_s=3600)
    assert len(tried) < 20
    assert max(tried) <= 12


def test_the_rate_that_holds_an_slo_lies_below_the_capacity_and_was_confirmed() -> None:
    # s = 2 ms, so 500/s at most. M/D/1's p99 passes 20 ms at about 0.83 of that; short windows scatter.
    load = loaded("p99<20ms")
    assert load.capacity == pytest.approx(500, rel=0.02)
    assert load.highest_rate is not None
    assert 300 < load.highest_rate < 480
    confirmed = [one for one in load.points if one.kind == "open" and one.offered_rate == load.highest_rate]
    assert confirmed[-1].holds
    assert confirmed[-1].p99_ms == confirmed[-1].slo_ms
    assert confirmed[-1].p99_ms < 20
    assert any(one.holds is False for one in load.points)
    assert "95 % interval" in load.note
    assert "uncertain" not in load.note


def test_a_tighter_slo_has_a_lower_rate() -> None:
    rates = [loaded(slo).highest_rate or 0.0 for slo in ("p99<6ms", "p99<15ms", "p99<60ms")]
    assert rates == sorted(rates)
    assert rates[0] < 0.8 * rates[-1]


def test_an_slo_below_the_service_time_is_held_by_no_rate() -> None:
    load = loaded("p50<1ms")
    assert load.highest_rate is None
    assert "not even" in load.note


@pytest.mark.parametrize("slo", ["mean<4ms", "max<50ms", "p99.9<40ms", "p95<8ms,max<60ms"])
def test_other_statistics_can_be_asked_for(slo: str) -> None:
    load = loaded(slo)
    assert load.highest_rate is not None
    assert 100 < load.highest_rate < 500


def test_a_slow_model_has_few_requests_and_says_that_it_is_unsure() -> None:
    load = loaded("p99<2s", lambda _: 0.2, seconds=1)  # 5/s: four seconds hold 20 requests of the 300 it takes
    assert load.highest_rate is not None
    assert load.highest_rate <= 5.1
    assert "uncertain: 300 are needed" in load.note
    assert load.recovered in (True, None)


def test_past_saturation_and_back() -> None:
    # 1.5 times 500/s for 1 s leaves 250 too many; at 0.3 of the capacity they take 250 / (500 - 150) = 0.71 s.
    load = loaded()
    (over,) = [one for one in load.points if one.kind == "overload"]
    assert over.saturated
    assert over.offered_rate == pytest.approx(750, rel=0.02)
    assert over.achieved_rate == pytest.approx(500, rel=0.1)
    assert load.recovered is True
    assert load.recovery_s == pytest.approx(0.71, abs=0.25)
    assert [one.kind for one in load.points] == ["closed", "open", "open", "overload"]
    assert not any(one.saturated for one in load.points[:-1])
    assert {one.uss_mb for one in load.points} == {12.5}


def test_a_model_that_stays_slow_after_an_overload_has_not_recovered() -> None:
    clock, crowded = VirtualClock(), [False]

    class Leaks(Served):
        """Ten times slower for good once it is behind by 100 ms."""

        def caller(self) -> Callable[[int], str]:
            began: list[float] = []

            def call(number: int) -> str:
                began.append(clock.now)
                if len(began) > 50 and began[-1] - began[-50] < 51 * SERVICE and number > 300:
                    crowded[0] = True
                clock.sleep(10 * SERVICE if crowded[0] else SERVICE)
                return ""

            return call

    wanted = checked(seconds=3, rates=(1,), callers=(1,), slo="")
    bench = Bench(Leaks(clock, lambda _: SERVICE), wanted, memory=lambda: None, clock=clock)
    past = overload(bench, 500.0, 3.0)
    assert past.saturated
    assert past.recovered is False
    assert past.seconds is None
    assert "times what it had been" in past.note  # the calm before a second overload is not taken for normal


def test_a_server_that_is_never_full_is_pushed_harder_and_that_is_told() -> None:
    clock = VirtualClock()
    wanted = checked(seconds=3, rates=(1,), callers=(1,), slo="")
    bench = Bench(Served(clock, lambda _: 1e-6), wanted, memory=lambda: None, clock=clock)
    past = overload(bench, 500.0, 3.0)
    assert (past.saturated, past.recovered) == (False, None)
    assert "did not grow" in past.note
    assert [round(one.offered_rate or 0) for one in bench.points] == [750, 1500, 3000]


def test_rates_that_are_asked_for_are_put() -> None:
    load = loaded(rates=(50, 200.5), overload=False)
    assert [one.offered_rate for one in load.points if one.kind == "open"] == [50, 200.5]
    assert load.recovered is None


def test_a_slow_model_is_given_time_for_some_requests() -> None:
    load = loaded(takes=lambda _: 0.1, seconds=2)  # 10/s: 2 s at half of that would be 10 requests
    assert all(one.requests > 20 for one in load.points if one.kind == "open")
    nothing = loaded(takes=lambda _: 0.1, seconds=0.2, rates=(0.001,), overload=False).points[-1]
    assert (nothing.requests, nothing.failed, nothing.p50_ms, nothing.achieved_rate) == (0, 0, None, None)
    assert "uncertain" in nothing.note


def test_what_is_never_answered_ends_at_once() -> None:
    load = loaded("p99<20ms", lambda _: None)
    assert len(load.points) == 1
    assert load.highest_rate is None
    assert load.capacity is None
    assert "no request was answered" in load.note
    assert "refused" in load.note


def test_the_same_seed_gives_the_same_load() -> None:
    assert loaded("p95<8ms", seed=3) == loaded("p95<8ms", seed=3)
    assert loaded("p95<8ms", seed=3).points != loaded("p95<8ms", seed=4).points
