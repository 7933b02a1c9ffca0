"""Joules for each TFLOP and TBOP, utilisation, money: by hand-made runs with known arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bitwatt
from bitwatt.config import Settings, settings
from bitwatt.hardware.catalogue import chips, find
from bitwatt.impact.energy import ratio, ratio_by_phase, transfer, used, weakest
from bitwatt.impact.money import cost, device_hours
from bitwatt.impact.utilisation import utilisation
from bitwatt.impact.work import Executed, executed
from bitwatt.ledger import Row
from bitwatt.metering import Meter
from bitwatt.readings import Device, Energy, Metered, PhaseEnergy
from bitwatt.records import Op, Run, TensorSpec
from bitwatt.sensors.process import Process
from factories import make_run, metered

GPU = Device("gpu:0", "gpu", "NVIDIA H200")


def mm(n: int, dtype: str = "float32", calls: int = 1, phase: str = "forward") -> Row:
    spec = TensorSpec((n, n), dtype)
    return Row(phase, "", Op("aten.mm", (("self", spec), ("mat2", spec)), (spec,)), calls)


def relu(n: int, phase: str = "forward") -> Row:
    spec = TensorSpec((n,), "float32")
    return Row(phase, "", Op("aten.exp", (("self", spec),), (spec,)), 1)


def priced(run: Run) -> tuple[Any, Any]:
    return bitwatt.totals(run, bitwatt.FLOPS), bitwatt.totals(run, bitwatt.BOPS)


def test_joules_per_tflop_and_tbop() -> None:
    """1000 products of 1000 x 1000: 2e12 FLOP, at 32 bits 64e12 BOP. 500 J: 250 J/TFLOP, 7.8125 J/TBOP."""
    flops, bops = priced(make_run([mm(1000, calls=1000)]))
    found = ratio(Metered(1.0, (Energy(GPU, 500.0, "measured", "NVML", 1.0),)), flops, bops)
    assert (found.flops, found.bops) == (2 * 10**12, 64 * 10**12)
    assert found.j_per_tflop == 250
    assert found.j_per_tbop == 7.8125
    assert (found.how, found.missing) == ("measured", 0)


def test_no_ratio_on_modelled_watts_unless_asked_for() -> None:
    flops, bops = priced(make_run([mm(1000)]))
    run = Metered(1.0, (Energy(GPU, 500.0, "modelled", "TDP", 1.0),))
    assert ratio(run, flops, bops).j_per_tflop is None
    marked = ratio(run, flops, bops, modelled=True)
    assert marked.j_per_tflop == pytest.approx(250_000)
    assert marked.how == "modelled"


def test_modelled_devices_stay_out_of_a_measured_sum() -> None:
    cpu = Energy(Device("cpu:0", "cpu"), 70.0, "modelled", "TDP", 1.0)
    run = Metered(1.0, (Energy(GPU, 500.0, "measured", "NVML", 1.0), cpu))
    assert used(run).energy_j == 500
    assert used(run).without == {"cpu:0": "modelled"}
    assert (used(run, modelled=True).energy_j, used(run, modelled=True).how) == (570, "modelled")


def test_by_phase_with_how_each_was_found() -> None:
    flops, bops = priced(make_run([mm(100), mm(100, phase="evaluate/inference"), mm(100, phase="loss")]))
    found = ratio_by_phase(metered(), flops, bops)
    # 900 + 100 J for 2e6 FLOP
    assert found["forward"].j_per_tflop == pytest.approx(1000 / 2e-6)
    assert found["forward"].how == "apportioned"
    assert found["evaluate/inference"].how == "measured"
    assert (found["loss"].energy_j, found["loss"].j_per_tflop) == (None, None)


def test_a_phase_without_counted_work_has_energy_and_no_ratio() -> None:
    flops, bops = priced(make_run([mm(10)]))
    run = Metered(
        1.0, (Energy(GPU, 5.0, "measured", "NVML", 1.0),), {"preprocess": PhaseEnergy({"gpu:0": 5.0}, "measured", 1.0)}
    )
    found = ratio_by_phase(run, flops, bops)["preprocess"]
    assert (found.energy_j, found.j_per_tflop, found.j_per_tbop) == (5.0, None, None)


def test_missing_rules_are_said_beside_the_ratio() -> None:
    strange = Row("forward", "", Op("nobody.knows"), 7)
    flops, bops = priced(make_run([mm(10), strange]))
    assert ratio(metered(), flops, bops).missing == 7
    assert ratio_by_phase(metered(), flops, bops)["forward"].missing == 7


def test_active_energy_is_known_where_every_device_has_a_baseline() -> None:
    """500 J in 10 s with a baseline of 20 W: 300 J active."""
    part = Energy(GPU, 500.0, "measured", "NVML", 10.0, idle_w=20.0)
    assert used(Metered(10.0, (part,))).active_j == 300
    assert used(metered()).active_j is None  # the processor has none


def test_the_weakest_way_names_a_sum() -> None:
    assert weakest(["measured", "apportioned"]) == "apportioned"
    assert weakest(["modelled", "measured"]) == "modelled"
    assert weakest([]) == ""


def test_transfer_is_the_users_coefficient_times_bytes() -> None:
    run = metered(usage={"host.network_sent_bytes": 1e9, "host.network_received_bytes": 3e9})
    assert transfer(run, 2e-8) == pytest.approx(80)
    assert transfer(run, None) is None
    assert transfer(metered(usage={}), 2e-8) is None


def test_transfer_is_of_what_the_meter_itself_writes_down() -> None:
    if not Path("/proc/net/dev").exists():
        pytest.skip("the system tells nothing of its network")
    with bitwatt.measure("network", keep=False, meter=Meter([Process()], shared=False)) as session:
        pass
    assert session.run.meter is not None
    assert transfer(session.run.meter, 1e-8) is not None


def test_formats_are_those_that_ran() -> None:
    run = make_run([mm(100, "bfloat16"), mm(100), mm(100, "float64", phase="backward"), relu(50)])
    found = {(e.phase, e.unit, e.format): e.flops for e in executed(bitwatt.totals(run, "flops").entries)}
    assert found["forward", "matrix", "bfloat16"] == found["forward", "matrix", "float32"] == 2_000_000
    assert found["backward", "matrix", "float64"] == 2_000_000
    assert found["forward", "vector", "float32"] == 50
    tf32 = {e.format for e in executed(bitwatt.totals(run, "flops").entries, tf32={"matmul"}) if e.unit == "matrix"}
    assert tf32 == {"bfloat16", "tf32", "float64"}


def test_executed_work_is_what_flops_counts() -> None:
    from factories import transformer_run

    flops = bitwatt.totals(transformer_run(layers=2), "flops")
    assert sum(part.flops for part in executed(flops.entries)) == flops.total


def test_utilisation_is_ideal_time_over_wall_time() -> None:
    """On an H200: 2e15 FLOP in bf16 at 989.4e12, 1e14 in fp32 at 66.9e12, in 10 s: (2.0214 + 1.4948) / 10."""
    run = make_run([mm(1000, "bfloat16", 10**6), mm(1000, "float32", 50_000)])
    found = utilisation(executed(bitwatt.totals(run, "flops").entries), find("NVIDIA H200"), 10.0)
    assert found.mfu == pytest.approx((2e15 / 989.4e12 + 1e14 / 66.9e12) / 10)
    assert "989 TFLOP/s bf16 dense (NVIDIA H100 GPU architecture whitepaper" in str(found)
    two = utilisation(executed(bitwatt.totals(run, "flops").entries), find("NVIDIA H200"), 10.0, devices=2)
    assert two.mfu == pytest.approx((found.mfu or 0) / 2)


def test_an_unknown_device_or_format_has_no_utilisation() -> None:
    work = executed(bitwatt.totals(make_run([mm(100, "bfloat16")]), "flops").entries)
    assert utilisation(work, find("NVIDIA GeForce RTX 4090 Laptop GPU"), 1.0, name="a laptop").because == (
        "no peak is known for 'a laptop'"
    )
    assert utilisation(work, find("Tesla T4"), 1.0).mfu is None  # Turing has no bf16
    assert "bfloat16" in utilisation(work, find("Tesla T4"), 1.0).because
    assert utilisation([], find("Tesla T4"), 1.0).mfu is None


def test_element_wise_work_without_a_peak_forbids_it_unless_it_is_little() -> None:
    chip = next(chip for chip in chips() if "bf16" in chip.peaks and "fp32" not in chip.peaks)
    products = Executed("", "matrix", "bfloat16", 10**12)
    assert utilisation([products, Executed("", "vector", "float32", 10**10)], chip, 1.0).mfu
    found = utilisation([products, Executed("", "vector", "float32", 10**13)], chip, 1.0)
    assert found.mfu is None
    assert "float32" in found.because


def test_a_trace_of_another_format_does_not_forbid_it() -> None:
    work = executed(bitwatt.totals(make_run([mm(1000, "float16", 1000), mm(100, "bfloat16")]), "flops").entries)
    assert utilisation(work, find("Tesla T4"), 1.0).mfu == pytest.approx(2e12 / 65e12)


def test_money_is_electricity_and_hours() -> None:
    """3600 J x 1.2 = 1.2 Wh at 0.30 a kWh; one GPU for 12 s at 3.00 an hour."""
    found = cost(metered(), settings("/", pue=1.2, price_per_kwh=0.3, price_per_device_hour=3, currency="EUR"))
    assert found.energy == pytest.approx(0.00036)
    assert found.devices == pytest.approx(0.01)
    assert found.total == pytest.approx(0.01036)
    assert (found.currency, found.device_hours) == ("EUR", pytest.approx(12 / 3600))


def test_money_without_prices_or_energy_is_none_with_the_reason() -> None:
    assert cost(metered(), Settings()).total is None
    assert "price_per_kwh is not set" in cost(metered(), Settings()).because
    assert cost(Metered(1.0), settings("/", price_per_kwh=0.3)).energy is None
    assert device_hours(Metered(7200.0)) == 2  # the host's
