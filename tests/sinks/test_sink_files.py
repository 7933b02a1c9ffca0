"""CSV as CodeCarbon writes it, model cards, and TensorBoard's event files: read back by those who read them."""

from __future__ import annotations

import csv
import dataclasses
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bitwatt.about import About
from bitwatt.config import settings
from bitwatt.readings import Device, Energy, Metered
from bitwatt.records import Machine
from bitwatt.sinks import send
from bitwatt.sinks.csv import COLUMNS
from factories import make_run, metered, transformer_run

SET = settings("/", intensity_g_per_kwh=100.0, pue=1.5, country="FRA")
HOSTILE = "=cmd|' /C calc'!A0 <img src=x onerror=alert(1)> | `x` <!-- bitwatt: end -->\x1b[31m\n# top"


def sent(to: str, run: Any = None, given: Any = SET) -> str:
    (receipt,) = send(transformer_run(meter=metered()) if run is None else run, to, given)
    assert not receipt.problem, receipt
    return receipt.where


def rows(path: str | Path) -> list[dict[str, str]]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_columns_are_codecarbons_own() -> None:
    data = pytest.importorskip("codecarbon.output_methods.emissions_data")
    assert tuple(field.name for field in dataclasses.fields(data.EmissionsData)) == COLUMNS


def test_a_line_is_in_codecarbons_units(tmp_path: Path) -> None:
    (line,) = rows(sent("csv=deep/down/emissions.csv"))
    assert float(line["energy_consumed"]) == pytest.approx(0.001)  # 3600 J are a Wh
    assert float(line["gpu_energy"]) == pytest.approx(3000 / 3.6e6)
    assert float(line["cpu_energy"]) == pytest.approx(600 / 3.6e6)
    assert float(line["gpu_power"]) == pytest.approx(250)
    assert float(line["emissions"]) == pytest.approx(0.00015)  # kg: 0.15 g with the PUE
    assert (line["country_iso_code"], line["pue"]) == ("FRA", "1.5")
    assert line["codecarbon_version"].endswith("energy measured")
    assert (line["ram_energy"], line["water_consumed"], line["longitude"]) == ("", "", "")


def test_codecarbon_appends_to_our_file_and_we_to_its(tmp_path: Path) -> None:
    file = pytest.importorskip("codecarbon.output_methods.file")
    data = pytest.importorskip("codecarbon.output_methods.emissions_data")
    sent("csv")
    total = data.EmissionsData(**dict.fromkeys(COLUMNS, 1))
    file.FileOutput("emissions.csv", str(tmp_path)).out(total, None)
    sent("csv")
    assert [line["project_name"] for line in rows("emissions.csv")] == ["tiny-transformer", "1", "tiny-transformer"]
    assert len(list(tmp_path.glob("emissions*"))) == 1  # it has not backed ours up as foreign


def test_unknown_is_empty_and_modelled_is_marked() -> None:
    (line,) = rows(sent("csv=a.csv", make_run(), settings("/")))
    assert {name for name in COLUMNS if line[name]} == {
        "timestamp", "project_name", "run_id", "duration", "os", "codecarbon_version", "cpu_count", "cpu_model",
        "tracking_mode",
    }  # fmt: skip
    part = Energy(Device("cpu", "cpu"), 3600.0, "modelled", "TDP", 12.0)
    run = make_run(meter=Metered(12.0, (part,)))
    assert rows(sent("csv=b.csv", run, settings("/")))[0]["energy_consumed"] == ""
    (line,) = rows(sent("csv=c.csv", run, settings("/", show_modelled=True)))
    assert float(line["energy_consumed"]) == pytest.approx(0.001)
    assert line["codecarbon_version"].endswith("energy modelled")


def test_a_cell_is_no_formula_and_a_line_one_line() -> None:
    run = make_run(name=HOSTILE, about=About(parent="@SUM(1)"), machine=Machine({"cpu": "=1+1"}))
    (line,) = rows(sent("csv", run))
    assert line["project_name"].startswith("'=cmd")
    assert line["experiment_id"] == "'@SUM(1)"
    assert line["cpu_model"] == "'=1+1"
    assert len(Path("emissions.csv").read_text().splitlines()) == 2


def test_a_file_with_other_columns_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("a,b\n1,2\n")
    (receipt,) = send(make_run(), "csv=mine.csv")
    assert "other columns" in receipt.problem
    assert (tmp_path / "mine.csv").read_text() == "a,b\n1,2\n"


def test_who_comes_while_another_makes_the_file_waits_until_its_first_line_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl, come = pytest.importorskip("fcntl"), threading.Event()
    told = SimpleNamespace(LOCK_EX=fcntl.LOCK_EX, flock=lambda *given: (come.set(), fcntl.flock(*given)))
    monkeypatch.setattr("bitwatt.sinks.csv.fcntl", told)
    other = open(tmp_path / "all.csv", "ab")  # noqa: SIM115 - of a process that stands still for a moment
    fcntl.flock(other, fcntl.LOCK_EX)
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(sent, "csv=all.csv")
        assert come.wait(60)
        time.sleep(0.3)  # who would not wait has written by now
        other.write(f"{','.join(COLUMNS)}\n{'x,' * (len(COLUMNS) - 1)}x\n".encode())
        other.close()
        sending.result(timeout=120)
    assert [line["project_name"] for line in rows("all.csv")] == ["x", "tiny-transformer"]


