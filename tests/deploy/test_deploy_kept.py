"""A study as a run of the store, found again with all it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
pytest.importorskip("jsonschema")

import jsonschema
import studies

from bitwatt import store
from bitwatt.cli import main
from bitwatt.deploy.telling.kept import findings_of, keep
from bitwatt.errors import BitwattError
from bitwatt.reports.text import WIDTH
from bitwatt.store.runfile import unpacked
from factories import make_run

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "reference" / "run-file.schema.json").read_text())


@pytest.fixture(scope="module")
def findings():
    return studies.usual_findings()


def test_what_was_kept_says_the_same(findings, tmp_path):
    run, where = keep(findings, tmp_path, name="a study")
    again = findings_of(store.load(run.id, tmp_path))
    assert again.text() == findings.text()
    assert again.summary() == findings.summary()
    assert again.page() == studies.usual_page()
    assert again.calls == ()
    header, body = unpacked(Path(where).read_bytes(), where)
    for part, value in (("header", header), ("body", body)):
        jsonschema.validate(value, {"$ref": f"#/$defs/{part}", "$defs": SCHEMA["$defs"]})


def test_it_is_found_by_its_kind_and_metrics(findings, tmp_path, capsys):
    keep(findings, tmp_path)
    assert main(["ls", "--store", str(tmp_path), "parent_kind=deployment", "metric.accuracy>0.8"]) == 0
    assert "recommended=onnx-int8" in capsys.readouterr().out
    [header] = store.runs(tmp_path)
    assert header.about.metrics["latency_ms_per_sample"] == header.about.metrics["onnx-int8/latency_ms_per_sample"]
    assert header.about.metrics["sklearn-fp64/latency_ms_per_sample"]["last"] == pytest.approx(0.2, rel=0.05)
    assert "onnx-int8/energy_uj_measured" not in header.about.metrics


def test_its_report_is_what_the_study_told(findings, tmp_path, capsys):
    run, _ = keep(findings, tmp_path, name="mine")
    assert main(["report", run.id, "--store", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"run {run.id} of 2026-11-16 00:00:00: mine\n")
    assert "Take onnx-int8" in told
    assert "Production checklist" in told
    assert told.partition("\n")[2] == findings.text(WIDTH)
    assert main(["report", run.id, "--store", str(tmp_path), "--format", "markdown"]) == 0
    assert capsys.readouterr().out == findings.markdown()
    page = tmp_path / "page.html"
    assert main(["report", run.id, "--store", str(tmp_path), "--format", "html", "-o", str(page)]) == 0
    assert page.read_text() == studies.usual_page()
    assert main(["report", run.id, "--store", str(tmp_path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert main(["report", run.id, "--store", str(tmp_path), "--by", "op"]) == 2
    assert "--by: run" in capsys.readouterr().err


def test_a_list_says_what_is_recommended_and_by_which_numbers(findings, tmp_path, capsys):
    keep(findings, tmp_path, name="mine")
    assert main(["ls", "--store", str(tmp_path)]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "id",
        "name",
        "time",
        "accuracy",
        "latency_ms_per_sample",
        "throughput_samples_per_sec",
        "tags",
    ]
    assert "0.899" in line
    assert line.endswith("deployment recommended=onnx-int8")


def test_another_run_is_no_study():
    with pytest.raises(BitwattError, match="no deployment study"):
        findings_of(make_run([]))
