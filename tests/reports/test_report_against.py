"""A run beside others of its task, and machines over many runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bitwatt
from bitwatt import grid
from bitwatt.cli import main
from bitwatt.config import settings
from bitwatt.fingerprint import summary
from bitwatt.ledger import Row
from bitwatt.readings import Device, Energy, Metered
from bitwatt.records import Machine, Op, Rank, Run
from bitwatt.store import save
from factories import make_run, mm_op

H200 = ("gpu:1", "gpu", "NVIDIA H200")


def run(number: int, joules: float | None = 100.0, *devices: tuple[str, str, str], **fields: Any) -> Run:
    """1 GFLOP a call, 1,000 calls: 1 TFLOP, in float32."""
    how = fields.pop("how", "measured")
    parts = tuple(Energy(Device(*one), joules, how, "a counter", 10.0, 10.0) for one in devices or (H200,))
    rows = [Row("forward", "", mm_op(1000, 1000, 500, fields.pop("dtype", "float32")), fields.pop("calls", 1000))]
    rows += [Row("forward", "", Op("no.such"), 1)] if fields.pop("missing", False) else []
    facts = {"cpu": "A Processor", "cores": "8", "machine id": fields.pop("machine", "m1")}
    return make_run(rows, **{"id": f"2026010{number}-000000-{number:06}", "name": "task", "seconds": 10.0,
                             "meter": Metered(10.0, parts), "machine": Machine(facts), **fields})  # fmt: skip


def said(one: Run, *others: Run, **options: Any) -> str:
    text = bitwatt.report(one, width=100, settings=settings("/", **options), against=others)
    return " ".join(text.partition("\nAgainst: ")[2].partition("\n\n")[0].split())


def test_a_run_is_placed_beside_another_with_the_rule() -> None:
    text = said(run(1, 50.0), run(2, 100.0, dtype="bfloat16"))
    assert text.startswith("task (20260102-000000-000002): low energy but high BOPs: efficient only by its hardware")
    assert "this run: 1 TFLOP · 32 TBOP · 50 J" in text
    assert "rule: FLOPs 1×, BOPs 2×, energy 0.5×, BOPs per FLOP 2× the reference; alike within 10 %" in text
    document = json.loads(bitwatt.report(run(1, 50.0), format="json", against=[run(2)]))["against"]
    assert document["ratios"]["energy"] == 0.5
    assert document["words"] == "efficient on all three"
    assert document["runs"] == ["20260102-000000-000002"]
    for format in ("markdown", "html"):
        assert "efficient on all three" in bitwatt.report(run(1, 50.0), format=format, against=[run(2)])
    assert json.loads(bitwatt.report(run(1), format="json")).get("against") is None


def test_several_are_one_by_their_median() -> None:
    text = said(run(1, 100.0), run(2, 100.0), run(3, 200.0), run(4, 400.0))
    assert text.startswith("median of 3 runs: efficient on all three")
    assert "energy 0.5×" in text


def test_what_is_unknown_modelled_or_missing_is_marked() -> None:
    assert "unknown: the energy of one of them was not measured" in said(run(1), run(2, None))
    assert "unknown: the energy" in said(run(1), run(2, how="modelled"))
    assert "modelled 100 J" in said(run(1), run(2, how="modelled"), show_modelled=True)
    assert "≥ 1 TFLOP" in said(run(1, missing=True), run(2))
    assert "unknown: the work of one of them was not counted" in said(run(1), run(2, calls=0))


def test_only_energy_of_the_same_devices_is_compared() -> None:
    both, cpu = run(2, 100.0, H200, ("cpu:0", "cpu", "package")), run(3, 700.0, ("cpu:0", "cpu", "package"))
    text = said(run(1, 100.0), both)
    assert "energy 1×" in text
    assert "energy: of gpu, which was measured in all; without cpu" in text
    text = said(run(1, 100.0), cpu)
    assert "energy 0.143×" in text
    assert "some with accelerators, others without: all that was measured of each" in text


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    runs = [
        run(1, 100.0), run(2, 300.0), run(3, 200.0), run(4, 900.0, machine="m2"), run(5, 50.0, name="another"),
        run(6, 4000.0, ("cpu:0", "cpu", "package")), run(7, None), run(8, how="modelled"), run(9, calls=0, id="empty"),
    ]  # fmt: skip
    for one in runs:
        save(one, tmp_path, summary=summary(one))
    return tmp_path


def surveyed(capsys: pytest.CaptureFixture[str], kept: Path, *more: str) -> Any:
    assert main(["machines", "--store", str(kept), "--format", "json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_machines_have_their_spread(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = surveyed(capsys, kept, "task")
    by_id = {(one["machine"], one["id"]): one for one in found["machines"]}
    first = by_id["NVIDIA H200", "m1"]["ratios"]
    assert first["j_per_tflop"] == pytest.approx({"runs": 3, "median": 200.0, "least": 100.0, "greatest": 300.0})
    assert first["j_per_tbop"]["median"] == pytest.approx(200 / 32)
    assert "g_per_tflop" not in first  # no place is known
    assert by_id["NVIDIA H200", "m2"]["ratios"]["j_per_tflop"]["runs"] == 1
    assert by_id["A Processor, 8 threads", "m1"]["energy_of"] == "cpu"
    assert found["left_out"] == {"without measured energy": 2, "without counted work": 1}
    assert len(surveyed(capsys, kept)["machines"]) == 3


def test_machines_say_why_grams_are_unknown_and_ask_only_of_runs_they_show(
    kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    real = grid.ask
    monkeypatch.setattr(grid, "ask", lambda *args: asked.append(args) or real(*args))
    (why, runs), *_ = surveyed(capsys, kept, "task")["without_carbon"].items()
    assert why == "no country, intensity or grid provider is set"
    assert runs == len(asked) == 5  # three, one and one: not the two without energy, nor that without work
    assert main(["machines", "task", "--store", str(kept)]) == 0
    assert f"CO2e of 5 runs unknown: {why}" in " ".join(capsys.readouterr().out.split())


def test_grams_and_modelled_energy_are_shown_where_asked_for(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = surveyed(capsys, kept, "task", "--intensity-g-per-kwh", "360", "--show-modelled")
    by_name = {(one["machine"], one["id"]): one["ratios"] for one in found["machines"]}
    assert by_name["NVIDIA H200", "m1"]["g_per_tflop"]["median"] == pytest.approx(200 / 3.6e6 * 360)
    assert by_name["NVIDIA H200, modelled", "m1"]["j_per_tflop"]["runs"] == 1
    assert found["left_out"] == {"without measured energy": 1, "without counted work": 1}


def test_machines_as_text_and_markdown(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["machines", "task", "--store", str(kept), "--intensity-g-per-kwh", "360"]) == 0
    text = capsys.readouterr().out
    rows = [line for line in text.splitlines() if line.startswith("NVIDIA H200 (m1)")]
    assert "3  200 (100 to 300)" in rows[0]
    assert "20 mg (10 mg to 30 mg)" in rows[1]
    assert "left out: 1 run without counted work, 2 runs without measured energy" in text
    assert max(map(len, text.splitlines())) <= 100
    assert main(["machines", "task", "--store", str(kept), "--format", "markdown"]) == 0
    assert "| NVIDIA H200 (m1) | gpu | 3 | 200 (100 to 300) |" in capsys.readouterr().out
    assert main(["machines", "nobody", "--store", str(kept)]) == 2
    assert "no run called 'nobody' is kept" in capsys.readouterr().err
    assert main(["machines", "--store", str(kept), "--format", "html"]) == 2
    assert "text, markdown, json" in capsys.readouterr().err


def test_ranks_of_a_job_are_one_run_of_a_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both ranks read the same counter of 100 J, and each did 1 TFLOP: 50 J for each."""
    from bitwatt.ranks.shares import shares
    from bitwatt.readings import metered_json

    for number in (0, 1):
        one = run(number + 1, id=f"r{number}", rank=Rank(number, 2, "job", machine="n1"))
        assert one.meter is not None
        told = summary(one) | {"ranks": shares(one), "meter": metered_json(one.meter)}
        save(one, tmp_path, summary=told)
    (found,) = surveyed(capsys, tmp_path)["machines"]
    assert found["ratios"]["j_per_tflop"] == pytest.approx({"runs": 1, "median": 50, "least": 50, "greatest": 50})
    assert main(["report", "--ranks", "--store", str(tmp_path), "--intensity-g-per-kwh", "360",
                 "--price-per-kwh", "0.36", "--currency", "EUR"]) == 0  # fmt: skip
    text = capsys.readouterr().out
    assert "energy: 100 J measured (1 device, each once)" in text
    assert "carbon, cost: 10 mg CO2e (360 g/kWh, the user's number, --intensity-g-per-kwh; PUE not applied)" in text
    assert "· 0.00001 EUR" in text
    assert main(["report", "--ranks", "--store", str(tmp_path), "--format", "json", "--price-per-kwh", "0.36"]) == 0
    told = json.loads(capsys.readouterr().out)["energy"]
    assert told["cost"]["total"] == pytest.approx(1e-5)
    assert told["carbon"]["total_g"] is None
    assert main(["join", "--store", str(tmp_path)]) == 0
    capsys.readouterr()
    assert main(["report", "job", "--store", str(tmp_path), "--intensity-g-per-kwh", "360"]) == 0
    assert "10 mg CO2e" in capsys.readouterr().out
    (again,) = surveyed(capsys, tmp_path)["machines"]  # the joined run stands for its ranks
    assert again["ratios"]["j_per_tflop"]["runs"] == 1


def test_the_command_places_a_run_beside_others(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--store", str(kept)]
    assert main(["report", "20260101", "--against", "20260102", *where]) == 0
    assert "Against: task (20260102-000000-000002): efficient on all three" in capsys.readouterr().out
    assert main(["report", "20260101", "--against", "median", *where]) == 0
    assert "Against: median of 7 runs: " in capsys.readouterr().out
    assert main(["report", "another", "--against", "median", *where]) == 2
    assert "no other run is called 'another'" in capsys.readouterr().err
    assert main(["report", "20260101", "--against", "nobody", *where]) == 2
