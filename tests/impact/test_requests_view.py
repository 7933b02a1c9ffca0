"""Requests: per thousand, by the month, against training."""

from __future__ import annotations

import pytest

from bitwatt.impact.requests import MONTH_S, Served, lifetime, monthly, passes_after, per_thousand

#: 500 requests in 100 s: 20 kJ of which 5 kJ idle (50 W).
SERVED = Served(500, 100.0, 20_000.0, 5_000.0, 10**15, 16 * 10**15, 4.0, 0.01, busy_s=40.0, how="measured")


def test_per_thousand_with_idle_in_and_out() -> None:
    found = per_thousand(SERVED)
    assert found is not None
    assert (found.energy_j, found.active_j) == (40_000, 30_000)
    assert found.energy_wh == pytest.approx(40_000 / 3600)
    assert (found.flops, found.bops, found.grams, found.cost) == (2e15, 32e15, 8, 0.02)


def test_what_is_not_known_stays_unknown() -> None:
    assert per_thousand(Served(0, 10.0, 5.0)) is None
    found = per_thousand(Served(10, 10.0, 5.0))
    assert found is not None
    assert (found.energy_j, found.active_j, found.grams) == (500, None, None)


def test_a_month_is_idle_draw_and_active_energy() -> None:
    """10 requests a second: 50 W all month + 10/s x 30 J = 350 W: 350 W x 730.485 h = 255.67 kWh; x 1.2; x 100 g."""
    found = monthly(SERVED, 10.0, intensity_g_per_kwh=100, pue=1.2, price_per_kwh=0.3, price_per_device_hour=1.0)
    assert found is not None
    assert found.requests == pytest.approx(10 * MONTH_S)
    assert found.energy_kwh == pytest.approx(1.2 * 0.35 * 730.485)
    assert found.grams == pytest.approx(1.2 * 0.35 * 730.485 * 100)
    assert found.cost == pytest.approx(1.2 * 0.35 * 730.485 * 0.3 + 730.485)
    assert found.machines == 1


def test_more_than_one_machine_can_serve_needs_more() -> None:
    """0.08 s of work each: 12.5 a second fill a machine, 30 need three, each with its idle draw."""
    found = monthly(SERVED, 30.0)
    assert found is not None
    assert found.machines == 3
    assert found.energy_kwh == pytest.approx((3 * 0.05 + 30 * 0.03) * 730.485)
    full = monthly(SERVED, 12.5)
    assert full is not None
    assert full.machines == 1


def test_without_a_baseline_the_measured_load_is_assumed_and_said() -> None:
    found = monthly(Served(500, 100.0, 20_000.0), 5.0)
    assert found is not None
    assert found.energy_kwh == pytest.approx(5 * 40 * MONTH_S / 3.6e6)
    assert "no idle baseline is known" in found.rule
    assert "PUE not applied" in found.rule
    assert "as measured" in found.rule
    guessed = monthly(Served(500, 100.0, 20_000.0, how="modelled"), 5.0)
    assert guessed is not None
    assert "as measured" not in guessed.rule
    assert guessed.rule.endswith("; modelled")
    nothing = monthly(Served(500, 100.0), 5.0)
    assert nothing is not None
    assert (nothing.energy_kwh, nothing.grams, nothing.cost) == (None, None, None)


def test_inference_passes_training() -> None:
    """1.68 GJ of training, 400 J a request: equal at 4.2 million, more with the next."""
    assert passes_after(1.68e9, 400) == 4_200_001
    assert lifetime(1.68e9, 400) == "inference passes training after 4.20 M requests"
    assert lifetime(1.68e9, 400, 5_000_000).startswith("inference passed training after 4.20 M requests")
    assert passes_after(None, 400) is None
    assert passes_after(10, 0) is None
    assert lifetime(None, 400).startswith("unknown")
