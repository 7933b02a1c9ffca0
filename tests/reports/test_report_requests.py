"""The Requests block: rates, latencies, what 1,000 take, a month, and against training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bitwatt
from bitwatt.cli import main
from bitwatt.config import settings
from bitwatt.errors import BitwattError
from bitwatt.impact.requests import MONTH_S
from bitwatt.ledger import Row
from bitwatt.readings import Device, Energy, Metered
from bitwatt.records import Op
from bitwatt.served import Requests, bucket
from factories import make_run, mm_op, transformer_run

MADE = {"embodied_kg": 100, "embodied_lifetime_h": 10_000}
SERVED = Requests(2_000, 3, 6.0, 8.0, 0.25, {bucket(0.002): 1_900, bucket(0.2): 100})


def metered(idle_w: float | None = 75.0) -> Metered:
    """10 s at 200 W: 2 kJ, of which 750 J are the idle draw."""
    gpu = Energy(Device("gpu:1", "gpu", "A GPU"), 2_000.0, "measured", "NVML", 10.0, 200.0, idle_w=idle_w)
    return Metered(10.0, (gpu,))


def serving(**fields: Any) -> bitwatt.Run:
    return transformer_run(**{"name": "serving", "seconds": 10.0, "meter": metered(), "requests": SERVED, **fields})


def said(run: bitwatt.Run, **options: Any) -> str:
    text = bitwatt.report(run, width=100, settings=options.pop("settings", settings("/")), **options)
    return " ".join(text.partition("\nRequests: ")[2].partition("\n\n")[0].split())


def document(run: bitwatt.Run, **options: Any) -> Any:
    known = options.pop("settings", settings("/"))
    return json.loads(bitwatt.report(run, format="json", settings=known, **options))["requests"]


def test_one_line_for_the_load_and_one_for_a_thousand() -> None:
    text = said(serving())
    assert text.startswith("2,000 served, 3 failed · 200/s · p50 2.01 ms, p90 2.01 ms, p99 199 ms · busy 60.0 %")
    assert document(serving())["latency_s"] == pytest.approx({"p50": 0.002, "p90": 0.002, "p99": 0.2}, rel=0.01)
    # 2 kJ for 2,000, and 1,250 J above idle
    assert "per 1,000: 1 kJ with idle, 625 J without (measured)" in text
    each = document(serving())["per_1000"]
    flops = bitwatt.totals(serving()).total
    assert (each["energy_j"], each["active_j"], each["flops"]) == (1_000.0, 625.0, flops / 2)
    assert (each["grams"], each["cost"]) == (None, None)
    assert each["energy_wh"] == pytest.approx(1_000 / 3_600)


def test_requests_that_add_nothing_that_can_be_seen_are_not_said_to_take_0_joules() -> None:
    text = said(serving(meter=metered(1_000.0)))  # a baseline above what was drawn
    assert "1 kJ with idle, no more than the idle draw (measured)" in text
    assert " 0 J" not in text


def test_what_is_not_known_is_said_and_never_0() -> None:
    assert "1 kJ with idle, idle draw unknown" in said(serving(meter=metered(None)))
    assert "energy unknown" in said(serving(meter=None))
    assert document(serving(meter=None))["per_1000"]["energy_j"] is None
    nothing = make_run(requests=SERVED, seconds=10.0)
    assert document(nothing)["per_1000"]["flops"] is None  # no framework was watched
    idle = serving(requests=Requests())
    assert said(idle) == "none was served"
    assert document(idle)["per_1000"] is None
    assert document(idle)["latency_s"]["p50"] is None


def test_grams_and_cost_where_settings_tell_and_a_month_at_a_rate() -> None:
    known = settings("/", intensity_g_per_kwh=360, price_per_kwh=0.36, currency="EUR", requests_per_second=100)
    text, found = said(serving(), settings=known), document(serving(), settings=known)
    # 1 kJ = 1/3600 kWh, at 360 g/kWh and 0.36 EUR/kWh
    assert found["per_1000"]["grams"] == pytest.approx(0.1)
    assert found["per_1000"]["cost"] == pytest.approx(1e-4)
    assert "100 mg CO2e · 0.0001 EUR" in text
    # the idle draw all month, and 0.625 J for each of 100 requests a second
    assert found["month"]["energy_kwh"] == pytest.approx((75 + 62.5) * MONTH_S / 3.6e6)
    assert found["month"]["machines"] == 1
    assert "a month at 100/s: 263 M requests" in text
    assert "idle all month + active energy of each request" in text
    assert "a month" not in said(serving())  # no rate, no projection
    # making one machine emitted 100 kg, for 10,000 h: 10 g an hour, in both
    made = document(serving(), settings=settings("/", **MADE, intensity_g_per_kwh=360, requests_per_second=100))
    assert made["per_1000"]["grams"] == pytest.approx(0.1 + 10 * 10 / 3600 / 2)
    assert made["month"]["grams"] == pytest.approx(found["month"]["grams"] + 10 * MONTH_S / 3600)


def test_every_format_has_the_block_and_a_single_table_has_not() -> None:
    for format in ("markdown", "html"):
        text = bitwatt.report(serving(), format=format, settings=settings("/"))
        assert "Requests" in text
        assert "2,000 served" in text
    assert "2,000 served" not in bitwatt.report(serving(), by="phase")
    assert "Requests" not in bitwatt.report(transformer_run(meter=metered()))


def test_inference_against_training() -> None:
    # Training took 1.68 GJ, a request takes 1 J; it did as much work as the 2,000 requests together.
    part = Energy(Device("gpu:1", "gpu"), 1.68e9, "measured", "NVML", 10.0)
    training = transformer_run(id="trained", meter=Metered(10.0, (part,)))
    text = said(serving(), lifetime=training)
    assert "lifetime by energy: inference passes training after 1.68 G requests" in text
    assert "(training 1.68 GJ, a request 1 J)" in text
    assert "lifetime by FLOPs: inference passes training after 2.00 k requests" in text
    found = document(serving(), lifetime=training)["lifetime"]
    assert found["training"] == "trained"
    assert found["energy"]["passes_after"] == 1_680_000_001
    assert found["flops"]["passes_after"] == 2_001
    unknown = said(serving(meter=None), lifetime=training)
    assert "lifetime by energy: unknown" in unknown


def test_parts_of_a_lifetime_that_are_modelled_or_missing_are_marked() -> None:
    part = Energy(Device("cpu", "cpu"), 1000.0, "modelled", "TDP", 10.0)
    lost = Energy(Device("gpu:9", "gpu"), None, "measured", "NVML", 10.0, note="vanished")
    rows = [Row("forward", "", mm_op(64, 64, 64), 5), Row("forward", "", Op("no.such"), 1)]
    training = make_run(rows, id="trained", meter=Metered(10.0, (part, lost)))
    text = said(serving(), lifetime=training, settings=settings("/", show_modelled=True))
    assert "(training modelled 1 kJ, a request 1 J)" in text
    assert "(training ≥ 2.62 MFLOP, a request " in text
    assert "not in training's energy: gpu:9: vanished" in text
    found = document(serving(), lifetime=training, settings=settings("/", show_modelled=True))["lifetime"]
    assert found["energy"]["marks"] == {"training": "modelled", "per_request": None}
    assert found["flops"]["marks"] == {"training": "≥", "per_request": None}
    text = said(serving(), lifetime=training)
    assert "lifetime by energy: unknown: the energy of training is not known" in text
    assert "not in training's energy: cpu: modelled, gpu:9: vanished" in text


def test_the_lifetime_of_a_run_that_served_nothing_is_an_error() -> None:
    with pytest.raises(BitwattError, match="served no requests"):
        bitwatt.report(transformer_run(), lifetime=transformer_run())


def test_the_command_joins_two_kept_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bitwatt.save(serving(id="served"), tmp_path)
    bitwatt.save(transformer_run(id="trained", steps=30), tmp_path)
    assert main(["report", "served", "--store", str(tmp_path), "--lifetime", "trained"]) == 0
    assert "lifetime by FLOPs: inference passes training after" in capsys.readouterr().out
    assert main(["report", "trained", "--store", str(tmp_path), "--lifetime", "served"]) == 2
    assert "served no requests" in capsys.readouterr().err
