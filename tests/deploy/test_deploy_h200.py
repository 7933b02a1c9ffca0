"""The script for the GPU machine runs where there is no GPU, so that no time is lost there."""

from __future__ import annotations

import json
import sys
from pathlib import Path

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
