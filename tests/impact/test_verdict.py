"""Where a run stands on three axes, and what a laboratory's machines take."""

from __future__ import annotations

import pytest

from bitwatt.impact import verdict
from bitwatt.impact.verdict import Point, alone, by_machine, middle, place

REFERENCE = Point(10**15, 16 * 10**15, 1000.0)


@pytest.mark.parametrize(
    ("flops", "bops", "joules", "words"),
    [
        (0.5, 0.5, 0.5, verdict.ALL_THREE),
        (1.0, 1.0, 0.5, verdict.ALL_THREE),
        (1.05, 0.95, 1.0, verdict.SAME),
        (1.0, 2.0, 0.5, verdict.HARDWARE),
        (2.0, 2.0, 0.5, verdict.HARDWARE),
        (1.0, 2.0, 1.0, verdict.INFLATED),
        (1.0, 2.0, 2.0, verdict.INFLATED),
        (0.5, 0.5, 2.0, verdict.WASTED),
        (2.0, 0.5, 1.0, verdict.NARROW),
        (2.0, 2.0, 2.0, verdict.COSTLY),
        (2.0, 1.0, 1.0, verdict.MIXED),
    ],
)
def test_a_run_beside_another(flops: float, bops: float, joules: float, words: str) -> None:
    run = Point(round(flops * 10**15), round(bops * 16 * 10**15), joules * 1000)
    found = place(run, REFERENCE)
    assert found.words == words
    assert found.rule.startswith(f"FLOPs {flops:g}×, BOPs {bops:g}×, energy {joules:g}×")
    assert "alike within 10 %" in found.rule


def test_without_measured_energy_only_the_work_is_placed() -> None:
    assert place(Point(10**15, 10**15, None), REFERENCE).words.startswith("unknown")
    assert place(Point(10**15, 32 * 10**15, None), REFERENCE).words == verdict.INFLATED


@pytest.mark.parametrize(
    ("bits", "joules", "words"),
    [
        (32, 100.0, verdict.INFLATED),
        (32, 90_000.0, verdict.WASTED),
        (16, 1000.0, verdict.WASTED),
        (8, 150.0, "narrow"),
        (16, None, "unknown"),
    ],
)
def test_a_run_by_itself(bits: int, joules: float | None, words: str) -> None:
    found = alone(Point(10**12, bits * 10**12, joules), 100.0)
    assert found.words.startswith(words)
    assert f"{bits} bits per FLOP against 16" in found.rule


def test_the_reference_of_several_runs_is_their_median() -> None:
    found = middle([Point(1, 16, 5.0), Point(3, 48, None), Point(9, 144, 7.0)])
    assert found == Point(3, 48, 6.0, name="median of 3 runs")
    assert middle([]) is None


def test_machines_have_a_spread_and_unknown_energy_says_nothing_of_them() -> None:
    costs = [(10.0, 1.0, "a"), (30.0, None, "a"), (20.0, 2.0, "a"), (None, None, "b"), (5.0, None, "c")]
    runs = [Point(10**12, 10**13, joules, grams, machine=machine) for joules, grams, machine in costs]
    runs += [Point(0, 0, 5.0, machine="d")]
    found = by_machine(runs)
    assert set(found) == {"a", "c"}
    assert found["a"]["j_per_tflop"] == verdict.Spread(3, 20.0, 10.0, 30.0)
    assert found["a"]["j_per_tbop"].median == pytest.approx(2)
    assert found["a"]["g_per_tflop"] == verdict.Spread(2, 1.5, 1.0, 2.0)
    assert "g_per_tflop" not in found["c"]
