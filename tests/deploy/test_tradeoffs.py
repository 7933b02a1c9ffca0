"""Rows of hardware_tradeoffs.csv and what they are made of: definitions, gaps, files that come back."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import studies

from bitwatt.deploy.documents import as_json, of_json
from bitwatt.deploy.records import Footprint, Joules, Plan, Quality, Study
from bitwatt.deploy.telling import raw
from bitwatt.deploy.telling.findings import found, read
from bitwatt.deploy.telling.tradeoffs import COLUMNS, csv_of
from bitwatt.errors import BitwattError

ASKED = [
    "scenario", "precision_mode", "batch_size", "threads", "accuracy", "latency_ms_per_sample",
    "throughput_samples_per_sec", "memory_mb", "rss_mb", "cpu_percent_avg", "energy_uj_measured", "energy_mj_proxy",
    "preprocess_ms", "linear_operator_ms", "postprocess_ms", "memory_bandwidth_gbps", "memory_pressure_index",
]  # fmt: skip


@pytest.fixture(scope="module")
def findings():
    return found(studies.study(), studies.calls(studies.MICROSECONDS, control="sklearn-fp64", noise=0.001))


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_columns_have_the_names_that_were_asked_for(findings):
    assert list(COLUMNS)[:17] == ASKED
    assert next(csv.reader(io.StringIO(csv_of(findings.rows)))) == list(COLUMNS)


def test_the_guide_tells_every_column():
    page = (Path(__file__).parents[2] / "docs" / "guides" / "deployment.md").read_text(encoding="utf-8")
    assert [name for name, how in COLUMNS.items() if f"| `{name}` | {how} |" not in page] == []


def test_a_row_for_each_scenario_batch_and_number_of_threads(findings):
    cells = [(row["scenario"], row["batch_size"], row["threads"]) for row in findings.rows]
    assert cells == [(name, batch, 1) for name in studies.MICROSECONDS for batch in (1, 32)]


def test_every_value_is_what_its_definition_says(findings):
    row = next(row for row in findings.rows if (row["scenario"], row["batch_size"]) == ("onnx-fp32", 32))
    assert row["p50_ms"] == pytest.approx(0.080, rel=0.01)
    assert row["latency_ms_per_sample"] == pytest.approx(row["p50_ms"] / 32)
    assert row["throughput_samples_per_sec"] == pytest.approx(32 / (row["p50_ms"] / 1000))
    assert row["cpu_percent_avg"] == pytest.approx(50, abs=0.1)
    assert row["energy_mj_proxy"] == pytest.approx(row["latency_ms_per_sample"] * row["cpu_percent_avg"])
    assert row["memory_bandwidth_gbps"] == pytest.approx(8000 * 32 / (row["p50_ms"] / 1000) / 1e9)
    assert row["memory_pressure_index"] == pytest.approx(80 / row["throughput_samples_per_sec"])
    assert (row["memory_mb"], row["rss_mb"], row["cold_start_ms"]) == (80, 100, 65)
    assert row["ratio_to_native"] == pytest.approx(0.1, rel=0.02)
    assert row["ratio_to_native_low"] < row["ratio_to_native"] < row["ratio_to_native_high"]
    assert (row["verdict_to_native"], row["verdict_to_onnx"]) == ("faster", None)
    assert row["p50_ms"] <= row["p90_ms"] <= row["p95_ms"] <= row["p99_ms"] <= row["max_ms"]


def test_the_breakdown_is_by_batch(findings):
    one, many = (
        next(row for row in findings.rows if (row["scenario"], row["batch_size"]) == ("onnx-fp32", batch))
        for batch in (1, 32)
    )
    assert (one["preprocess_ms"], one["linear_operator_ms"], one["postprocess_ms"]) == (0, 0.015, 0.002)
    assert one["unattributed_ms"] == pytest.approx(0.003)
    assert many["linear_operator_ms"] is None


def test_what_is_not_known_is_empty_and_not_0():
    known = studies.scenario(
        "a", memory=None, counts={}, joules={}, quality=Quality("accuracy", None), baseline="native"
    )
    rows = found(studies.study(known), studies.calls({"a": 10.0})).rows
    [line, _] = lines(csv_of(rows))
    for column in ("memory_mb", "rss_mb", "accuracy", "energy_uj_measured", "memory_bandwidth_gbps", "flips",
                   "memory_pressure_index", "preprocess_ms", "ratio_to_native", "flops"):  # fmt: skip
        assert line[column] == "", column
    assert float(line["latency_ms_per_sample"]) > 0


def test_numbers_that_are_none_are_empty():
    prints = {1: Footprint(1, math.nan, math.inf, None, None, 1.0, 1.0, None)}
    known = studies.scenario("a", footprint=prints, joules={"1x1": Joules(math.nan)}, baseline="native")
    [line, _] = lines(csv_of(found(studies.study(known), studies.calls({"a": 10.0})).rows))
    assert (line["memory_mb"], line["rss_mb"], line["energy_uj_measured"], line["cold_start_ms"]) == ("", "", "", "")


def test_a_failure_is_one_row_that_says_why():
    failed = studies.scenario("onnx-int8", failure="no opset\nknows it", artefact=None)
    rows = found(
        studies.study(*studies.usual()[:2], failed), studies.calls({"sklearn-fp64": 200, "onnx-fp32": 20})
    ).rows
    [line] = [line for line in lines(csv_of(rows)) if line["scenario"] == "onnx-int8"]
    assert line["failure"] == "no opset knows it"
    assert {line[name] for name in COLUMNS if name not in ("scenario", "failure", "runtime")} == {""}


def test_no_spreadsheet_computes_a_name():
    name = "=cmd()|'/c calc'!A0"
    rows = found(studies.study(studies.scenario(name, baseline="native")), studies.calls({name: 10.0})).rows
    assert all(line["scenario"].startswith("'=") for line in lines(csv_of(rows)))


def test_without_times_there_are_rows_without_times():
    rows = found(studies.study(), []).rows
    assert len(rows) == 6
    assert {row["latency_ms_per_sample"] for row in rows} == {None}


def test_raw_times_come_back(tmp_path):
    calls = studies.calls({"a, b": 10.0, 'c "d"': 20.0})
    calls[0] = replace(calls[0], warm=False)
    raw.write(calls, tmp_path / raw.NAME)
    assert raw.read(tmp_path / raw.NAME) == calls


@pytest.mark.parametrize(("text", "said"), [
    ("scenario,batch\na,1\n", "lacks the columns process"),
    ("process,block,position,scenario,batch,threads,call,wall_ns,cpu_ns\n0,0,0,a,1,1,0,fast,1\n", "line 2"),
])  # fmt: skip
def test_a_table_of_times_that_is_none_is_told_of(tmp_path, text, said):
    (tmp_path / raw.NAME).write_text(text)
    with pytest.raises(BitwattError, match=said):
        raw.read(tmp_path / raw.NAME)


def test_what_is_told_again_from_files_is_the_same(tmp_path, findings):
    findings.save(tmp_path)
    again = read(tmp_path)
    assert again.summary() == findings.summary()
    assert csv_of(again.rows) == csv_of(findings.rows) == (tmp_path / "hardware_tradeoffs.csv").read_text()


def test_a_study_comes_back_from_json():
    study = studies.study(data=studies.checked_data())
    written = json.dumps(as_json(study), allow_nan=False)
    assert as_json(of_json(Study, json.loads(written))) == as_json(study)
    back = of_json(Study, json.loads(written))
    assert back.scenarios == study.scenarios
    assert back.plan == study.plan


def test_odd_numbers_come_back():
    quality = Quality("accuracy", math.nan, (-math.inf, math.inf))
    back = of_json(Quality, json.loads(json.dumps(as_json(quality), allow_nan=False)))
    assert math.isnan(back.value)
    assert back.interval == (-math.inf, math.inf)


def test_fields_of_other_versions_are_no_trouble():
    raw_plan = as_json(Plan()) | {"of_tomorrow": 1}
    del raw_plan["seed"]
    assert of_json(Plan, raw_plan) == Plan()


@pytest.mark.parametrize("spoiled", [
    {}, {"case": 3}, [], {"case": {}, "machine": {}, "versions": {}, "plan": {"batches": "many"}, "scenarios": [],
                          "started": "", "seconds": 1},
])  # fmt: skip
def test_a_document_that_is_no_study_is_told_of(spoiled):
    with pytest.raises(BitwattError, match="no Study"):
        of_json(Study, spoiled)


def test_the_verdicts_are_called_as_the_statistics_call_them():
    from bitwatt.deploy import statistics
    from bitwatt.deploy.telling import duels

    ours = (duels.FASTER, duels.SLOWER, duels.EQUIVALENT, duels.UNSHOWN)
    assert ours == (statistics.FASTER, statistics.SLOWER, statistics.EQUIVALENT, statistics.NO_DIFFERENCE)
