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
from bitwatt.store.runfile import unpacked
from factories import make_run

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "run-file.schema.json").read_text())


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


def test_a_report_of_it_can_be_made(findings, tmp_path, capsys):
    run, _ = keep(findings, tmp_path)
    assert main(["report", run.id, "--store", str(tmp_path)]) == 0
    assert "onnx-int8 is recommended" in capsys.readouterr().out


def test_another_run_is_no_study():
    with pytest.raises(BitwattError, match="no deployment study"):
        findings_of(make_run([]))
