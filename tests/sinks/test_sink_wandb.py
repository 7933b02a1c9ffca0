"""Weights & Biases, offline: the files that `wandb sync` would send, read back."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from passing import until

import bitwatt
from bitwatt.about import About
from bitwatt.config import settings
from bitwatt.sinks import delivery, send
from bitwatt.sinks.wandb import WeightsAndBiases
from factories import metered, transformer_run

wandb = pytest.importorskip("wandb", reason="pip install 'bitwatt[wandb]'")


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    yield
    wandb.teardown()  # it reads the environment once


def records(data: bytes) -> Iterator[bytes]:
    """W&B's file is a log as LevelDB writes it: blocks of 32 KiB; pieces with checksum, length and kind (1: whole, 2 to
    4: first, middle and last). Seven bytes of its own come before."""
    assert data[:4] == b":W&B"
    at, whole = 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield whole
            whole = b""


def read(folder: Path) -> dict[str, Any]:
    """Summary, configuration and history of one offline run."""
    from wandb.proto import wandb_internal_pb2 as protocol

    (file,) = folder.glob("*.wandb")
    found: dict[str, Any] = {"summary": {}, "config": {}, "history": [], "files": [], "run": None}
    for data in records(file.read_bytes()):
        record = protocol.Record.FromString(data)
        kind = record.WhichOneof("record_type")
        if kind == "run":
            found["run"] = record.run
            found["config"] |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        elif kind == "config":
            found["config"] |= {item.key: json.loads(item.value_json) for item in record.config.update}
        elif kind == "summary":
            for item in record.summary.update:
                found["summary"]["/".join(item.nested_key) or item.key] = json.loads(item.value_json)
        elif kind == "history":
            found["history"].append(
                {"/".join(item.nested_key) or item.key: json.loads(item.value_json) for item in record.history.item}
            )
        elif kind == "files":
            found["files"] += [one.path for one in record.files.files]
    return found


def offline_runs(tmp_path: Path) -> list[Path]:
    wandb.teardown()  # its service writes the files, and is done when it has ended
    return sorted((tmp_path / "wandb").glob("offline-run-*"))


def test_a_run_of_ours_holds_all_of_it(tmp_path: Path) -> None:
    about = About(
        parameters={"lr": 0.1}, metrics={"acc": {"last": 0.9, "min": 0.5, "max": 0.9, "count": 2}},
        series={"acc": ((10, 1.0, 0.5), (20, 2.0, 0.9))},
    )  # fmt: skip
    run = transformer_run(meter=metered(), about=about)
    (receipt,) = send(run, "wandb=mine", settings("/", intensity_g_per_kwh=100.0))
    assert not receipt.problem, receipt
    (folder,) = offline_runs(tmp_path)
    found = read(folder)
    assert found["summary"]["energy_j"] == 3600.0
    assert found["summary"]["energy_j_how"] == "measured"
    assert found["summary"]["flops"] == bitwatt.totals(run).total
    assert found["summary"]["bops"] == bitwatt.totals(run, "bops").total
    assert found["config"]["lr"] == "0.1"
    assert found["config"]["bitwatt.run"] == run.id
    assert [(row["step"], row["acc"]) for row in found["history"]] == [(10, 0.5), (20, 0.9)]
    assert (found["run"].project, found["run"].display_name) == ("mine", "tiny-transformer")
    assert (folder / "files" / "bitwatt-report.html").read_text().lstrip().lower().startswith("<!doctype html")
    assert wandb.run is None  # the program has none


def test_the_programs_run_is_joined_and_its_steps_stay(tmp_path: Path) -> None:
    with wandb.init(project="theirs", config={"lr": 5}) as mine:
        mine.log({"loss": 2.0})
        with bitwatt.measure("toy", to="wandb", parameters={"lr": 1, "depth": 3}) as session:
            mine.log({"loss": 1.0})
            bitwatt.metric("loss", 1.0)
        assert wandb.run is mine
        mine.log({"loss": 0.5})
    assert not session.receipts[0].problem
    (folder,) = offline_runs(tmp_path)
    found = read(folder)
    assert [row["loss"] for row in found["history"]] == [2.0, 1.0, 0.5]
    assert [row["_step"] for row in found["history"]] == [0, 1, 2]
    assert found["summary"]["bitwatt/duration_s"] == pytest.approx(session.run.seconds)
    assert found["config"]["lr"] == 5
    assert found["config"]["depth"] == "3"


def test_the_programs_run_shows_it_live_in_its_own_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "INTERVAL", 0.1)
    monkeypatch.setattr(delivery, "SINK_SHARE", 1.0)
    shown, live = [], WeightsAndBiases.live
    monkeypatch.setattr(WeightsAndBiases, "live", lambda self, run: shown.append(live(self, run)))
    with wandb.init(project="theirs") as mine, bitwatt.measure("toy", keep=False, to="wandb=report=no"):
        for i in range(6):
            before = len(shown)
            mine.log({"loss": float(i)})
            until(lambda before=before: len(shown) > before + 1)  # the first may have begun before the step
    (folder,) = offline_runs(tmp_path)
    history = read(folder)["history"]
    assert [row["loss"] for row in history[:6]] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert [row["_step"] for row in history[:6]] == list(range(6))
    assert sum("bitwatt/duration_s" in row for row in history) >= 5


def test_a_run_that_has_ended_is_resumed_by_its_id(tmp_path: Path) -> None:
    with bitwatt.measure("toy", to="wandb") as session:
        mine = wandb.init(project="theirs")
        session.delivery.sinks[0].look()  # as it looks now and then while it runs
        mine.finish()
    assert not session.receipts[0].problem
    first, second = (read(folder)["run"] for folder in offline_runs(tmp_path))
    assert first.run_id == second.run_id == mine.id
    assert second.project == "theirs"


def test_a_program_started_by_the_command_line_is_sent_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('done')\n")
    done = subprocess.run(
        [sys.executable, "-m", "bitwatt", "run", "--to", "wandb=mine,patience=300", "program.py"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == "done\n"
    assert "sent to wandb: " in done.stderr
    (folder,) = offline_runs(tmp_path)
    assert read(folder)["summary"]["duration_s"] > 0
