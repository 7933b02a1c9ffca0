"""The script for the GPU machine runs where there is no GPU, so that no time is lost there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import deploy_h200


def test_a_row_tells_speed_energy_and_agreement() -> None:
    row = {
        "scenario": "torch-bf16", "precision": "bf16", "batch": 32, "p50_ms": 4.0, "ratio": [2.0, 1.9, 2.1, "faster"],
        "uj": 640_000.0, "flops": 128_000_000_000, "agreement": 0.998, "energy_source": "NVML",
    }  # fmt: skip
    # 32 rows in 4 ms are 8,000 a second; 640 mJ for 32 rows are 20 each; 128 GFLOP for 0.64 J are 200 a joule
    assert deploy_h200._line(row) == "| torch-bf16 | bf16 | 32 | 4 | 8,000 | **2** [1.9, 2.1] | 20 | 200 | 99.8 % |"


def test_what_failed_and_what_was_not_read_is_told() -> None:
    rows = [
        {"scenario": "torch-int8", "failure": "torchao is not installed"},
        {"scenario": "torch-eager", "precision": "fp32", "batch": 1, "p50_ms": None, "ratio": None, "uj": None,
         "flops": None, "agreement": None, "energy_source": "no counter"},
    ]  # fmt: skip
    found = {"model": "m", "device": "H", "date": "d", "versions": {"torch": "2"}, "control": "equals itself"}
    page = deploy_h200.page([{**found, "rows": rows}])
    assert "torchao is not installed" in page
    assert "| torch-eager | fp32 | 1 | - | - | 1 | - | - | - |" in page
    assert "Energy: no counter." in page


def model(name: str, *rows: dict[str, Any], whole: bool = True) -> dict[str, Any]:
    about = {"device": "H", "date": "d", "versions": {}, "control": "equals itself", "whole": whole}
    return {"model": name, **about, "rows": list(rows)}


def timed(scenario: str, batch: int, ms: float, uj: float | None = None) -> dict[str, Any]:
    return {
        "scenario": scenario, "batch": batch, "precision": "fp32", "p50_ms": ms, "ratio": None, "uj": uj, "flops": None,
        "agreement": None, "energy_source": "",
    }  # fmt: skip


def test_files_are_told_together() -> None:
    first = model("a", timed("x", 1, 1.0, uj=5.0), timed("x", 32, 2.0), {"scenario": "y", "failure": "f"}, whole=False)
    again = model("a", timed("x", 1, 1.5), timed("x", 32, 2.5), timed("y", 1, 3.0))
    found = deploy_h200.merged([first, model("b", timed("x", 1, 9.0)), again])
    assert [one["model"] for one in found] == ["a", "b"]
    rows = {(row["scenario"], row["batch"]): (row["p50_ms"], row["uj"]) for row in found[0]["rows"]}
    assert rows == {("x", 1): (1.0, 5.0), ("x", 32): (2.5, None), ("y", 1): (3.0, None)}, "who knows more, then later"
    assert "Not whole" in deploy_h200.page(found)
    assert "Not whole" not in deploy_h200.page(found[1:])


def test_the_budget_ends_what_takes_longer() -> None:
    with pytest.raises(deploy_h200.OutOfTimeError, match="spent"), deploy_h200.budget(0.05):
        time.sleep(600)
    with deploy_h200.budget(0):
        time.sleep(0.1)


@pytest.mark.slow
def test_what_was_measured_is_kept_when_it_is_ended(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    plan = ["--processes", "500", "--blocks", "5", "--batches", "1", "--scenarios", "torch-eager,onnx-fp32"]
    command = [sys.executable, deploy_h200.__file__, "--tiny", "--device", "cpu", "--models", "bert-base,vit-base"]
    child = subprocess.Popen([*command, "--json", str(file), *plan], stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 300
    while not file.exists() and time.monotonic() < until:  # after the first process that timed
        time.sleep(0.2)
    child.send_signal(signal.SIGTERM)
    told, _ = child.communicate(timeout=240)
    assert child.returncode == 0
    (found,) = json.loads(file.read_text())
    assert (found["model"], found["whole"]) == ("bert-base", False)
    assert {row["scenario"] for row in found["rows"] if row["p50_ms"]} == {"torch-eager", "onnx-fp32"}
    assert "Not whole" in told


@pytest.mark.slow
@pytest.mark.parametrize("name", list(deploy_h200.MODELS))
def test_each_network_goes_through(name: str, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    plan = ["--processes", "2", "--blocks", "5", "--batches", "1,4", "--scenarios", "torch-eager,onnx-fp32"]
    deploy_h200.main(["--tiny", "--device", "cpu", "--models", name, "--json", str(file), *plan])
    (found,) = json.loads(file.read_text())
    assert {row["scenario"] for row in found["rows"]} == {"torch-eager", "onnx-fp32"}
    assert all("failure" not in row and row["p50_ms"] > 0 and row["agreement"] == 1 for row in found["rows"])
    deploy_h200.main(["--render", str(file), "--page", str(tmp_path / "page.md")])
    assert f"## {name}" in (tmp_path / "page.md").read_text()


def test_the_page_in_the_docs_is_that_of_the_stored_rows() -> None:
    docs = Path(__file__).parents[2] / "docs"
    found = json.loads((docs / "tables" / "deployment-h200.json").read_text(encoding="utf-8"))
    assert (docs / "deployment-h200.md").read_text(encoding="utf-8") == deploy_h200.page(found)


def test_the_least_energy_in_the_largest_batches_is_told() -> None:
    rows = [
        {"scenario": "torch-eager", "batch": 1, "uj": 1.0},
        {"scenario": "torch-eager", "batch": 8, "uj": 900.0},
        {"scenario": "torch-bf16", "batch": 8, "uj": 300.0},
        {"scenario": "torchao-int8", "batch": 8, "uj": None},
        {"scenario": "torch-compile", "failure": "it was not built"},
    ]
    told = "At batch 8 torch-bf16 takes the least energy: torch-eager takes 3 times as much."
    assert deploy_h200._cheapest({"rows": rows}) == [told, ""]
    assert deploy_h200._cheapest({"rows": rows[:2]}) == []
    rows[2]["uj"] = 901.0
    assert deploy_h200._cheapest({"rows": rows}) == ["At batch 8 nothing takes less energy than torch-eager.", ""]