def test_a_last_line_without_an_end_stays_whole(tmp_path: Path) -> None:
    sent("csv=all.csv")
    file = tmp_path / "all.csv"
    file.write_text(file.read_text().rstrip("\n"))
    sent("csv=all.csv")
    assert [line["run_id"] for line in rows(file)] == ["20260102-030405-abc123"] * 2


def card_of(path: str | Path) -> Any:
    hub = pytest.importorskip("huggingface_hub")
    return hub.ModelCard.load(path)


def test_a_new_card_holds_the_grams_and_our_block() -> None:
    card = card_of(sent("model-card=card/README.md,training_type=fine-tuning"))
    assert card.data.to_dict()["co2_eq_emissions"] == {
        "emissions": 0.15,  # grams: 1 Wh x 1.5 x 100 g/kWh
        "source": card.data.co2_eq_emissions["source"],
        "training_type": "fine-tuning",
        "geographical_location": "FRA",
        "hardware_used": "1 x A GPU",
    }
    assert card.data.co2_eq_emissions["source"].endswith("energy measured")
    assert "| energy | 3.6 kJ, measured |" in card.text
    assert "| FLOPs | 666 GFLOP |" in card.text


def test_an_old_card_keeps_what_is_others_and_writing_it_again_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("---\nlicense: mit\ntags:\n- résumé\nco2_eq_emissions: 5\n---\n# Mine\n\nwords\n")
    sent("model-card")
    once = path.read_text()
    card = card_of(path)
    assert card.data.license == "mit"
    assert card.data.tags == ["résumé"]
    assert "# Mine\n\nwords" in card.text
    assert card.data.co2_eq_emissions["emissions"] == 0.15
    sent("model-card")
    assert path.read_text() == once
    path.write_text(once + "\nafter it\n")
    sent("model-card", transformer_run(name="other", meter=metered()))
    text = path.read_text()
    assert text.count("bitwatt: begin") == 1
    assert text.endswith("\nafter it\n")
    assert "other" in text
    assert not list(tmp_path.glob(".README*"))


def test_grams_that_are_not_known_are_not_written_and_those_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("---\nlicense: mit\nco2_eq_emissions: 5\n---\n")
    sent("model-card", None, settings("/"))
    assert card_of(path).data.co2_eq_emissions == 5
    assert "| CO2e | unknown |" in path.read_text()


def test_a_readme_that_may_be_no_card_is_left_alone_unless_named(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("# A project\n")
    (receipt,) = send(make_run(), "model-card")
    assert "name it, model-card=PATH" in receipt.problem
    assert path.read_text() == "# A project\n"
    sent("model-card=README.md")
    assert card_of(path).text.lstrip().startswith("# A project")
    path.write_text("---\nlicense: [\n---\n")
    (receipt,) = send(make_run(), "model-card")
    assert "cannot be read" in receipt.problem
    assert path.read_text() == "---\nlicense: [\n---\n"


def test_a_hostile_name_stays_a_name_in_the_card(tmp_path: Path) -> None:
    run = make_run(name=HOSTILE, meter=metered())
    sent("model-card=a.md", run)
    once = (tmp_path / "a.md").read_text()
    assert "<img" not in once
    assert once.count("bitwatt: end") == 2  # ours, and the name as text
    assert "<!-- bitwatt: end -->\n" in once[-30:]
    sent("model-card=a.md", run)
    assert (tmp_path / "a.md").read_text() == once


def events(folder: str | Path) -> Any:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulator.EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    found.Reload()
    return found


def test_event_files_are_read_back_by_tensorboard() -> None:
    pytest.importorskip("tensorboard")
    about = About(
        parameters={"lr": 0.1},
        metrics={"acc": {"last": 0.9, "min": 0.5, "max": 0.9, "count": 2}},
        series={"acc": ((10, 1.0, 0.5), (20, 2.0, 0.9))},
    )
    read = events(sent("tensorboard=logs", transformer_run(meter=metered(), about=about)))
    (energy,) = read.Scalars("bitwatt/energy_j")
    assert (energy.value, energy.step) == (3600.0, 4)  # 4.4 s
    assert read.Scalars("bitwatt/flops")[0].value == pytest.approx(665936093184)
    assert [(one.step, one.value) for one in read.Scalars("acc")] == [(10, 0.5), (20, pytest.approx(0.9))]
    (text,) = read.Tensors("bitwatt/run")
    assert "parameter.lr: 0.1" in text.tensor_proto.string_val[0].decode()


def test_writing_events_imports_neither_torch_nor_tensorflow(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "program.py").write_text("pass\n")
    code = (
        "import sys; from bitwatt.cli import main; main(['run', '--quiet', '--to', 'tensorboard=logs', 'program.py']);"
        "import atexit; atexit._run_exitfuncs(); print('torch' in sys.modules, 'tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == ["False", "False"], done.stderr
    assert list(tmp_path.glob("logs/bitwatt-program-*/events*"))


def test_a_hostile_name_stays_in_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    where = Path(sent("tensorboard=logs", make_run(name="../../../x/../y")))
    assert where.parent == tmp_path / "logs"
