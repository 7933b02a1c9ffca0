"""Grams: published figures end to end, intensities that change during a run, and what is not known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitwatt.config import Settings, settings
from bitwatt.grid import Grid, Intensity, ask
from bitwatt.impact.carbon import carbon, embodied_g, emitted, operational_g
from bitwatt.impact.energy import JOULES_PER_KWH
from bitwatt.readings import Device, Energy, Metered
from factories import metered

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def hourly(*values: float, start: datetime = NOON, step: timedelta = timedelta(hours=1)) -> Grid:
    return Grid(
        tuple(
            Intensity(value, "average", "direct", "XX", "test", None, start + i * step, start + (i + 1) * step)
            for i, value in enumerate(values)
        )
    )


def one_device(energy_j: float | None, seconds: float, how: str = "measured", **more: Any) -> Metered:
    part = Energy(Device("gpu:0", "gpu"), energy_j, how, "a test", seconds)
    return Metered(seconds, (part,), **more)


def test_lamda_as_published() -> None:
    """Thoppilan et al. 2022, LaMDA: 57.7 days on 1024 TPU-v3 chips at 0.289 kW, PUE 1.1, 0.056 kgCO2e/kWh.

    57.7 d x 24 h x 1024 x 0.289 kW = 409.8 MWh; x 1.1 = 450.8 MWh; x 0.056 kg/kWh = 25.2 t.
    """
    seconds = 57.7 * 86400
    chips = tuple(
        Energy(Device(f"tpu:{i}", "accelerator", "TPU v3"), 289.0 * seconds, "measured", "published", seconds)
        for i in range(1024)
    )
    told = settings("/", pue=1.1, intensity_g_per_kwh=56)
    found = carbon(Metered(seconds, chips), told, ask(told, NOON, NOON + timedelta(seconds=seconds)), NOON)
    assert found.energy_j is not None
    assert found.operational_g is not None
    assert found.energy_j / JOULES_PER_KWH * 1.1 / 1000 == pytest.approx(451, abs=0.5)
    assert found.operational_g / 1e6 == pytest.approx(25.2, abs=0.05)
    assert found.because == ""


def test_without_a_pue_none_is_applied_and_that_is_visible() -> None:
    found = carbon(one_device(3.6e6, 10), Settings(), hourly(100), NOON)
    assert (found.operational_g, found.pue) == (100, None)
    assert operational_g(3.6e6, 100, 1.5) == 150


def test_energy_is_priced_at_the_intensity_of_its_time() -> None:
    """1 kWh drawn evenly over two hours, the first at 100 g, the second at 300: 0.5 x 100 + 0.5 x 300."""
    found = carbon(one_device(3.6e6, 7200), Settings(), hourly(100, 300), NOON)
    assert found.operational_g == pytest.approx(200)
    assert found.intensity_g_per_kwh == pytest.approx(200)


def test_the_power_over_time_says_when_energy_was_drawn() -> None:
    """300 W in the first hour and 100 W in the second: 3/4 of the energy at 100 g, 1/4 at 300 g, whatever the counter
    says the total was."""
    series = {"gpu:0": tuple((float(s), 300.0 if s < 3600 else 100.0) for s in range(0, 7201))}
    found = carbon(one_device(7.2e6, 7200, series=series), Settings(), hourly(100, 300), NOON)
    assert found.operational_g == pytest.approx(2 * (0.75 * 100 + 0.25 * 300), rel=1e-3)


def test_a_run_that_begins_between_two_hours() -> None:
    """From 12:45 to 13:15: half of the energy at each."""
    found = carbon(one_device(3.6e6, 1800), Settings(), hourly(100, 300), NOON + timedelta(minutes=45))
    assert found.operational_g == pytest.approx(200)


def test_a_gap_in_the_intensities_leaves_the_grams_unknown_with_what_is_known_beside() -> None:
    found = carbon(one_device(3.6e6, 7200), Settings(), hourly(100), NOON)
    assert found.operational_g is None
    assert found.total_g is None
    assert "known for 50 % of the energy only (50 g)" in found.because


def test_the_last_second_need_not_be_covered() -> None:
    found = carbon(one_device(3.6e6, 3601), Settings(), hourly(100), NOON)
    assert found.operational_g == pytest.approx(100)


@pytest.mark.parametrize(
    ("energy", "grid", "says"),
    [
        (one_device(None, 10), hourly(100), "no energy was measured"),
        (one_device(50.0, 10, "modelled"), hourly(100), "no energy was measured (gpu:0: modelled)"),
        (Metered(10.0), hourly(100), "no energy was measured"),
        (one_device(50.0, 10), Grid((), "uk: HTTP 500"), "uk: HTTP 500"),
    ],
)
def test_what_is_not_known_is_none_with_a_reason(energy: Metered, grid: Grid, says: str) -> None:
    found = carbon(energy, Settings(), grid, NOON)
    assert found.operational_g is None
    assert found.sci(1000) is None
    assert says in found.because


def test_modelled_energy_counts_where_it_is_asked_for_and_is_marked() -> None:
    found = carbon(one_device(3.6e6, 10, "modelled"), settings("/", show_modelled=True), hourly(100), NOON)
    assert (found.operational_g, found.how) == (100, "modelled")


def test_a_lost_device_is_not_taken_for_zero_but_left_out() -> None:
    found = carbon(metered(), Settings(), hourly(1000), NOON)
    assert found.energy_j == 3600.0
    assert found.operational_g == pytest.approx(1.0)


def test_no_energy_at_all_is_zero_grams() -> None:
    assert carbon(one_device(0.0, 10), Settings(), hourly(100), NOON).operational_g == 0


def test_embodied_is_a_share_of_life_and_of_the_device() -> None:
    """150 kg over 35,040 h (four years); two hours on two devices, a half of each: 150,000 x 2 x 0.5 x 2 / 35,040."""
    told = settings("/", embodied_kg=150, embodied_lifetime_h=35040, embodied_share=0.5)
    assert embodied_g(told, 7200, 2) == pytest.approx(8.5616, abs=1e-4)
    assert embodied_g(Settings(), 7200) is None
    assert embodied_g(settings("/", embodied_kg=150), 7200) is None


def test_sci_is_operational_and_embodied_for_each_unit() -> None:
    """((E x I) + M) / R: 1 kWh x 100 g + 1000 g x 1 h / 10 h = 200 g over 50 requests."""
    told = settings("/", embodied_kg=1, embodied_lifetime_h=10)
    found = carbon(one_device(3.6e6, 3600), told, hourly(100), NOON)
    assert found.total_g == pytest.approx(200)
    assert found.sci(50) == pytest.approx(4)
    assert found.sci(0) is None


@given(
    st.lists(st.floats(0, 1000), min_size=1, max_size=30),
    st.lists(st.floats(0, 1000), min_size=24, max_size=24),
    st.floats(0, 3000),
)
def test_grams_lie_between_the_least_and_the_greatest_intensity(
    watts: list[float], values: list[float], at: float
) -> None:
    """For any power curve and any start: all energy is covered once, and the mean is a mean."""
    length = 60.0 * len(watts)
    run = one_device(1e6, length, series={"gpu:0": tuple((60.0 * i, w) for i, w in enumerate(watts))})
    grid = hourly(*values, step=timedelta(minutes=10))
    grams, covered = emitted(run.energy[0], run, NOON + timedelta(seconds=at), grid.intensities)
    assert covered == pytest.approx(1e6)
    assert min(values) - 1e-6 <= grams / covered * JOULES_PER_KWH <= max(values) + 1e-6
